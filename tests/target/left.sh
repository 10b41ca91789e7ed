#!/usr/bin/env bash
# What a killed heaptop leaves behind: once its lease is over nothing is recorded any more, and the program's
# calls cost what calls cost that aren't sampled.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need python3
need_ptrace
mkfifo "$tmp/in"
exec 7<>"$tmp/in"

# heads PID: how far each ring has been written
heads() {
  python3 - "$1" <<'END'
import struct, sys
for line in open(f'/proc/{sys.argv[1]}/maps'):
    if 'memfd:heaptop' in line:
        start = int(line.split('-')[0], 16)
        with open(f'/proc/{sys.argv[1]}/mem', 'rb') as mem:
            for ring in range(32):
                mem.seek(start + ring * ((2 << 20) + 4096))
                print(*struct.unpack('Q', mem.read(8)))
END
}
ask() { # a line, and the time of each of its rounds of pairs, the least of several, ns
  : >"$tmp/said"
  echo >&7
  wait_for "$tmp/said" '^pair [0-9]' 60
  awk '{ print $2 }' "$tmp/said"
}
"$VICTIMS/victim_left" <"$tmp/in" >>"$tmp/said" 2>&1 7>&- &
pid=$!
tap_pids+=("$pid")
ok "the program is there" wait_for "$tmp/said" '^ready'
bare=$(ask)
# hooked and hardly sampled: each call is counted, none is recorded
"$HEAPTOP" -r 1G -b -d 0.2 -p "$pid" >"$tmp/out" 2>"$tmp/err" </dev/null 7>&- &
watcher=$!
tap_pids+=("$watcher")
ok "watched, at a rate" wait_for "$tmp/out" '^# time_s'
unsampled=$(ask)
kill -INT "$watcher"
finish "$watcher" 30
is "left again" "$status" 0
: >"$tmp/out"
"$HEAPTOP" -e -b -d 0.2 -p "$pid" >"$tmp/out" 2>"$tmp/err" </dev/null 7>&- &
watcher=$!
tap_pids+=("$watcher")
ok "watched, every call" wait_for "$tmp/out" '^# time_s'
ask >/dev/null
isnt "which are recorded" "$(heads "$pid" | sort -n | tail -n 1)" 0
kill -KILL "$watcher"
wait "$watcher" 2>/dev/null
ask >/dev/null	# takes longer than the lease lasts, waiting for room meanwhile
heads "$pid" >"$tmp/before"
left=$(ask)
heads "$pid" >"$tmp/after"
ok "the rings are still there" test "$(wc -l <"$tmp/after")" -eq 32
ok "heaptop killed: nothing is recorded any more" cmp -s "$tmp/before" "$tmp/after"
diag "a pair: $bare ns, hooked and not sampled $unsampled, left behind $left"
# three times as much, and a little for clocks: recording costs twenty times that
ok "a call costs what one costs that isn't sampled" \
  awk -v a="$unsampled" -v b="$left" 'BEGIN { exit !(b < 3 * a + 10) }'
run 60 "$HEAPTOP" -b -n 1 -d 0.2 -p "$pid"
is "the next heaptop takes it out" "$status" 0
ok "the program has its own text" text_intact "$pid"
echo quit >&7
finish "$pid" 20
is "and ends with its own code" "$status" 7

# ---- states that the kernel has merged ----
: >"$tmp/said"
"$VICTIMS/victim_left" states <"$tmp/in" >>"$tmp/said" 2>&1 7>&- &
pid=$!
tap_pids+=("$pid")
ok "a program with states of three agents" wait_for "$tmp/said" '^ready'
wiped() { awk '/^[0-9a-f]+-[0-9a-f]+ / { kib = 0 } /^Size:/ { kib = $2 } /^VmFlags:.* wf/ { n += kib } END { print n + 0 }' "/proc/$pid/smaps"; }
state=$(sed -n 's/^states of \([0-9]*\) KiB/\1/p' "$tmp/said")
is "which are one mapping" "$(wiped)" $((3 * state))
run 60 "$HEAPTOP" -e -b -n 1 -d 0.1 -p "$pid"
is "heaptop comes and goes" "$status" 0
is "those that say whose they are are gone, also its own" "$(wiped)" "$state"
echo quit >&7
finish "$pid"
is "the program ends by itself" "$status" 7
done_testing
