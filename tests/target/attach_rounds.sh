#!/usr/bin/env bash
# Attach and detach, again and again, and heaptop killed at any moment: a busy program of 16
# threads that checks every block it holds goes on unharmed, and its text ends as its file has it.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need python3
need_ptrace

rounds=60 kills=20
quick && rounds=20 kills=10

# it leaves some processor time to heaptop, or the rounds take an hour
start "$tmp/checker" "$VICTIMS/checker" 16 0 2000
checker=$started
ok "the victim is at work" wait_for "$tmp/checker" '^ready'
ok "its text is its files' before" text_intact "$checker"

# ---- rounds ----
bad=0
options=(-e '-r 512K' '-r 16K' '')
for ((i = 0; i < rounds; i++)); do
  # shellcheck disable=SC2086 # an option is two words
  run 30 "$HEAPTOP" ${options[i % 4]} -b -n 1 -d 0.1 -p "$checker"
  if [ "$status" != 0 ] || ! kill -0 "$checker" 2>/dev/null; then
    diag "round $i (${options[i % 4]}): code $status"
    diag_file "$tmp/err" 5
    bad=$((bad + 1))
    [ $bad -lt 5 ] || break
  fi
done
is "$rounds rounds of attaching and detaching all left with 0" "$bad" 0
ok "the program is alive" kill -0 "$checker"
ok "its text is its files' again" text_intact "$checker"
like "heaptop checked that itself, and says so" "$(cat "$tmp/err")" identical
ok "frames had sites" test "$(sites "$tmp/out" site | wc -l)" -gt 0
[ "$(sites "$tmp/out" site | wc -l)" -gt 0 ] || diag_file "$tmp/out" 40

# ---- kills ----
died=0
for ((i = 0; i < kills; i++)); do
  start "$tmp/killed" "$HEAPTOP" -e -b -d 0.1 -p "$checker"
  victim=$started
  # any moment: before the hooks are in, while they go in, in the middle of collecting
  sleep "0.$((RANDOM % 4))$((RANDOM % 10))$((RANDOM % 10))"
  kill -KILL "$victim"
  wait "$victim" 2>/dev/null
  kill -0 "$checker" 2>/dev/null || { died=$((i + 1)); break; }
done
is "the program survived $kills kills of heaptop" "$died" 0
not_stopped() { ! grep -q "^State:.*[tT] (" "/proc/$checker/status"; }
ok "it isn't left stopped" until_true 2 not_stopped
is "nobody traces it any more" "$(sed -n 's/^TracerPid:\t//p' "/proc/$checker/status")" 0

run 60 "$HEAPTOP" -b -n 1 -d 0.2 -p "$checker"
is "attaching after that works" "$status" 0
diag_file "$tmp/err"
ok "and takes out what the killed ones left: the text is its files'" text_intact "$checker"

kill -TERM "$checker"
finish "$checker" 30
is "the program ends by itself with 0" "$status" 0
diag_file "$tmp/checker"
like "its checks hold" "$(cat "$tmp/checker")" $'\nok [0-9]+ checks'
like "no call of it was interrupted" "$(cat "$tmp/checker")" $'\neintr 0'

# ---- an exec of the attached program: what was watched is gone ----
mkfifo "$tmp/go"
start "$tmp/exec" bash -c 'read -r <"$0"; exec sleep 1000' "$tmp/go"
executes=$started
start "$tmp/frames" "$HEAPTOP" -b -D 30 -d 0.1 -p "$executes"
ok "a program is watched" wait_for "$tmp/frames" '^# command: '
echo >"$tmp/go"
finish "$started" 60
is "an exec ends the watching" "$status" 0
like "and is told" "$(tail -n 2 "$tmp/frames")" "has executed another program"
ok "the new program goes on" kill -0 "$executes"
done_testing
