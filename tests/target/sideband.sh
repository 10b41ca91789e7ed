#!/usr/bin/env bash
# Under the second probe heaptop is told of what a program maps and executes: it doesn't read the maps over and over, an
# allocator that is loaded later is found all the same, and an exec ends what was watched.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need strace
need_ptrace
pool=$VICTIMS/plug_pool.so
told='perf_event tells what the program maps and executes'
figure() { sites "$tmp/seen" site "$2" | awk -F '\t' -v site="$1" '$1 == site { n += $2 } END { print n + 0 }'; }
has() { grep -Eqs -- "$1" "$tmp/said"; }

# ---- a running program that loads an allocator, then executes another program ----
start "$tmp/victim" "$VICTIMS/victim_modules" wait "$tmp/watched" load "$pool" wait "$tmp/loaded" \
  call "$pool" pool_make 1000 100 give "$pool" pool_give 400 wait "$tmp/end"
victim=$started
strace -qq -f -e trace=openat -o "$tmp/trace" "$HEAPTOP" --probe=uprobe -e -b -v -d 0.2 -p "$victim" \
  >"$tmp/seen" 2>"$tmp/said" </dev/null &
heaptop=$!
tap_pids+=("$heaptop")
ok "it is watched" until_true 60 grep -q '^# hooks' "$tmp/seen"
ok "heaptop is told" has "$told"
# Readings of the maps in three seconds of a program that does nothing: one a second, and as many for what RSS is made
# of. Polling takes up to sixty.
readings() { grep -Ec "\"/proc/$victim/task/[0-9]+/maps\"" "$tmp/trace"; }
before=$(readings)
began=$EPOCHREALTIME
three_later() { awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { exit !(b - a >= 3) }'; }
until_true 60 three_later
after=$(readings)
took=$(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { print int(b - a) }')
diag "$((after - before)) readings in $took s, $before before"
isnt "the maps are read" "$after" 0
ok "but not often while nothing is told" test $((after - before)) -le $((2 * took + 4))
touch "$tmp/watched"
ok "what is loaded is seen" until_true 60 has 'new modules: .*plug_pool\.so'
touch "$tmp/loaded"
all_freed() { [ "$(figure pool_make free_blocks)" = 400 ]; }
ok "its frees are counted" until_true 60 all_freed
is "so is each of its blocks" "$(figure pool_make alloc_blocks)" 1000
touch "$tmp/end"
finish "$heaptop" 60
is "the program ends, and heaptop with it" "$status" 0

mkfifo "$tmp/go"
start "$tmp/shell" sh -c "echo ready; read -r go <'$tmp/go'; exec sleep 60"

shell=$started
wait_for "$tmp/shell" ready
"$HEAPTOP" --probe=uprobe -e -b -v -d 0.2 -p "$shell" >"$tmp/seen" 2>"$tmp/said" </dev/null &
heaptop=$!
tap_pids+=("$heaptop")
ok "a shell is watched" until_true 60 grep -q '^# hooks' "$tmp/seen"
echo >"$tmp/go"
finish "$heaptop" 60
like "its exec ends that" "$(cat "$tmp/said")" 'has executed another program'
ok "and it goes on" kill -0 "$shell"

# ---- the agent doesn't ask for such rights ----
run 30 "$HEAPTOP" -e -b -v -x -d 0.2 -- "$VICTIMS/known" 1 0 "$tmp/truth"
is "the agent: nothing is told" "$(grep -c "$told" "$tmp/err")" 0
done_testing
