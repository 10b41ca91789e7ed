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
done_testing
