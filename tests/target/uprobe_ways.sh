#!/usr/bin/env bash
# The second probe where calls don't return as they were made: exceptions out of operator new, jumps, cancelled threads,
# contexts left for good, handlers that allocate, failing allocations. The program comes out as by itself and every figure is
# its own. Allocators whose own operator new throws; a plain user, who is refused and told what to do.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need g++ setpriv
need_ptrace
grep -q "define WITH_BPF" "$abs_top_builddir/config.h" || skip_all "built without BPF"
g++ -g -O1 -fno-builtin -fno-inline -o "$tmp/victim_ways" "$abs_top_srcdir/tests/victims/victim_ways.cc" -pthread ||
  bail_out "victim_ways doesn't compile"

# its own figures and heaptop's: blocks, bytes, live blocks of the functions that ask for what it counts
truth() { awk '/^size / { n += $4; b += $2 * $4; l += $6 } END { printf "%d %d %d\n", n, b, l }' "$tmp/said"; }
seen() { sites "$tmp/out" site alloc_blocks alloc_bytes live_blocks | awk -F '\t' '$1 ~ /^(take|build)\(/ { n += $2; b += $3; l += $4 } END { printf "%d %d %d\n", n, b, l }'; }

for way in $("$tmp/victim_ways"); do
  run 60 "$HEAPTOP" --probe=uprobe -r 1 -q -b -d 3600 -- "$tmp/victim_ways" "$way" 100 "$tmp/said"
  is "$way: ends with 0" "$status" 0
  diag_file "$tmp/err"
  is "$way: blocks, bytes and live blocks are its own" "$(seen)" "$(truth)"
  rm -f "$tmp/said"
done

# A probe at the return of a function that throws would abort the program: these have an operator new of their own.
found=0
for library in libtcmalloc_minimal libjemalloc libmimalloc; do
  path=$(g++ -print-file-name=$library.so)
  [ -e "$path" ] || continue
  found=$((found + 1))
  g++ -g -O1 -fno-builtin -fno-inline -o "$tmp/ways_$library" "$abs_top_srcdir/tests/victims/victim_ways.cc" -pthread \
    -Wl,--no-as-needed "$path" || bail_out "victim_ways doesn't link with $library"
  "$tmp/ways_$library" throw 100 "$tmp/said" >/dev/null 2>&1
  alone=$?
  for how in uprobe uprobe-multi uprobe-hits; do
    run 60 "$HEAPTOP" --probe=$how -r 1 -q -b -d 3600 -- "$tmp/ways_$library" throw 100 "$tmp/said"
    is "$library, $how: it ends as alone" "$status" "$alone"
    diag_file "$tmp/err"
  done
done
isnt "there was such an allocator" "$found" 0

# ---- a plain user, at whatever the machine allows without capabilities ----
diag "perf_event_paranoid is $(cat /proc/sys/kernel/perf_event_paranoid)"
chmod 711 "$tmp"
mkdir "$tmp/bin" && cp "$HEAPTOP" "$VICTIMS/checker" "$tmp/bin" && chmod 755 "$tmp/bin"
if [ "$(id -u)" = 0 ]; then
  plain=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all)
else
  plain=()
fi
start "$tmp/checker" "${plain[@]}" "$tmp/bin/checker" 2 0 1000 lively
pid=$started
ok "a plain user's process" wait_for "$tmp/checker" '^ready'
maps=$(wc -l <"/proc/$pid/maps")
run 30 "${plain[@]}" "$tmp/bin/heaptop" --probe=uprobe -b -n 1 -p "$pid"
is "attaching to their own: refused" "$status" 1
is "in one line" "$(wc -l <"$tmp/err")" 1
like "that names what it takes and how to get it" "$(cat "$tmp/err")" 'CAP_BPF and CAP_PERFMON: .*root.*setcap'
is "nothing of it is in the process" "$(wc -l <"/proc/$pid/maps")" "$maps"
run 30 "${plain[@]}" "$tmp/bin/heaptop" -b -n 1 -d 0.3 -p "$pid"
is "the agent takes no capability" "$status" 0
diag_file "$tmp/err"
kill -TERM "$pid"
finish "$pid" 30
is "it ends by itself with 0" "$status" 0
like "its checks hold" "$(cat "$tmp/checker")" $'\nok [0-9]+ checks'
done_testing
