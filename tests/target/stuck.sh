#!/usr/bin/env bash
# A program may keep heaptop's thread in the kernel, where it writes to the program's memory. heaptop ends all the
# same when it is told to, and says so.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need_ptrace

start "$tmp/program" "$VICTIMS/victim_stuck"
pid=$started
wait_for "$tmp/program" '^ready'
start "$tmp/told" "$HEAPTOP" -b -d 0.2 -p "$pid"
heaptop=$started
ok "it is watched" wait_for "$tmp/told" '^# command: '
kill -USR1 "$pid"
ok "it keeps whoever touches its memory" wait_for "$tmp/program" '^laid [1-9]'
frames() { grep -c '^# command: ' "$tmp/told"; }
# two renewals of the agent's lease, half a second apart
for ((i = 0, before = -1; i < 100; i++)); do
  [ "$before" != "$(frames)" ] || break
  before=$(frames)
  sleep 1.5
done
is "no frames come any more" "$(frames)" "$before"
kill -TERM "$heaptop"
finish "$heaptop" 30
is "heaptop ends" "$status" 1
like "and says what is left" "$(cat "$tmp/told")" "didn't let itself be stopped"
kill -KILL "$pid"
done_testing
