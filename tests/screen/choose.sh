#!/bin/bash
# Choosing a thread and a module of a live program, from the screen: what is shown then, also while the display is
# frozen, and all of it again.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
. "$abs_top_srcdir/tests/lib/onscreen.sh"
need_ptrace
export LC_ALL=C.UTF-8

# threads of tests/victims/demo: parser allocates in intern, session in audit_append, which leaks
start=(--size 120x40 --expect audit_append --expect intern)
on_screen "a thread alone, and all again" "${start[@]}" \
  --send 5 --expect '[5 Threads]' --expect parser --send '/parser\r' --expect 'thread 1 of 1' --send t \
  --expect thr:parser --send '1' --expect '[1 Sites]' --gone audit_append --expect intern \
  --send '\e[3~' --gone thr:parser --expect audit_append --send q --expect 'Kill it' --send k --wait --check-restored \
  -- "$HEAPTOP" "$VICTIMS/demo"
on_screen "from the list, while frozen; then from another screen" "${start[@]}" \
  --send ' ' --expect frozen --send T --expect 'whose blocks' --send 'j\r' --expect thr: --expect frozen \
  --send 't' --gone thr: --expect audit_append --send q --expect 'Kill it' --send k --wait \
  -- "$HEAPTOP" "$VICTIMS/demo"
on_screen "a module alone" "${start[@]}" \
  --send '6' --expect '[6 Modules]' --expect 'source lines' --send '/demo\r' --expect 'module 1 of' --send '\r' \
  --expect mod:demo --send 1 --expect audit_append --send 'd' --gone mod:demo --send q --expect 'Kill it' --send k --wait \
  -- "$HEAPTOP" "$VICTIMS/demo"

# text of a short program: all rows together are all there is
run 30 "$HEAPTOP" -b -n 1 -e --group=module -- ls -l /usr
frame=$(sed -n '/^# command/,$p' "$tmp/out")
like "batch frames by module" "$frame" "# group: module"
is "their sum is the total" "$(awk -F'\t' '/^# alloc_bytes/ { split($0, a, ": "); want = a[2] }
  /^live_bytes/ { rows = 1; next } rows && NF > 5 { sum += $3 } END { print (sum == want && want > 0) }' <<<"$frame")" 1
done_testing
