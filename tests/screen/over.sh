#!/usr/bin/env bash
# A program that has ended allocates nothing any more: its rates and its trend go to 0 in the header, in Sites, Tree,
# Threads, Modules and Detail, in batch frames and in snapshots; nothing of it grows.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need_ptrace
need python3

# leak: start one; its pid in $pid
leak() {
  "$VICTIMS/victim_leak" >"$tmp/said" &
  pid=$!
  tap_pids+=("$pid")
  disown
}

# on the screen: it runs, then it is killed from there
leak
cat >"$tmp/script" <<END
size 120x40
await ▲
:save-display $tmp/runs
key K
type 9
key Enter
await ■ ended
:save-display $tmp/sites
key x
:save-display $tmp/detail
key x
key 2
:save-display $tmp/tree
key 5
:save-display $tmp/threads
key 6
:save-display $tmp/modules
END
ok "watched until its end" env HEAPTOP_SCRIPT="$tmp/script" timeout 60 "$HEAPTOP" -e -p "$pid"
# rates_in FILE: what its rows have in the column B/s, which is seven wide; Detail beneath them has numbered lines, too
rates_in() {
  local line before at=
  while IFS= read -r line; do
    [[ $line != "─ "* ]] || break
    if [[ $line == *' B/s '* ]]; then
      before=${line%%B/s*}
      at=$((${#before} - 4))
    elif [[ $at && $line =~ ^[\ \>]\ +[0-9.]+[KM]?\  ]]; then
      echo "[${line:at:7}]"
    fi
  done <"$1" | sort -u
}
like "its rates were seen" "$(rates_in "$tmp/runs")" '\[ .*[1-9].*\]'
for screen in sites tree threads modules; do
  like "$screen: the header's rates are 0" "$(sed -n 2p "$tmp/$screen")" '·0/s.* \+ +0/s +- +0/s *$'
  is "$screen: nor has a row one" "$(rates_in "$tmp/$screen")" "[       ]"
  is "$screen: nothing grows" "$(grep -c '▲' "$tmp/$screen")" 0
done
like "Detail: no rates" "$(cat "$tmp/detail")" 'a second +0 +0 blk'
like "Detail: it isn't judged as growing" "$(cat "$tmp/detail")" 'still held when the program ended'

# rates FRAMES: the sum of all sites' and all threads' rates in the last frame
rates() {
  awk -F '\t' '/^# command:/ { sum = 0 } /^live_bytes\t/ { for (i = 1; i <= NF; i++) if ($i == "alloc_bps") col = i }
    /^[0-9]/ { sum += $col } /^# thread: / { split($0, word, " "); sum += word[12] } END { printf "%d\n", sum }' "$1"
}
ended() { grep -q "^# state: exited" "$1"; }

# in frames and snapshots
leak
: >"$tmp/frames"
timeout 60 "$HEAPTOP" -b -d 0.2 -o "$tmp/end.json" -p "$pid" >"$tmp/frames" 2>"$tmp/err" &
heaptop=$!
tap_pids+=("$heaptop")
running() { [ "$(rates "$tmp/frames")" -gt 100000 ]; }
for _ in $(seq 300); do running && break; sleep 0.1; done
ok "batch: its rates were seen" running
kill -KILL "$pid"
wait "$heaptop"
ok "batch: the last frame is of its end" ended "$tmp/frames"
is "batch: and has no rates" "$(rates "$tmp/frames")" 0
# its graph goes on telling of what was
is "JSON: rates are 0, but not the graph's" "$(python3 - "$tmp/end.json" <<'END'
import json, sys
rates, graph = [], []
def look(node, inside):
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("alloc_bps", "alloc_cps", "free_bps", "free_cps"):
                (graph if inside else rates).append(value)
            look(value, inside or key in ("points", "graph"))
    elif isinstance(node, list):
        for item in node:
            look(item, inside)
look(json.load(open(sys.argv[1])), False)
print(len(rates) > 3, any(rates), any(graph))
END
)" "True False True"
done_testing
