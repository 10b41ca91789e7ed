#!/usr/bin/env bash
# A launched program's input and output: what would be heaptop's terminal becomes a terminal of its
# own, files and pipes pass through; it never waits for heaptop and never dies with it.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
. "${abs_top_srcdir:-.}/tests/lib/onscreen.sh"
need_ptrace
on_exit() { reap; }

# ---- what the program sees, per redirection ----
echo 'from the file' >"$tmp/in"
look() {
  local name=$1 wanted=$2
  shift 2
  fresh
  on_screen "$name" --size 100x30 "$@" --wait --status 0 --check-restored -- "$HEAPTOP" --tui -x "$tty" look "$notes"
  is "$name: isatty" "$(sed -n 's/^isatty //p' "$notes")" "$wanted"
}
look "all three are the terminal" "1 1 1"
ok "which it controls" noted '^tty 1'
ok "in a session of its own" noted '^leader 1'
like "with a size" "$(sed -n 's/^size //p' "$notes")" '^100x[0-9]+$'
look "input from a file" "0 1 1" --stdin "$tmp/in"
look "output to a file" "1 0 1" --stdout "$tmp/copy"
is "which it writes itself" "$(cat "$tmp/copy")" looked
look "errors to a file" "1 1 0" --stderr "$tmp/copy2"
look "nothing left of the terminal" "0 0 0" --stdin "$tmp/in" --stdout "$tmp/copy" --stderr "$tmp/copy2"
ok "no /dev/tty either: it would write over the screen" noted '^tty 0'

# ---- --io ----
for io in null "$tmp/io.log"; do
  fresh
  on_screen "--io=$(basename "$io")" --wait --status 0 --check-restored -- \
    "$HEAPTOP" --tui -x --io="$io" "$tty" look "$notes"
  is "--io=$(basename "$io"): isatty" "$(sed -n 's/^isatty //p' "$notes")" "0 0 0"
done
is "the file has the output" "$(cat "$tmp/io.log")" looked
ln -s "$tmp/elsewhere" "$tmp/link.log"
fresh
on_screen "a link is refused" --wait --status 125 --check-restored -- \
  "$HEAPTOP" --tui --io="$tmp/link.log" "$tty" look "$notes"
ok "and not followed" test ! -e "$tmp/elsewhere"

# ---- output ----
fresh
on_screen "output is shown on its screen" --expect heaptop --send 7 --expect 'type something' \
  --send q --expect 'Kill it' --send k --wait --check-restored -- "$HEAPTOP" "$tty" read "$notes"
fresh
on_screen "10 MB of output" --expect heaptop --send 7 --expect 'the end of the flood' \
  --wait --status 0 --check-restored -- "$HEAPTOP" -x "$tty" flood "$notes" 10000000
ok "were all written" noted '^done'
fresh
on_screen "the last lines are replayed on the normal screen" --wait --status 0 --check-restored \
  --expect 'the end of the flood' -- "$HEAPTOP" -x "$tty" flood "$notes" 100000
fresh
on_screen "heaptop stopped: the program doesn't wait for it" --expect heaptop \
  --exec "kill -STOP \$PTY_PID; for i in \$(seq 200); do grep -q ^done '$notes' && exit 0; sleep 0.1; done; kill -CONT \$PTY_PID; exit 1" \
  --exec 'kill -CONT $PTY_PID' --expect '■' --send q --wait --check-restored -- \
  "$HEAPTOP" "$tty" flood "$notes" 50000000
printf 'printf "\\033[31mred\\033[0m \\033]0;title\\007\\033[5n\\302\\2332J\\n"; sleep 60' >"$tmp/hostile.sh"
on_screen "escape sequences end in the pane" --expect heaptop --send 7 --expect 'red ' --raw "$tmp/raw" \
  --send q --expect 'Kill it' --send k --wait --check-restored -- "$HEAPTOP" sh "$tmp/hostile.sh"
if LC_ALL=C grep -q $'\033\\]0;title\|\033\\[5n\|\302\2332J' "$tmp/raw"; then
  fail "none reaches the terminal"
else
  pass "none reaches the terminal"
fi

