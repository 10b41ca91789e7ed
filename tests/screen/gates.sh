#!/usr/bin/env bash
# The gates: what the screen promises, each checked by tests named after it ("gate 4: ..."). Some are whole tests of
# their own; here are the others, and that none is without one.
#
#	1  however heaptop is ended, the terminal is as before		restore.sh
#	2  heaptop ./prog <in >out is ./prog <in >out			here, target/launch.sh, target/childio.sh
#	3  killing heaptop doesn't change the program			here, target/childio.sh
#	4  every screen at 40x10, mono, in ASCII, by keyboard alone	here
#	5  a leak is on the first screen in 10 s			leak_walk.sh
#	6  and three keys from its source line				leak_walk.sh
#	7  no name moves a column					unit/test_everywhere.c
#	8  the same numbers everywhere					here, unit/test_agree.c
#	9  what is unsure or unknown is on the screen			here
#	10 help, manual page and keys are from one table		here, man.sh
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
. "${abs_top_srcdir:-.}/tests/lib/onscreen.sh"
screenrun=$abs_top_builddir/tests/screen/screenrun
need_ptrace
on_exit() { reap; }

# script NAME OPTION... <SCRIPT: a test that it runs through; what it saved is in $tmp. Scripts come through pipes, whose
# last command must be this shell's, or results are counted by one that ends.
shopt -s lastpipe
script() {
  local name=$1
  shift
  cat >"$tmp/script"
  if timeout -k 5 30 "$screenrun" "$@" "$tmp/script" >"$tmp/out" 2>"$tmp/err"; then
    pass "$name"
  else
    fail "$name"
    diag_file "$tmp/err" 40
  fi
}

# ---- gate 2 ----
head -c 300000 /dev/urandom >"$tmp/in"
on_screen "gate 2: the exit code, behind a screen" --stdin "$tmp/in" --stdout "$tmp/copy" --stderr "$tmp/errors" --wait --status 7 \
  --check-screen --check-restored -- "$HEAPTOP" --tui -x sh -c 'cat; echo seen >&2; exit 7'
ok "gate 2: output to the byte" cmp "$tmp/in" "$tmp/copy"
is "gate 2: and errors" "$(grep -v '^heaptop: ' "$tmp/errors")" seen

# ---- gate 3: one that is watched goes on; of one that was launched childio.sh knows ----
fresh
start "$tmp/ticking" "$tty" tick "$notes" 100000
wait_for "$notes" ready
for sig in HUP INT QUIT TERM KILL SEGV ABRT BUS; do
  on_screen "gate 3: SIG$sig to heaptop" --expect heaptop --expect "[$started]" --signal "$sig" --wait -- "$HEAPTOP" -p "$started"
  before=$(grep -c tick "$notes")
  more() { [ "$(grep -c tick "$notes")" -gt $((before + 10)) ]; }
  ok "gate 3: SIG$sig: the program goes on" until_true 15 more
  # those that it can answer take everything out again
  case $sig in HUP | INT | TERM) ok "gate 3: SIG$sig: its text is the files'" text_intact "$started" ;; esac
done

# ---- gate 4: whatever the key table has, on every screen there is ----
"$screenrun" --keys x >"$tmp/keys"
screens=$(cut -f 1 "$tmp/keys" | grep -x '[1-9]')
ok "gate 4: there are screens" test "$(echo "$screens" | wc -l)" -ge 3
# by keyboard alone: no action hangs on a function key, the mouse or Alt
cut -f 1 "$tmp/keys" | awk '{ plain = 0; for (i = 1; i <= NF; i++) if ($i !~ /^F[0-9]+$|^M-|^Mouse/) plain = 1; if (!plain) print }' >"$tmp/bare"
is "gate 4: each action has a plain key" "$(cat "$tmp/bare")" ""
# the arrows aren't the only way
vi_less=$(awk -F '\t' '$1 ~ /^(Up|Down|Left|Right|PgUp|PgDn|Home|End)$/ { print $3 }' "$tmp/keys")
is "gate 4: nor on an arrow alone" "$vi_less" ""
mkdir "$tmp/seen"
for screen in $screens; do
  {
    echo "size 40x10"
    cut -f 1,3 "$tmp/keys" | while IFS=$'\t' read -r keys name; do
      case $name in
      quit | suspend | save) continue ;;	# leave, stop, write a file
      esac
      read -ra words <<<"$keys"
      for key in "${words[@]}"; do [[ $key == F[0-9]* ]] || break; done
      printf 'key %s\nkey %s\n:save-display %s\nkey Esc Esc Esc\n' "$screen" "$key" "$tmp/seen/$screen-$name"
      # rows by site again after those by function, stack, module and thread
      [ "$name" != group ] || printf 'key %s %s %s %s\n' "$key" "$key" "$key" "$key"
    done
    # still alive, and on the way back
    printf 'key 1\nexpect SITE\n'
  } | script "gate 4: screen $screen: every key of the table" --ascii
