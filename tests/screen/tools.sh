#!/bin/bash
# Annotated source, the setup, the editor and copying: screens of a snapshot at three sizes compared with
# tests/screen/expected/tools-*, and what needs a terminal in tmux.
#
#	tools.sh --update	writes the expected files anew: look at the difference before believing it
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
. "$abs_top_srcdir/tests/lib/tmux.sh"
need tmux
expected=$abs_top_srcdir/tests/screen/expected
update=
[ "${1-}" = --update ] && update=1
on_exit() { tmux_stop; }
unset TMUX STY VISUAL EDITOR

"$abs_top_builddir/tests/screen/make_snapshot" "$tmp/heap.pb.gz" || bail_out "no snapshot"
# the sources that its debug information names, below a folder with an odd name
tree="$tmp/it's \$(touch \"\$HOME/ran\"; echo x)"
mkdir -p "$tree" "$tmp/home" "$XDG_CONFIG_HOME/heaptop"
export HOME=$tmp/home
numbered() { awk -v n="$1" -v name="$2" 'BEGIN { for (i = 1; i <= n; i++) printf "%s\tline %d of %s;\n", i % 3 ? "" : "\t", i, name }'; }
numbered 60 queue.h >"$tree/queue.h"
numbered 120 filter.c >"$tree/filter.c"
printf '\tesc \033[31m bell \a wide \346\274\242 bad \377 end\n' >>"$tree/queue.h"
sed -i '40s/.*/\t\/\/ before/; 41s/.*/\tjobs.push_back(std::move(job));/' "$tree/queue.h"

# check NAME FILE
check() {
  if [ -n "$update" ]; then
    cp "$2" "$expected/$1"
    pass "$1 written"
  elif cmp -s "$2" "$expected/$1"; then
    pass "$1"
  else
    fail "$1" "the screen differs"
    diff -u "$expected/$1" "$2" | head -n 60 | sed 's/^/#   | /'
  fi
}

# scripted NAME OPTION...: the script of standard input on the snapshot
scripted() {
  local name=$1
  shift
  cat >"$tmp/script"
  (cd "$tmp" && HEAPTOP_SCRIPT=$tmp/script timeout 20 "$HEAPTOP" -i heap.pb.gz "$@") >"$tmp/log" 2>&1
  status=$?
  is "$name" $status 0
  [ $status = 0 ] || diag_file "$tmp/log" 50
}

cat >"$XDG_CONFIG_HOME/heaptop/heaptoprc" <<END
source-path = src=srcs
END
ln -s "$tree" "$tmp/srcs"

for size in 120x40 80x24 40x10; do
  for charset in unicode ascii; do
    dir=$tmp/$size-$charset
    mkdir -p "$dir"
    option=
    [ $charset = ascii ] && option=-U
    # shellcheck disable=SC2086 # one word or none
    scripted "$size-$charset runs" $option --copy=file <<END
size $size
key a
await jobs.push
:save-display $dir/1-source
:save-attrs $dir/2-source-styles
key G
:save-display $dir/3-source-end
key Esc
type /tmp_buffer
key Enter Esc a
await line 19 of
key v v
:save-display $dir/4-rates
key n
:save-display $dir/5-next-heavy
key N Esc
:sort live
type /leaf
key Enter a
await srcs/recurse.c: No
:save-display $dir/6-missing
key q Esc
type /SSL_CTX
key Enter a
:save-display $dir/7-no-file
key Esc F2
:save-display $dir/8-setup
key Right G k Space
:save-display $dir/9-setup-changed
END
    for file in "$dir"/*; do
      printf '===== %s\n' "${file##*/}"
      cat "$file"
    done >"$dir.all"
    check "tools-$size-$charset.txt" "$dir.all"
    ok "$size-$charset: no row is too long" test "$(wc -L <"$dir.all")" -le "${size%x*}"
    ok "$size-$charset: no control bytes" sh -c "! LC_ALL=C grep -q '[[:cntrl:]]' '$dir.all'"
    [ $charset = unicode ] || ok "$size in ASCII is ASCII" sh -c "! LC_ALL=C grep -q '[^ -~]' '$dir.all'"
  done
