#!/usr/bin/env bash
# The second probe on a program's children: one after the other and at the same time, forked and executed, each has its own
# figures to the block and nothing of the one before it; what is open in the kernel serves one after the other; nothing stays.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
. "$abs_top_srcdir/tests/lib/inkernel.sh"
need python3 bpftool setpriv strace
need_ptrace
grep -q "define WITH_BPF" "$abs_top_builddir/config.h" || skip_all "built without BPF"
family=$VICTIMS/victim_family
said=$tmp/said
note_before

# script WAY TEXT [OPTION...]: a shell script, "$1" is the program and says to file "$0"
script() {
  local way=$1 text=$2
  shift 2
  : >"$said"
  run 120 "$@" "$HEAPTOP" --probe="$way" -r 1 -v -b -x -q -d 1000 --process=all -- sh -c "$text" "$said" "$family"
}
# figures_right COUNT: what was said by COUNT processes is what is shown, and nothing was lost.
figures_right() {
  local verdict
  verdict=$(python3 "$abs_top_srcdir/tests/lib/family.py" each "$said" "$tmp/out")
  [ "$verdict" = "ok $1" ] && ! grep -q '^# dropped: [1-9]' "$tmp/out" && return
  diag "$verdict"
  diag_file "$tmp/err"
  return 1
}
opened() { grep -c 'opened in the kernel' "$tmp/err"; }

# ---- every way to have children ----
while read -r count mode; do
  # shellcheck disable=SC2016 # for the inner shell
  script uprobe "exec \"\$1\" $mode >>\"\$0\""
  is "$mode: leaves with 0" "$status" 0
  ok "$mode: $count processes, each counted to the block" figures_right "$count"
done <<'END'
2 thread-fork
3 grand
2 vfork
1 chain 5
END
is "what is executed gets what the image before it had" "$(opened)" 1

# ---- one after the other ----
for way in uprobe uprobe-multi; do
  # shellcheck disable=SC2016
  script $way 'for n in 1 2 3 4 5 6 7 8; do "$1" leaf $n >>"$0"; done'
  is "$way, eight children one after the other: leaves with 0" "$status" 0
  ok "$way: each counted to the block" figures_right 8
  is "$way: the shell and one of them at a time" "$(opened)" 2
done

# ---- at the same time ----
mkfifo "$said.go"
# shellcheck disable=SC2016
script uprobe 'exec 3<>"$0.go"
  for n in 1 2; do
    for i in 1 2 3 4 5; do { read -r go <&3; exec "$1" leaf $((10 * n + i)) >>"$0"; } & done
    for i in 1 2 3 4 5; do echo >&3; done
    wait
  done'
is "twice five at a time: leaves with 0" "$status" 0
ok "each counted to the block" figures_right 10
ok "of six at a time four are kept" test "$(opened)" -le 7
note_new
ok "the kernel holds nothing of it" until_true 60 new_gone

# ---- the kernel tells of children as of the first process: their maps aren't read over and over ----
# Readings in three seconds of a child that does nothing: one a second, and as many for what RSS is made of; polled it is
# up to sixty.
: >"$said"
# shellcheck disable=SC2016
start "$tmp/frames" "$HEAPTOP" --probe=uprobe -r 1 -b -x -d 0.2 --process=all -- sh -c '"$1" hold >>"$0"; exit 3' "$said" "$family"
heaptop=$started
ok "a child waits" until_true 60 grep -qs '^ready' "$said"
shell=$(pgrep -P "$heaptop" -x sh)
child=$(pgrep -P "$shell" -x victim_family)
ok "it is watched" until_true 60 grep -q "^# pid: $child" "$tmp/frames"
start "$tmp/strace" strace -f -qq -e trace=openat -o "$tmp/trace" -p "$heaptop"
tracer=$started
began=$EPOCHREALTIME
three_later() { awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { exit !(b - a >= 3) }'; }
until_true 60 three_later
kill -TERM "$tracer"
finish "$tracer" 20
took=$(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { print int(b - a) }')
readings=$(grep -Ec "\"/proc/$child/task/[0-9]+/maps\"" "$tmp/trace")
diag "$readings readings in $took s"
isnt "the child's maps are read" "$readings" 0
ok "but not often" test "$readings" -le $((2 * took + 4))
kill -USR1 "$child"
ok "it works" until_true 20 grep -q '^pid' "$said"
kill -TERM "$child"
finish "$heaptop" 60
is "the shell ends, and heaptop with it" "$status" 3
cp "$tmp/frames" "$tmp/out"
ok "its figures are its own" figures_right 1

# ---- with the two capabilities that it takes ----
chmod 711 "$tmp"
mkdir "$tmp/bin" && cp "$HEAPTOP" "$family" "$tmp/bin" && chmod 755 "$tmp/bin"
HEAPTOP=$tmp/bin/heaptop family=$tmp/bin/victim_family
chmod 666 "$said"
# shellcheck disable=SC2016
script uprobe 'for n in 1 2 3; do "$1" leaf $n >>"$0"; done' setpriv --reuid=65534 --regid=65534 --clear-groups \
  --inh-caps=+bpf,+perfmon --ambient-caps=+bpf,+perfmon
is "with CAP_BPF and CAP_PERFMON alone: 0" "$status" 0
ok "three children, each counted to the block" figures_right 3
is "and no more opened" "$(opened)" 2

# ---- heaptop is killed: its children go on, and nothing stays ----
rounds=4
quick && rounds=2
wrong=0
for ((i = 0; i < rounds; i++)); do
  : >"$said"
  # shellcheck disable=SC2016
  start "$tmp/killed" "$HEAPTOP" --probe=uprobe -b -x -d 1000 -- \
    sh -c 'for n in 1 2 3 4 5 6 7 8; do "$1" leaf 20 >>"$0"; done; echo done >>"$0"' "$said" "$family"
  until_true 20 test -s "$said"
  note_new
  is_new || wrong=$((wrong + 100))
  kill -KILL "$started"
  wait "$started" 2>/dev/null
  until_true 30 grep -q '^done' "$said" && [ "$(grep -c 'allocs 20' "$said")" = 8 ] || wrong=$((wrong + 1))
done
is "$rounds times killed: the script and its programs go on" "$wrong" 0
ok "the kernel holds nothing of them" until_true 60 new_gone
done_testing