done
is "gate 4: each has shown something" "$(find "$tmp/seen" -type f -size -20c -printf '%f ')" ""
# all but quit, suspend and save
is "gate 4: there were as many as actions and screens" "$(find "$tmp/seen" -type f | wc -l)" $((($(wc -l <"$tmp/keys") - 3) * $(echo "$screens" | wc -l)))
is "gate 4: in ASCII" "$(LC_ALL=C grep -l '[^ -~]' "$tmp"/seen/* | tr '\n' ' ')" ""
is "gate 4: in 40 columns" "$(awk 'length($0) > 40 { print FILENAME }' "$tmp"/seen/* | sort -u | tr '\n' ' ')" ""
is "gate 4: in 10 rows" "$(awk 'FNR > 10 { print FILENAME }' "$tmp"/seen/* | sort -u | tr '\n' ' ')" ""
# without colours the cursor is a sign of its own; Flame's is reversed, and named below
for screen in $(echo "$screens" | grep -x '[1246]'); do
  printf 'size 40x10\nkey %s\nkey j\n:save-display %s\n' "$screen" "$tmp/cursor" | script "gate 4: screen $screen moves" --ascii
  [ "$screen" -gt 2 ] || ok "gate 4: screen $screen: the cursor is seen without colour" grep -q '^>' "$tmp/cursor"
done

# ---- gate 8: a program that has ended, by batch and by the file of the same instant; the screens by test_agree ----
run 30 "$HEAPTOP" -e -b -o "$tmp/known.pb.gz" -x "$VICTIMS/known"
sites "$tmp/out" site live_bytes live_blocks alloc_bytes alloc_blocks peak_bytes temp_blocks | sort >"$tmp/live.rows"
live=$(header "$tmp/out" live_bytes | awk '{ print $1 }')
run 30 "$HEAPTOP" -b -i "$tmp/known.pb.gz"
sites "$tmp/out" site live_bytes live_blocks alloc_bytes alloc_blocks peak_bytes temp_blocks | sort >"$tmp/file.rows"
ok "gate 8: there are rows" test "$(wc -l <"$tmp/live.rows")" -ge 5
ok "gate 8: batch and snapshot have the same rows, to the byte" diff "$tmp/live.rows" "$tmp/file.rows"
sum=$(awk -F '\t' '{ n += $2 } END { print n }' "$tmp/live.rows")
is "gate 8: they add up to the total" "$sum" "$live"
printf 'size 100x30\n:save-display %s\nkey 2\n:save-display %s\nkey 3\n:save-display %s\n' "$tmp/s1" "$tmp/s2" "$tmp/s3" >"$tmp/script"
ok "gate 8: the screens open it" env HEAPTOP_SCRIPT="$tmp/script" timeout 20 "$HEAPTOP" -i "$tmp/known.pb.gz"
# the same total in the header of each, in the tree's and in the flame's root
total=$(sed -n '2s/^Live *\([0-9.]*[A-Z]*\) .*/\1/p' "$tmp/s1")
isnt "gate 8: the header has a total" "$total" ""
for n in 1 2 3; do
  is "gate 8: screen $n: the header's" "$(sed -n '2s/^Live *\([0-9.]*[A-Z]*\) .*/\1/p' "$tmp/s$n")" "$total"
done
is "gate 8: the tree's root" "$(awk '/^>/ { print $2 }' "$tmp/s2")" "$total"
like "gate 8: the flame's root" "$(grep -m 1 '▏all' "$tmp/s3")" "▏all +$total "

# ---- gate 9 ----
for size in 120x40 80x24; do
  printf 'size %s\n:save-display %s\nkey !\n:save-display %s\n' $size "$tmp/honest" "$tmp/log" |
    script "gate 9: $size: estimates of a program attached to, with drops" --rate 65536 --attached --dropped 1234
  for what in 'drop' 'attach' '1:64K' '±' 'ov(erhea|h)' 'not hooked' 'stacks 98\.7%'; do
    ok "gate 9: $size: $what" grep -Eq "$what" "$tmp/honest"
  done
  ok "gate 9: $size: the log says more of it" grep -q '1234 events dropped' "$tmp/log"
done
printf 'size 40x10\n:save-display %s\nkey Space\n:save-display %s\n' "$tmp/honest" "$tmp/frozen" |
  script "gate 9: 40x10" --rate 65536 --attached --dropped 1234
ok "gate 9: 40x10: drops stay to the last" grep -q 'drop' "$tmp/honest"
ok "gate 9: 40x10: frozen is said" grep -q 'frozen' "$tmp/frozen"

# ---- gate 10: the table's actions are help's, to the last one ----
printf 'size 150x220\nkey ?\n:save-display %s\n' "$tmp/help" | script "gate 10: help"
missing=
help=$(<"$tmp/help")
while IFS=$'\t' read -r keys _ name; do
  [[ $help == *"$keys"* && $help =~ [[:space:]]"$name"[[:space:]] ]] || missing+="$name "
done <"$tmp/keys"
is "gate 10: help has every key and name of the table" "$missing" ""
"$HEAPTOP" --keys >"$tmp/printed"
ok "gate 10: --keys is the table" cmp "$tmp/keys" "$tmp/printed"

# ---- none without ----
without=
for n in 1 2 3 4 5 6 7 8 9 10; do
  grep -rqE "gate $n[: ]" "$abs_top_srcdir/tests" --include='*.sh' --include='test_*.c' --exclude=gates.sh ||
    grep -qE "^[^#]*\"gate $n: " "$abs_top_srcdir/tests/screen/gates.sh" || without="$without $n"
done
is "every gate has a test named after it" "$without" ""
done_testing
