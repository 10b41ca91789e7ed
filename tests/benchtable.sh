#!/usr/bin/env bash
# The driver of the benchmarks: which lines count as met, and when the whole fails.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
driver=$abs_top_srcdir/tests/bench/run.sh

# bench NAME EXIT_CODE LINE...: a benchmark that prints these.
bench() {
  local file=$tmp/$1.sh code=$2
  shift 2
  { printf "echo '%s'\n" "$@"; echo "exit $code"; } >"$file"
}
# table QUICK SCRIPTS NAME...: the driver on these; what it said in $tmp/out, code in $status.
table() {
  local quick=$1 scripts=$2
  shift 2
  run 20 env HEAPTOP_QUICK="$quick" abs_top_srcdir="$tmp" BENCHES= BENCH_SCRIPTS="$scripts" bash "$driver" "$@"
}
last() { tail -n 1 "$tmp/out"; }

bench met 0 '# a remark | with | four | bars | MISSED' 'a.1 | run a | 2.5 ns | <= 3 | ok' 'a.2 | run b | 7 times | >= 7 | ok'
bench slow 1 'b.1 | run c | 9 ns | <= 3 | MISSED' 'b.2 | run d | 1 ns | <= 3 | ok'
bench dead 3 'c.1 | run e | 1 ns | <= 3 | ok'
bench crashed 139 'e.1 | run i | 9 ns | <= 3 | MISSED'
bench mute 0 '# nothing'
bench odd 0 'd.1 | run f | nan ns | printed | ok' 'd.2 | run g | many | printed | ok' 'd.3 | run h | -inf ns | printed | ok' \
  'd.4 | run nan | 1 info | printed | ok' 'd.5 | run j | 3 ns, nan times | printed | ok'

table '' 'met.sh'
is "all met: exit code" "$status" 0
is "all met: the last line" "$(last)" "2 lines, 0 missed"
ok "a line has figures, target and command" grep -Eq '^ok +a\.1 +2\.5 ns +<= 3 +run a$' "$tmp/out"

table '' 'met.sh slow.sh'
is "one missed: exit code" "$status" 1
is "one missed: it is named" "$(last)" "4 lines, 1 missed: b.1"

table '' 'dead.sh mute.sh'
is "failed without a word, nothing printed: exit code" "$status" 1
is "both are missed" "$(last)" "3 lines, 2 missed: dead mute"

table '' 'odd.sh'
is "a figure that is no number is missed" "$(last)" "5 lines, 4 missed: d.1 d.2 d.3 d.5"

table 1 'met.sh slow.sh'
is "quick: nothing is judged" "$status $(last)" "0 4 lines, 0 missed"
table 1 'crashed.sh'
is "quick: a crash after a missed line" "$status $(last)" "1 2 lines, 1 missed: crashed"
table 1 'odd.sh dead.sh mute.sh'
is "quick: but all must run and be numbers" "$status $(last)" "1 8 lines, 6 missed: d.1 d.2 d.3 d.5 dead mute"

table '' 'met.sh slow.sh' met
is "only those named" "$status $(last)" "0 2 lines, 0 missed"
table '' 'met.sh' meat
is "a name there isn't" "$status $(last)" "1 1 lines, 1 missed: meat"
table '' ''
is "no benchmark at all" "$status $(last)" "1 0 lines, 0 missed"
done_testing
