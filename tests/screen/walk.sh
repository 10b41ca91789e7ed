#!/usr/bin/env bash
# What was wrong on a walk through all screens: figures of the same row that disagreed, shares of nothing, advice that
# couldn't be followed.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
screenrun=$abs_top_builddir/tests/screen/screenrun
export LC_ALL=C.UTF-8

run_screen() { # NAME OPTION... <SCRIPT
  local name=$1
  shift
  cat >"$tmp/$name.script"
  ok "$name runs" timeout 20 "$screenrun" "$@" "$tmp/$name.script"
}
without() { ok "$1" sh -c '! grep -Eq -- "$1" "$2"' sh "$3" "$2"; }

# the samples that an error rests on: as many in Detail's title as in the status line
run_screen sampled --rate 65536 <<END
size 120x40
key Enter
:save-display $tmp/sampled
END
numbers=$(grep -o ' n=[0-9]*' "$tmp/sampled" | sort | uniq -c | awk '{ print $1 }')
is "n= is told twice, and is the same" "$numbers" 2

# nothing has changed since the mark, and before the first step there is nothing at all: no sign without its number
run_screen nothing --steps 3 <<END
size 120x40
key m D
key 1 Enter
:save-display $tmp/nothing-sites
type /png
key Enter
:save-display $tmp/nothing-found
key Esc 2 j j j
:save-display $tmp/nothing-tree
key 3
:save-display $tmp/nothing-flame
END
run_screen empty --steps 0 <<END
size 120x40
key Enter 2 j 3 j
:save-display $tmp/nothing-empty
END
for what in sites found tree flame empty; do
  # but the columns' titles
  grep -v '▼' "$tmp/nothing-$what" >"$tmp/rows"
  without "$what: each percent sign has a number" "$tmp/rows" '(^|[^0-9])%'
done

# F5 is T
run_screen f5 --threads <<END
key F5
expect whose blocks to show
END

# of several processes together there are no threads; in a file no p helps
if "$abs_top_builddir/tests/lib/can-ptrace"; then
  # shellcheck disable=SC2016 # for the inner shell
  run 60 "$HEAPTOP" -e -o "$tmp/sum.pb.gz" -- sh -c '"$0" & "$0"; wait' "$VICTIMS/known"
  printf 'size 80x24\nkey 5\n:save-display %s\nkey T\n:save-display %s\n' "$tmp/threads" "$tmp/menu" >"$tmp/script"
  HEAPTOP_SCRIPT=$tmp/script run 30 "$HEAPTOP" -i "$tmp/sum.pb.gz"
  is "a file of several opens" $status 0
  like "the header says that it is of all of them" "$(head -n 1 "$tmp/threads")" " all  "
  like "Threads: save one alone" "$(cat "$tmp/threads")" "a file of several processes has no threads: choose one \\(p\\) before it is saved"
  like "the menu: the same" "$(tail -n 2 "$tmp/menu")" "has no threads: choose one"
else
  skip "several processes" "ptrace isn't permitted here"
fi
done_testing
