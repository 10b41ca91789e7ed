#!/usr/bin/env bash
# Bytes first touched are estimates with an error of their own, whatever is known of live bytes: on Sites, Tree and Detail, in
# the status line, where live bytes are exact; and none where the faults were all counted.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
. "$abs_top_srcdir/tests/lib/golden.sh"

make="$abs_top_builddir/tests/screen/make_resident"
ok "a snapshot" "$make" "$tmp/estimated.pb.gz" estimated
ok "and one of counted faults" "$make" "$tmp/counted.pb.gz"

tour() {
  cat <<END
size $1
:sort faults
:save-display $2/1-sites
key 2
:save-display $2/2-tree
key 1 x
:save-display $2/3-detail
key Esc
:sort live
:save-display $2/4-sites-live
END
}

for size in 120x40 80x24 40x10; do
  for charset in unicode ascii; do
    dir=$tmp/$size-$charset
    mkdir "$dir"
    tour "$size" "$dir" >"$dir.script"
    option=
    [ $charset = unicode ] || option=-U
    HEAPTOP_SCRIPT=$dir.script run 20 "$HEAPTOP" $option -i "$tmp/estimated.pb.gz"
    is "$size-$charset runs" "$status" 0
    diag_file "$tmp/err"
    together "$dir" | sed "s|$tmp|TMP|g" >"$dir.all"
    golden "touch_error-$size-$charset.txt" "$dir.all"
    ok "$size-$charset: no row is too long" test "$(wc -L <"$dir.all")" -le "${size%x*}"
    [ $charset = unicode ] || ok "$size in ASCII is ASCII" sh -c "! LC_ALL=C grep -q '[^ -~]' '$dir.all'"
  done
done

tour 120x40 "$tmp" >"$tmp/script"
HEAPTOP_SCRIPT=$tmp/script run 20 "$HEAPTOP" -i "$tmp/counted.pb.gz"
is "counted: it runs" "$status" 0
is "counted: no error is told" "$(cat "$tmp"/[1-4]-* | grep -c '±\|ERR')" 0
done_testing
