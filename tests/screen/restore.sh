#!/usr/bin/env bash
# However heaptop ends, the terminal is as it was: settings, alternate screen, cursor, mouse, keypad,
# colours. On a raw terminal (tests/lib/ptyrun), since an interactive shell repairs the settings.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
# On a console ncurses loads libgpm for the mouse and unloads it again: ten bytes stay behind, of no module
# that a suppression could name.
[ -z "${ASAN_OPTIONS-}" ] || export ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
. "${abs_top_srcdir:-.}/tests/lib/onscreen.sh"
need python3
need_ptrace

# the harness itself: it must see what a program leaves behind
ok "the harness sees a clean terminal" "$ptyrun" --wait --check-restored -- true
for left in '\033[?1049h' '\033[?25l' '\033[?1006h' '\033[1m' '\033='; do
  if "$ptyrun" --wait --check-restored -- printf "$left" 2>/dev/null; then
    fail "the harness sees $left"
  else
    pass "the harness sees $left"
  fi
done
if "$ptyrun" --wait --check-restored -- stty -echo 2>/dev/null; then
  fail "the harness sees stty -echo"
else
  pass "the harness sees stty -echo"
fi

for sig in HUP INT QUIT TERM SEGV ABRT BUS ILL FPE; do
  fresh
  on_screen "gate 1: SIG$sig" --expect 'heaptop' --expect 'tty' --signal "$sig" \
    --wait --check-screen --check-restored -- "$HEAPTOP" "$tty" tick "$notes" 100
  reap
done
for sig in SEGV ABRT; do
  fresh
  on_screen "SIG$sig ends it with 128 + n" --expect 'heaptop' --signal "$sig" --wait \
    --status $((128 + $(kill -l $sig))) -- "$HEAPTOP" "$tty" tick "$notes" 100
  reap
done

# a terminal that goes sends it twice, the second time when the screen is closed already
fresh
twice="p=\$(sed -n 's/^ready //p' '$notes'); p=\$(ps -o ppid= -p \$p); kill -HUP \$p; sleep 0.02; kill -HUP \$p; :"
on_screen "SIGHUP twice" --expect 'heaptop' --exec "$twice" --wait --status 129 --check-screen --check-restored -- \
  "$HEAPTOP" --tui -o "$tmp/hup.pb.gz" "$tty" tick "$notes" 100
ok "the snapshot was written" test -s "$tmp/hup.pb.gz"
ok "the program was killed" until_true 5 gone "$(program)"
reap

# one that goes while its shell doesn't mind SIGHUP: nobody tells heaptop but the terminal itself
cat >"$tmp/hangup.py" <<'END'
import os, pty, select, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.execvp("sh", ["sh", "-c", 'trap "" HUP; "$@"; echo $? >"$0"'] + sys.argv[1:])
seen, end = b"", time.time() + 20
while b"heaptop" not in seen and time.time() < end:
    if select.select([fd], [], [], 0.1)[0]:
        seen += os.read(fd, 4096)
os.close(fd)
os.waitpid(pid, 0)
END
for what in -p list; do
  fresh
  sleep 1000 &
  tap_pids+=($!)
  if [ $what = list ]; then command=("$HEAPTOP"); else command=("$HEAPTOP" -p $!); fi
  rm -f "$tmp/code"
  timeout -k 1 30 python3 "$tmp/hangup.py" "$tmp/code" "${command[@]}" >"$tmp/err" 2>&1
  is "the terminal goes without a signal, $what: 128 + SIGHUP" "$(cat "$tmp/code")" 129
done

# q asks, since the program lives: k kills it, d lets it go
fresh
on_screen "q, kill" --expect 'heaptop' --send q --expect 'Kill it' --send k \
  --wait --check-screen --check-restored -- "$HEAPTOP" "$tty" tick "$notes" 100
ok "the program was killed" until_true 5 gone "$(program)"
reap
fresh
on_screen "q, detach" --expect 'heaptop' --send q --expect 'Kill it' --send d \
  --wait --check-screen --check-restored -- "$HEAPTOP" "$tty" tick "$notes" 100
ticks() { grep -c tick "$notes"; }
before=$(ticks)
more() { [ "$(ticks)" -gt $((before + 5)) ]; }
ok "the program goes on" until_true 10 more
reap
for key in '\^C' '\e[21~'; do
  fresh
  on_screen "$key quits too" --expect 'heaptop' --send "$key" --expect 'Kill it' --send k \
    --wait --check-restored -- "$HEAPTOP" "$tty" tick "$notes" 100
  reap
done

fresh
on_screen "-D leaves by itself" --expect 'heaptop' --wait --status 0 --check-screen --check-restored -- \
  "$HEAPTOP" -D 1 "$tty" tick "$notes" 100
before=$(ticks)
ok "and the program goes on" until_true 10 more
reap

# the program is killed: heaptop stays, and leaves as it should; with -x by itself
fresh
on_screen "gate 1: the program is killed" --expect 'heaptop' \
  --exec "kill -KILL \$(sed -n 's/^ready //p' '$notes')" --expect '■' --send q \
  --wait --check-screen --check-restored -- "$HEAPTOP" "$tty" tick "$notes" 100
fresh
on_screen "-x leaves with the program, and with its code" --expect 'ended with code 137' --wait --status 137 --check-restored -- \
  "$HEAPTOP" -x sh -c 'sleep 0.5; kill -KILL $$'

# attached
fresh
start "$tmp/ticking" "$tty" tick "$notes" 100
wait_for "$notes" ready
for sig in HUP INT TERM; do
  on_screen "attached: SIG$sig" --expect 'heaptop' --signal "$sig" \
    --wait --check-screen --check-restored -- "$HEAPTOP" -p "$started"
  ok "and the program goes on" kill -0 "$started"
done
on_screen "attached: q" --expect 'heaptop' --send q --wait --check-screen --check-restored -- \
  "$HEAPTOP" -p "$started"
on_screen "the picker: Esc" --expect 'PID' --send '\e' --wait --status 0 --check-screen --check-restored -- \
  "$HEAPTOP"
# (an escape in what is typed: ptyrun's own command line must not match)
on_screen "the picker: Esc takes the filter back first" --expect 'PID' --send 'no\x73uchprogram' --expect 'no process matches' \
  --send '\e' --gone 'no process matches' --send '\e' --wait --status 0 --check-screen --check-restored -- "$HEAPTOP"
on_screen "the picker: C-c" --expect 'PID' --send '\^C' --wait --status 130 --check-restored -- "$HEAPTOP"
on_screen "the picker: SIGTERM" --expect 'PID' --signal TERM --wait --status 143 --check-restored -- \
  "$HEAPTOP"

# other terminals, and a size that changes at every moment
for term in screen tmux-256color linux vt100; do
  infocmp "$term" >/dev/null 2>&1 || { skip "TERM=$term" "no such terminfo"; continue; }
  on_screen "TERM=$term" --term "$term" --expect 'heaptop' --send q --wait --check-restored -- \
    "$HEAPTOP" -p "$started"
done
on_screen "resized" --expect 'heaptop' --resize 40x10 --resize 1x1 --resize 200x60 --resize 80x24 \
  --expect 'heaptop' --send q --wait --check-screen --check-restored -- "$HEAPTOP" -p "$started"

# no screen: said in a line, nothing sent to the terminal
if timeout 20 "$ptyrun" --term "" --wait --check-screen -- "$HEAPTOP" -n 1 -p "$started" 2>/dev/null; then
  fail "without TERM no screen is opened"
else
  pass "without TERM no screen is opened"
fi
done_testing
