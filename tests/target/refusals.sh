#!/usr/bin/env bash
# What can't be watched is refused in one line that names the reason, with a code that isn't 0,
# untouched; what an unprivileged user may watch works without root.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need python3
need_ptrace

# refused NAME ERE PID [AS...]: one line on stderr that matches, code 1.
refused() {
  local name=$1 pattern=$2 pid=$3
  shift 3
  run 20 "$@" "${binary:-$HEAPTOP}" -b -n 1 -p "$pid"
  is "$name: exit code" "$status" 1
  is "$name: one line" "$(wc -l <"$tmp/err")" 1
  like "$name: names the reason" "$(cat "$tmp/err")" "$pattern"
}

# ---- no such process ----
pid=$(cat /proc/sys/kernel/pid_max)
while [ -e "/proc/$((--pid))" ]; do :; done
refused "no such process" "[Nn]o (such )?process" "$pid"

# ---- zombie: the child of a process that never waits ----
start "$tmp/zombie" python3 -c 'import os, time
pid = os.fork()
if not pid: os._exit(0)
print(pid, flush=True)
time.sleep(60)'
ok "a zombie is there" wait_for "$tmp/zombie" '^[0-9]+$'
zombie=$(cat "$tmp/zombie")
is_zombie() { grep -q '^State:.*Z' "/proc/$zombie/status"; }
ok "it is one" until_true 5 is_zombie
refused "zombie" "zombie|has ended|ended" "$zombie"

# ---- already traced ----
start "$tmp/traced" "$abs_top_builddir/tests/lib/can-ptrace" hold
ok "a traced process is there" wait_for "$tmp/traced" '^[0-9]+$'
refused "already traced" "traced.*$started|$started.*trac" "$(cat "$tmp/traced")"

# ---- kernel thread ----
if [ -z "$(tr -d '\0' <"/proc/2/cmdline" 2>/dev/null)" ] && grep -q '^PPid:.0$' /proc/2/status 2>/dev/null; then
  refused "kernel thread" "kernel thread" 2
else
  diag "no kernel thread in this PID namespace: not tried"
fi

# ---- 32-bit: pause() for ever through int 0x80 ----
python3 - "$tmp/elf32" <<'END'
import os, struct, sys
code = bytes.fromhex("b81d000000" "cd80" "ebf7")	# mov $29, %eax; int $0x80; jmp -9
base, head = 0x08048000, 52 + 32
ident = b"\x7fELF\x01\x01\x01" + bytes(9)
ehdr = struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, base + head, 52, 0, 0, 52, 32, 1, 0, 0, 0)
phdr = struct.pack("<IIIIIIII", 1, 0, base, base, head + len(code), head + len(code), 5, 4096)
with open(sys.argv[1], "wb") as f:
    f.write(ident + ehdr + phdr + code)
os.chmod(sys.argv[1], 0o755)
END
start "$tmp/elf32.out" "$tmp/elf32"
elf32=$started
runs32() { grep -qs elf32 "/proc/$elf32/maps"; }
if until_true 1 runs32; then
  refused "32-bit program" "32-bit" "$elf32"
else
  diag "this kernel runs no 32-bit programs: not tried"
fi

# ---- ourselves ----
start "$tmp/victim" "$VICTIMS/demo" 1000
victim=$started
ok "an ordinary program is there" wait_for "$tmp/victim" serving

# ---- as another user ----
if [ "$(id -u)" = 0 ] && have setpriv; then
  chmod 755 "$tmp"
  install -m 755 "$HEAPTOP" "$tmp/heaptop"
  install -m 755 "$VICTIMS/known" "$VICTIMS/demo" "$tmp/"
  mkdir -m 777 "$tmp/open"
  as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all env
    "HOME=$tmp/open" "XDG_CONFIG_HOME=$tmp/open" "XDG_STATE_HOME=$tmp/open")
  binary=$tmp/heaptop
  refused "another user's process" "user|root|permi" "$victim" "${as_user[@]}"
  ok "it was left alone" text_intact "$victim"

  run 60 "${as_user[@]}" "$binary" -e -b -x "$tmp/known" 1 0 "$tmp/open/truth"
  is "a user can launch" "$status" 0
  diag_file "$tmp/err" 5
  ok "and the figures are right" known_right "$tmp/open/truth" "$tmp/out"

  start "$tmp/theirs" "${as_user[@]}" "$tmp/demo" 1000
  ok "a process of theirs" wait_for "$tmp/theirs" serving
  scope=$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)
  if [ "$scope" = 0 ]; then
    run 60 "${as_user[@]}" "$binary" -b -n 1 -d 0.3 -p "$started"
    is "a user can attach to it" "$status" 0
    diag_file "$tmp/err" 5
    ok "and lets it go as it was" text_intact "$started"
  else
    refused "with ptrace_scope $scope" "ptrace_scope" "$started" "${as_user[@]}"
  fi

  start "$tmp/protected" "${as_user[@]}" python3 -c 'import ctypes, time
ctypes.CDLL(None).prctl(4, 0)	# PR_SET_DUMPABLE
print("protected", flush=True)
time.sleep(60)'
  ok "a process that isn't dumpable" wait_for "$tmp/protected" '^protected'
  refused "not dumpable" "not dumpable" "$started" "${as_user[@]}"
  unset binary
else
  skip "another user's process" "needs root and setpriv to become another user"
fi

# ---- usage ----
for bad in '-p' '-p x1' '-r 0.1.2 true' '--no-such-option' '-s nonsense true' '-i' "-p $victim extra" \
  "-o $tmp/x.nonsense true"; do
  # shellcheck disable=SC2086 # words
  run 10 "$HEAPTOP" -b $bad
  is "heaptop $bad: exit code 2" "$status" 2
  like "heaptop $bad: where to look" "$(cat "$tmp/err")" "heaptop --help"
done
run 10 "$HEAPTOP" -o "$tmp/no/such/folder.txt" -- touch "$tmp/was-run"
is "a snapshot that can't be written: exit code 125" "$status" 125
is "told in one line" "$(wc -l <"$tmp/err")" 1
ok "before anything is run" test ! -e "$tmp/was-run"

# ---- by name ----
cp "$VICTIMS/demo" "$tmp/a-name-of-its-own"
start "$tmp/named" "$tmp/a-name-of-its-own" 60
run 30 "$HEAPTOP" -b -n 1 -d 0.2 -p a-name-of-its-own
is "-p takes a name" "$status" 0
is "and finds that process" "$(header "$tmp/out" pid)" "$started"
kill -KILL "$started"

run 10 "$HEAPTOP" --help
is "--help leaves with 0" "$status" 0
like "--help is on standard output" "$(cat "$tmp/out")" "--pid"
run 10 "$HEAPTOP" -V
like "-V tells the version" "$(cat "$tmp/out")" "heaptop [0-9]"
printf 'not a profile' >"$tmp/bad.pb.gz"
run 10 "$HEAPTOP" -b -n 1 -i "$tmp/bad.pb.gz"
is "a bad snapshot: exit code 1" "$status" 1
is "a bad snapshot: one line" "$(wc -l <"$tmp/err")" 1
run 10 "$HEAPTOP" -b -n 1 -i "$tmp/none.pb.gz"
is "no snapshot: exit code 1" "$status" 1
done_testing
