#!/usr/bin/env bash
# kernel.yama.ptrace_scope=1, as it is on many machines: only what heaptop starts itself may be traced. Where the
# kernel has no Yama it is made up, in a mount namespace in which the setting can be read, by a filter that refuses
# to trace one process, which is no child of heaptop's.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need python3 setpriv unshare
need_ptrace
[ "$(id -u)" = 0 ] || skip_all "needs root to become another user"
uid=54321
chmod 711 "$tmp"
mkdir -m 777 "$tmp/open"
for program in "$HEAPTOP" "$VICTIMS/demo" "$VICTIMS/known"; do
  cp "$program" "$tmp/" && chmod 755 "$tmp/${program##*/}"
done
cat >"$tmp/refuse.py" <<'END'
# refuse.py PID COMMAND...: PTRACE_ATTACH and PTRACE_SEIZE of PID fail with EPERM
import ctypes, os, struct, sys
pid, command = int(sys.argv[1]), sys.argv[2:]
LOAD, JUMP, RETURN = 0x20, 0x15, 0x06	# ld [k], jeq #k, ret #k
code = [(LOAD, 0, 0, 0), (JUMP, 0, 6, 101),	# ptrace(2), x86-64
        (LOAD, 0, 0, 16), (JUMP, 1, 0, 16), (JUMP, 0, 3, 0x4206),
        (LOAD, 0, 0, 24), (JUMP, 0, 1, pid),
        (RETURN, 0, 0, 0x50001),	# SECCOMP_RET_ERRNO | EPERM
        (RETURN, 0, 0, 0x7fff0000)]	# SECCOMP_RET_ALLOW
packed = b''.join(struct.pack('HBBI', *c) for c in code)
buf = ctypes.create_string_buffer(packed, len(packed))
prog = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', len(code), ctypes.addressof(buf)))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, prog):
    sys.exit('no filter: ' + os.strerror(ctypes.get_errno()))
os.execvp(command[0], command)
END
chmod 644 "$tmp/refuse.py"
as_user=(setpriv --reuid $uid --regid $uid --clear-groups env "HOME=$tmp/open" "XDG_CONFIG_HOME=$tmp/open"
  "XDG_STATE_HOME=$tmp/open")
# Where the setting is 1. It doesn't concern what heaptop launches, so that needn't be under the filter, which children
# would inherit.
cat >"$tmp/scope.sh" <<'END'
if [ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null)" != 1 ]; then
  # the rest of what is found there stays to be seen
  paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)
  mount -t tmpfs none /proc/sys/kernel && mkdir /proc/sys/kernel/yama || exit 99
  echo "$paranoid" >/proc/sys/kernel/perf_event_paranoid
  echo 1 >/proc/sys/kernel/yama/ptrace_scope
fi
exec "$@"
END
# there SECONDS COMMAND...: run it there, as that user
there() {
  local seconds=$1
  shift
  run "$seconds" unshare -m --propagation private bash "$tmp/scope.sh" "${as_user[@]}" "$@"
}

start "$tmp/victim" "${as_user[@]}" "$tmp/demo" 1000
victim=$started
ok "a process of the same user is there" wait_for "$tmp/victim" serving
there 20 cat /proc/sys/kernel/yama/ptrace_scope
is "the setting is 1" "$(cat "$tmp/out")" 1
diag_file "$tmp/err"

there 20 python3 "$tmp/refuse.py" "$victim" "$tmp/heaptop" -b -n 1 -p "$victim"
is "attaching is refused" "$status" 1
is "in one line" "$(wc -l <"$tmp/err")" 1
like "that names the reason" "$(cat "$tmp/err")" "process $victim: .*kernel.yama.ptrace_scope=1"
like "and what to do" "$(cat "$tmp/err")" 'start the program with heaptop, or: sudo sysctl kernel.yama.ptrace_scope=0'
ok "the process is untouched" text_intact "$victim"
is "and nobody traces it" "$(sed -n 's/^TracerPid:\t//p' "/proc/$victim/status")" 0

there 60 "$tmp/heaptop" -e -b -x "$tmp/known" 1 0 "$tmp/open/truth"
is "launching works" "$status" 0
diag_file "$tmp/err" 5
ok "and the figures are right" known_right "$tmp/open/truth" "$tmp/out"

there 20 "$tmp/heaptop" --doctor
like "--doctor knows it" "$(cat "$tmp/out")" 'ptrace_scope[^'$'\n'']*1: only what heaptop itself starts'
like "and the remedy" "$(cat "$tmp/out")" 'sudo sysctl kernel.yama.ptrace_scope=0'
done_testing
