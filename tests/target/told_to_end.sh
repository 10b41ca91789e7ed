#!/usr/bin/env bash
# heaptop is told to end before it has begun: from the first instant of its main() on it leaves in order, with a word, and
# what it was attaching to goes on as it was. Looking through a large program is broken off for that.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need python3
need_ptrace
[ -z "${ASAN_OPTIONS-}" ] || skip_all "a sanitizer wants to be loaded first"
gcc -shared -fPIC -O1 -Wall -Wextra -Werror -o "$tmp/early.so" "$abs_top_srcdir/tests/lib/early_signal.c" ||
  bail_out "early_signal doesn't compile"

untouched() {
  ok "$1: the program has its own text" text_intact "$2"
  is "$1: nobody traces it" "$(sed -n 's/^TracerPid:\t//p' "/proc/$2/status")" 0
}
mapped() { grep -q libc "/proc/$1/maps"; }

start "$tmp/victim" "$VICTIMS/victim_leak"
pid=$started
until_true 10 mapped "$pid"
for signal in INT TERM HUP; do
  run 60 env LD_PRELOAD="$tmp/early.so" EARLY_SIGNAL="$(kill -l $signal)" "$HEAPTOP" -b -p "$pid"
  like "SIG$signal: it leaves with a word" "$(cat "$tmp/err")" "detached from|interrupted before"
  untouched "SIG$signal" "$pid"
  : >"$tmp/err"
  ok "SIG$signal, on a screen: it ends" "$abs_top_builddir/tests/lib/ptyrun" --stderr "$tmp/err" --wait --check-restored -- \
    env LD_PRELOAD="$tmp/early.so" EARLY_SIGNAL="$(kill -l $signal)" "$HEAPTOP" --tui -p "$pid"
  like "SIG$signal, on a screen: with a word" "$(cat "$tmp/err")" "detached from|interrupted before"
  untouched "SIG$signal, on a screen" "$pid"
done
# what only prints is ended as ever
for option in --help --doctor; do
  run 20 env LD_PRELOAD="$tmp/early.so" EARLY_SIGNAL="$(kill -l TERM)" "$HEAPTOP" $option
  is "$option is ended by the signal" "$status" 143
done

for signal in INT TERM; do
  python3 "$abs_top_srcdir/tests/lib/hugetab.py" "$VICTIMS/victim_leak" "$tmp/huge$signal" 400
  start "$tmp/victim" "$tmp/huge$signal"
  until_true 10 mapped "$started"
  run 60 env LD_PRELOAD="$tmp/early.so" EARLY_SIGNAL="$(kill -l $signal)" "$HEAPTOP" -b -p "$started"
  is "SIG$signal, a large program: 128 + n" "$status" $((128 + $(kill -l $signal)))
  like "SIG$signal, a large program: the look-up is broken off" "$(cat "$tmp/err")" \
    "^heaptop: interrupted before anything was watched: nothing of heaptop is left in the process\$"
  is "SIG$signal, a large program: no frame" "$(cat "$tmp/out")" ""
  untouched "SIG$signal, a large program" "$started"
  kill -KILL "$started"
  rm "$tmp/huge$signal"
done
done_testing
