#!/usr/bin/env bash
# Page faults of two sizes: fifty huge pages among tens of thousands of small ones are told right, whether they come after
# these or between them; small ones as well as their standard error says, which is told, too. Then a user for whom the
# kernel chooses samples without a look at sizes.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need_ptrace
small=24000 huge=50
quick && small=8000

truth() { sed -n "s/^$1 //p" "$tmp/victim"; }
of_site() { sites "$tmp/frames" site "$2" | awk -F '\t' -v s="$1" '$1 == s { print $2; exit }'; }
# ask HOW PROGRAM-FOLDER FRONT...
ask() {
  local how=$1 from=$2
  shift 2
  # shellcheck disable=SC2016 # for the inner shell
  run 60 "$@" "$from/heaptop" -b -x -v -d 0.5 -e --faults -s faults -- sh -c 'exec "$@" >"$0"' "$tmp/victim" \
    "$from/victim_pages" "$how" $small $huge
  cp "$tmp/out" "$tmp/frames"
}
# Within four and a half standard errors, as they were told, of what is true: one in 150,000 would be outside, if they are
# right. And half a percent for what is true but for a page or two.
sure() {
  awk -v a="$(of_site "$1" touched_bytes)" -v se="$(of_site "$1" touched_se_pct)" -v b="$(truth "$1")" \
    'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a != "" && se != "" && b > 0 && d <= 4.5 * se / 100 * a + b / 200) }'
}
told() {
  local f
  for f in "${@:2}"; do
    ok "$1: $f" sure "$f"
    diag "$(of_site "$f" touched_bytes) (+-$(of_site "$f" touched_se_pct)%) of $(truth "$f")"
  done
}

mkdir "$tmp/ours"
cp "$HEAPTOP" "$tmp/ours/heaptop"
cp "$VICTIMS/victim_pages" "$tmp/ours/"
chooses=
grep -q "define WITH_BPF" "$abs_top_builddir/config.h" && [ "$(id -u)" = 0 ] && chooses=yes

for how in small after mixed; do
  ask $how "$tmp/ours"
  is "$how: it ends well" "$status" 0
  diag "$(grep -s 'page faults' "$tmp/err")"
  told $how small_most small_some
  ok "$how: which is an estimate, and no bad one" awk -v se="$(of_site small_most touched_se_pct)" 'BEGIN { exit !(se > 0 && se < 30) }'
  # without the program huge ones among small ones are told of as it happens
  [ $how != small ] && [ $chooses ] || continue
  told $how huge_most huge_some
  is "$how: nothing refuses the program that chooses" "$(grep -c 'whatever size' "$tmp/err")" 0
  # where there was no huge page it came in small ones
  if [ "$(truth huge_most)" = $((68 * 1024 * 1024)) ] && grep -Eqs '\[(always|madvise)\]' /sys/kernel/mm/transparent_hugepage/enabled; then
    ok "$how: huge ones are counted, not estimated" awk -v se="$(of_site huge_most touched_se_pct)" 'BEGIN { exit !(se < 3) }'
  fi
done
[ $chooses ] && ok "the whole is surer than its parts" awk -v whole="$(header "$tmp/frames" touched_error_pct)" \
  -v part="$(of_site small_most touched_se_pct)" 'BEGIN { exit !(whole > 0 && whole < part) }'

# ---- launched itself, not by a shell: it runs as soon as it is watched ----
run 60 "$HEAPTOP" -b -x -v -d 0.5 -e --faults -s faults -- "$VICTIMS/victim_pages" small 8000 0 "$tmp/victim"
cp "$tmp/out" "$tmp/frames"
is "launched: it ends well" "$status" 0
told launched small_most small_some

# ---- two processes at once: each has its own counts, and the code is made ready once ----
# shellcheck disable=SC2016 # for the inner shell
run 60 "$HEAPTOP" -b -x -v -d 0.5 -e --faults -s faults -- sh -c '"$@" >"$0" & "$@" >/dev/null & wait' "$tmp/victim" \
  "$VICTIMS/victim_pages" mixed 8000 10
cp "$tmp/out" "$tmp/frames"
is "two: it ends well" "$status" 0
awk '{ printf "%s %.0f\n", $1, $2 * 2 }' "$tmp/victim" >"$tmp/both"
mv "$tmp/both" "$tmp/victim"
told two small_most small_some
[ $chooses ] && told two huge_most huge_some

# ---- who may not have the program ----
paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)
if [ "$(id -u)" = 0 ] && have setpriv && [ "$paranoid" -le 2 ]; then
  chmod 755 "$tmp" "$tmp/ours"
  : >"$tmp/victim"
  chmod 666 "$tmp/victim"
  ask small "$tmp/ours" setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all
  is "a plain user: it ends well" "$status" 0
  told "a plain user" small_most small_some
  ok "a plain user: how sure it is is told" awk -v se="$(of_site small_most touched_se_pct)" 'BEGIN { exit !(se > 0) }'
  [ $chooses ] && like "a plain user: why sizes aren't known is in the log" "$(cat "$tmp/err")" "whatever size their pages are: .*CAP_BPF"
fi
done_testing
