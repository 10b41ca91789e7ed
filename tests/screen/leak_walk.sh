#!/usr/bin/env bash
# The walk that heaptop is made for: a program leaks a megabyte a second, among others that allocate fifty times as
# much and blocks that are larger than all it leaks meanwhile. Looked at as a user does: started, nothing set, no
# key touched. Ten seconds later the first screen points at the leak; three keys later, at most, at its line.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
. "${abs_top_srcdir:-.}/tests/lib/onscreen.sh"
need_ptrace
victim=$VICTIMS/victim_leak
line=$(timeout -k 1 0.5 "$victim" | sed -n 's/^leak //p')
like "the leak has a place" "$line" '^victim_leak\.c:[0-9]+$'
is "it is where the leak's malloc is" "$(sed -n "${line#*:}p" "$abs_top_srcdir/tests/victims/victim_leak.c" | tr -d '\t')" \
  's = malloc(sizeof(*s));'

# The ten seconds are the program's own, by the clock in the header: a busy machine doesn't count.
clock_of() { sed -n '1s/.* \([0-9]*\):\([0-9][0-9]\) .*/\1 \2/p' "$1" | awk '{ print $1 * 60 + $2 }'; }

for size in 80x24 120x40; do
  for charset in Unicode ASCII; do
    options=()
    flag=▲
    [ $charset = Unicode ] || { options=(-U); flag='\^'; }
    on_screen "gate 5: $size, $charset: the leak is on the first screen, no key touched" --size $size --expect "session_open" --expect "$line" \
      --pause 200 --expect "$line" --dump "$tmp/first" --send q --expect 'Kill it' --send k --wait --check-restored -- "$HEAPTOP" "${options[@]}" "$victim"
    like "gate 5: its row is marked as growing" "$(grep -- "$line" "$tmp/first")" "^>?$flag"
    seen=$(clock_of "$tmp/first")
    ok "gate 5: within 10 seconds (${seen:-?})" test "${seen:-99}" -le 10
  done
done

# ---- three keys: a mark, ordered by what has changed since, and the row that is first then ----
for size in 80x24 120x40; do
  on_screen "gate 6: $size: three keys to its stack and line" --size $size --expect "$line" --send m --pause 1500 --send D \
    --pause 1000 --dump "$tmp/since" --send '\r' --expect "$line" --expect 'accept_all' --dump "$tmp/details" \
    --send '\e' --pause 200 --send q --expect 'Kill it' --send k --wait --check-restored -- "$HEAPTOP" "$victim"
  like "gate 6: $size: it is the first row by then" "$(grep -m 1 '^>' "$tmp/since")" "session_open.*:${line#*:}"
  ok "gate 6: $size: with its line" grep -q "session_open.*$line" "$tmp/since"
  seen=$(clock_of "$tmp/since")
  ok "gate 6: $size: within 10 seconds (${seen:-?})" test "${seen:-99}" -le 10
done
done_testing
