#!/usr/bin/env bash
# Limits of the program (setrlimit): what heaptop makes it do must not run into them, least of all where the kernel
# answers with a signal that ends it, as with SIGXFSZ for a file that grows too large.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need python3 prlimit
need_ptrace

# limited NAME OPTION ERE: attached to and left; what heaptop -v says of its rings matches
limited() {
  start "$tmp/said" "$VICTIMS/victim_crowd" 4 0
  pid=$started
  ok "$1: the program is there" wait_for "$tmp/said" '^ready'
  prlimit --pid "$pid" "$2"
  run 30 "${heaptop[@]}" -v -e -b -n 2 -d 0.2 -p "$pid"
  is "$1: attached to" "$status" 0
  [ "$status" = 0 ] || diag_file "$tmp/err" 8
  ok "$1: its calls are recorded" test "$(header "$tmp/out" alloc_blocks)" -gt 0
  like "$1: where the rings are" "$(grep -c 'rings in private memory' "$tmp/err")" "$3"
  ok "$1: its text is its files'" text_intact "$pid"
  kill -TERM "$pid"
  finish "$pid" 20
  is "$1: it ends by itself with 0" "$status" 0
}
heaptop=("$HEAPTOP")
limited "files of 100 KB" --fsize=100000 '^0$'
# it has three: the rings are private memory then
limited "no more descriptors" --nofile=3 '^1$'
heaptop=(prlimit --fsize=100000 "$HEAPTOP")
limited "heaptop's files are limited" --core=0 '^1$'
done_testing
