#!/usr/bin/env bash
# Without root, in a user namespace: the root of one may watch what belongs to it, from inside; what doesn't
# is refused in a line.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need python3 unshare setpriv
need_ptrace
chmod 755 "$tmp"
mkdir -m 777 "$tmp/open"
install -m 755 "$HEAPTOP" "$VICTIMS/demo" "$VICTIMS/known" "$tmp/"
as_user=(env "HOME=$tmp/open" "XDG_CONFIG_HOME=$tmp/open" "XDG_STATE_HOME=$tmp/open")
[ "$(id -u)" != 0 ] || as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all "${as_user[@]}")
contained=("${as_user[@]}" unshare -Ur)
"${contained[@]}" true 2>/dev/null || skip_all "user namespaces aren't permitted here"

run 60 "${contained[@]}" "$tmp/heaptop" -e -b -x "$tmp/known" 1 0 "$tmp/open/truth"
is "its root launches a program" "$status" 0
diag_file "$tmp/err" 5
ok "and the figures are right" known_right "$tmp/open/truth" "$tmp/out"

# attached to within: both in one namespace
cat >"$tmp/inside" <<'END'
"$1/demo" 1000 >"$1/open/demo" &
pid=$!
for i in $(seq 200); do grep -q serving "$1/open/demo" && break; sleep 0.1; done
"$1/heaptop" -e -b -n 1 -d 0.3 -p $pid
status=$?
grep -q '^TracerPid:.0' /proc/$pid/status || status=99
kill -KILL $pid
exit $status
END
run 60 "${contained[@]}" bash "$tmp/inside" "$tmp"
is "its root attaches to a process of its own" "$status" 0
diag_file "$tmp/err" 5
ok "and sees its heap" test "$(header "$tmp/out" hooks)" -gt 0

# the same user's process outside of it: our capabilities end at the namespace's border
start "$tmp/outside" "${as_user[@]}" "$tmp/demo" 1000
ok "a process outside is there" wait_for "$tmp/outside" serving
run 30 "${contained[@]}" "$tmp/heaptop" -b -n 1 -d 0.2 -p "$started"
like "one outside: attached to, or refused" "$status" '^[01]$'
is "one outside: one line either way" "$(wc -l <"$tmp/err")" 1
diag_file "$tmp/err" 3
ok "it is left as it was" text_intact "$started"

# somebody else's
if [ "$(id -u)" = 0 ]; then
  start "$tmp/roots" "$VICTIMS/demo" 1000
  ok "a process of root's is there" wait_for "$tmp/roots" serving
  run 30 "${contained[@]}" "$tmp/heaptop" -b -n 1 -p "$started"
  is "root's process: refused" "$status" 1
  is "root's process: in one line" "$(wc -l <"$tmp/err")" 1
  like "root's process: that names the reason and what to do" "$(cat "$tmp/err")" "user namespace.*run heaptop"
  ok "it is left alone" text_intact "$started"
fi
done_testing
