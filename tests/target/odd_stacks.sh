#!/usr/bin/env bash
# Fibers, blocks that another thread frees at once, signal handlers on stacks of their own: right
# figures, and a program that goes on.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need_ptrace
odd=$VICTIMS/victim_odd

# bytes FILE SITE: of a folded file, those whose innermost function it is
bytes() { awk -v site="$2" '{ n = $NF; sub(/ [0-9]+$/, ""); k = split($0, f, ";"); if (f[k] == site) sum += n } END { print sum + 0 }' "$1"; }

# ---- a stack that isn't the thread's own doesn't mix with it ----
for way in -e '-r 1'; do
  run 60 "$HEAPTOP" -q $way -o "$tmp/fiber.folded" -- "$odd" fiber
  is "$way: a program with a fiber ends with 0" "$status" 0
  is "$way: the fiber's site has its bytes" "$(bytes "$tmp/fiber.folded" fiber_site)" 2200
  is "$way: main's site has its bytes" "$(bytes "$tmp/fiber.folded" main_site)" 20000000
  rm -f "$tmp/fiber.folded"
done

# ---- a free is never seen before its allocation ----
run 120 "$HEAPTOP" -q -e -b -d 3600 -- "$odd" handover 400000
is "blocks handed over: ends with 0" "$status" 0
is "blocks handed over: no free was missed" "$(sed -n 's/^# lost_frees: //p' "$tmp/out" | tail -1)" 0

# ---- detaching while a handler on another stack has interrupted the allocator ----
mkfifo "$tmp/in"
exec 7<>"$tmp/in"
"$odd" handler <"$tmp/in" >"$tmp/said" &
pid=$!
# said WORD: wait until the program has written it
said() {
  for _ in $(seq 1200); do
    grep -q "^$1" "$tmp/said" && return 0
    kill -0 "$pid" 2>/dev/null || return 1
    read -rt 0.05 <> <(:) || :
  done
  return 1
}
said ready
"$HEAPTOP" -e -b -d 0.2 -p "$pid" >"$tmp/frames" 2>"$tmp/err" &
watcher=$!
for _ in $(seq 600); do
  grep -q "^# time_s" "$tmp/frames" && break
  read -rt 0.05 <> <(:) || :
done
echo >&7
said inside
is "the handler has interrupted the allocator" "$?" 0
kill -INT "$watcher"
wait "$watcher"
is "heaptop leaves with 0" "$?" 0
echo >&7
wait "$pid"
is "the program goes on when the handler returns" "$?" 0
done_testing
