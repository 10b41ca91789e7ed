#!/usr/bin/env bash
# Coroutines whose stacks are switched by hand, signal handlers on stacks of their own: every call is counted at its
# site, whatever stack it is on, and each stack is complete or says why it isn't.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need_ptrace

# watch MODE SITES INCOMPLETE: what sites of the program it says, "SITE blocks bytes ...", and of incomplete stacks
watch() {
  local mode=$1
  run 60 "$HEAPTOP" -q -e -b -x -d 3600 -o "$tmp/$mode.folded" -- "$VICTIMS/victim_switch" "$mode"
  is "$mode: ends with its own code" "$status" 7
  [ "$status" = 7 ] || diag_file "$tmp/err"
  is "$mode: every call is counted" \
    "$(sites "$tmp/out" site alloc_blocks alloc_bytes | grep '_site' | sort | tr '\t\n' '  ')" "$2"
  is "$mode: incomplete stacks" "$(header "$tmp/out" stacks_incomplete)" "$3"
}
# stacks MODE ERE: how many different ones are like that
stacks() { grep -Ec "$2" "$tmp/$1.folded"; }

watch coroutines "coroutine_site 400 9600 main_site 50 2000 " ""
is "coroutines: each has its own stack, down to its first frame" \
  "$(stacks coroutines '^[^;]*;?first_frame;coroutine_main;(deeper;)+coroutine_site 1200$')" 8
is "coroutines: main's isn't among them" "$(stacks coroutines 'main;coroutines;.*coroutine_site')" 0
watch bare "coroutine_site 400 9600 main_site 50 2000 " "400 code without unwind information"
is "bare: their stacks are told down to where nothing says how to go on" \
  "$(stacks bare 'no unwind.*first_frame_bare;coroutine_main;(deeper;)+coroutine_site 1200$')" 8
for mode in handlers again; do
  watch $mode "handler_site 100 5600 " "100 a signal handler on a stack of its own"
  is "$mode: the interrupted function is told, its callers can't be" \
    "$(stacks $mode 'handler on another[^;]*;busy;[^;]*;handler;handler_site 5600$')" 1
done
done_testing
