#!/usr/bin/env bash
# On a machine that gives heaptop little time, placing hooks takes longer than a lease lasts: the program is let go
# with a new one, and its first allocations are recorded. Each write to its text is slowed down here, so that
# nothing depends on how busy the machine really is.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need strace
need_ptrace
start "$tmp/said" "$VICTIMS/victim_crowd" 1 0
pid=$started
ok "the program is there" wait_for "$tmp/said" '^ready'

run 60 "$HEAPTOP" -e -b -n 1 -d 0.1 -p "$pid"
hooks=$(header "$tmp/out" hooks)
ok "it can be watched" test "${hooks:-0}" -gt 0

# the code, the thunks, and then, after the lease, the jumps: two and a half seconds for these
delay=$((2500000 / ${hooks:-1}))
run 90 strace -f -o /dev/null -e trace=pwrite64 -e "inject=pwrite64:delay_exit=$delay:when=1..$((2 * hooks + 1))" \
  "$HEAPTOP" -v -e -b -n 2 -d 0.4 -p "$pid"
is "attached to as slowly" "$status" 0
diag_file "$tmp/err" 8
held=$(sed -n 's/.*stood still for [0-9.]* ms, and for \([0-9]*\).*/\1/p' "$tmp/err")
ok "it took longer than a lease" test "${held:-0}" -gt 2500
ok "its allocations are seen" test "$(header "$tmp/out" events)" -gt 0
is "from the first on" "$(header "$tmp/out" gap)" 0

# of several processes none waits until heaptop has looked up what it needs of the others: that takes seconds here
pids=()
for i in 1 2; do
  start "$tmp/demo$i" "$VICTIMS/demo" 100
  pids+=(-p "$started")
  ok "program $i is there" wait_for "$tmp/demo$i" serving
done
run 90 strace -f -o /dev/null -e trace=pread64 -e "inject=pread64:delay_exit=60000:when=1..100" \
  "$HEAPTOP" -v -e -b -n 3 -d 0.4 "${pids[@]}"
is "both are attached to slowly" "$status" 0
diag_file "$tmp/err" 12
ok "both are watched" test "$(header "$tmp/out" processes)" = 2
is "from the first allocation on" "$(header "$tmp/out" gap)" 0
done_testing
