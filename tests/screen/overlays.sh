#!/usr/bin/env bash
# Screens and what lies over them, where golden.sh's made-up heap doesn't lead: several processes, threads, a base to
# compare with, estimates, the setup, a screen too small for any. At each size as text, in ASCII, and as styles.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
. "${abs_top_srcdir:-.}/tests/lib/golden.sh"
screenrun=$abs_top_builddir/tests/screen/screenrun

# option of screenrun|a name and the script that leads there
overlays='--processes|processes|key p j j j
--processes|processes-tree|key 2
--threads|threads|key 5
--threads|thread-menu|key T j Space Space
--threads|thread-chosen|key 5 j Enter;key 1
--threads|setup|key F2 j j
--base 8|base-sites|key 1
--base 8|base-delta|key D
--base 8|base-detail|key D Enter
--base 8|base-tree|key 2 D
--base 8|base-flame|key 3 D
--base 8|base-modules|key 6 D
--base 8|base-marks|key m M
--rate 65536 --attached --dropped 1234|sampled-sites|key 1
--rate 65536 --attached --dropped 1234|sampled-tree|key 2
--rate 65536 --attached --dropped 1234|sampled-flame|key 3 j j
--rate 65536 --attached --dropped 1234|sampled-detail|key x
--rate 65536 --attached --dropped 1234|sampled-log|key !
--snapshot|snapshot-sites|key 1
--snapshot|snapshot-time|key 4
--snapshot|snapshot-quiet|key [
--gap 6|gap|key 4'

# all_of SIZE CHARSET
all_of() {
  local folder=$tmp/$1-$2 more=() options name keys
  [ "$2" = unicode ] || more=(--ascii)
  mkdir -p "$folder"
  while IFS='|' read -r options name keys; do
    {
      printf '%s\n' "size $1" "${keys//;/$'\n'}" ":save-display $folder/$name"
      [ "$2" = ascii ] || echo ":save-attrs $folder/$name-styles"
    } >"$folder.script"
    # shellcheck disable=SC2086 # options are words
    timeout 20 "$screenrun" $options "${more[@]}" "$folder.script" >"$folder.log" 2>&1 && continue
    fail "$1, $2: $name runs"
    diag_file "$folder.log" 40
  done <<<"$overlays"
  together "$folder" >"$folder.all"
  golden "overlays-$1-$2.txt" "$folder.all"
  ok "$1, $2: no row is too long" test "$(grep -v '^=====' "$folder.all" | wc -L)" -le "${1%x*}"
}
for size in 120x40 80x24 40x10; do
  all_of $size unicode
  all_of $size ascii
  ok "$size in ASCII is ASCII" sh -c "! LC_ALL=C grep -q '[^ -~]' '$tmp/$size-ascii.all'"
done
# one line is left of it
for size in 19x8 40x3; do all_of $size unicode; done
done_testing
