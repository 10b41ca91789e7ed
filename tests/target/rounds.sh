#!/usr/bin/env bash
# Attach and detach, and heaptop killed at random moments of it, again and again, on a program of 64 threads
# that checks every block, while threads come and go and signals fly. It goes on unharmed, and nothing of
# heaptop's is left in it.
#
# HEAPTOP_ROUNDS=1000: so many rounds and half as many kills; 100 and 50 if it isn't set, and
# with HEAPTOP_QUICK 10 and 5.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need python3
need_ptrace
rounds=100
quick && rounds=10
rounds=${HEAPTOP_ROUNDS:-$rounds}
kills=$((rounds / 2))

start "$tmp/checker" "$VICTIMS/checker" 64 0 100000 lively
pid=$started
alive() { kill -0 "$pid" 2>/dev/null; }
fds() { find "/proc/$pid/fd" -mindepth 1 | wc -l; }
status_of() { sed -n "s/^$1:[^0-9]*\([0-9]*\).*/\1/p" "/proc/$pid/status"; }
# What only heaptop maps: code that belongs to no file, its memfd, memory that a fork wipes ("wf").
ours() {
  awk '/^[0-9a-f]+-[0-9a-f]+ / { exec = ($2 ~ /x/ && $5 == 0 && NF == 5) }
    /^[0-9a-f]+-[0-9a-f]+ .*memfd:heaptop/ || exec { n++; exec = 0 }
    /^VmFlags:.* wf/ { n++ }
    END { print n + 0 }' "/proc/$pid/smaps"
}
nothing_left() { [ "$(ours)" = 0 ]; }
measure() { printf '%s mappings, %s KiB, %s descriptors, %s threads\n' "$(wc -l <"/proc/$pid/maps")" "$(status_of VmSize)" "$(fds)" "$(status_of Threads)"; }

ok "the victim is at work" wait_for "$tmp/checker" '^ready'
ok "its text is its files' before" text_intact "$pid"
is "nothing looks like heaptop's" "$(ours)" 0

# ---- rounds ----
late=0
options=(-e '-r 512K' '-r 16K' '')
round() {
  # shellcheck disable=SC2086 # an option is two words
  run 60 "$HEAPTOP" ${options[$1 % 4]} -v -b -n 1 -d 0.1 -p "$pid"
  if [ "$status" = 0 ] && alive; then
    sed -n 's/.* \([0-9.]*\) ms while hooks were placed.*/\1/p' "$tmp/err" >>"$tmp/pauses"
    return 0
  fi
  # On a machine that gives heaptop no time it says so after ten seconds, and the next one takes its
  # hooks out: nothing is harmed by that, but it mustn't be the rule.
  if alive && grep -q "didn't let itself be stopped for" "$tmp/err"; then
    late=$((late + 1))
    return 0
  fi
  diag "round $1 (${options[$1 % 4]}): code $status"
  diag_file "$tmp/err" 8
  return 1
}
bad=0
# the program is as large as it gets once its threads have had their time
for ((i = 0; i < rounds; i++)); do
  [ "$i" != $((rounds / 10)) ] || { size=$(status_of VmSize) mappings=$(wc -l <"/proc/$pid/maps") descriptors=$(fds); diag "after $i rounds: $(measure)"; }
  round $i || bad=$((bad + 1))
  [ $bad -lt 3 ] || break
done
is "$rounds rounds of attaching and detaching went well" "$bad" 0
ok "at most a third of them because heaptop wasn't given the time ($late)" test "$late" -le $((rounds / 3))
diag "after $i rounds: $(measure)"
diag "the program stood still for $(sort -g "$tmp/pauses" | awk '{ v[NR] = $1 } END { printf "%.2f ms (median), %.2f ms (most)", v[int((NR + 1) / 2)], v[NR] }') while hooks were placed"
settle() { nothing_left || { round 1 && nothing_left; }; }
ok "nothing of heaptop's is left in it" settle
ok "its text is its files'" text_intact "$pid"

# ---- kills ----
began=${EPOCHREALTIME/./}
round 0
whole=$((${EPOCHREALTIME/./} - began))
left=0
for ((i = 0; i < kills; i++)); do
  # shellcheck disable=SC2086
  start "$tmp/killed" "$HEAPTOP" ${options[i % 4]} -b -n 1 -d 0.1 -p "$pid"
  at=$(((RANDOM * 32768 + RANDOM) % (whole * 11 / 10 + 1)))
  sleep "$((at / 1000000)).$(printf %06d $((at % 1000000)))"
  kill -KILL "$started" 2>/dev/null
  wait "$started" 2>/dev/null
  alive || break
  nothing_left || left=$((left + 1))
done
is "the program survived $kills kills of heaptop" "$i" "$kills"
diag "after $left of them something was left in it, for the next heaptop to find"
ok "kills hit while something was there" test "$left" -gt 0
not_stopped() { ! grep -q "^State:.*[tT] (" "/proc/$pid/status"; }
ok "it isn't left stopped" until_true 5 not_stopped
is "nobody traces it any more" "$(status_of TracerPid)" 0
ok "heaptop comes and goes after that" round 1
ok "and leaves nothing in it, neither of its own nor of the killed ones" nothing_left || diag_file "$tmp/err" 20
diag "after $kills kills: $(measure)"
ok "its text is its files'" text_intact "$pid"
is "it has no more descriptors than before" "$(fds)" "$descriptors"
# its own arenas and large blocks come and go; a single lot of heaptop's would be 64 MiB
ok "its address space hasn't grown" test "$(status_of VmSize)" -lt $((size + 400000))
ok "nor the number of its mappings" test "$(wc -l <"/proc/$pid/maps")" -lt $((mappings + 150))

kill -TERM "$pid"
finish "$pid" 60
is "the program ends by itself with 0" "$status" 0
diag_file "$tmp/checker"
like "its checks hold" "$(cat "$tmp/checker")" $'\nok [0-9]+ checks'
like "no call of it was interrupted" "$(cat "$tmp/checker")" $'\neintr 0'
done_testing
