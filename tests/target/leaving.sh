#!/usr/bin/env bash
# heaptop leaves: the program is let go before what takes long for heaptop alone, and all of it is out, also where many
# threads share few processors and each would wait long for its turn to get out of the agent.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need python3
need_ptrace

start "$tmp/victim" "$VICTIMS/victim_leak"
pid=$started
mapped() { grep -q libc "/proc/$pid/maps"; }
until_true 10 mapped
run 60 "$HEAPTOP" -b -D 1 -d 5 -o "$tmp/last.pb.gz" -p "$pid"
is "attached, with a file: leaves with 0" "$status" 0
is "the program is let go, then the file is written" "$(sed -E 's/heaptop: (detached|wrote) .*/\1/' "$tmp/err" | tr '\n' ' ')" \
  "detached wrote "
is "the last frame is of before" "$(header "$tmp/out" state)" running
frame=$(header "$tmp/out" alloc_bytes)
isnt "and has something" "$frame" 0
run 60 "$HEAPTOP" -b -i "$tmp/last.pb.gz"
is "the file is of the same moment" "$(header "$tmp/out" alloc_bytes)" "$frame"
kill -KILL "$pid"

start "$tmp/crowd" "$VICTIMS/victim_crowd" 24 0 busy
pid=$started
wait_for "$tmp/crowd" '^ready'
run 60 "$HEAPTOP" -b -n 1 -d 0.2 -p "$pid"
is "busy threads: leaves with 0" "$status" 0
like "busy threads: all is out" "$(cat "$tmp/err")" "hooks removed, its code is identical to its files\$"
kill -STOP "$pid"	# or looking would take long
ok "the program has its own text" text_intact "$pid"
kill -CONT "$pid"
kill -TERM "$pid"
finish "$pid" 20
is "and ends with its own code" "$status" 0
done_testing
