#!/usr/bin/env bash
# Which way the second probe goes, and why not a better one: in batch, in the header at each size, in the log, in a
# snapshot; where it was chosen, where the kernel has nothing better, and nowhere if it is the agent.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
. "$abs_top_srcdir/tests/lib/onscreen.sh"
need gcc
need_ptrace
grep -q "define WITH_BPF" "$abs_top_builddir/config.h" || skip_all "built without BPF"
gcc -shared -fPIC -O1 -Wall -Wextra -Werror -o "$tmp/no_session.so" "$abs_top_srcdir/tests/lib/no_session.c" ||
  bail_out "no_session doesn't compile"
best='BPF session uprobes'
next='BPF uprobes at entries and returns'

# taken NAME OPTION...: a snapshot, and what batch says
taken() {
  local name=$1
  shift
  run 60 "$@" -b -x -q -d 0.5 -o "$tmp/$name.pb.gz" -- "$VICTIMS/known" 1 0 "$tmp/truth"
  is "$name: leaves with 0" "$status" 0
  diag_file "$tmp/err"
}
# drawn NAME SIZE OPTION...: its screen in $tmp/screen, its log in $tmp/log
drawn() {
  local name=$1 size=$2
  shift 2
  printf '%s\n' "size $size" ":save-display $tmp/screen" "key !" ":save-display $tmp/log" >"$tmp/script"
  rm -f "$tmp/screen" "$tmp/log"
  HEAPTOP_SCRIPT=$tmp/script run 20 "$HEAPTOP" "$@" -i "$tmp/$name.pb.gz"
  is "$name at $size: drawn" "$status" 0
}
first() { head -n 1 "$tmp/screen"; }

taken best "$HEAPTOP" --probe=uprobe
is "batch names it" "$(header "$tmp/out" probe)" "$best"
drawn best 120x40
like "so does the header" "$(first)" "  $best  "
like "and the log" "$(cat "$tmp/log")" "measured by $best: nothing is placed"
drawn best 80x24
like "in brief where there is less room" "$(first)" " uprobes "
drawn best 40x10
is "not where there is none" "$(first | grep -c uprobe)" 0

taken asked "$HEAPTOP" --probe=uprobe-multi
is "chosen: batch says so" "$(header "$tmp/out" probe)" "$next (as asked, not $best)"
drawn asked 120x40
like "the header says where more is" "$(first)" "  uprobes \(! log\)  "
like "the log has the rest" "$(cat "$tmp/log")" "measured by $next \(as asked, not $best\)"
drawn asked 80x24 -U
like "in brief, ASCII" "$(first)" " uprobes ! "

# as on an older kernel
export LD_PRELOAD=$tmp/no_session.so
run 60 "$HEAPTOP" --probe=uprobe -r 1 -b -x -q -d 0.5 -- env -u LD_PRELOAD "$VICTIMS/known" 1 0 "$tmp/truth"
unset LD_PRELOAD
is "without session uprobes: leaves with 0" "$status" 0
diag_file "$tmp/err"
is "batch says why" "$(header "$tmp/out" probe)" "$next (no $best, which take Linux 6.13: Invalid argument)"
ok "and every figure equals the truth" known_right "$tmp/truth" "$tmp/out"

taken agent "$HEAPTOP"
is "the agent: nothing to say" "$(header "$tmp/out" probe)" ""
drawn agent 120x40
is "nor on the screen" "$(grep -c -i uprobe "$tmp/screen")" 0

on_screen "on a live screen" --size 120x40 --expect "$best" --send '!' --expect "measured by $best" --send '\e' --send q \
  --send k --wait -- "$HEAPTOP" --probe=uprobe -- "$VICTIMS/checker" 1 0 1000 still
done_testing
