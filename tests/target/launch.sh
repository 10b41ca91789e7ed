#!/usr/bin/env bash
# A launched program is what it would be without heaptop: exit code, output to the byte,
# descriptors, environment, signal state; and what signals to heaptop do.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need python3
need_ptrace

snap=$tmp/snap.txt
# watched COMMAND...: without screen or frames; a snapshot is written at its end.
watched() { run 60 "$HEAPTOP" -o "$snap" -- "$@"; }

# ---- exit codes ----
for code in 0 1 7 255; do
  watched sh -c "exit $code"
  is "exit code $code passes through" "$status" "$code"
done
for sig in TERM KILL SEGV; do
  watched sh -c "kill -$sig \$\$"
  is "SIG$sig becomes 128 + n" "$status" $((128 + $(kill -l $sig)))
done
watched "$tmp/nothing-there"
is "not found is 127" "$status" 127
is "in one line" "$(wc -l <"$tmp/err")" 1
echo 'no program' >"$tmp/plain"
watched "$tmp/plain"
is "not executable is 126" "$status" 126
run 20 "$HEAPTOP" -b -x -- no-such-program-anywhere
is "not in PATH is 127" "$status" 127

# ---- what the program sees and writes ----
cat >"$tmp/look.py" <<'END'
import os, signal, sys
print(sorted(os.listdir("/proc/self/fd"), key=int)[:-1])	# but the listing's own
print({k: v for k, v in sorted(os.environ.items()) if k != "_"})
for line in open("/proc/self/status"):
    if line.startswith(("SigBlk", "SigIgn", "SigCgt", "SigPnd", "Uid", "Gid", "Groups", "NoNewPrivs", "Umask", "Cap", "Seccomp:")):
        name, value = line.split(":", 1)
        if name.startswith("Sig"):	# without 32 and 33, which are libc's own
            value = "%x" % (int(value, 16) & ~(3 << 31))
        print(name, value.strip())
print(os.getpgrp() == os.getpgid(os.getppid()), os.getsid(0) == os.getsid(os.getppid()))
print([os.isatty(fd) for fd in range(3)], os.getcwd(), sys.argv[1:])
print(os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0))
END
timeout 20 python3 "$tmp/look.py" a 'b c' '' >"$tmp/want" 2>&1 </dev/null
watched python3 "$tmp/look.py" a 'b c' ''
ok "descriptors, environment, signals, ids, arguments are the same" diff "$tmp/want" "$tmp/out"

python3 -c 'import os, sys; sys.stdout.buffer.write(os.urandom(3000000))' >"$tmp/in"
timeout -k 5 60 "$HEAPTOP" -o "$snap" -- cat <"$tmp/in" >"$tmp/copy" 2>"$tmp/err"
is "gate 2: cat of 3 MB leaves with 0" "$?" 0
ok "gate 2: and copies to the byte" cmp "$tmp/in" "$tmp/copy"
watched sh -c 'echo out; echo err >&2'
is "output" "$(cat "$tmp/out")" out
like "error output" "$(cat "$tmp/err")" '(^|'$'\n'')err'
ok "and the snapshot is there" test -s "$snap"
"$VICTIMS/known" >"$tmp/alone"
timeout 60 "$HEAPTOP" -o "$snap" -- "$VICTIMS/known" >"$tmp/watched" 2>/dev/null </dev/null
ok "known prints the same" cmp "$tmp/alone" "$tmp/watched"

# ---- to its very end: exit handlers, and the constructors before main ----
cat >"$tmp/ends.c" <<'END'
#include <stdlib.h>
void *volatile keep[3];
__attribute__((noinline)) void before_main(void) { keep[0] = malloc(11111); }
__attribute__((noinline)) void after_main(void) { keep[1] = malloc(22222); }
__attribute__((constructor)) static void first(void) { before_main(); atexit(after_main); }
int main(void) { return 3; }
END
if have gcc && gcc -g -O0 -o "$tmp/ends" "$tmp/ends.c"; then
  run 30 "$HEAPTOP" -e -b -x "$tmp/ends"
  is "its code" "$status" 3
  is "a constructor's allocation is seen" "$(sites "$tmp/out" site live_bytes | awk '$1 == "before_main" { print $2 }')" 11111
  is "an exit handler's allocation is seen" "$(sites "$tmp/out" site live_bytes | awk '$1 == "after_main" { print $2 }')" 22222
