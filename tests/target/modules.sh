#!/usr/bin/env bash
# Modules that come and go: an allocator that is loaded later is hooked and watched, one that has been
# unloaded is forgotten, what lies in its place now has names of its own, and plug-ins without any allocator
# cost no stop.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need_ptrace

# started CASE ARGUMENT...: heaptop on the victim, every call recorded, in the background.
begin() {
  case=$1
  shift
  out=$tmp/$case.out err=$tmp/$case.err
  "$HEAPTOP" -e -b -v -x -d 0.1 "$VICTIMS/victim_modules" "$@" >"$out" 2>"$err" </dev/null &
  started=$!
  tap_pids+=("$started")
}
# reached ERE COUNT: heaptop has said so that often.
count_said() { [ "$(grep -Ec -- "$1" "$err")" -ge "$2" ]; }
said() { until_true 60 count_said "$1" "$2" || { diag "$case: not said: $1"; diag_file "$err"; }; }
ended() {
  finish "$started" 60
  [ "$status" = 0 ] || diag_file "$err"
  is "$case: the program ended well" "$status" 0
}
figure() { sites "$out" site "$2" | awk -F '\t' -v site="$1" '$1 == site { n += $2 } END { print n + 0 }'; }

pool=$VICTIMS/plug_pool.so
loaded='new modules hooked'

# ---- an allocator that is loaded later ----
begin late load "$pool" wait "$tmp/hooked" call "$pool" pool_make 1000 100 give "$pool" pool_give 400
said "$loaded" 1
touch "$tmp/hooked"
ended
is "each of its blocks is counted" "$(figure pool_make alloc_blocks)" 1000
is "those given back, too" "$(figure pool_make free_blocks)" 400
is "and the others live" "$(figure pool_make live_bytes)" 60000
is "by one stop" "$(grep -c "$loaded" "$err")" 1

# ---- unloaded and loaded again at once, unnoticed but for our jump, which is gone ----
begin again load "$pool" wait "$tmp/again1" unload "$pool" load "$pool" wait "$tmp/again2" \
  call "$pool" pool_make 1000 50 give "$pool" pool_give 1000
said "$loaded" 1
touch "$tmp/again1"
said "$loaded" 2
touch "$tmp/again2"
ended
is "it came back to the same place" "$(grep -c "$(sed -n 's/^loaded //p' "$out" | head -n 1)" "$out")" 2
is "and is hooked again: all its blocks are counted" "$(figure pool_make alloc_blocks)" 1000
is "and all its frees" "$(figure pool_make free_blocks)" 1000

# ---- another plug-in in the place of one unloaded ----
one=$VICTIMS/plug_one.so two=$VICTIMS/plug_two.so
begin place load "$one" call "$one" plug_one_work 1000 10 wait "$tmp/place1" unload "$one" \
  load "$two" wait "$tmp/place2" call "$two" plug_two_work 2000 20
one_known() { [ "$(figure plug_one_work alloc_blocks)" = 1000 ]; }
ok "the first one's blocks are its own" until_true 60 one_known
touch "$tmp/place1"
said "new is plug_two.so" 1
touch "$tmp/place2"
ended
is "the second lies where the first was" "$(sed -n 's/^loaded //p' "$out" | uniq | wc -l)" 1
is "and has its own name for its own blocks" "$(figure plug_two_work alloc_blocks)" 2000
is "the first one keeps its own" "$(figure plug_one_work live_bytes)" 10000

# ---- hundreds of plug-ins without an allocator: the program isn't held once ----
mkdir "$tmp/many"
for ((i = 0; i < 500; i++)); do cp "$one" "$tmp/many/$i.so"; done
begin many many "$tmp/many" 500 wait "$tmp/many1" load "$two" wait "$tmp/many2"
wait_for "$out" '^many'
touch "$tmp/many1"
# known only after all of those
said "plug_two.so" 1
touch "$tmp/many2"
ended
is "hundreds of plug-ins without an allocator cost no stop" "$(grep -c held "$err")" 0

# ---- a running process: attached, detached, killed ----
start "$tmp/victim" "$VICTIMS/victim_modules" wait "$tmp/attached" load "$pool" wait "$tmp/called" \
  call "$pool" pool_make 1000 100 wait "$tmp/detached" unload "$pool" load "$pool" call "$pool" pool_make 100 100 \
  load "$one" unload "$one" wait "$tmp/end"
victim=$started
maps=$(wc -l <"/proc/$victim/maps")
err=$tmp/attach.err out=$tmp/attach.out case=attach
"$HEAPTOP" -e -b -v -d 0.1 -D 60 -p "$victim" >"$out" 2>"$err" </dev/null &
first=$!
tap_pids+=("$first")
wait_for "$out" '^# hooks'
touch "$tmp/attached"
said "$loaded" 1
touch "$tmp/called"
counted() { [ "$(figure pool_make alloc_blocks)" = 1000 ]; }
ok "an attached process's new allocator is watched" until_true 60 counted
kill -KILL "$first"
wait "$first" 2>/dev/null
text_differs() { ! text_intact "$victim" >/dev/null; }
ok "heaptop killed: hooks stay behind, in the plug-in, too" text_differs
run 60 "$HEAPTOP" -e -b -v -d 0.1 -n 1 -p "$victim"
is "the next heaptop takes them out, and its own" "$status" 0
diag_file "$tmp/err"
ok "the text is the files' again" text_intact "$victim"
touch "$tmp/detached"
wait_for "$tmp/victim" unloaded
start "$tmp/last" "$HEAPTOP" -e -b -d 0.1 -D 60 -p "$victim"
last=$started
wait_for "$tmp/last" '^# hooks'
kill -TERM "$last"
finish "$last"
is "detached" "$status" 0
ok "the text is the files' at the end" text_intact "$victim"
touch "$tmp/end"
finish "$victim"
is "the program ends well" "$status" 0
diag_file "$tmp/victim"
done_testing
