#!/usr/bin/env bash
# What is in memory, on the screens: RES as a column, as a value of Sites, Tree and Flame, and in the sort menu; the
# Memory overlay; from a snapshot, at three sizes, with Unicode and in ASCII.
#
#	memory.sh --update	writes the expected files anew: look at the difference before believing it
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
expected=$abs_top_srcdir/tests/screen/expected
update=
[ "${1-}" = --update ] && update=1

make="$abs_top_builddir/tests/screen/make_resident"
ok "a snapshot" "$make" "$tmp/launched.pb.gz"
ok "and of an attached process" "$make" "$tmp/attached.pb.gz" attached

check() {
  if [ -n "$update" ]; then
    cp "$2" "$expected/$1"
    pass "$1 written"
  elif cmp -s "$2" "$expected/$1"; then
    pass "$1"
  else
    fail "$1" "the screen differs"
    diff -u "$expected/$1" "$2" | head -n 60 | sed 's/^/#   | /'
  fi
}

tour() {
  cat <<END
size $1
:save-display $2/1-sites
:sort res
:save-display $2/2-sites-res
key s
:save-display $2/3-sort-menu
key U
:save-display $2/4-untouched
:sort swap
:save-display $2/5-swap
:sort res
key 2
:save-display $2/6-tree
key 3
:save-display $2/7-flame
key 1 x
:save-display $2/8-details
key Esc U
:save-display $2/9-memory
END
}

for size in 120x40 80x24 40x10; do
  for charset in unicode ascii; do
    dir=$tmp/$size-$charset
    mkdir "$dir"
    tour "$size" "$dir" >"$dir.script"
    printf 'key Esc Esc U\n:save-attrs %s\n' "$dir/memory-styles" >>"$dir.script"
    option=
    [ $charset = unicode ] || option=-U
    # the size is the script's, but a screen is opened before it
    HEAPTOP_SCRIPT=$dir.script run 20 "$HEAPTOP" $option -i "$tmp/launched.pb.gz"
    is "$size-$charset runs" "$status" 0
    diag_file "$tmp/err"
    for file in "$dir"/*; do
      printf '===== %s\n' "${file##*/}"
      sed "s|$tmp|TMP|g" "$file"
    done >"$dir.all"
    check "memory-$size-$charset.txt" "$dir.all"
    ok "$size-$charset: no row is too long" test "$(wc -L <"$dir.all")" -le "${size%x*}"
    [ $charset = unicode ] || ok "$size in ASCII is ASCII" sh -c "! LC_ALL=C grep -q '[^ -~]' '$dir.all'"
  done
done

printf 'size 100x20\nkey U\n:save-display %s\n' "$tmp/screen" >"$tmp/script"
HEAPTOP_SCRIPT=$tmp/script run 20 "$HEAPTOP" -i "$tmp/attached.pb.gz"
check memory-attached.txt "$tmp/screen"

# the numbers of the snapshot are those of the frame, and other readers' types stay what they were
run 20 "$HEAPTOP" -b -n 1 -s res -i "$tmp/launched.pb.gz"
cp "$tmp/out" "$tmp/frames"
is "batch: the sites' sum is the total" "$(sites "$tmp/frames" res_bytes | awk '{ n += $1 } END { print n }')" \
  "$(header "$tmp/frames" res_bytes)"
ok "batch: sorted by res" sh -c 'sort -rnc' <<<"$(sites "$tmp/frames" res_bytes)"
is "batch: no more than live" "$(sites "$tmp/frames" live_bytes res_bytes swap_bytes | awk '$2 + $3 > $1')" ""
run 20 "$HEAPTOP" -o "$tmp/again.pb.gz" -i "$tmp/launched.pb.gz"
run 20 "$HEAPTOP" -b -n 1 -s res -i "$tmp/again.pb.gz"
ok "written again it is the same" cmp "$tmp/out" "$tmp/frames"
run 20 "$HEAPTOP" -o "$tmp/res.folded" --value=res -i "$tmp/launched.pb.gz"
is "folded: the stacks' sum is the total" "$(awk '{ n += $NF } END { print n }' "$tmp/res.folded")" \
  "$(header "$tmp/frames" res_bytes)"
done_testing
