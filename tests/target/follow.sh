#!/usr/bin/env bash
# Processes: what a launched program forks and executes is watched, each with a heap of its own, and they add
# up; several processes attached to; and what isn't followed is left alone.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need python3 gcc
need_ptrace

family=$VICTIMS/victim_family
said=$tmp/said
# what the processes say goes to a file, and not between the frames
# shellcheck disable=SC2016 # for the inner shell
into='exec "$@" >"$0"'
# family_run OPTIONS -- MODE [ARG]: everything counted, a frame for each process at the end.
family_run() {
  local options=()
  while [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  shift
  rm -f "$said"
  run 120 "$HEAPTOP" -e -b -x -d 1000 "${options[@]}" -- sh -c "$into" "$said" "$family" "$@"
}
# figures_right HOW COUNT: what was said by COUNT processes is what is shown.
figures_right() {
  local verdict
  verdict=$(python3 "$abs_top_srcdir/tests/lib/family.py" "$1" "$said" "$tmp/out")
  [ "$verdict" = "ok $2" ] && return
  diag "$verdict"
  diag_file "$tmp/err"
  return 1
}

# ---- every way to have children ----
while read -r count mode; do
  # shellcheck disable=SC2086 # a mode and its argument
  family_run --process=all -- $mode
  is "$mode: leaves with 0" "$status" 0
  ok "$mode: $count processes, each counted to the block" figures_right each "$count"
done <<'END'
1 leaf 10
2 fork
2 thread-fork
3 grand
2 vfork
2 spawn
1 chain 3
3 daemon
END

family_run -- grand
ok "by default a frame has the sum" figures_right sum 3
is "and says of how many" "$(header "$tmp/out" processes)" 3
is "each has a line" "$(last_frame "$tmp/out" | grep -c '^# process: ')" 3
main=$(header "$tmp/out" pid)
is "the first has no parent" "$(header "$tmp/out" process | cut -f 1,2)" "$main"$'\t'0
ok "the others' parents are there" awk -F '[\t ]' '/^# process: / { seen[$3] = 1; if ($4 && !seen[$4]) exit 1 }' "$tmp/out"
family_run -- leaf
is "one process: nothing is said of several" "$(grep -c '^# process' "$tmp/out")" 0

# shellcheck disable=SC2016
run 60 "$HEAPTOP" -e -b -x -d 1000 --process=all -- sh -c '("$1" leaf 5; "$1" leaf 7) >"$0"; exit 9' "$said" "$family"
is "a script's exit code" "$status" 9
ok "and two programs it has run" figures_right each 2
family_run --process=all -- fork
pid=$(awk '$1 == "pid" { print $2; exit }' "$said")
is "--process=all gives each a frame" "$(grep -c '^# pid: ' "$tmp/out")" 2
ok "one of them the child's" grep -qx "# pid: $pid" "$tmp/out"
is "--process=1: is none of them" "$(timeout 30 "$HEAPTOP" -b -x --process=1 "$family" leaf 2>&1 >/dev/null | grep -c 'process 1 was none')" 1

# ---- many short ones ----
family_run -- short 500
is "500 short children: leaves with 0" "$status" 0
ok "all are counted" figures_right sum 501
is "and known by number" "$(header "$tmp/out" processes)" 501
lines=$(last_frame "$tmp/out" | grep -c '^# process: ')
ok "what is kept of them is bounded" test "$lines" -le 70

# ---- one that outlives its parent ----
begin=$(date +%s%N)
family_run --process=all -- outlive "$tmp/outlived"
ms=$((($(date +%s%N) - begin) / 1000000))
diag "left after $ms ms"
ok "both have their figures of when the program ended" figures_right each 2
ok "the child goes on, and is right" until_true 20 grep -q 'allocs 20 alloc_bytes 2000 frees 20 live_blocks 0' "$tmp/outlived"

# ---- not followed ----
family_run --process=all -- tracer
like "followed: the child is traced" "$(cat "$said")" 'tracer [1-9]'
family_run --process=all --no-follow -- tracer
like "--no-follow: the child isn't" "$(cat "$said")" 'tracer 0'
is "and not counted" "$(grep -c '^# pid: ' "$tmp/out")" 1
ok "the program itself is" figures_right each 1

# ---- snapshots ----
family_run -o "$tmp/each.%p.folded" -- grand
is "with %p in the name each process has its file" "$(find "$tmp" -name 'each.*.folded' | wc -l)" 3
family_run -o "$tmp/sum.txt" -- grand
ok "else there is one, of all" grep -q '^the sum of 3 processes' "$tmp/sum.txt"
family_run -o "$tmp/sum.pb.gz" -- grand
run 30 "$HEAPTOP" -b -i "$tmp/sum.pb.gz"
is "pprof, read back, too" "$(header "$tmp/out" processes)" 3
ok "with the same figures" figures_right sum 3

# ---- a compiler: cc1, as, collect2 and ld are children ----
printf '#include <stdio.h>\nint main(void) { return !printf("hello\\n"); }\n' >"$tmp/hello.c"
run 120 "$HEAPTOP" -b -x -d 1000 -- gcc -O1 -o "$tmp/hello" "$tmp/hello.c"
is "gcc leaves with 0" "$status" 0
is "what it has made runs" "$("$tmp/hello")" hello
for program in cc1 as ld; do
  blocks=$(last_frame "$tmp/out" | awk -F '\t' -v p="$program" '/^# process: / { split($13, w, " "); n = split(w[1], path, "/"); if (path[n] == p) print $9 }')
  ok "$program has a heap" test "${blocks:-0}" -gt 10
done

# ---- attached to several ----
hold() {
  start "$tmp/hold$1" "$family" hold
  held[$1]=$started
  wait_for "$tmp/hold$1" ready
}
held=()
hold 0
hold 1
hold 2
work_of() { grep -q "^pid $1 " "$tmp/hold$2"; }
# attached_run OPTION...: they work while they are watched.
attached_run() {
  local i
  start "$tmp/attached" "$HEAPTOP" -e -b -d 0.3 -D 60 --process=all "$@"
  wait_for "$tmp/attached" "^# pid: ${held[1]}"
  for i in 0 1; do
    : >"$tmp/hold$i"
    kill -USR1 "${held[$i]}"
    until_true 10 work_of "${held[$i]}" "$i" || diag "process $i doesn't work"
  done
  kill -INT "$started"
  finish "$started" 30
  cp "$tmp/attached" "$tmp/out"
}
# Blocks of this run alone: it has said what it has allocated since its start.
counted() {
  awk -F '\t' -v pid="$1" '
    /^# pid: / { now = $0 == "# pid: " pid }
    now && $13 == "site_block" { n = $4 }
    END { print n + 0 }' "$tmp/out"
}
blocks_of() { echo $(($1 % 50 + 1)); }
attached_run -p "${held[0]},${held[1]}"
is "-p A,B: leaves with 0" "$status" 0
for i in 0 1; do
  is "-p A,B: process $i is counted" "$(counted "${held[$i]}")" "$(blocks_of "${held[$i]}")"
done
attached_run -p "${held[0]}" -p "${held[1]}" -p 999999999
is "-p A -p B -p NONE: leaves with 0" "$status" 0
is "which is said of NONE in a line" "$(grep -c '^heaptop: process 999999999: no such process' "$tmp/attached")" 1
for i in 0 1; do
  is "-p A -p B: process $i is counted" "$(counted "${held[$i]}")" "$(blocks_of "${held[$i]}")"
done
run 30 "$HEAPTOP" -b -n 1 -p 999999999,999999998
is "none can be attached to: 1" "$status" 1
is "a line for each" "$(wc -l <"$tmp/err")" 2
cp "$family" "$tmp/htfamily"
start "$tmp/hold3" "$tmp/htfamily" hold
held[3]=$started
start "$tmp/hold4" "$tmp/htfamily" hold
held[4]=$started
wait_for "$tmp/hold3" ready
wait_for "$tmp/hold4" ready
run 30 "$HEAPTOP" -b -n 1 -d 0.2 --name=htfamily
is "--name finds both" "$(header "$tmp/out" process | cut -f 4 | wc -l) $(last_frame "$tmp/out" | grep -c '^# process: ')" "1 2"
for i in 0 1 2 3 4; do
  ok "process $i: the text is its files'" text_intact "${held[$i]}"
done
for i in 0 1 2 3 4; do
  kill -TERM "${held[$i]}"
done

# ---- a program with rights of its own gets them, though heaptop has none ----
if [ "$(id -u)" = 0 ] && have setpriv; then
  open=$(mktemp -d "${TMPDIR:-/tmp}/heaptop-open.XXXXXX")
  on_exit() { rm -rf "$open"; }
  cat >"$tmp/rights.c" <<'END'
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
  printf("%s: %d %d %s %d\n", argv[0], (int)getuid(), (int)geteuid(), argv[argc - 1], argc);
  return 5;
}
END
  gcc -o "$open/rights" "$tmp/rights.c"
  cp "$HEAPTOP" "$family" "$open/"
  chmod 755 "$open"
  chmod 4755 "$open/rights"
  # nobody COMMAND...: without any capability.
  nobody() { (cd "$open" && timeout -k 5 60 setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set=-all --inh-caps=-all -- "$@") >"$tmp/out" 2>"$tmp/err" </dev/null; }
  for script in './rights a "b c"; exit $?' '(exec ./rights x); ./rights y; ./victim_family leaf 3 >/dev/null' 'exec ./rights z' '../"${PWD##*/}"/rights w & wait $!'; do
    nobody sh -c "$script"
    want="$? $(cat "$tmp/out")"
    nobody ./heaptop -e -q -b -x -d 1000 -- sh -c "$script"
    is "setuid in a script: $script" "$? $(grep rights: "$tmp/out")" "$want"
  done
  like "which is root's here" "$(cat "$tmp/out")" 'rights: 65534 0 w'
  nobody ./heaptop -b -x -- ./rights a
  is "as the program itself it is refused" "$?" 125
  like "in a line that says why" "$(cat "$tmp/err")" '^heaptop: ./rights: has rights of its own.*run heaptop as root'
else
  skip "setuid programs" "not root, or no setpriv"
fi

# ---- heaptop is killed: all go on ----
rounds=10
quick && rounds=3
wrong=0
for ((round = 0; round < rounds; round++)); do
  rm -f "$said"
  # shellcheck disable=SC2016
  "$HEAPTOP" -e -b -x -d 1000 -- sh -c '"$1" exec 12 "$1" leaf 20 >"$0.part" && mv "$0.part" "$0"' "$said" "$family" >/dev/null 2>&1 &
  heaptop=$!
  tap_pids+=("$heaptop")
  until_true 10 test -e "$said.part"
  sleep "0.0$((RANDOM % 10))"
  kill -KILL "$heaptop"
  wait "$heaptop" 2>/dev/null
  until_true 20 test -e "$said" && [ "$(grep -c 'allocs 20' "$said")" = 12 ] || wrong=$((wrong + 1))
  rm -f "$said.part"
done
is "$rounds times killed: the script and its programs go on" "$wrong" 0
done_testing
