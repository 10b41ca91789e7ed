#!/usr/bin/env bash
# The program has ended, but a child of its goes on writing into the rings, as fast as they are read. heaptop takes in
# what was there at the end, and leaves.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need_ptrace

start "$tmp/program" "$VICTIMS/victim_haunted"
pid=$started
wait_for "$tmp/program" '^ready'
"$HEAPTOP" -b -d 0.2 -p "$pid" >"$tmp/out" 2>"$tmp/err" </dev/null &
watcher=$!
tap_pids+=("$watcher")
ok "it is watched" wait_for "$tmp/out" '^# time_s'
kill -USR1 "$pid"
ok "its child has begun" wait_for "$tmp/program" '^child [1-9]'
child=$(sed -n 's/^child //p' "$tmp/program")
tap_pids+=("$child")
finish "$pid" 20
is "the program ends with its own code" "$status" 7
finish "$watcher" 20
is "heaptop ends by itself" "$status" 0
diag_file "$tmp/err"
is "of its end there is a frame" "$(header "$tmp/out" state)" exited
ok "what the child wrote was read until then" test "$(header "$tmp/out" events)" -gt 1000000
ok "the child is still at it" kill -0 "$child"
kill -KILL "$child"
done_testing
