#!/bin/bash
# AGE p50 and THREADS: in Sites and Modules where there is room or they are chosen, of a running program and of a file;
# in batch frames; and what isn't known is empty, never 0.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
. "$abs_top_srcdir/tests/lib/golden.sh"

screenrun=$abs_top_builddir/tests/screen/screenrun
heaptop=$abs_top_builddir/heaptop
export LC_ALL=C.UTF-8 XDG_CONFIG_HOME=$tmp

"$abs_top_builddir/tests/screen/make_snapshot" "$tmp/made.pb.gz" || bail_out "no snapshot"

# screens NAME SIZE OPTION...: Sites by site and by stack, Modules, Threads; a golden of all
screens() {
  local name=$1 size=$2 dir=$tmp/$1
  shift 2
  mkdir "$dir"
  cat >"$tmp/script" <<END
size $size
:save-display $dir/1-sites
:group stack
:save-display $dir/2-stacks
key 6
:save-display $dir/3-modules
key 5
:save-display $dir/4-threads
END
  ok "$name: runs" timeout 30 "$screenrun" --threads "$@" "$tmp/script"
  together "$dir" >"$tmp/$name.txt"
  golden "columns-$name.txt" "$tmp/$name.txt"
}

screens wide 200x20
screens ascii 200x20 --ascii
screens sampled 200x20 --rate 4096

# at 80 columns nobody sees them unless they are what was asked for
shown() {
  printf 'size %s\n:save-display %s\n' "$1" "$tmp/shown" >"$tmp/script"
  shift
  HEAPTOP_SCRIPT=$tmp/script timeout 30 "$heaptop" -i "$tmp/made.pb.gz" "$@" >"$tmp/log" 2>&1 && cat "$tmp/shown"
}
is "80 columns: not by themselves" "$(shown 80x24 | grep -Eo 'LIVE|AGE p50|THREADS|SITE$' | tr '\n' ' ')" "LIVE SITE "
is "80 columns: asked for" "$(shown 80x24 --columns=percent,age,threads | grep -c 'AGE p50 THREADS.*SITE')" 1
is "a column that isn't chosen isn't there" "$(shown 200x24 --columns=percent,age | grep -Eo 'AGE p50|THREADS|SITE$' | tr '\n' ' ')" "AGE p50 SITE "

# the same figures in a batch frame of the file
timeout 30 "$heaptop" -i "$tmp/made.pb.gz" -b >"$tmp/frame"
is "batch: every site with live bytes has an age" \
  "$(sites "$tmp/frame" live_bytes age_p50_s live_threads | awk -F '\t' '$1 && ($2 == "" || $3 == "")')" ""
is "batch: and none without" "$(sites "$tmp/frame" live_bytes age_p50_s live_threads | awk -F '\t' '!$1 && ($2 $3 != "")')" ""
is "batch: ages are classes" \
  "$(sites "$tmp/frame" age_p50_s | grep -Evc '^(0|0.001|0.01|0.1|1|10|60|600|3600|)$')" 0

# what nobody counts is no figure
is "batch: no page maps in the file, no resident bytes" "$(sites "$tmp/frame" res_bytes swap_bytes touched_bytes | tr -d '\t\n')" ""
timeout 30 "$heaptop" -i "$tmp/made.pb.gz" -b --group=thread >"$tmp/frame"
is "batch by thread: there are rows" "$(sites "$tmp/frame" site | grep -c .)" 2
is "batch by thread: peak, temporary, pages, ages are nobody's" \
  "$(sites "$tmp/frame" peak_bytes temp_blocks res_bytes swap_bytes touched_bytes age_p50_s live_threads | tr -d '\t\n')" ""

done_testing