# ---- typing ----
fresh
on_screen "typed lines, Ctrl-C, a new size and the end arrive" --expect heaptop --send 7 \
  --expect 'type something' --send I --send 'hello there\r' --expect 'hello there' \
  --exec "until grep -q '^line: hello there' '$notes'; do sleep 0.05; done" \
  --send '\^C' --exec "until grep -q ^SIGINT '$notes'; do sleep 0.05; done" \
  --resize 60x20 --exec "until grep -q '^resized 60x' '$notes'; do sleep 0.05; done" \
  --send 'q\r' --exec "until grep -q '^line: q' '$notes'; do sleep 0.05; done" \
  --send '\^D' --exec "until grep -q ^eof '$notes'; do sleep 0.05; done" \
  --expect '■' --send q --wait --check-restored -- "$HEAPTOP" "$tty" read "$notes"
fresh
on_screen "Ctrl-] gives the keys back" --expect heaptop --send 7 --expect 'type something' --send I \
  --send 'x\r' --exec "until grep -q '^line: x' '$notes'; do sleep 0.05; done" --send '\^]' \
  --send q --expect 'Kill it' --send k --wait --check-restored -- "$HEAPTOP" "$tty" read "$notes"
ok "only then" test "$(grep -c '^line' "$notes")" -eq 1
fresh
on_screen "typed on another screen nothing arrives" --expect heaptop --send 1jjkk --pause 300 \
  --send q --expect 'Kill it' --send k --wait --check-restored -- "$HEAPTOP" "$tty" read "$notes"
ok "nothing did" test "$(grep -c '^line' "$notes")" -eq 0

# ---- its end, and heaptop's ----
for code in 0 3 255; do
  on_screen "exit code $code" --wait --status $code --check-restored -- "$HEAPTOP" -x sh -c "exit $code"
done
for sig in TERM KILL SEGV; do
  on_screen "killed by SIG$sig: 128 + n" --wait --status $((128 + $(kill -l $sig))) --check-restored -- \
    "$HEAPTOP" -x sh -c "kill -$sig \$\$"
done
on_screen "not found: 127" --wait --status 127 --check-restored -- "$HEAPTOP" "$tmp/not-there"
: >"$tmp/plain"
on_screen "not executable: 126" --wait --status 126 --check-restored -- "$HEAPTOP" "$tmp/plain"
on_screen "heaptop itself: 125" --wait --status 125 --check-restored -- "$HEAPTOP" --io=/nonexistent/file true

# goes_on NAME: the program still writes, its output is drained and it wasn't hung up
goes_on() {
  local before
  before=$(grep -c tick "$notes")
  more() { [ "$(grep -c tick "$notes")" -gt $((before + 10)) ]; }
  ok "$1" until_true 15 more
}
relay_of() { pgrep -x heaptop-relay | while read -r pid; do ls -l "/proc/$pid/fd" 2>/dev/null | grep -q ptmx && echo "$pid"; done; }
for sig in KILL SEGV ABRT; do
  fresh
  on_screen "heaptop gets SIG$sig" --expect heaptop --exec "until grep -q 'tick 5' '$notes'; do sleep 0.05; done" \
    --signal "$sig" --wait --status $((128 + $(kill -l $sig))) -- "$HEAPTOP" "$tty" tick "$notes" 100
  goes_on "gate 3: SIG$sig: the program goes on, its window closed"
  reap
done
fresh
on_screen "heaptop detaches" --expect heaptop --exec "until grep -q 'tick 5' '$notes'; do sleep 0.05; done" \
  --send q --expect 'Kill it' --send d --wait --check-restored -- "$HEAPTOP" "$tty" tick "$notes" 100
goes_on "detached: the program goes on"
relays=$(relay_of | wc -l)
ok "drained by a relay" test "$relays" -ge 1
pid=$(program)
kill -TERM "$pid"
ok "it can be ended" until_true 5 gone "$pid"
fewer() { [ "$(relay_of | wc -l)" -lt "$relays" ]; }
ok "and its relay ends with it" until_true 5 fewer
fresh
on_screen "heaptop killed in a flood" --expect heaptop --signal KILL --wait -- \
  "$HEAPTOP" "$tty" flood "$notes" 30000000
ok "all of it is written" until_true 30 noted '^done'
done_testing
