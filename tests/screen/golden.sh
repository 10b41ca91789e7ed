#!/usr/bin/env bash
# Every screen and everything that lies over one, at three sizes: as text, in Unicode and in ASCII, and with the layer
# of styles, which colours and their absence follow from (tests/unit/test_canvas.c). Screens come from the key table:
# a new one has its files with the next UPDATE=1 (tests/lib/golden.sh). screens.sh has the tour through what they do.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
. "${abs_top_srcdir:-.}/tests/lib/golden.sh"
screenrun=${SCREENRUN:-$abs_top_builddir/tests/screen/screenrun}
screens=$("$screenrun" --keys x | cut -f 1 | grep -x '[1-6]')

# A name and the script that leads there; Esc and 1 lead back.
overlays='help|key ?
help-found|key ?;type /mark
sort-menu|key s
find-line|type /
find-typed|type /png
find-kept|type /png;key Enter
filter-line|type \png|config
filtered|type \png|config;key Enter
command-line|type :sort li
refused|type :nosuch;key Enter
details|key x
marks|key m;key M
since|key m;key D
log|key !
quit|key q
full-names|key w
scrolled|key Right
paged|key PgDn
frozen|key Space
value|key v
tree-folded|key 2;key C
tree-inverted|key 2;key i
tree-found|key 2;type /png_create;key Enter
flame-zoomed|key 3;key j j;key Enter
flame-flipped|key 3;key o
flame-found|key 3;type /png;key Enter'

# all_of SIZE CHARSET: each from a session of its own, so that none hangs on another
all_of() {
  local folder=$tmp/$1-$2 option=() name keys ran
  [ "$2" = unicode ] || option=(--ascii)
  mkdir -p "$folder" "$folder.scripts"
  {
    for keys in $screens; do echo "screen-$keys|key $keys"; done
    echo "$overlays"
  } | while IFS='|' read -r name keys; do
    {
      printf '%s\n' "size $1" "${keys//;/$'\n'}" ":save-display $folder/$name"
      [ "$2" = ascii ] || echo ":save-attrs $folder/$name-styles"
    } >"$folder.scripts/$name"
  done
  timeout 60 "$screenrun" --launched "${option[@]}" "$folder.scripts"/* >"$folder.log" 2>&1
  ran=$?
  COLUMNS=${1%x*} LINES=${1#*x} "$screenrun" --picker "${option[@]}" '' >"$folder/picker"
  COLUMNS=${1%x*} LINES=${1#*x} "$screenrun" --picker "${option[@]}" 's' >"$folder/picker-filtered"
  together "$folder" >"$folder.all"
  golden "golden-$1-$2.txt" "$folder.all"
  is "$1, $2: all ran through" "$ran" 0
  [ "$ran" = 0 ] || diag_file "$folder.log" 60
}
for size in 120x40 80x24 40x10; do
  all_of $size unicode
  all_of $size ascii
  ok "$size in ASCII is ASCII" sh -c "! LC_ALL=C grep -q '[^ -~]' '$tmp/$size-ascii.all'"
done

# the program's output: a real one's, as only that has a terminal; its numbers are left out
if "$abs_top_builddir/tests/lib/can-ptrace"; then
  # shellcheck disable=SC2016 # for the shell that is launched
  program='printf "plain \033[31mred\033[0m \033[1mbold\033[0m\n\ttab\n%0200d\nover\rOVER\n\033]0;title\007漢字 end\n"; sleep 60'
  for size in 120x40 80x24 40x10; do
    printf 'size %s\nkey 7\nawait 漢字 end\n:save-display %s\n:save-attrs %s\nkey q k\n' "$size" "$tmp/out.text" "$tmp/out.styles" >"$tmp/script"
    ok "the program's output at $size" env HEAPTOP_SCRIPT="$tmp/script" timeout 40 "$abs_top_builddir/tests/lib/ptyrun" \
      --size "$size" --timeout 30 --wait --raw "$tmp/out" -- "$HEAPTOP" sh -c "$program"
    # from its first line on (where that has scrolled away: below the header) to its last
    first=$(grep -n -m 1 '^plain red' "$tmp/out.text" | cut -d : -f 1)
    first=${first:-3}
    lines=$(($(grep -n '漢字 end' "$tmp/out.text" | tail -n 1 | cut -d : -f 1) - first + 1))
    for file in text styles; do tail -n "+$first" "$tmp/out.$file" | head -n "$lines"; done >"$tmp/output.all"
    golden "golden-output-$size.txt" "$tmp/output.all"
  done
else
  skip "the program's output" "ptrace isn't permitted here"
fi
done_testing
