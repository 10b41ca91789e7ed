#!/usr/bin/env bash
# --doctor says what works, what doesn't and what to do: of this machine, of a process, of a program file;
# as root and as nobody, where everything works and where a right is missing. What it looks at goes on as
# if nothing had been.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
. "${abs_top_srcdir:-.}/tests/lib/tmux.sh"
need python3
need_ptrace
on_exit() { tmux_stop; }

# doctor [ARG...]: output in $tmp/out, code in $status, and nothing on standard error.
as=()
doctor() {
  run 30 "${as[@]}" "${binary:-$HEAPTOP}" --doctor "$@"
  if [ -s "$tmp/err" ]; then
    fail "heaptop --doctor $* has no errors"
    diag_file "$tmp/err"
  fi
}
# says LEVEL TOPIC ERE: there is such a line.
says() {
  if grep -Eq -- "^$1 +$2 +.*($3)" "$tmp/out"; then
    pass "${as:+as another user, }$1: $2: $3"
  else
    fail "${as:+as another user, }$1: $2: $3"
    diag_file "$tmp/out" 40
  fi
}

# ---- the machine ----
doctor
is "the machine: exit code" "$status" 0
for topic in kernel processor clock ptrace memory ptrace_scope user namespaces seccomp memfd maps \
  priority 'perf events' 'debug files' terminal; do
  says '(ok|limited)' "$topic" .
done
like "the machine: the last word" "$(tail -n 1 "$tmp/out")" '^heaptop can work here$'
like "each line is one of ok, limited, no" \
  "$(grep -Ev '^(ok|limited|no) ' "$tmp/out" | grep -c .)" '^2$'

# a container's filter: ptrace is refused. Numbers of x86-64
cat >"$tmp/confined.py" <<'END2'
import ctypes, os, struct, sys
PTRACE, DENY, ALLOW = 101, 0x50001, 0x7fff0000
code = b"".join(struct.pack("HBBI", *op) for op in (
    (0x20, 0, 0, 0), (0x15, 0, 1, PTRACE), (0x06, 0, 0, DENY), (0x06, 0, 0, ALLOW)))
buf = ctypes.create_string_buffer(code)
prog = struct.pack("HxxxxxxP", 4, ctypes.addressof(buf))
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
if libc.prctl(22, 2, ctypes.c_char_p(prog)):
    sys.exit("seccomp: " + os.strerror(ctypes.get_errno()))
os.execv(sys.argv[1], sys.argv[1:])
END2
as=(python3 "$tmp/confined.py")
doctor
is "ptrace is refused: exit code" "$status" 1
says no ptrace 'Operation not permitted.*seccomp.*SYS_PTRACE'
says no seccomp filter
like "ptrace is refused: the last word" "$(tail -n 1 "$tmp/out")" "^heaptop can't work here"
as=()
if have unshare && unshare --user --map-root-user true 2>/dev/null; then
  as=(unshare --user --map-root-user)
  doctor
  says limited namespaces 'user namespace'
  as=()
fi

# ---- a process ----
start "$tmp/victim" "$VICTIMS/demo" 1000
victim=$started
ok "an ordinary program is there" wait_for "$tmp/victim" serving
doctor -p "$victim"
is "an ordinary program: exit code" "$status" 0
says ok attach 'may be traced'
says ok allocator 'libc.*malloc'
says ok names 'demo has debug info'
says ok stacks 'unwind'
for topic in owner dumpable tracer 'its seccomp' 'its namespaces' 'address space'; do says ok "$topic" .; done
like "an ordinary program: the last word" "$(tail -n 1 "$tmp/out")" '^heaptop can attach to it$'
ok "it was left alone" text_intact "$victim"
like "it isn't traced and isn't stopped" "$(grep -E '^(State|TracerPid)' "/proc/$victim/status" | tr '\n' ' ')" \
  '^State:.[RS] .*TracerPid:.0 $'

pid=$(cat /proc/sys/kernel/pid_max)
while [ -e "/proc/$((--pid))" ]; do :; done
doctor -p "$pid"
is "no such process: exit code" "$status" 1
says no attach 'no such process'

start "$tmp/traced" "$abs_top_builddir/tests/lib/can-ptrace" hold
ok "a traced process is there" wait_for "$tmp/traced" '^[0-9]+$'
doctor -p "$(cat "$tmp/traced")"
is "traced: exit code" "$status" 1
says no tracer "pid $started"

