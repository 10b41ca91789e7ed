#!/bin/bash
# The question before a process from the list is attached to, with what it would do and while that is being looked up, on
# all sizes, with styles.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
. "$abs_top_srcdir/tests/lib/golden.sh"

for size in 120x40 80x24 40x10; do
  for charset in unicode ascii; do
    option=()
    [ $charset = unicode ] || option=(--ascii)
    mkdir "$tmp/$size-$charset"
    for typed in $'\r' $'4242\r'; do
      COLUMNS=${size%x*} LINES=${size#*x} timeout 30 "$abs_top_builddir/tests/screen/screenrun" --picker "${option[@]}" "$typed" \
        >"$tmp/$size-$charset/$([ "$typed" = $'\r' ] && echo known || echo looking)"
    done
    together "$tmp/$size-$charset" >"$tmp/all"
    golden "asks-$size-$charset.txt" "$tmp/all"
    [ $charset = unicode ] || ok "$size in ASCII is ASCII" sh -c "! LC_ALL=C grep -q '[^ -~]' '$tmp/all'"
  done
done
done_testing
