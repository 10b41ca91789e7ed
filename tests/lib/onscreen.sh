# A watched program on a raw terminal, behind tap.sh:
#
#	on_screen NAME ACTION... -- COMMAND	a test: ptyrun does these actions (see ptyrun.c)
#	fresh		another $notes, the file that the victim tty writes what it sees to
#	noted ERE	does it say so
#	program		the victim's pid, by its notes
#	reap		kill it: what is watched must not outlive the test
#	gone PID	it was known and is no more

ptyrun=$abs_top_builddir/tests/lib/ptyrun
[ -x "$ptyrun" ] || bail_out "no ptyrun"
tty=$VICTIMS/tty
notes=/dev/null
patience=30	# seconds for each wait; a script may want more

# TSan's runtime may drop a signal that comes in the moment between two system calls (of some 60; a second one of its kind
# arrives): there it is sent to a program that waits for something.
on_screen() {
  local name=$1 word actions=()
  shift
  for word; do
    [ "$word" != --signal ] || [ -z "${TSAN_OPTIONS-}" ] || actions+=(--pause 300)
    actions+=("$word")
  done
  if timeout -k 5 $((patience * 5)) "$ptyrun" --timeout "$patience" "${actions[@]}" 2>"$tmp/err" >"$tmp/out"; then
    pass "$name"
  else
    fail "$name"
    diag_file "$tmp/err" 40
  fi
}
fresh() { notes=$(mktemp "$tmp/notes.XXXXXX"); }
noted() { grep -Eqs -- "$1" "$notes"; }
program() { sed -n 's/^ready //p' "$notes"; }
reap() {
  local pid
  pid=$(program)
  [ -n "$pid" ] && kill -KILL "$pid" 2>/dev/null
  return 0
}
gone() { [ -n "$1" ] && ! kill -0 "$1" 2>/dev/null; }