if have prlimit; then
  start "$tmp/tight" prlimit --as=60000000 "$VICTIMS/demo" 1000
  ok "a process with little address space" wait_for "$tmp/tight" serving
  doctor -p "$started"
  says no 'address space' 'RLIMIT_AS.*prlimit'
fi

# its name is the target's: escape sequences don't get through
name=$tmp/$'od\033[31md\nname'
cp "$VICTIMS/demo" "$name"
start "$tmp/odd" "$name" 60
ok "a process with an odd name" wait_for "$tmp/odd" serving
doctor -p "$started"
is "an odd name: exit code" "$status" 0
ok "an odd name: only printable text" sh -c "! LC_ALL=C grep -q '[[:cntrl:]]' '$tmp/out'"
kill -KILL "$started"
doctor "$name"
is "a program with an odd name: exit code" "$status" 0
ok "a program with an odd name: only printable text" sh -c "! LC_ALL=C grep -q '[[:cntrl:]]' '$tmp/out'"

# ---- a program ----
doctor "$VICTIMS/demo"
is "a program: exit code" "$status" 0
says ok program '64-bit program'
doctor sh -c 'exit 3'
is "a program is looked for in PATH and not run: exit code" "$status" 0
doctor "$tmp/none"
is "no such program: exit code" "$status" 1
says no program 'no such program'
printf '#!/bin/sh\ntouch "%s"\n' "$tmp/was-run" >"$tmp/script"
doctor "$tmp/script"
says no program "can't be executed.*chmod"
chmod 755 "$tmp/script"
doctor "$tmp/script"
says ok program 'script'
ok "it wasn't run" test ! -e "$tmp/was-run"
if have gcc; then
  echo 'int main(void) { return 0; }' >"$tmp/small.c"
  gcc -static -s -o "$tmp/stripped" "$tmp/small.c"
  doctor "$tmp/stripped"
  is "static and stripped: exit code" "$status" 1
  says no allocator 'no name'
fi
printf '\177ELF\001\001\001%057d' 0 >"$tmp/elf32"
chmod 755 "$tmp/elf32"
doctor "$tmp/elf32"
is "not a program for this: exit code" "$status" 1
says no program .

# ---- as another user ----
if [ "$(id -u)" = 0 ] && have setpriv; then
  chmod 755 "$tmp"
  install -m 755 "$HEAPTOP" "$tmp/heaptop"
  as=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all env "HOME=$tmp")
  binary=$tmp/heaptop
  doctor
  says limited user 'without CAP_SYS_PTRACE'
  doctor -p "$victim"
  is "another user's process: exit code" "$status" 1
  says no attach 'root.*sudo heaptop'
  start "$tmp/protected" "${as[@]}" python3 -c 'import ctypes, time
ctypes.CDLL(None).prctl(4, 0)	# PR_SET_DUMPABLE
print("protected", flush=True)
time.sleep(60)'
  ok "a process that isn't dumpable" wait_for "$tmp/protected" '^protected'
  doctor -p "$started"
  is "not dumpable: exit code" "$status" 1
  says limited dumpable 'protected.*CAP_SYS_PTRACE'

  # what is refused at the start points here
  run 20 "${as[@]}" "$binary" -b -n 1 -p "$victim"
  is "a refusal: exit code" "$status" 1
  like "a refusal points to --doctor" "$(cat "$tmp/err")" "sudo heaptop.*heaptop --doctor -p $victim"
  as=()
  unset binary
else
  skip "another user's process" "needs root and setpriv to become another user"
fi

# ---- a terminal ----
if have tmux; then
  tmux_start 100 30
  tmux_run "'$HEAPTOP' --doctor >'$tmp/out'"
  ok "in a terminal" until_true 20 tmux_ended
  says ok terminal 'TERM=.*cursor'
  says ok size '100 columns, 30 rows'
  says ok colours '[1-9]'
  says ok characters 'UTF-8'
  tmux_run "env TERM=dumb '$HEAPTOP' --doctor >'$tmp/out'"
  ok "in a dumb one" until_true 20 tmux_ended
  says limited terminal "cursor.*-b"
else
  skip "in a terminal" "no tmux"
fi

run 10 "$HEAPTOP" --doctor -i "$tmp/none.pb.gz"
is "--doctor of a snapshot is a usage error" "$status" 2
done_testing
