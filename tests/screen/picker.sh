#!/usr/bin/env bash
# The list of processes on a terminal: what can't be attached to is no reason to leave it, and what can is watched.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
. "$abs_top_srcdir/tests/lib/onscreen.sh"
need gcc
need_ptrace
export LC_ALL=C.UTF-8

gcc -O1 -static -nostdlib -o "$tmp/noheap$$" "$abs_top_srcdir/tests/victims/no_heap.c" || bail_out "no_heap doesn't build"
"$tmp/noheap$$" &
tap_pids+=("$!")
disown
# Names are typed with an escape in them: else they would also be found in the command lines of this test.
on_screen "what can't be attached to: the list comes again, says why, and is as it was" \
  --expect PID --send "\\x6eoheap$$" --gone 'type to filter' --expect '>  ' --send '\r' \
  --expect "It can't be attached to: " --gone 'still for that' --send '\r' --gone 'Enter attaches' --expect 'no allocator found' \
  --expect 'Esc Clear filter' --expect GROWTH --send '\x15' --gone 'no allocator found' --expect 'type to filter' \
  --send '\e' --wait --status 0 --check-screen --check-restored -- "$HEAPTOP"
on_screen "and on a narrow one" --size 40x10 \
  --expect PID --send "\\x6eoheap$$" --expect 'Esc All again' --expect '>  ' --send '\r' --expect 'Enter attaches' \
  --send '\r' --gone 'Enter attaches' --expect 'no allocator' \
  --send '\e' --expect 'Esc Quit' --send '\e' --wait --status 0 --check-restored -- "$HEAPTOP"

cp "$VICTIMS/victim_leak" "$tmp/leak$$"
"$tmp/leak$$" >"$tmp/said" &
tap_pids+=("$!")
disown
on_screen "another one is watched" --expect PID --send "\\x6ceak$$" --gone 'type to filter' --expect '>  ' --send '\r' \
  --expect 'of libc.so.6.' --expect 'stand still for that twice' --send '\e' --gone 'Enter attaches' --send '\r' \
  --expect 'Enter attaches' --send '\r' --expect ' attached ' --expect request_buffer --send q --wait --status 0 --check-restored -- "$HEAPTOP"
done_testing
