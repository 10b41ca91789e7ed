#!/usr/bin/env bash
# strace's view: the system calls of a program, in their order and with their results, are the same without
# heaptop, while heaptop watches it, and after heaptop has left it.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need python3 strace
need_ptrace

# The same work each time it is told so, and nothing before: allocations of all sizes, files, sleeps.
cat >"$tmp/work.py" <<'END'
import os, random, select, sys, time
sys.stdout.write("ready\n")
sys.stdout.flush()
while True:
    line = os.read(0, 1)
    if line == b"q":
        break
    random.seed(7)
    keep = []
    for i in range(300):
        keep.append(bytes(random.randrange(1, 3000)))
        if i % 3 == 0:
            keep.pop(random.randrange(len(keep)))
        if i % 50 == 0:
            with open("/proc/self/comm", "rb") as f:
                os.write(1, b"%d %s" % (i, f.read()))
            select.select([], [], [], 0.001)
            time.sleep(0.001)
    del keep
    os.write(1, b"done\n")
END
mkfifo "$tmp/in"
exec 7<>"$tmp/in"
PYTHONHASHSEED=0 python3 "$tmp/work.py" <"$tmp/in" >>"$tmp/said" 2>&1 7>&- &
pid=$!
tap_pids+=("$pid")
ok "the program is there" wait_for "$tmp/said" '^ready'
done_times() { [ "$(grep -c '^done' "$tmp/said")" -ge "$1" ]; }
times=0
work() {
  echo -n x >&7
  times=$((times + 1))
  until_true 20 done_times $times
}
# its system calls during one piece of work. brk and mmap are the allocator's, whose heap has a history;
# gettid and the thread's name, once a thread, tell the agent whose events they are; process_vm_readv of itself and
# sched_yield and ppoll are its ways to copy a stack without a fault and to wait. Nobody else makes these here.
traced() {
  : >"$tmp/strace"
  strace -o "$tmp/$1.raw" -p "$pid" 2>"$tmp/strace" &
  local tracer=$!
  tap_pids+=("$tracer")
  wait_for "$tmp/strace" attached
  work
  kill -INT "$tracer"
  wait "$tracer"
  grep -Ev '^(brk|mmap|munmap|process_vm_readv|sched_yield|ppoll|gettid|prctl\(PR_GET_NAME|strace|---)|^read\(0,.*(unfinished|ERESTART)|resuming interrupted' "$tmp/$1.raw" |
    sed -E 's/0x[0-9a-f]+/ADDRESS/g; s/(left|tv_sec=|tv_nsec=|tv_usec=)[^,})]*/\1/g; s/fstat.*/fstat/' >"$tmp/$1"
}
work
work
traced without
ok "it makes some" test "$(wc -l <"$tmp/without")" -gt 30
for rate in -e '-r 16K'; do
  : >"$tmp/frames"
  # shellcheck disable=SC2086 # an option is two words
  "$HEAPTOP" $rate -b -d 0.2 -p "$pid" >"$tmp/frames" 2>"$tmp/err" &
  watcher=$!
  tap_pids+=("$watcher")
  ok "$rate: heaptop watches it" wait_for "$tmp/frames" '^# time_s'
  traced with
  ok "$rate: its system calls while heaptop watches are those without" diff "$tmp/without" "$tmp/with"
  kill -INT "$watcher"
  finish "$watcher" 30
  is "$rate: heaptop leaves with 0" "$status" 0
  diag_file "$tmp/err"
  traced after
  ok "$rate: and those after it has left" diff "$tmp/without" "$tmp/after"
done
echo -n q >&7
finish "$pid" 20
is "it ends with 0" "$status" 0
is "its output is the same each time" "$(grep -v ready "$tmp/said" | sort | uniq -c | awk '{ print $1 }' | sort -u | wc -l)" 1
done_testing
