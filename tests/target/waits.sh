#!/usr/bin/env bash
# A thread of the program that waits for room in a ring sleeps: heaptop, for which it waits, needs the processors.
# heaptop is stopped, so that the wait lasts until the lease is over; how often it slept the victim tells.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need_ptrace
"$VICTIMS/victim_waits" >"$tmp/said" 2>&1 &
pid=$!
tap_pids+=("$pid")
wait_for "$tmp/said" '^ready'
"$HEAPTOP" -e -b -d 0.5 -p "$pid" >"$tmp/out" 2>"$tmp/err" </dev/null &
watcher=$!
tap_pids+=("$watcher")
# by then heaptop has looked for a seccomp filter, without which the agent may call the kernel
frames() { [ "$(grep -c '^# time_s' "$tmp/out")" -ge 5 ]; }
ok "watched" until_true 60 frames
kill -STOP "$watcher"
ok "its calls wait for heaptop" until_true 60 grep -q '^waited' "$tmp/said"
finish "$pid" 60
is "it goes on, and ends" "$status" 7
kill -CONT "$watcher"
finish "$watcher" 60
is "heaptop leaves with 0" "$status" 0
diag_file "$tmp/err"
diag_file "$tmp/said"
# each nap but the first is a millisecond or what a busy machine makes of it; who yields does so not at all or far
# more often, as others are there to run or not
ok "and sleep meanwhile" awk '/^waited/ { n++; if ($4 < 5 || $4 > 1.5 * $2 + 20) bad = 1 } END { exit !n || bad }' "$tmp/said"
done_testing
