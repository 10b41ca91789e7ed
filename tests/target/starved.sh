#!/usr/bin/env bash
# heaptop doesn't get to run for longer than its lease, and the program ends right after that: what wasn't
# recorded is told, though there is nobody left to ask. Stopping heaptop stands in for a starving machine.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need_ptrace
mkfifo "$tmp/in"
exec 7<>"$tmp/in"

# starve NAME OPTION...: the victim's second work is done behind heaptop's back
starve() {
  local name=$1
  shift
  : >"$tmp/said"
  : >"$tmp/out"
  "$VICTIMS/victim_starved" <"$tmp/in" >"$tmp/said" 2>&1 7>&- &
  pid=$!
  tap_pids+=("$pid")
  wait_for "$tmp/said" '^ready'
  "$HEAPTOP" "$@" -b -d 0.2 -p "$pid" >"$tmp/out" 2>"$tmp/err" </dev/null 7>&- &
  watcher=$!
  tap_pids+=("$watcher")
  ok "$name: watched" wait_for "$tmp/out" '^# time_s'
  echo >&7
  wait_for "$tmp/said" '^worked 1'
  kill -STOP "$watcher"
  echo >&7
  # it waits until a call of its own costs nothing any more: the lease is over
  ok "$name: the program works on, and ends" wait_for "$tmp/said" '^worked 2'
  finish "$pid" 20
  is "$name: with its own code" "$status" 7
  kill -CONT "$watcher"
  finish "$watcher" 30
  is "$name: heaptop leaves with 0" "$status" 0
  diag_file "$tmp/err"
  ok "$name: what is missing is said" test "$(header "$tmp/out" gap)" -gt 0
}
starve "every call" -e
starve "a rate" -r 1K
starve "auto"
done_testing
