#!/usr/bin/env bash
# A program that is held up while it starts, where heaptop takes it from one stop to the next: its dynamic linker waits
# for a file, a FIFO here, or it was stopped by a signal besides. Nobody else waits with it for long, and heaptop
# ends when it is told to.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need readelf pgrep
need_ptrace
mkfifo "$tmp/library" "$tmp/go"
program=$VICTIMS/victim_ends
linker=$(readelf -l "$program" | sed -n 's/.*program interpreter: \(.*\)\]/\1/p')

state_of() { sed -n 's/^State:[[:blank:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null; }
is_over() { case $(state_of "$1") in '' | Z | X) return 0 ;; esac && return 1; }
# waits PID COMMAND: it has executed that and sleeps, which it does for the FIFO alone
waits() { [ "$(cat "/proc/$1/comm" 2>/dev/null)" = "${2::15}" ] && [ "$(state_of "$1")" = S ]; }
child_waits() { child=$(pgrep -P "$1" | head -n 1) && waits "${child:-0}" "$2"; }
is_stopped() { [ "$(state_of "$1")" = t ]; }
stop() { kill -STOP "$1" && until_true 5 is_stopped "$1"; }

# told_to_end NAME COMMAND PROGRAM...: heaptop is, while the program, by then COMMAND, is held up
told_to_end() {
  local name=$1 command=$2
  shift 2
  for how in waits 'is stopped'; do
    start "$tmp/told" "$HEAPTOP" -b -d 1000 -- "$@"
    ok "$name $how" until_true 20 child_waits "$started" "$command"
    [ "$how" = waits ] || ok "by a signal" stop "$child"
    kill -TERM "$started"
    ok "heaptop ends in time" until_true 15 is_over "$started"
    ok "and with it the program, which it would have killed later as well" until_true 5 is_over "$child"
    finish "$started" 1
    is "with its exit code" "$status" 137
  done
}
told_to_end "a program that is launched" "${linker##*/}" "$linker" --preload "$tmp/library" "$program" exit 3
like "what became of it is said" "$(cat "$tmp/told")" 'was ended before it began'
told_to_end "one that is executed" victim_ends env LD_PRELOAD="$tmp/library" "$program" exit 3

# ---- a child, beside others ----
for how in waits 'is stopped'; do
  # shellcheck disable=SC2016 # for the inner shell
  start "$tmp/told" "$HEAPTOP" -b -d 1000 -- sh -c 'LD_PRELOAD=$2/library "$1" exit 3 & echo "child $!"
    read -r _ <"$2/go"
    "$1" exit 4; echo "other $?"
    read -r _ <"$2/go"
    : >"$2/library"; wait $!; echo "child ends $?"' sh "$program" "$tmp"
  wait_for "$tmp/told" '^child '
  child=$(sed -n 's/^child //p' "$tmp/told")
  ok "a child $how" until_true 20 waits "$child" victim_ends
  [ "$how" = waits ] || stop "$child"
  echo >"$tmp/go"
  ok "others come and go meanwhile" wait_for "$tmp/told" '^other 4$'
  ok "its code is its files'" text_intact "$child"
  [ "$how" = waits ] || ok "it is still stopped" is_stopped "$child"
  kill -CONT "$child"
  echo >"$tmp/go"
  finish "$started" 20
  like "it goes on where it was" "$(cat "$tmp/told")" $'\nchild ends 3\n'
  is "all of it ends as it would" "$status" 0
done
done_testing
