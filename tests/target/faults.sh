#!/usr/bin/env bash
# Page faults: which function touches new memory, whoever asked for it; with huge pages and without,
# as root and as a plain user. How many bytes is an estimate where faults come faster than they are sampled.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need_ptrace
mib=1024 touched=100
quick && mib=256 touched=50

of_site() { sites "$tmp/frames" site "$2" | awk -F '\t' -v s="$1" '$1 == s { n += $2 } END { printf "%.0f", n }'; }
truth() { sed -n "s/^$1 //p" "$tmp/victim"; }
near() {
  awk -v a="$1" -v b="$2" -v p="$3" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a != "" && b > 0 && d <= b * p / 100) }'
}
# told NAME PERCENT: touch_pages is who touched most, and how much.
told() {
  is "$1: who touched most" "$(sites "$tmp/frames" site touched_bytes | sort -t $'\t' -k 2nr | head -n 1 | cut -f 1)" touch_pages
  ok "$1: as much as it did, within $2%" near "$(of_site touch_pages touched_bytes)" "$(truth grown)" "$2"
  diag "$(of_site touch_pages touched_bytes) of $(truth grown); $(header "$tmp/frames" touched_bytes) in all"
  ok "$1: who asked for it has touched next to nothing" test "$(of_site site_reserve touched_bytes)" -le 65536
  is "$1: the sites' sum is the total" "$(sites "$tmp/frames" touched_bytes | awk '{ n += $1 } END { printf "%.0f", n }')" \
    "$(header "$tmp/frames" touched_bytes)"
}
# ask WORDS OPTIONS...
ask() {
  local words=$1
  shift
  # shellcheck disable=SC2086,SC2016 # words; for the inner shell
  run 60 "$HEAPTOP" -b -x -d 0.5 "$@" -- sh -c 'exec "$@" >"$0"' "$tmp/victim" "$VICTIMS/victim_rss" $mib $touched $words
  cp "$tmp/out" "$tmp/frames"
}

ask nothp -e --faults -s faults
is "it ends well" "$status" 0
told "page by page" 5
# what allocations say isn't mixed with it
is "who asked holds it all" "$(of_site site_reserve live_bytes)" $((mib << 20))
is "who only touched has allocated nothing" "$(sites "$tmp/frames" site alloc_blocks samples | grep ^touch_pages)" $'touch_pages\t0\t0'
ask nothp -e --faults
is "and is no row where it is about allocations" "$(sites "$tmp/frames" site | grep -c ^touch_pages)" 0
# faults of 2 MiB after many small ones, each of which is told of (faults_sizes.sh has more)
if grep -q "define WITH_BPF" "$abs_top_builddir/config.h"; then
  ask thp -e --faults -s faults
  told "huge pages" 5
fi

ask nothp -e -s faults
is "without --faults there is nothing of it" "$(header "$tmp/frames" touched_bytes)$(of_site touch_pages touched_bytes)" 0

# ---- a snapshot ----
ask nothp -e --faults -o "$tmp/a.pb.gz"
run 20 "$HEAPTOP" -b -n 1 -s faults -i "$tmp/a.pb.gz"
cp "$tmp/out" "$tmp/frames"
told "in a snapshot" 5

# ---- a plain user ----
if [ "$(id -u)" = 0 ] && have setpriv; then
  chmod 755 "$tmp"
  mkdir -m 777 "$tmp/user"
  cp "$HEAPTOP" "$VICTIMS/victim_rss" "$tmp/user/"
  plain=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all)
else
  mkdir "$tmp/user"
  cp "$HEAPTOP" "$VICTIMS/victim_rss" "$tmp/user/"
  plain=()
fi
paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)
diag "perf_event_paranoid is $paranoid"
# shellcheck disable=SC2016 # for the inner shell
run 60 "${plain[@]}" "$tmp/user/heaptop" -e --faults -b -x -v -d 0.5 -s faults -- sh -c 'exec "$@" >"$0"' "$tmp/user/victim" \
  "$tmp/user/victim_rss" $mib $touched
cp "$tmp/out" "$tmp/frames"
cp "$tmp/user/victim" "$tmp/victim"
if [ "$paranoid" -le 2 ]; then
  told "a plain user" 5
else
  like "a plain user is told why not" "$(cat "$tmp/err")" "page faults can't be sampled: .*perf_event_paranoid"
fi
done_testing
