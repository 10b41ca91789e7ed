#!/bin/bash
# Detail of a running process: sizes, ages and threads are counted once it is open; the snapshot has them, and they
# agree with its totals.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need_ptrace

"$VICTIMS/demo" >/dev/null 2>&1 &
demo=$!
tap_pids+=("$demo")
cat >"$tmp/script" <<END
size 120x40
await audit_append
type /audit_append
key Enter
expect-not SIZE
key Enter
await SIZE live blocks
await THREADS live bytes
await 512-1K
await session
await looks like a leak
await audit_append(
:save-display $tmp/live
END
HEAPTOP_SCRIPT=$tmp/script timeout 60 "$HEAPTOP" -p "$demo" >"$tmp/log" 2>&1
is "a row's live blocks are counted once its Detail is open" $? 0
diag_file "$tmp/log" 45

ok "a snapshot is written" timeout 60 "$HEAPTOP" -p "$demo" -D 1s -o "$tmp/now.pb.gz"
kill "$demo"
cat >"$tmp/script" <<END
size 120x40
type /audit_append
key Enter Enter
expect SIZE live blocks
expect 512-1K
expect session
expect nothing of it ever freed
END
HEAPTOP_SCRIPT=$tmp/script timeout 60 "$HEAPTOP" -i "$tmp/now.pb.gz" >"$tmp/log" 2>&1
is "and shows them again" $? 0
diag_file "$tmp/log" 45

done_testing
