#!/usr/bin/env bash
# Ways out of the allocator other than its return: exceptions, jumps, cancelled threads, contexts left for
# good; handlers that allocate; allocations that fail. The program comes out as it does by itself, and
# every figure is its own.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need g++ python3
need_ptrace
g++ -g -O1 -fno-builtin -fno-inline -o "$tmp/victim_ways" "$abs_top_srcdir/tests/victims/victim_ways.cc" -pthread ||
  bail_out "victim_ways doesn't compile"

# its own figures and heaptop's: blocks, bytes, live blocks of the functions that ask for what it counts
truth() { awk '/^size / { n += $4; b += $2 * $4; l += $6 } END { printf "%d %d %d\n", n, b, l }' "$tmp/said"; }
seen() { sites "$tmp/out" site alloc_blocks alloc_bytes live_blocks | awk -F '\t' '$1 ~ /^(take|build)\(/ { n += $2; b += $3; l += $4 } END { printf "%d %d %d\n", n, b, l }'; }

for way in $("$tmp/victim_ways"); do
  for rate in -e '-r 1'; do
    # shellcheck disable=SC2086 # an option is two words
    run 60 "$HEAPTOP" $rate -q -b -d 3600 -- "$tmp/victim_ways" "$way" 100 "$tmp/said"
    is "$way, $rate: ends with 0" "$status" 0
    diag_file "$tmp/err"
    is "$way, $rate: blocks, bytes and live blocks are its own" "$(seen)" "$(truth)"
    rm -f "$tmp/said"
  done
done

# ---- no room for heaptop's own memory ----
start "$tmp/tight" "$tmp/victim_ways" tight
ok "a program with little address space left" wait_for "$tmp/tight" '^ready'
before=$(wc -l <"/proc/$started/maps")
run 30 "$HEAPTOP" -b -n 1 -d 0.2 -p "$started"
is "it isn't attached to" "$status" 1
is "it is told in one line" "$(wc -l <"$tmp/err")" 1
like "that names the reason" "$(cat "$tmp/err")" "RLIMIT_AS.*prlimit"
is "nothing is left in it" "$(wc -l <"/proc/$started/maps")" "$before"
ok "its text is its files'" text_intact "$started"
kill -TERM "$started"
finish "$started" 20
is "it ends by itself with 0" "$status" 0
done_testing
