#!/usr/bin/env bash
# A signal that can't be sent is told in the status line, with what it takes, not only in the log.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
. "$abs_top_srcdir/tests/lib/onscreen.sh"
need setpriv
need_ptrace
[ "$(id -u)" = 0 ] || skip_all "only root has another user's program and no right to signal it"
export LC_ALL=C.UTF-8

chmod 755 "$tmp"
cp "$VICTIMS/victim_leak" "$tmp/leak"
setpriv --reuid=65534 --regid=65534 --clear-groups "$tmp/leak" >"$tmp/said" &
victim=$!
tap_pids+=("$victim")
disown
wait_for "$tmp/said" .
cat >"$tmp/script" <<END
size 100x30
await 1 Sites
:signal USR1
await not sent
:save-display $tmp/shown
key !
:save-display $tmp/log
key Esc
size 40x10
key K Enter
await not sent
:save-display $tmp/narrow
END
HEAPTOP_SCRIPT=$tmp/script run 60 setpriv --inh-caps=-kill --bounding-set=-kill "$HEAPTOP" -p "$victim"
is "all of the script" $status 0
diag_file "$tmp/err"
ok "who couldn't be told, and why" grep -q "signal 10 not sent: $victim runs as another user, which takes root or CAP_KILL" "$tmp/shown"
ok "in the log, too" grep -q "signal 10 not sent" "$tmp/log"
ok "in 40 columns the number is there" grep -q "signal 15 not sent" "$tmp/narrow"
ok "nothing has come" kill -0 "$victim"
done_testing
