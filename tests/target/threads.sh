#!/usr/bin/env bash
# Threads by the thousands, that begin and end all the time: each call is counted, each thread has what it
# allocated under its name, the agent's slots and heaptop's memory don't run out.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need python3
need_ptrace
churn=$VICTIMS/victim_churn

# counts FILE: "alloc_blocks alloc_bytes free_blocks live_bytes" of churn_site
counts() { sites "$1" site alloc_blocks alloc_bytes free_blocks live_bytes | awk -F '\t' '$1 == "churn_site" { print $2, $3, $4, $5 }'; }
# threads FILE: the last frame's thread lines: tid state threads live_bytes ... name
threads() { last_frame "$1" | sed -n 's/^# thread: //p'; }
# add_up FILE: do the threads' figures add up to the whole's?
add_up() {
  local key column=4
  for key in live_bytes live_blocks alloc_bytes alloc_blocks free_bytes free_blocks; do
    if [ "$(threads "$1" | awk -v c=$column '{ sum += $c } END { print sum + 0 }')" != "$(header "$1" $key)" ]; then
      diag "threads' $key: $(threads "$1" | awk -v c=$column '{ sum += $c } END { print sum + 0 }'), not $(header "$1" $key)"
      return 1
    fi
    column=$((column + 1))
  done
}
# whole NAME FILE: nothing was lost
whole() {
  is "$1: no event dropped, no sample missed, no free lost, all tracked" \
    "$(header "$2" dropped) $(header "$2" gap) $(header "$2" lost_frees) $(header "$2" untracked)" "0 0 0 0"
  ok "$1: the threads' figures add up to the whole's" add_up "$2"
}
# watch COMMAND...: exactly, one frame at the end
watch() { run 200 "$HEAPTOP" -q -e -b -d 3600 -- "$@"; }

# ---- begun and ended all the time ----
n=20000
quick && n=4000
watch "$churn" churn $n
is "$n short threads: the program ends with 0" "$status" 0
is "$n short threads: every call is counted" "$(counts "$tmp/out")" "$((3 * n)) $((120 * n)) $((2 * n)) $((40 * n))"
whole "$n short threads" "$tmp/out"
is "$n short threads: as many, and main, were told apart" "$(threads "$tmp/out" | awk '{ n += $3 } END { print n }')" $((n + 1))

# Thread pointers that are never met again: more of them than there are slots.
n=6000
VICTIM_WAIT=1200 watch "$churn" distinct $n	# after its youth, in which the agent asks the kernel nothing
is "$n distinct thread pointers: ends with 0" "$status" 0
is "$n distinct thread pointers: every call is counted" "$(counts "$tmp/out")" \
  "$((3 * n)) $((120 * n)) $((2 * n)) $((40 * n))"
whole "$n distinct thread pointers" "$tmp/out"

# All at once in the program's youth: each waits for room, and leaves heaptop processors to make it with.
watch "$churn" burst 12
is "12 threads that begin together: ends with 0" "$status" 0
is "12 threads that begin together: every call is counted" "$(counts "$tmp/out")" "18000 720000 18000 0"
whole "12 threads that begin together" "$tmp/out"

# The blocks of ended threads stay theirs, and go.
watch "$churn" leave 3000
is "blocks that ended threads left: every call is counted" "$(counts "$tmp/out")" "3000 120000 2900 4000"
whole "blocks that ended threads left" "$tmp/out"

# ---- names ----
mkfifo "$tmp/in"
exec 7<>"$tmp/in"
"$churn" names <"$tmp/in" >"$tmp/said" &
pid=$!
tap_pids+=("$pid")
wait_for "$tmp/said" ready
run 60 "$HEAPTOP" -q -e -b -n 1 -d 0.3 -p "$pid"
is "threads that were there before: none of them allocates, none is shown" "$(threads "$tmp/out" | wc -l)" 0
start "$tmp/frames" "$HEAPTOP" -q -e -b -d 0.2 -p "$pid"
watcher=$started
wait_for "$tmp/frames" "^# time_s"
echo >&7
finish "$pid"
is "attached to and left: the program ends with 0" "$status" 0
finish "$watcher"

