#!/bin/bash
# Every screen at three sizes, with Unicode and in ASCII, and the style layer of one of them: dumped
# by scripted keys and compared with tests/screen/expected/. Looks (256 colours, 8, none) follow from
# the style layer by a table that tests/unit/test_canvas.c checks.
# UPDATE=1: see tests/lib/golden.sh.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
. "${abs_top_srcdir:-.}/tests/lib/golden.sh"

screenrun=${SCREENRUN:-$abs_top_builddir/tests/screen/screenrun}

# The screens of a tour: a name, and the keys that lead there from the one before.
tour() {
  cat <<END
size $1
:save-display $2/sites
key j j
:save-display $2/sites-moved
:sort rate
:save-display $2/sites-rate
:sort live
key s
:save-display $2/sort-menu
key Esc
type /png
key Enter
:save-display $2/sites-find
key Esc
type \\libpng|config
key Enter
:save-display $2/sites-filter
key Del
key x
:save-display $2/details
key Esc
key 2
:save-display $2/tree
key i
:save-display $2/tree-inverted
key i j j
key C
:save-display $2/tree-folded
key E
:save-display $2/tree-unfolded
type /png_create
key Enter
:save-display $2/tree-find
key Esc
key 3
:save-display $2/flame
key g j j j
:save-display $2/flame-moved
key Enter
:save-display $2/flame-zoomed
key 0
key o
:save-display $2/flame-flipped
key o
type /png
key Enter
:save-display $2/flame-find
:save-attrs $2/flame-find-styles
key Esc
key F1
:save-display $2/help
key Esc
key !
:save-display $2/log
key Esc
key 1
type \\nothing
:save-display $2/filter-line
key Enter
:save-display $2/nothing
key Del
key w
:save-display $2/full-names
:save-attrs $2/sites-styles
key Space
:save-display $2/frozen
END
}

names() { tour "$1" "$2" | sed -n 's/^:save-[a-z]* //p'; }

for size in 120x40 80x24 40x10; do
  for charset in unicode ascii; do
    dir=$tmp/$size-$charset
    mkdir -p "$dir"
    tour "$size" "$dir" > "$dir.script"
    option=
    [ $charset = ascii ] && option=--ascii
    if ! timeout 20 "$screenrun" $option "$dir.script" > "$dir.log" 2>&1; then
      fail "$size-$charset runs"
      diag_file "$dir.log" 40
      continue
    fi
    for file in $(names "$size" "$dir"); do
      printf '===== %s\n' "${file##*/}"
      cat "$file"
    done > "$dir.all"
    golden "$size-$charset.txt" "$dir.all"
    if [ $charset = ascii ]; then
      ok "$size in ASCII is ASCII" sh -c "! LC_ALL=C grep -q '[^ -~]' '$dir.all'"
    fi
    ok "$size-$charset: no row is too long" test "$(wc -L < "$dir.all")" -le "${size%x*}"
  done
done

# estimates, late attach, drops
dir=$tmp/sampled
mkdir -p "$dir"
tour 80x24 "$dir" | sed -n '1,2p' > "$dir.script"
ok "sampled runs" timeout 20 "$screenrun" --rate 65536 --attached --dropped 1234 "$dir.script"
golden sampled.txt "$dir/sites"

# against a file: every screen that shows differences, at each size
for size in 120x40 80x24 40x10; do
  dir=$tmp/base-$size
  mkdir -p "$dir"
  cat >"$dir.script" <<END
size $size
:save-display $dir/1-sites
key D
:save-display $dir/2-sites-delta
:save-attrs $dir/3-styles
key 2
:save-display $dir/4-tree
key i
:save-display $dir/5-tree-inverted
key i 3
:save-display $dir/6-flame
key M
:save-display $dir/7-marks
END
  ok "$size against a base runs" timeout 20 "$screenrun" --base 8 "$dir.script"
  together "$dir" >"$dir.all"
  golden "base-$size.txt" "$dir.all"
done

# several processes
for size in 120x40 80x24 40x10; do
  dir=$tmp/processes-$size
  mkdir -p "$dir"
  cat >"$dir.script" <<END
size $size
:save-display $dir/1-all
key p j j j j j
:save-display $dir/2-list
key Enter
:save-display $dir/3-one
key p G Enter
:save-display $dir/4-gone
END
  ok "$size with several processes runs" timeout 20 "$screenrun" --processes "$dir.script"
  together "$dir" >"$dir.all"
  golden "processes-$size.txt" "$dir.all"
done

# names that try to break the screen: no control byte comes through, nothing moves
dir=$tmp/hostile
mkdir -p "$dir"
tour 80x24 "$dir" > "$dir.script"
ok "hostile names run" timeout 20 "$screenrun" --hostile "$dir.script"
cat "$dir"/* > "$dir.all"
ok "no control bytes" sh -c "! LC_ALL=C grep -q '[[:cntrl:]]' '$dir.all'"

# a script that fails says so
printf 'expect no such text\n' > "$tmp/bad"
ok "a failing script fails" sh -c "! '$screenrun' '$tmp/bad' > /dev/null 2>&1"

done_testing
