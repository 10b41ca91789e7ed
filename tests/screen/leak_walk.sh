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

# Each session waits for seconds to pass, and so all of them do at the same time.
# session NAME ACTION... -- COMMAND: as on_screen does it, in a folder of its own
declare -A sessions
session() {
  local name=$1
  shift
  mkdir "$tmp/$name"
  timeout -k 5 $((patience * 5)) "$ptyrun" --timeout "$patience" "$@" 2>"$tmp/$name/err" >"$tmp/$name/out" &
  sessions[$name]=$!
  tap_pids+=($!)
}
# went_well NAME TEXT: a test that it did all that
went_well() {
  if wait "${sessions[$1]}"; then
    pass "$2"
  else
    fail "$2"
    diag_file "$tmp/$1/err" 40
  fi
}

leave=(--send q --expect 'Kill it' --send k --wait --check-restored)
for size in 80x24 120x40; do
  session "$size-Unicode" --size $size --expect "session_open" --expect "$line" --pause 200 --expect "$line" \
    --dump "$tmp/first-$size-Unicode" "${leave[@]}" -- "$HEAPTOP" "$victim"
  session "$size-ASCII" --size $size --expect "session_open" --expect "$line" --pause 200 --expect "$line" \
    --dump "$tmp/first-$size-ASCII" "${leave[@]}" -- "$HEAPTOP" -U "$victim"
  # three keys: a mark, ordered by what has changed since, and the row that is first then
  session "$size-keys" --size $size --expect "$line" --send m --pause 1500 --send D --pause 1000 --dump "$tmp/since-$size" \
    --send '\r' --expect "$line" --expect 'accept_all' --dump "$tmp/details-$size" --send '\e' --pause 200 "${leave[@]}" -- \
    "$HEAPTOP" "$victim"
done

for size in 80x24 120x40; do
  for charset in Unicode ASCII; do
    flag=▲
    [ $charset = Unicode ] || flag='\^'
    first=$tmp/first-$size-$charset
    went_well "$size-$charset" "gate 5: $size, $charset: the leak is on the first screen, no key touched"
    like "gate 5: its row is marked as growing" "$(grep -- "$line" "$first")" "^>?$flag"
    seen=$(clock_of "$first")
    ok "gate 5: within 10 seconds (${seen:-?})" test "${seen:-99}" -le 10
  done
done
for size in 80x24 120x40; do
  since=$tmp/since-$size
  went_well "$size-keys" "gate 6: $size: three keys to its stack and line"
  like "gate 6: $size: it is the first row by then" "$(grep -m 1 '^>' "$since")" "session_open.*:${line#*:}"
  ok "gate 6: $size: with its line" grep -q "session_open.*$line" "$since"
  seen=$(clock_of "$since")
  ok "gate 6: $size: within 10 seconds (${seen:-?})" test "${seen:-99}" -le 10
done
done_testing
