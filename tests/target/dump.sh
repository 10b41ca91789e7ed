#!/bin/bash
# --dump: the file of -o at the end, of the peak beside it, every so often, on a signal; and what a .txt file has to say of
# the live blocks.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need_ptrace
cd "$tmp" || exit 99

bytes() { "$HEAPTOP" -b -i "$1" | sed -n 's/^# live_bytes: //p'; }
usage() {
  local name=$1
  shift
  run 10 "$HEAPTOP" "$@"
  is "$name: usage error" "$status" 2
}
usage "no such occasion" --dump=often -o x.pb.gz true
usage "no such time" --dump=every=soon -o x.pb.gz true
usage "nothing at all" --dump= -o x.pb.gz true
usage "no file" --dump=peak true
usage "several to standard output" --dump=peak -o - true
usage "a snapshot" --dump=peak -i x.pb.gz -o y.pb.gz

# await NAME COMMAND...: until it succeeds, 30 s at most
await() {
  local name=$1 i
  shift
  for ((i = 0; i < 300; i++)); do
    if "$@" 2>/dev/null; then
      pass "$name"
      return
    fi
    sleep 0.1
  done
  fail "$name" "never: $*"
}
least() { [ -s "$1" ] && [ "$(bytes "$1")" -ge "$2" ]; }
most() { [ -s "$1" ] && [ "$(bytes "$1")" -le "$2" ]; }

# 4 MiB, then 64 KiB of them, then nothing
all=$((64 * 65536)) one=65536
start log "$HEAPTOP" -e -d 0.2 -o leak.pb.gz --dump=exit,peak,every=0.2 "$VICTIMS/victim_peak" "$tmp"
pid=$started
await "a file while all is held" least leak.pb.gz $all
: >go
await "another when most is freed" most leak.pb.gz $one
ok "that isn't the last one" kill -0 "$pid"
: >end
finish "$pid"
is "the program's code" "$status" 0
is "at the end nothing is held" "$(bytes leak.pb.gz)" 0
is "the peak's file has it" "$(bytes leak-peak.pb.gz)" $all
rm -f go end

# only when told to, and not at the end; attached it goes on without -D
start log "$VICTIMS/victim_peak" "$tmp"
victim=$started
start log "$HEAPTOP" -p "$victim" -d 0.1 -o sent.pb.gz --dump=signal
pid=$started
catches() { [ $((0x$(sed -n 's/^SigBlk:[[:space:]]*//p' "/proc/$pid/status") >> 9 & 1)) = 1 ]; }
await "waits for the signal" catches
for i in 1 2; do
  ok "it is there, $i" kill -USR1 "$pid"
  await "a file, $i" test -s sent.pb.gz
  rm sent.pb.gz
done
: >go
: >end
finish "$victim"
finish "$pid"
is "it ends with the program" "$status" 0
ok "and writes nothing more" test ! -e sent.pb.gz

# on the screen, too
rm -f go end
. "$abs_top_srcdir/tests/lib/onscreen.sh"
on_screen "behind the screen" --size 80x24 --expect LIVE --expect 'saved shown.pb.gz' --send q --expect Kill --send k --wait \
  -- "$HEAPTOP" --tui -e -d 0.2 -o shown.pb.gz --dump=peak,every=0.3 "$VICTIMS/victim_peak" "$tmp"
ok "the file of every so often" test -s shown.pb.gz
is "the file of the peak" "$(bytes shown-peak.pb.gz)" $all

# the live blocks in a text report
: >go
: >end
run 30 "$HEAPTOP" -e -o all.txt "$VICTIMS/known" 4 0 "$tmp/truth"
is "exit code" "$status" 0
for what in size age thread; do
  ok "by $what" grep -q "^Live blocks by $what" all.txt
done
done_testing
