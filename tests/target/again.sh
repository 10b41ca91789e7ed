#!/usr/bin/env bash
# heaptop leaves a program that executes another one just then: of what is executed from then on nothing is hooked, and
# the user is told how things stand.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need python3
need_ptrace

rounds=5
quick && rounds=2
for ((i = 0; i < rounds; i++)); do
  start "$tmp/said" timeout 60 "$HEAPTOP" -b -d 30 -D 0.$((3 + i)) --io=inherit -- "$VICTIMS/victim_again" "$tmp/stop$i"
  finish "$started" 40
  is "round $i: heaptop leaves it with 0" "$status" 0
  like "round $i: and says so" "$(grep '^heaptop' "$tmp/said")" "^heaptop: detached from [0-9]+: "
  pid=$(sed -n 's/^heaptop: detached from \([0-9]*\): .*/\1/p' "$tmp/said")
  is "round $i: nobody traces it" "$(sed -n 's/^TracerPid:\t//p' "/proc/$pid/status")" 0
  : >"$tmp/stop$i"
  ok "round $i: it goes on executing, to its own end" wait_for "$tmp/said" '^executed [1-9][0-9]* times$'
done
done_testing
