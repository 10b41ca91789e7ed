#!/bin/bash
# What puzzled somebody who had only ? and the README: by scripted keys on a made-up heap, and by what heaptop prints.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
. "${abs_top_srcdir:-.}/tests/lib/golden.sh"

screenrun=${SCREENRUN:-$abs_top_builddir/tests/screen/screenrun}
export LC_ALL=C.UTF-8
without() { ok "$1" sh -c '! grep -Eq -- "$1" "$2"' sh "$3" "$2"; }

run() { # NAME SIZE [OPTION...] <SCRIPT
  local name=$1 size=$2
  shift 2
  { printf 'size %s\n' "$size"; cat; } >"$tmp/$name.script"
  ok "$name runs" timeout 20 "$screenrun" "$@" "$tmp/$name.script"
}

# on a terminal without room for a pane Detail covers the screens: asking for one shows it
run covered 80x24 <<END
key Enter
expect STACK
key 2
expect CALLS
expect-not STACK
key x
expect STACK
key Tab
expect-not STACK
size 120x40
key 1 Enter Enter
expect-not LIVE▼
key 1
expect LIVE▼
expect STACK
END

# rows by thread have no column of figures that aren't counted by thread, and say that filters don't reach them
run threads 120x40 --threads <<END
:group thread
:filter png
:save-display $tmp/by-thread
:sort peak
:save-display $tmp/by-peak
END
like "a filter doesn't count by thread" "$(cat "$tmp/by-thread")" "filters of stacks don't count"
without "threads have no peak" "$tmp/by-thread" 'PEAK.*THREAD|TEMP%.*THREAD|RES.*THREAD '
like "sorted by peak they are by live bytes" "$(cat "$tmp/by-peak")" "LIVE▼"

# a mark after which nothing came: branches that are taken together have no share, and no sign of one
run marked 80x24 --steps 3 <<END
key 2 m D
:save-display $tmp/marked
key 3
:save-display $tmp/marked-flame
END
without "no share of nothing" "$tmp/marked" 'more, *%'
like "Flame says what it is missing" "$(cat "$tmp/marked-flame")" "nothing has grown since the mark"

# a function without a name: where names are to be had
run unnamed 80x24 <<END
key j j j j j j
:save-display $tmp/unnamed
END
like "a site without a name says why" "$(cat "$tmp/unnamed")" 'no symbol \(-dbgsym has it\)'

# the help explains the header, and breaks its lines between words wherever the terminal ends
for size in 120x40 80x24 40x10; do
  mkdir -p "$tmp/help" "$tmp/end"
  run "help-$size" $size <<END
key ?
key G
:save-display $tmp/end/$size
END
  # what no key explains, behind all keys
  if grep -q ' Header$' "$tmp/end/$size"; then
    sed -n '/ Header$/,$p' "$tmp/end/$size"
  else
    sed 1d "$tmp/end/$size"
  fi >"$tmp/help/$size"
done
together "$tmp/help" >"$tmp/help.all"
golden newuser-help.txt "$tmp/help.all"

# explanations begin in one column also behind what has more bytes than columns
"$HEAPTOP" --help >"$tmp/options"
is "--help is aligned" "$(grep -E '^  (-., |    )--[a-z]*=[^ ]*…' "$tmp/options" | grep -cvE '^.{30} [^ ]')" 0
done_testing
