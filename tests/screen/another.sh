#!/usr/bin/env bash
# p where one process is watched that was attached to: another one is watched instead, and the first one let go as if by q;
# what can't be watched leads to the list.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
. "$abs_top_srcdir/tests/lib/onscreen.sh"
need gcc
need_ptrace

# start NAME PROGRAM: a copy of it under that name; its pid in $pid
start() {
  cp "$2" "$tmp/$1"
  "$tmp/$1" >"$tmp/said" &
  pid=$!
  tap_pids+=("$pid")
  disown
}
gcc -O1 -static -nostdlib -o "$tmp/no_heap" "$abs_top_srcdir/tests/victims/no_heap.c" || bail_out "no_heap doesn't build"
start "first$$" "$VICTIMS/victim_leak"
first=$pid
start "second$$" "$VICTIMS/victim_leak"
second=$pid
start "bare$$" "$tmp/no_heap"

# Names are typed with an escape in them: else they would also be found in the command lines of this test.
on_screen "another one instead" --expect request_buffer --expect "[$first]" --send p --expect 'Which process instead?' \
  --expect GROWTH --send "\\x73econd$$" --gone 'type to filter' --expect '>  ' --send '\r' --expect 'Let this one go, attach to' \
  --expect 'of libc.so.6' --send '\r' --gone 'Let this one go' --expect "[$second]" --expect request_buffer --send q \
  --wait --status 0 --check-screen --check-restored -- "$HEAPTOP" -p "$first"
ok "the first one's text is its files'" text_intact "$first"
ok "the second one's, too" text_intact "$second"
on_screen "the one that is watched can't be chosen, and Esc stays with it" --expect request_buffer --send p \
  --expect 'Which process instead?' --expect GROWTH --send "\\x66irst$$" --gone 'type to filter' \
  --expect 'this is the one that is watched' --send '\r' --expect 'Which process instead?' --send '\e' --expect 'Esc Stay' \
  --send '\e' --gone 'Which process' --expect request_buffer --send q --wait --status 0 --check-restored -- "$HEAPTOP" -p "$first"
on_screen "one that can't be watched: the list comes, and leaving it leaves" --size 40x10 --expect request --send p \
  --expect 'process instead' --send "\\x62are$$" --expect 'Esc All again' --expect '>  ' --send '\r' --expect 'Enter attaches' \
  --send '\r' --gone 'Enter attaches' --expect 'no allocator' --expect 'Esc Quit' --send '\e' --wait --status 0 \
  --check-restored -- "$HEAPTOP" -p "$first"
on_screen "not while a file is written of this one" --expect request_buffer --send p --expect 'which to show' --send q \
  --gone 'which to show' --send q --wait --status 0 --check-restored -- "$HEAPTOP" --tui -o "$tmp/out.pb.gz" -p "$first"
ok "all go on" kill -0 "$first" "$second" "$pid"
done_testing
