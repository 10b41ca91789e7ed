#!/usr/bin/env bash
# Terminals of all kinds: known, unknown, without any ability; in another locale, without colours; stopped and gone
# on, resized all the time. On a raw terminal (tests/lib/ptyrun) and a snapshot that is always the same.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
. "${abs_top_srcdir:-.}/tests/lib/onscreen.sh"
patience=10
snap=$tmp/fake.pb.gz
"$abs_top_builddir/tests/screen/make_snapshot" "$snap" || bail_out "no snapshot"
raw=$tmp/raw
has() { LC_ALL=C grep -qaE -- "$1" "$raw"; }
hasnt() { ! has "$1"; }

# ---- each is drawn on, by keyboard alone, and left as it was ----
for term in xterm-256color xterm screen screen-256color tmux tmux-256color linux vt100 vt220 rxvt ansi; do
  infocmp "$term" >/dev/null 2>&1 || { skip "TERM=$term" "no such terminfo"; continue; }
  on_screen "TERM=$term" --term "$term" --expect 'queue.h:41' --send 2 --expect 'all' --send 3 --expect '[3 Flame]' \
    --send '?' --expect 'shows who holds' --send q --gone 'shows who holds' --send q --wait --status 0 --check-restored --raw "$raw" -- "$HEAPTOP" -i "$snap"
  # answers would come as keys, and what isn't understood is printed by some
  ok "TERM=$term: it is asked nothing and told no title" hasnt $'\033\\]|\033P|\033\\[[>=]?0?c|\033\\[[?]?[56]n|\033\\[[?]u|\033\\[(1[1-9]|2[01])t|[$]p'
done

# ---- one that this machine has no description of: ours is taken ----
unknown=a-terminal-of-tomorrow
on_screen "an unknown TERM is a terminal like others" --term $unknown --expect 'queue.h:41' --send '\eOB\e[6~' \
  --send '!' --expect "TERM=$unknown is not known here" --send '\e' --gone 'is not known here' --send q \
  --wait --status 0 --check-screen --check-restored --raw "$raw" -- "$HEAPTOP" -i "$snap"
ok "with colours" has $'\033\\[[0-9;]*38;5;'
ok "with the mouse" has $'\033\\[\\?1006;1000h'
TERMINFO=$tmp/nothing TERMINFO_DIRS=$tmp/nothing HOME=$tmp on_screen "no database at all" --expect 'queue.h:41' --send q \
  --wait --status 0 --check-screen --check-restored -- "$HEAPTOP" -i "$snap"
if "$abs_top_builddir/tests/lib/can-ptrace"; then
  look="printf '%s\n' \"TERM \$TERM\" \"\${TERMINFO-none}\" \"\${TERMINFO_DIRS-none}\" >'$tmp/seen'"
  info=${TERMINFO-} dirs=${TERMINFO_DIRS-}
  unset TERMINFO TERMINFO_DIRS
  on_screen "a program launched there" --term $unknown --expect heaptop --wait --check-screen --check-restored -- \
    "$HEAPTOP" -x sh -c "sleep 0.5; $look"
  [ -z "$info" ] || export TERMINFO=$info
  [ -z "$dirs" ] || export TERMINFO_DIRS=$dirs
  is "sees what the user has" "$(cat "$tmp/seen")" "TERM $unknown"$'\n'none$'\n'none
else
  skip "a program launched there sees what the user has" "ptrace isn't permitted here"
fi

# ---- those that can't: said in a line, and the text instead ----
for term in dumb unknown ""; do
  "$ptyrun" --term "$term" --stderr "$tmp/said" --wait --status 0 --check-restored --raw "$raw" -- "$HEAPTOP" -i "$snap" >/dev/null 2>&1
  is "TERM='$term': it leaves with 0" "$?" 0
  is "TERM='$term': one line says why" "$(grep -c '^heaptop: no screen: TERM' "$tmp/said")" 1
  ok "TERM='$term': the frame comes as text" has 'live_bytes'
  ok "TERM='$term': without an escape" hasnt $'\033'
done

# ---- the locale, and no colours ----
LC_ALL=C on_screen "LC_ALL=C" --expect 'queue.h' --send 3 --expect '[3 Flame]' --send '?' --expect 'shows who holds' --send qq --wait \
  --check-restored --raw "$raw" -- "$HEAPTOP" -i "$snap"
