#!/bin/bash
# AGE p50 in Tree: where there is room or it is chosen, both ways around, of a running program and of a file, and as in Sites
# where a row is all of a site.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
. "$abs_top_srcdir/tests/lib/golden.sh"

screenrun=$abs_top_builddir/tests/screen/screenrun
export XDG_CONFIG_HOME=$tmp

# screens NAME SIZE OPTION...: both trees, all opened, and without libraries; a golden of all
screens() {
  local name=$1 size=$2 dir=$tmp/$1
  shift 2
  mkdir "$dir"
  cat >"$tmp/script" <<END
size $size
key 2 *
:save-display $dir/1-tree
key j j -
:save-display $dir/2-folded
key u
:save-display $dir/3-user
key u i
:save-display $dir/4-inverted
key *
:save-display $dir/5-inverted-open
END
  ok "$name: runs" timeout 30 "$screenrun" --threads "$@" "$tmp/script"
  together "$dir" >"$tmp/$name.txt"
  golden "ages-$name.txt" "$tmp/$name.txt"
}
screens 200x20-unicode 200x20
screens 200x20-ascii 200x20 --ascii
screens sampled 200x20 --rate 4096

# at 80 columns it is seen if it is asked for; of a file as of what runs
"$abs_top_builddir/tests/screen/make_snapshot" "$tmp/made.pb.gz" || bail_out "no snapshot"
shown() {
  printf 'size %s\nkey %s\n:save-display %s\n' "$1" "$2" "$tmp/shown" >"$tmp/script"
  shift 2
  HEAPTOP_SCRIPT=$tmp/script timeout 30 "$HEAPTOP" -i "$tmp/made.pb.gz" "$@" >"$tmp/log" 2>&1 && cat "$tmp/shown"
}
is "80 columns: not by itself" "$(shown 80x24 2 | grep -c 'AGE p50')" 0
is "80 columns: asked for" "$(shown 80x24 2 --columns=percent,age | grep -c 'AGE p50.*CALLS')" 1
# a site's row in the inverted tree, where it isn't gathered with other small ones, has the age that it has in Sites
ages() { sed -n 's/^[ >~^▲+]* *\([0-9.]*[KMB]*\) *\([0-9.]*\) *\([0-9]*[a-z]*+\|<1ms\) .*/\1 \2 \3/p' | sort -u; }
shown 100x40 1 --columns=percent,age | ages | awk '$2 >= 0.5' >"$tmp/sites"
shown 100x40 '2 i' --columns=percent,age | ages >"$tmp/inverted"
isnt "Sites has ages" "$(wc -l <"$tmp/sites")" 0
is "the inverted tree has the same" "$(comm -23 "$tmp/sites" "$tmp/inverted")" ""
done_testing
