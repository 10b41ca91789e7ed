#!/usr/bin/env bash
# K: the menu of signals, and that each signal asked for reaches the program, attached or launched, in menus and by
# name; the menu's look is compared with tests/screen/expected/signals-*.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
. "$abs_top_srcdir/tests/lib/golden.sh"
. "$abs_top_srcdir/tests/lib/onscreen.sh"
need_ptrace
export LC_ALL=C.UTF-8

screenrun=$abs_top_builddir/tests/screen/screenrun
for size in 120x40 80x24 40x10; do
  for charset in unicode ascii; do
    dir=$tmp/$size-$charset
    mkdir -p "$dir"
    cat >"$dir.script" <<END
size $size
key K
:save-display $dir/1-menu
:save-attrs $dir/2-menu-styles
key 1 0 Up
:save-display $dir/3-typed
key 3 9 g G Down End
:save-display $dir/4-last
key Enter
:save-display $dir/5-sent
key K 1 8 k Enter
:signal sigusr2
:signal 34
key K
click 0 0 wheel-up
click 0 0 wheel-down
click 0 0 wheel-down
:save-display $dir/6-wheel
key Esc
expect-not Signal to
END
    option=
    [ $charset = ascii ] && option=--ascii
    # shellcheck disable=SC2086 # one word or none
    if ! timeout 20 "$screenrun" $option "$dir.script" >"$dir.log" 2>&1; then
      fail "$size-$charset runs"
      diag_file "$dir.log" 40
      continue
    fi
    together "$dir" >"$dir.all"
    golden "signals-$size-$charset.txt" "$dir.all"
    is "$size-$charset: what is chosen is sent" "$(grep '^signal' "$dir.log" | tr '\n' ' ')" 'signal 31 signal 17 signal 12 signal 34 '
    ok "$size-$charset: no row is too long" test "$(wc -L <"$dir.all")" -le "${size%x*}"
    [ $charset = unicode ] || ok "$size in ASCII is ASCII" sh -c "! LC_ALL=C grep -q '[^ -~]' '$dir.all'"
  done
done

# refused in a line
refused() {
  printf '%s\n' "$2" >"$tmp/refused"
  timeout 20 "$screenrun" $4 "$tmp/refused" >"$tmp/log" 2>&1
  ok "$1" grep -q -- "$3" "$tmp/log"
}
refused "a name that is none" ':signal HUNGUP' 'no such signal: HUNGUP' ''
refused "a number that is none" ':signal 65' 'no such signal: 65' ''
refused "a snapshot has nobody to send to" ':signal TERM' 'no process behind a snapshot' --snapshot
printf 'key K\nexpect no process behind\n' >"$tmp/script"
ok "nor a menu" timeout 20 "$screenrun" --snapshot "$tmp/script"

# ---- a live program ----
cat >"$tmp/until" <<'END'
#!/bin/bash
# until NOTES STATES: the program of these notes is in one of them
for ((i = 0; i < 600; i++)); do
  state=$(sed -n 's/^State:[[:blank:]]*\(.\).*/\1/p' "/proc/$(sed -n 's/^ready //p' "$1")/status")
  case $2 in *"${state:-?}"*) exit 0 ;; esac
  sleep 0.05
done
echo "state $state, wanted one of $2" >&2
exit 1
END
chmod +x "$tmp/until"
fresh
on_screen "launched: stopped, continued, asked to end" --expect ' 1th ' --send K --expect 'Signal to' \
  --send '19\r' --expect 'SIGSTOP sent' --exec "'$tmp/until' '$notes' Tt" \
  --send 'K18\r' --expect 'SIGCONT sent' --exec "'$tmp/until' '$notes' SR" \
  --send ':signal int\r' --expect 'SIGINT sent' --exec "until grep -q SIGINT '$notes'; do sleep 0.05; done" \
  --send 'K\r' --expect 'rc=143' --send K --expect 'the program has ended' \
  --send q --wait --status 143 --check-restored -- "$HEAPTOP" "$tty" read "$notes"

fresh
mkfifo "$tmp/in"
exec 7<>"$tmp/in"
"$tty" read "$notes" <"$tmp/in" >/dev/null 2>&1 7>&- &
tap_pids+=("$!")
disown
wait_for "$notes" '^ready'
# asked for in one go: none takes another's place
cat >"$tmp/script" <<END
await 1 Sites
:signal HUP
:signal INT
:signal WINCH
END
HEAPTOP_SCRIPT=$tmp/script run 60 "$HEAPTOP" -p "$(program)"
is "attached: three at once" $status 0
diag_file "$tmp/err"
for sig in SIGHUP SIGINT resized; do
  ok "$sig has come" wait_for "$notes" "^$sig"
done
reap
done_testing