done

# with less on the screen it is still there; no size breaks it
for size in 1x1 19x3 25x5 60x2 400x200; do
  scripted "source and setup at $size" <<END
size $size
key a
wait 1
key n N G g Right Left v
size 80x24
await LINE
size $size
key Esc F2
key Down Down Down Down Down Down Down Down Down Down Down Down Down Down Down Down Up
END
done

# ---- copying ----
scripted "names and stacks go to a file" --copy=file <<END
key y
await copied to
END
is "the name and its place" "$(cat "$XDG_STATE_HOME/heaptop/copied.txt")" \
  "Queue<std::unique_ptr<Job, std::default_delete<Job> > >::push(std::unique_ptr<Job>&&)  src/queue.h:41"
is "for the user's eyes alone" "$(stat -c %a "$XDG_STATE_HOME/heaptop/copied.txt")" 600
scripted "a stack" --copy=file <<END
key Y
await copied to
END
is "innermost first" "$(sed -n '2s/  .*//p; 3s/  .*//p' "$XDG_STATE_HOME/heaptop/copied.txt" | tr '\n' ' ')" \
  "$(printf 'Queue<std::unique_ptr<Job, std::default_delete<Job> > >::push(std::unique_ptr<Job>&&) worker_thread(void*) ')"
scripted "a text report" <<END
key P
await saved heaptop.
END
ok "has the sites" grep -q 'worker_thread' "$tmp"/heaptop.*.txt

# ---- on a terminal ----
printf 'source-path = src=%s\n' "$tree" >"$XDG_CONFIG_HOME/heaptop/heaptoprc"
quoted() { printf '%q' "$1"; }
cat >"$tmp/editor" <<'END'
#!/bin/sh
trap 'exit 9' TERM
trap 'printf "interrupted\n" >>"$NOTES"' INT
printf '%s\n' "$@" >"$NOTES"
tty -s && printf 'on a tty\n' >>"$NOTES"
printf 'EDITOR IS HERE\n'
until read -r line; do [ -t 0 ] || exit 1; done
printf 'got %s\n' "$line" >>"$NOTES"
END
chmod +x "$tmp/editor"
notes=$tmp/notes
here="cd $(quoted "$tmp") && NOTES=$(quoted "$notes") VISUAL=$(quoted "$tmp/editor --wait")"

tmux_start 80 24
tm set -s set-clipboard on
tmux_run "$here $(quoted "$HEAPTOP") -i heap.pb.gz"
ok "the screen is there" tmux_wait 'Queue'
tmux_keys y
ok "what is copied reaches tmux's buffer" until_true 10 sh -c "tmux -S '$tmux_socket' show-buffer 2>/dev/null | grep -q '^Queue<.*queue.h:41'"

tmux_keys O
ok "the editor has the screen" tmux_wait '^EDITOR IS HERE'
is "the normal one" "$(tmux_flags | cut -d ' ' -f 1,3)" "0 0"
is "arguments as they were meant" "$(cat "$notes")" "$(printf -- '--wait\n+41\n%s/queue.h\non a tty' "$tree")"
tmux_keys hello Enter
ok "the screen is back" tmux_wait '1 Sites'
is "with its mouse" "$(tmux_flags | cut -d ' ' -f 1,3)" "1 1"
ok "the editor had the keys" grep -q '^got hello' "$notes"
nok() { ! "$@"; }
ok "nothing in a path was run" nok test -e "$HOME/ran"

tmux_keys O
tmux_wait '^EDITOR IS HERE'
for n in 1 2 3 4; do
  tmux_keys C-c
  until_true 10 sh -c "test \$(grep -c '^interrupted' '$notes') -ge $n"
done
is "Ctrl-C is the editor's" "$(grep -c '^interrupted' "$notes")" 4
tmux_keys on Enter
ok "and heaptop's screen is there as ever" tmux_wait 'F1Help'
tmux_keys q
ok "heaptop ends as ever" until_true 10 tmux_ended
is "and well" "$(tmux_status)" 0

