#!/usr/bin/env bash
# Stopped and continued, in vfork, forking, executing, dying: whatever a program is just doing when
# heaptop comes and goes, it goes on doing it.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need python3
need_ptrace
rounds=5
quick && rounds=2

begin() {
  rm -f "$tmp/in"
  : >"$tmp/said"
  mkfifo "$tmp/in"
  exec 7<>"$tmp/in"
  "$VICTIMS/victim_jobs" <"$tmp/in" >>"$tmp/said" 2>&1 7>&- &
  pid=$!
  tap_pids+=("$pid")
  wait_for "$tmp/said" '^ready'
}
# ask LINE ERE: the victim answers
ask() {
  : >"$tmp/said"
  echo "$1" >&7
  wait_for "$tmp/said" "$2"
}
answer() { sed -n "s/^$1 //p" "$tmp/said" | tail -n 1; }
state() { sed -n 's/^State:\t\(.\).*/\1/p' "/proc/$pid/status"; }
is_state() { [ "$(state)" = "$1" ]; }
frame_there() { grep -q '^# time_s' "$tmp/frames"; }
watch() {
  : >"$tmp/frames"
  "$HEAPTOP" -e -b -d 0.1 -p "$pid" >"$tmp/frames" 2>"$tmp/err" &
  watcher=$!
  tap_pids+=("$watcher")
  until_true 30 frame_there
}
leave() {
  kill -INT "$watcher"
  finish "$watcher" 30
}

# ---- job control ----
begin
kill -STOP "$pid"
ok "the program is stopped" until_true 5 is_state T
run 60 "$HEAPTOP" -e -b -n 1 -d 0.2 -p "$pid"
is "a stopped program can be attached to" "$status" 0
diag_file "$tmp/err"
ok "and is still stopped afterwards" until_true 5 is_state T
kill -CONT "$pid"
ok "and can be continued" ask 'forks 1' '^forked 1$'
watch
kill -STOP "$pid"
ok "it can be stopped while it is watched" until_true 5 is_state T
leave
is "heaptop leaves a stopped program with 0" "$status" 0
diag_file "$tmp/err"
ok "stopped as it was" until_true 5 is_state T
ok "with its own text" text_intact "$pid"
kill -CONT "$pid"
ok "and it can be continued then" ask 'forks 1' '^forked 1$'
watch
kill -STOP "$pid"
ok "stopped again" until_true 5 is_state T
kill -CONT "$pid"
ok "and continued while it is watched" ask 'forks 1' '^forked 1$'
echo stop >&7
ok "it stops itself" until_true 5 is_state T
kill -CONT "$pid"
ok "and goes on" wait_for "$tmp/said" '^continued'
leave
is "heaptop leaves with 0" "$status" 0

# ---- vfork: a thread that can't be stopped ----
ask gap '^gap'
ask 'vfork 2500' '^begun'
run 60 "$HEAPTOP" -b -n 1 -d 0.1 -p "$pid"
like "in a vfork it is attached to later, or refused in a line" "$status $(wc -l <"$tmp/err")" '^[01] 1$'
ok "the vfork comes to its end" wait_for "$tmp/said" '^vforked 7$'
watch
ok "a vfork while it is watched" ask 'vfork 2500' '^begun'
ask_gap() {
  ask gap '^gap' || return 1
  [ "$(answer gap)" -lt 1500 ] || { diag "held up for $(answer gap) ms"; return 1; }
}
leave
is "heaptop waits for its end and leaves with 0" "$status" 0
diag_file "$tmp/err"
wait_for "$tmp/said" '^vforked 7$'
ok "the other thread wasn't held up for the time of it" ask_gap
ok "its text is its files' again" text_intact "$pid"

# ---- forks and execs at any moment of it ----
bad=0
for ((i = 0; i < rounds; i++)); do
  : >"$tmp/said"
  echo 'forks 100' >&7
  run 60 "$HEAPTOP" -e -b -n 1 -d 0.1 -p "$pid"
  [ "$status" = 0 ] || { diag_file "$tmp/err"; bad=$((bad + 1)); }
  wait_for "$tmp/said" '^forked 100$' || bad=$((bad + 1))
done
is "$rounds times attached to while it forks" "$bad" 0
bad=0
for ((i = 0; i < rounds; i++)); do
  : >"$tmp/said"
  timeout -k 5 30 "$HEAPTOP" -e -b -n 2 -d 0.1 -p "$pid" >"$tmp/out" 2>"$tmp/err" &
  watcher=$!
  sleep "0.0$((RANDOM % 10))"
  echo exec >&7
  wait_for "$tmp/said" '^ready' || bad=$((bad + 1))
  wait "$watcher"
  status=$?
  [ "$status" -lt 2 ] && [ "$(wc -l <"$tmp/err")" -le 2 ] || { diag "code $status"; diag_file "$tmp/err"; bad=$((bad + 1)); }
  kill -0 "$pid" || break
done
is "$rounds execs while heaptop comes: it goes on, and heaptop says why it leaves" "$bad" 0
run 60 "$HEAPTOP" -b -n 1 -d 0.1 -p "$pid"
is "what is there now can be attached to" "$status" 0
ok "and has its own text" text_intact "$pid"
echo quit >&7
finish "$pid" 20
is "it ends with 0" "$status" 0

# ---- its death at any moment ----
bad=0
for ((i = 0; i < rounds; i++)); do
  begin
  timeout -k 5 30 "$HEAPTOP" -e -b -n 2 -d 0.1 -p "$pid" >"$tmp/out" 2>"$tmp/err" &
  watcher=$!
  sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
  if ((i % 2)); then kill -KILL "$pid"; else echo quit >&7; fi
  finish "$pid" 20
  is_end=$((i % 2 ? 137 : 0))
  [ "$status" = "$is_end" ] || { diag "the program left with $status"; bad=$((bad + 1)); }
  wait "$watcher"
  status=$?
  [ "$status" -lt 2 ] || { diag "code $status"; diag_file "$tmp/err"; bad=$((bad + 1)); }
done
is "$rounds programs that end while heaptop comes: with their own codes, and so does heaptop" "$bad" 0
done_testing
