#!/usr/bin/env bash
# A program that comes under a strict seccomp filter while it is watched, and is left right after that, before anybody had
# looked for one: no system call is made in it, none that sleeps is begun anew by another call's name, and what can't be
# taken out then is said.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need python3
need_ptrace
intact() { text_intact "$1" >/dev/null; }	# it tells of islands that are left

for way in all one; do
  : >"$tmp/said"
  : >"$tmp/out"
  mkfifo "$tmp/$way"
  exec 7<>"$tmp/$way"
  "$VICTIMS/victim_sealed" "$way" <"$tmp/$way" >"$tmp/said" 2>&1 7>&- &
  pid=$!
  tap_pids+=("$pid")
  ok "$way: the program is there" wait_for "$tmp/said" '^ready'
  "$HEAPTOP" -b -d 0.2 -p "$pid" >"$tmp/out" 2>"$tmp/err" </dev/null 7>&- &
  watcher=$!
  tap_pids+=("$watcher")
  ok "$way: watched" wait_for "$tmp/out" '^# time_s'
  printf x >&7
  ok "$way: the filter is there" wait_for "$tmp/said" '^sealed'
  kill -TERM "$watcher"
  finish "$watcher" 40
  is "$way: heaptop leaves with 0" "$status" 0
  if [ "$way" = all ]; then
    like "$way: and says what stays" "$(cat "$tmp/err")" "unused memory stays mapped: .*seccomp"
    # its rings' pages are given back
    touched=$(awk '/^[0-9a-f]+-/ { ours = /memfd:heaptop/ } /^Rss:/ && ours { n += $2 } END { print n + 0 }' "/proc/$pid/smaps")
    ok "$way: which holds next to nothing ($touched kB)" test "$touched" -lt 64
  else
    like "$way: with nothing left" "$(cat "$tmp/err")" "hooks removed, its code is identical to its files\$"
  fi
  ok "$way: the program is still there" kill -0 "$pid"
  ok "$way: with its own text" intact "$pid"
  is "$way: nobody traces it" "$(sed -n 's/^TracerPid:\t//p' "/proc/$pid/status")" 0
  printf x >&7
  finish "$pid" 20
  is "$way: and ends with its own code" "$status" 7
  diag_file "$tmp/err"
done
done_testing