tmux_run "$here VISUAL= EDITOR=/no/such/editor $(quoted "$HEAPTOP") -i heap.pb.gz"
tmux_wait 'Queue'
tmux_keys O
ok "no editor is said" tmux_wait '/no/such/editor: not found; VISUAL or EDITOR'
tmux_keys Escape
tmux_keys -l '/leaf'
tmux_keys Enter O
ok "no file is said before the screen is left" tmux_wait 'no source here .*source-path'
tmux_keys q

# a stopped editor is a stopped job
tmux_run "$here PS1='prompt: ' bash --norc --noprofile -i"
tmux_wait '^prompt: '
tmux_keys "$(quoted "$HEAPTOP") -i heap.pb.gz" Enter
tmux_wait 'F1Help'
tmux_keys O
tmux_wait '^EDITOR IS HERE'
tmux_keys C-z
ok "Ctrl-Z in the editor leads to the shell" tmux_wait '^prompt: *$|Stopped'
tmux_keys 'fg' Enter
tmux_keys again Enter
ok "fg back into it" wait_for "$notes" '^got again'
ok "and out of it to the screen" tmux_wait 'F1Help'
tmux_keys q
tmux_wait '^prompt: *$'
tmux_keys 'exit' Enter

# SIGTERM while the editor runs: it ends, too, and the terminal is as it was
tmux_run "$here exec $(quoted "$HEAPTOP") -i heap.pb.gz"
tmux_wait 'F1Help'
tmux_keys O
tmux_wait '^EDITOR IS HERE'
kill -TERM "$(tm display -p -t t '#{pane_pid}')"
ok "SIGTERM ends editor and heaptop" until_true 10 sh -c "! tmux -S '$tmux_socket' list-panes -t t -F '#{pane_dead}' 2>/dev/null | grep -q 0"

# themes, as the terminal gets them
mkdir -p "$XDG_CONFIG_HOME/heaptop/themes"
printf 'base = light\nheading = 201 default underline\n' >"$XDG_CONFIG_HOME/heaptop/themes/own.theme"
tmux_stop
tmux_start 80 24
tmux_run "$here $(quoted "$HEAPTOP") --theme=own -i heap.pb.gz"
tmux_wait 'TREND'
ok "a theme's colour" until_true 10 sh -c "tmux -S '$tmux_socket' capture-pane -e -p -t t | grep -a 'TREND' | grep -q '38;5;201'"
tmux_keys F2
tmux_wait 'theme    < own >'
tmux_keys Right
tmux_wait 'theme    < default >'
ok "the setup shows the others at once" until_true 10 sh -c "! tmux -S '$tmux_socket' capture-pane -e -p -t t | grep -q '38;5;201'"
tmux_keys Escape q
until_true 10 tmux_ended
tmux_run "$here NO_COLOR=1 $(quoted "$HEAPTOP") --theme=own -i heap.pb.gz"
tmux_wait 'TREND'
is "NO_COLOR comes before a theme" "$(tmux_capture -e | grep -c '38;5;')" 0
tmux_keys q

# over a launched program's terminal: its output goes on meanwhile
need_ptrace
printf 'source-path = tests/victims=%s\n' "$abs_top_srcdir/tests/victims" >>"$XDG_CONFIG_HOME/heaptop/heaptoprc"
tmux_run "$here $(quoted "$HEAPTOP") --no-follow $(quoted "$VICTIMS/demo")"
ok "a program is watched" tmux_wait 'audit_append|intern' 30
tmux_keys -l '/intern|audit_append'
tmux_keys Enter
tmux_keys Space
tmux_keys O
if tmux_wait '^EDITOR IS HERE' 20; then
  pass "the editor over its screen"
  tmux_keys bye Enter
  ok "back" tmux_wait '1 Sites' 20
else
  fail "the editor over its screen"
  tmux_capture | sed 's/^/#   | /'
fi
tmux_keys q k
ok "ended" until_true 20 tmux_ended
done_testing
