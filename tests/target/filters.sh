#!/usr/bin/env bash
# Programs under seccomp: heaptop makes no system call in them that a filter might punish. It does what
# can be done without, or refuses in a line, and they go on.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need python3
need_ptrace
victim=$VICTIMS/victim_filter

# begin WAY: the victim; it ends when descriptor 7 is closed.
begin() {
  rm -f "$tmp/in"
  : >"$tmp/said"
  mkfifo "$tmp/in"
  exec 7<>"$tmp/in"
  "$victim" "$1" <"$tmp/in" >"$tmp/said" 2>&1 7>&- &
  pid=$!
  tap_pids+=("$pid")
  wait_for "$tmp/said" '^ready'
}
ended_well() {
  echo >&7
  exec 7>&-
  finish "$pid" 30
  is "$1: the program ends by itself with 0" "$status" 0
  diag_file "$tmp/said"
}
filtered() { grep -q "^Seccomp:.[12]" "/proc/$pid/status"; }

for way in all strict; do
  begin "$way"
  ok "$way: it is under seccomp" until_true 10 filtered
  run 60 "$HEAPTOP" -b -n 1 -d 0.2 -p "$pid"
  is "$way: attaching is refused" "$status" 1
  is "$way: in one line" "$(wc -l <"$tmp/err")" 1
  like "$way: that names the reason" "$(cat "$tmp/err")" seccomp
  ok "$way: its text is its files'" text_intact "$pid"
  is "$way: nobody traces it" "$(sed -n 's/^TracerPid:\t//p' "/proc/$pid/status")" 0
  ended_well "$way"
done

for rate in -e '-r 1K'; do
  begin thread
  # shellcheck disable=SC2086 # an option is two words
  run 60 "$HEAPTOP" $rate -b -n 3 -d 0.3 -p "$pid"
  is "one thread under a filter, $rate: attaching works through another" "$status" 0
  diag_file "$tmp/err"
  ok "one thread, $rate: something was recorded" test "$(header "$tmp/out" alloc_blocks)" -gt 0
  ok "one thread, $rate: its text is its files' again" text_intact "$pid"
  ended_well "one thread, $rate"

  for way in all late thread; do
    # shellcheck disable=SC2086
    run 60 sh -c 'sleep 2 | exec "$@"' sh "$HEAPTOP" -q $rate -b -d 3600 --io=inherit -- "$victim" "$way"
    is "launched, $way, $rate: a filter that comes later isn't run into" "$status" 0
    diag_file "$tmp/err"
    ok "launched, $way, $rate: something was recorded" test "$(header "$tmp/out" alloc_blocks)" -gt 0
  done
done
done_testing
