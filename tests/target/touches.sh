#!/usr/bin/env bash
# Page faults with the blocks they hit: who touched whose memory, also what was freed a moment later or grew by realloc;
# with threads chosen; in batch, in a snapshot, and on the screen; switched on and off while the program runs.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need_ptrace
rounds=40
truth() { sed -n "s/^$1 //p" "$tmp/victim"; }
near() {
  awk -v a="$1" -v b="$2" -v p="$3" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a != "" && b > 0 && d <= b * p / 100) }'
}
# pair TOUCHER ASKED_BY: bytes
pair() {
  last_frame "$tmp/frames" | sed -n 's/^# touch: //p' |
    awk -F '\t' -v t="$1" -v o="$2" '$2 == t && $3 == o { n += $1 } END { printf "%.0f", n }'
}
of_site() { sites "$tmp/frames" site touched_bytes | awk -F '\t' -v s="$1" '$1 == s { n += $2 } END { printf "%.0f", n }'; }
ask() {
  # shellcheck disable=SC2016 # for the inner shell
  run 60 "$HEAPTOP" -b -x -d 0.5 -s faults "$@" -- sh -c 'exec "$@" >"$0"' "$tmp/victim" "$VICTIMS/victim_touch" $rounds
  cp "$tmp/out" "$tmp/frames"
}
told() {
  # as many samples of the fast ones are dropped as it pleases the kernel, which are scaled together
  ok "$1: the pool, by who touched it" near "$(pair touch_pool site_pool)" "$(truth pool)" "$2"
  ok "$1: blocks that have gone" near "$(pair touch_brief site_brief)" "$(truth brief)" "$2"
  ok "$1: one that grew" near "$(pair fill_table site_table)" "$(truth table)" "$2"
  diag "pool $(pair touch_pool site_pool), brief $(pair touch_brief site_brief), table $(pair fill_table site_table)"
  for f in touch_pool touch_brief fill_table; do
    ok "$1: nearly all that $f touched is somebody's" near "$(pair $f "no known block")" 1 \
      $(($(of_site $f) * 2))
  done
  is "$1: pairs add up to what was touched" "$(last_frame "$tmp/frames" | sed -n 's/^# touch: //p' | awk '{ n += $1 } END { printf "%.0f", n }')" \
    "$(header "$tmp/frames" touched_bytes)"
}

ask -e --faults
is "it ends well" "$status" 0
told "every call" 8
isnt "what it costs is in the overhead" "$(header "$tmp/frames" overhead_pct)" 0.00
ask -r 64K --faults -o "$tmp/a.pb.gz"
told "sampled" 8
cp "$tmp/frames" "$tmp/then"
run 20 "$HEAPTOP" -b -n 1 -s faults -i "$tmp/a.pb.gz"
cp "$tmp/out" "$tmp/frames"
is "a snapshot says the same" "$(last_frame "$tmp/frames" | grep '^# touch:')" "$(last_frame "$tmp/then" | grep '^# touch:')"

# ---- one thread's ----
ask -e --faults -T toucher
ok "-T: what the thread has touched" near "$(pair touch_pool site_pool)" "$(truth pool)" 8
is "-T: and nothing else" "$(of_site touch_brief)$(of_site fill_table)" 00
ask -e --faults -T victim_touch
ok "-T: what another has touched" near "$(pair touch_brief site_brief)" "$(truth brief)" 8
is "-T: without the thread's" "$(of_site touch_pool)" 0

# ---- a plain user, launched and attached ----
paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)
if [ "$(id -u)" = 0 ] && have setpriv && [ "$paranoid" -le 2 ]; then
  chmod 755 "$tmp"
  mkdir -m 777 "$tmp/user"
  cp "$HEAPTOP" "$VICTIMS/victim_touch" "$tmp/user/"
  plain=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all)
  # shellcheck disable=SC2016 # for the inner shell
  run 60 "${plain[@]}" "$tmp/user/heaptop" -e --faults -b -x -d 0.5 -s faults -- sh -c 'exec "$@" >"$0"' "$tmp/user/victim" \
    "$tmp/user/victim_touch" $rounds
  cp "$tmp/out" "$tmp/frames"
  cp "$tmp/user/victim" "$tmp/victim"
  told "a plain user" 8
  start "$tmp/victim" "${plain[@]}" "$tmp/user/victim_touch" $rounds wait "$tmp/user/go" "$tmp/user/end"
  pid=$started
  until_true 20 grep -qs victim_touch "/proc/$pid/comm"
  start "$tmp/frames" "${plain[@]}" "$tmp/user/heaptop" -e --faults -b -d 0.3 -s faults -p "$pid"
  watcher=$started
  wait_for "$tmp/frames" "^# live_bytes"
  touch "$tmp/user/go"
  # its pool and its table; once known they stay known, whatever is being looked at when it ends
  ok "a plain user attached: RES is told" wait_for "$tmp/frames" '^# res_bytes: 251[0-9]{5}$'
  touch "$tmp/user/end"
  finish "$pid" 60
  finish "$watcher" 30
  ok "a plain user attached: blocks that have gone" near "$(pair touch_brief site_brief)" "$(truth brief)" 8
  ok "a plain user attached: RES at the end" near "$(header "$tmp/frames" res_bytes)" $((24 << 20)) 10
else
  diag "perf_event_paranoid is $paranoid: no plain user may sample page faults"
fi

# ---- switched on from the screen, and off ----
rm -f "$tmp/go"
start "$tmp/victim" "$VICTIMS/victim_touch" $rounds wait "$tmp/go" "$tmp/end"
pid=$started
cat >"$tmp/script" <<END
size 120x40
await nothing allocated yet
:faults on
expect page faults are sampled
key U
await Page faults are sampled
:save-display $tmp/on
key Esc
:res off
expect nobody looks at what is in memory
key U
await Nobody looks at it now
key Esc
:res on
:sort faults
await touch_brief
type /touch_brief
key Enter Enter
await TOUCHES first, blocks asked for by
await site_brief
:save-display $tmp/detail
key Esc
type /site_brief
key Enter Enter
await TOUCHED first by
:faults off
expect no longer sampled
key Esc
key U
await Page faults aren't sampled
key Esc
:sort live
:sort faults
await site_brief
expect value: bytes first touched
:save-display $tmp/end
END
(
  until_true 20 test -s "$tmp/on"
  touch "$tmp/go"
) &
tap_pids+=($!)
HEAPTOP_SCRIPT=$tmp/script timeout 60 "$HEAPTOP" -e -d 0.3 -p "$pid" >"$tmp/log" 2>&1
is "page faults are switched on and off from the screen" $? 0
diag_file "$tmp/log" 45
done_testing