else
  skip "constructors and exit handlers" "no gcc"
fi

# ---- stacks that aren't complete are told of ----
cat >"$tmp/deep.c" <<'END'
#include <stdlib.h>
static int down(int n) {
  volatile char room[200];
  room[0] = n;
  if (n == 0) free(malloc(10));
  else down(n - 1);
  return room[0];
}
int main(void) { down(5000); return 0; }
END
if have gcc && gcc -g -O0 -o "$tmp/deep" "$tmp/deep.c"; then
  run 30 "$HEAPTOP" -e -b -x "$tmp/deep"
  like "a stack deeper than what is copied" "$(header "$tmp/out" stacks_incomplete)" '^[1-9][0-9]* stack copy too short'
else
  skip "a stack deeper than what is copied" "no gcc"
fi

# ---- signals to heaptop ----
launch_demo() {
  rm -f "$snap"
  start "$tmp/launched" "$HEAPTOP" "$@" -- "$VICTIMS/demo" 1000
  heaptop=$started
  wait_for "$tmp/launched" 'demo: serving' || fail "demo starts under heaptop"
  demo=$(pgrep -P "$heaptop" -x demo | head -n 1)
  [ -n "$demo" ] && tap_pids+=("$demo")
}
gone() { ! kill -0 "$1" 2>/dev/null; }

launch_demo -o "$snap"
kill -USR1 "$heaptop"
ok "SIGUSR1 writes the snapshot at once" until_true 10 test -s "$snap"
ok "the program goes on" kill -0 "$demo"
kill -TERM "$heaptop"
finish "$heaptop" 20
ok "SIGTERM ends heaptop and a program it launched" until_true 5 gone "$demo"

launch_demo -o "$snap"
kill -INT "$heaptop" "$demo"	# as a terminal does, to the whole group
finish "$heaptop" 20
ok "Ctrl-C writes the snapshot" test -s "$snap"
ok "and the program ends" until_true 5 gone "$demo"

launch_demo -o "$snap"
kill -KILL "$heaptop"
finish "$heaptop" 5
lines=$(wc -l <"$tmp/launched")
more() { [ "$(wc -l <"$tmp/launched")" -gt "$((lines + 1))" ]; }
ok "a program whose heaptop was killed goes on" until_true 10 more
kill -TERM "$demo"
ok "until it is told to end" until_true 5 gone "$demo"

# ---- attached: detach on every ending ----
start "$tmp/demo" "$VICTIMS/demo" 1000
demo=$started
wait_for "$tmp/demo" serving
for sig in INT TERM HUP; do
  start "$tmp/attached" "$HEAPTOP" -b -d 0.2 -p "$demo"
  wait_for "$tmp/attached" '^# command'
  kill -$sig "$started"
  finish "$started" 20
  ok "SIG$sig detaches: the text is the files'" text_intact "$demo"
  ok "SIG$sig leaves the program running" kill -0 "$demo"
done
begin=$SECONDS
run 30 "$HEAPTOP" -b -d 0.5 -D 2s -p "$demo"
is "-D 2s ends with 0" "$status" 0
ok "after two seconds" test $((SECONDS - begin)) -le 6
run 30 "$HEAPTOP" -b -n 3 -d 0.2 -p "$demo"
is "-n 3 gives three frames" "$(grep -c '^# command: ' "$tmp/out")" 3
timeout 30 "$HEAPTOP" -b -n 1 -p "$demo" >/dev/full 2>"$tmp/err"
is "frames that can't be written are a failure" "$?" 1
like "and that is said" "$(cat "$tmp/err")" 'standard output: No space left'
timeout 30 "$HEAPTOP" -b -n 3 -d 0.2 -p "$demo" 2>"$tmp/err" | head -n 1 >/dev/null
is "a reader that leaves is none" "${PIPESTATUS[0]}" 0
run 30 "$HEAPTOP" -o "$tmp/now.folded" -p "$demo"
is "-p with -o: one snapshot and leave" "$status" 0
ok "which is there" test -s "$tmp/now.folded"
ln -s "$tmp/elsewhere" "$tmp/link.txt"
run 30 "$HEAPTOP" -o "$tmp/link.txt" -p "$demo"
ok "a link is never followed" test ! -e "$tmp/elsewhere"
done_testing