ok "LC_ALL=C: all of it is ASCII" hasnt $'[\200-\377]'
NO_COLOR=1 on_screen "NO_COLOR" --expect 'queue.h' --send 3 --expect '[3 Flame]' --send q --wait --check-restored --raw "$raw" -- \
  "$HEAPTOP" -i "$snap"
ok "NO_COLOR: no colour, no grey" hasnt $'\033\\[([0-9;]*;)?(3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]'
NO_COLOR='' on_screen "NO_COLOR empty" --expect 'queue.h' --send q --wait --raw "$raw" -- "$HEAPTOP" -i "$snap"
ok "NO_COLOR empty: colours" has $'\033\\[([0-9;]*;)?38;5;'

# ---- Esc isn't waited after: by comparison with a wait that is asked for ----
esc_takes() {
  local begin=${EPOCHREALTIME/[.,]/}
  on_screen "$1" --expect 'queue.h' --send '?' --expect 'shows who holds' --send '\e' --gone 'shows who holds' --send q --wait -- \
    ${2:+env ESCDELAY=$2} "$HEAPTOP" -i "$snap"
  took=$(((${EPOCHREALTIME/[.,]/} - begin) / 1000))
}
esc_takes "Esc"
alone=$took
esc_takes "Esc with ESCDELAY=4000" 4000
ok "Esc is known for one at once ($alone ms, $took with ESCDELAY=4000)" test $((alone + 2000)) -lt "$took"

# ---- sizes that change all the time ----
storm=()
for i in $(seq 50); do
  storm+=(--resize "$((1 + i * 37 % 200))x$((1 + i * 23 % 60))")
done
for screen in 1 2 3; do
  on_screen "50 sizes in a row, screen $screen" --expect 'queue.h' --send "$screen" "${storm[@]}" --resize 80x24 --send 1 --expect 'SITE' \
    --expect 'queue.h:41' --send q --wait --status 0 --check-screen --check-restored -- "$HEAPTOP" -i "$snap"
done

# ---- Ctrl-Z: the shell has its terminal, then we have ours again, in whatever size it is by then ----
stopped="until grep -q '^State:.*stopped' /proc/\$PTY_PID/status; do sleep 0.02; done"
on_screen "stopped and gone on" --expect 'queue.h' --send '\^Z' --exec "$stopped" --check-restored \
  --exec 'kill -CONT $PTY_PID' --expect 'queue.h:41' --send 3 --expect '[3 Flame]' --send q --wait --status 0 --check-restored -- \
  "$HEAPTOP" -i "$snap"
on_screen "resized while it is stopped" --expect 'queue.h' --send '\^Z' --exec "$stopped" --resize 40x10 \
  --exec 'kill -CONT $PTY_PID' --expect 'SITE' --send q --wait --status 0 --check-restored -- "$HEAPTOP" -i "$snap"
on_screen "stopped from elsewhere" --expect 'queue.h' --signal STOP --exec "$stopped" --exec 'kill -CONT $PTY_PID' --send 3 \
  --expect '[3 Flame]' --send q --wait --status 0 --check-restored -- "$HEAPTOP" -i "$snap"

# ---- a file that takes a while to read ----
mkfifo "$tmp/slow.pb.gz"
on_screen "the screen is there before the file is" --expect 'reading ' --send '3?' --expect 'shows who holds' --send '\e' --gone 'shows who holds' \
  --exec "cat '$snap' >'$tmp/slow.pb.gz'" --expect '■' --send 1 --expect 'queue.h:41' --send q --wait --status 0 --check-restored -- \
  "$HEAPTOP" -i "$tmp/slow.pb.gz"
on_screen "it can be left before" --expect 'reading ' --send q --wait --status 0 --check-restored -- "$HEAPTOP" -i "$tmp/slow.pb.gz"
on_screen "a file that turns out to be none" --expect 'reading ' --exec "echo nothing >'$tmp/slow.pb.gz'" --wait --status 1 \
  --expect 'slow.pb.gz: ' --check-screen --check-restored -- "$HEAPTOP" -i "$tmp/slow.pb.gz"
echo nothing >"$tmp/bad.pb.gz"
"$ptyrun" --wait --status 1 --raw "$raw" -- "$HEAPTOP" -i "$tmp/bad.pb.gz" >/dev/null 2>&1
is "one that is none at once" "$?" 0
ok "opens no screen" hasnt $'\033'
done_testing