: >"$tmp/frames"
"$HEAPTOP" -q -e -b -d 0.2 --io=null -- "$churn" names <"$tmp/in" >"$tmp/frames" 2>"$tmp/err" &
watcher=$!
tap_pids+=("$watcher")
named() { threads "$tmp/frames" | awk '{ print $4, $12 }' | sort | tr '\n' ' '; }
all_named() { [[ "$(named)" == *"1000 ro?t "*"2000 green "*"3000 blue "* ]]; }
ok "each thread has its own bytes under its name, the newest, cleaned" until_true 20 all_named
all_named || diag "$(named)"
echo >&7
finish "$watcher"

# ---- only some threads' blocks ----
for which in green 'gr*n'; do
  VICTIM_WAIT=1200 run 60 "$HEAPTOP" -q -e -b -d 3600 -T "$which" -o "$tmp/green.folded" -- "$churn" names
  is "-T $which: ends with 0" "$status" 0
  is "-T $which: that thread's blocks are shown, no others" "$(header "$tmp/out" only_threads) $(counts "$tmp/out")" \
    "$which 1 2000 1 0"
  is "-T $which: the totals are those of the blocks shown" "$(header "$tmp/out" alloc_bytes)" 2000
  like "-T $which: the threads' table has all of them" "$(threads "$tmp/out" | awk '{ print $12 }' | tr '\n' ' ')" blue
  rm -f "$tmp/green.folded"
done
run 60 "$HEAPTOP" -q -T x -i "$tmp/none.pb.gz"
is "-T with a snapshot is refused" "$status" 2

# ---- a smaller stack under the same thread pointer ----
watch "$churn" shrink
is "a small stack after a big one: ends with 0" "$status" 0
is "a small stack after a big one: every call is counted" "$(counts "$tmp/out")" "40000 1600000 40000 0"
whole "a small stack after a big one" "$tmp/out"

# ---- vfork: the child has its parent's memory and thread pointer ----
watch "$churn" vfork 50
is "vfork in a thread: ends with 0" "$status" 0
is "vfork in a thread: every call is counted" "$(counts "$tmp/out")" "100 4000 100 0"

# ---- thousands at once ----
n=2000
quick && n=500
: >"$tmp/said"
"$churn" many $n <"$tmp/in" >"$tmp/said" &
pid=$!
tap_pids+=("$pid")
wait_for "$tmp/said" ready
# the table of slots is full of them from the start; each has an event when it ends
: >"$tmp/frames"
"$HEAPTOP" -e -b -d 0.5 -p "$pid" >"$tmp/frames" 2>"$tmp/err" &
watcher=$!
tap_pids+=("$watcher")
ok "attached to $n threads" wait_for "$tmp/frames" "^# time_s"
echo >&7
ok "all of them end" wait_for "$tmp/said" gone
sleep 0.6
kill -INT "$watcher"
finish "$watcher"
is "$n threads at once: heaptop leaves with 0" "$status" 0
like "$n threads at once: all hooks are out" "$(cat "$tmp/err")" "identical"
is "$n threads at once: no event dropped, no slot missing" "$(header "$tmp/frames" dropped) $(header "$tmp/frames" untracked)" "0 0"
echo >&7
finish "$pid"
is "$n threads at once: the program ends with 0" "$status" 0

export VICTIM_WAIT=1200	# the agent asks the kernel nothing in a launched program's youth
watch "$churn" many $n
is "$n threads at once, launched: every call is counted" "$(counts "$tmp/out")" "$n $((100 * n)) $n 0"
whole "$n threads at once, launched" "$tmp/out"
is "those that have ended are added up by name" \
  "$(threads "$tmp/out" | awk '$3 > 1 && $2 == "ended" { print $12 }' | sort -u | tr '\n' ' ')" \
  "$(for i in 0 1 2 3 4 5 6 7 8 9; do printf 'crowd-%d ' $i; done)"
done_testing
