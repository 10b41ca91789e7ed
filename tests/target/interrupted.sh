#!/usr/bin/env bash
# Exit code 130: a Ctrl-C that comes before there is any result. One that comes later ends with what there is.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need python3
need_ptrace

# interrupted_run SECONDS COMMAND...: as run, the command begins with a Ctrl-C that is still to be taken
interrupted_run() {
  local seconds=$1
  shift
  run "$seconds" python3 -c '
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
os.kill(os.getpid(), signal.SIGINT)
os.execvp(sys.argv[1], sys.argv[1:])' "$@"
}

"$VICTIMS/victim_leak" >"$tmp/victim" 2>&1 &
pid=$!
tap_pids+=("$pid")
disown
mapped() { grep -q libc "/proc/$pid/maps"; }
until_true 10 mapped

interrupted_run 60 "$HEAPTOP" -b -p "$pid"
is "attached, before the first look: 130" "$status" 130
is "and no frame" "$(cat "$tmp/out")" ""
diag_file "$tmp/err"
ok "the hooks are out" text_intact "$pid"
interrupted_run 60 "$HEAPTOP" -o "$tmp/early.pb.gz" -p "$pid"
is "with -o: 130" "$status" 130
is "and no file" "$(cd "$tmp" && ls -A | grep early)" ""
interrupted_run 60 "$HEAPTOP" -b --fail-if='live>0' -p "$pid"
is "no condition is judged then" "$status" 130

# the first frame stands there: that is a result
"$HEAPTOP" -b -d 0.1 -p "$pid" >"$tmp/frames" 2>"$tmp/err" &
watcher=$!
tap_pids+=("$watcher")
wait_for "$tmp/frames" '^# time_s'
kill -INT $watcher
finish $watcher 30
is "after a frame: 0" "$status" 0
# a file that never comes
mkfifo "$tmp/never.pb.gz"
exec 8<>"$tmp/never.pb.gz"
for signal in INT TERM; do
  "$HEAPTOP" -b -i "$tmp/never.pb.gz" >"$tmp/out" 2>"$tmp/err" &
  reader=$!
  tap_pids+=("$reader")
  blocked() { grep -Eq '^SigBlk:.*[2367abef]$' "/proc/$reader/status"; }
  until_true 10 blocked
  kill -$signal $reader
  finish $reader 20
  is "reading a file, SIG$signal: 128 + n" "$status" $((128 + $(kill -l $signal)))
  is "without a word" "$(cat "$tmp/out" "$tmp/err")" ""
done
interrupted_run 20 "$HEAPTOP" -b -p "$pid" --base="$tmp/never.pb.gz"
is "reading a file to compare with: 130" "$status" 130
run 20 "$HEAPTOP" -b -i "$tmp/victim"
is "a bad file is 1 as ever" "$status" 1
ok "and said" grep -q "^heaptop: $tmp/victim" "$tmp/err"
kill -KILL $pid
done_testing
