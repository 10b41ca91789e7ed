#!/usr/bin/env bash
# The second probe without BPF: every hit told by perf_event. Its figures are the others', threads and children can be
# started, exceptions and jumps pass; it is chosen where the kernel has nothing better, and says why. What it puts into
# tracefs is gone after heaptop has left, and after it was killed.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need python3 gcc g++ setpriv unshare
need_ptrace
known=$VICTIMS/known
way='uprobes, every hit told'

# what there is in tracefs of ours; mounted or not
mkdir "$tmp/mnt"
ours() { unshare -m sh -c 'mount -t tracefs none "$1" && grep -c : "$1/uprobe_events"' sh "$tmp/mnt"; }
before=$(ours)
isnt "tracefs can be looked at" "$before" ""
as_before() { [ "$(ours)" = "$before" ]; }

# ---- figures ----
run 60 "$HEAPTOP" --probe=uprobe-hits -r 1 -q -b -x -d 3600 "$known" 1 0 "$tmp/truth"
is "leaves with 0" "$status" 0
diag_file "$tmp/err"
ok "every figure equals the truth" known_right "$tmp/truth" "$tmp/out"
is "nothing was dropped" "$(header "$tmp/out" dropped)" 0
is "every stack is complete" "$(header "$tmp/out" stacks_complete_pct)" 100.00
is "it is named" "$(header "$tmp/out" probe)" "$way (as asked, not BPF uprobes at entries and returns)"

gcc -shared -fPIC -O1 -Wall -Wextra -Werror -DNO_PROGRAMS -o "$tmp/no_programs.so" \
  "$abs_top_srcdir/tests/lib/no_session.c" || bail_out "no_session doesn't compile"
export LD_PRELOAD=$tmp/no_programs.so
run 60 "$HEAPTOP" --probe=uprobe -r 4K -b -x -q -d 0.5 -- env -u LD_PRELOAD "$known" 1 0 "$tmp/truth"
unset LD_PRELOAD
is "a kernel without BPF uprobes: leaves with 0" "$status" 0
diag_file "$tmp/err"
like "this way is chosen, with the reason" "$(header "$tmp/out" probe)" "^$way \(.*BPF.*\)$"
is "with samples, as asked" "$(header "$tmp/out" rate)" 4096

# ---- calls that don't return, threads, children ----
g++ -g -O1 -fno-builtin -fno-inline -o "$tmp/victim_ways" "$abs_top_srcdir/tests/victims/victim_ways.cc" -pthread ||
  bail_out "victim_ways doesn't compile"
truth() { awk '/^size / { n += $4; b += $2 * $4; l += $6 } END { printf "%d %d %d\n", n, b, l }' "$tmp/said"; }
seen() { sites "$tmp/out" site alloc_blocks alloc_bytes live_blocks | awk -F '\t' '$1 ~ /^(take|build)\(/ { n += $2; b += $3; l += $4 } END { printf "%d %d %d\n", n, b, l }'; }
for kind in $("$tmp/victim_ways"); do
  run 60 "$HEAPTOP" --probe=uprobe-hits -r 1 -q -b -d 3600 -- "$tmp/victim_ways" "$kind" 20 "$tmp/said"
  is "$kind: ends with 0" "$status" 0
  diag_file "$tmp/err"
  is "$kind: blocks, bytes and live blocks are its own" "$(seen)" "$(truth)"
  rm -f "$tmp/said"
done
reach --probe=uprobe-hits 'forked child' '1,000 threads' 'another PID namespace'

# ---- a program with threads that runs; heaptop leaves it, and is killed ----
start "$tmp/checker" "$VICTIMS/checker" 8 0 100000 lively
pid=$started
alive() { kill -0 "$pid" 2>/dev/null; }
ok "the victim is at work" wait_for "$tmp/checker" '^ready'
run 30 "$HEAPTOP" --probe=uprobe-hits -r 64K -b -n 2 -d 0.3 -p "$pid"
is "attaching: leaves with 0" "$status" 0
diag_file "$tmp/err"
isnt "and has seen what it does" "$(header "$tmp/out" alloc_blocks)" 0
is "nothing of it is left in tracefs" "$(ours)" "$before"
for ((i = 0; i < 5; i++)); do
  start "$tmp/killed" "$HEAPTOP" --probe=uprobe-hits -r 64K -b -n 1000 -d 0.05 -p "$pid"
  # within what it does first; the last ones once it measures
  if [ "$i" -gt 2 ]; then
    wait_for "$tmp/killed" '^# dropped'
  else
    read -r -t "0.$(printf %03d $((RANDOM % 300)))" < <(sleep 2)
  fi
  kill -KILL "$started" 2>/dev/null
  wait "$started" 2>/dev/null
  alive || break
done
is "the program survived kills of heaptop" "$i" 5
ok "after that, too, tracefs is as before" until_true 20 as_before
ok "its text is its files'" text_intact "$pid"
kill -TERM "$pid"
finish "$pid" 60
is "the program ends by itself with 0" "$status" 0
like "its checks hold" "$(cat "$tmp/checker")" $'\nok [0-9]+ checks'

# ---- rights ----
chmod 711 "$tmp"
mkdir "$tmp/bin" && cp "$HEAPTOP" "$known" "$tmp/bin" && chmod 755 "$tmp/bin"
run 30 setpriv --reuid=65534 --regid=65534 --clear-groups "$tmp/bin/heaptop" --probe=uprobe-hits -b -x "$tmp/bin/known" 1 0 \
  /dev/null
is "without rights: 125" "$status" 125
is "in one line" "$(wc -l <"$tmp/err")" 1
like "that says what it takes" "$(cat "$tmp/err")" 'takes root'
done_testing
