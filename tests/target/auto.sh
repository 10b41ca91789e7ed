#!/usr/bin/env bash
# The auto rate: exact while a program is quiet, sampled in a storm, exact again after it; and whatever the
# rate does, no block leaks and no total jumps. tests/lib/auto.py tells what is compared, and how
# often it fails by chance.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need python3
need_ptrace
phases=$VICTIMS/phases
seconds=3
quick && seconds=1

# A budget of 5%: in the storm that makes for thousands of samples, so that 4 standard errors are little.
launched() { start "$1/frames" "$HEAPTOP" -b -d 0.2 --overhead 5 -- "$phases" "$1" $seconds; }
attached() {
  start "$1/log" "$phases" "$1" $seconds
  victim=$started
  wait_for_file "$1/truth.0"
  start "$1/frames" "$HEAPTOP" -b -d 0.2 --overhead 5 -p "$victim"
  # it must be hooked before it is told to begin
  wait_for "$1/frames" '^# command: '
}
wait_for_file() { until_true 20 test -e "$1"; }

# Where samples were dropped or heaptop was starved on a busy machine, nothing is proven: once more, four times at most.
for how in launched attached; do
  for try in 1 2 3 4; do
    mkdir "$tmp/$how.$try"
    $how "$tmp/$how.$try"
    heaptop=$started
    python3 "$abs_top_srcdir/tests/lib/auto.py" "$tmp/$how.$try" "$tmp/$how.$try/frames" >"$tmp/verdict" 2>"$tmp/err"
    proven=$?
    finish "$heaptop" 20
    left=$status
    [ $proven = 2 ] || break
    diag "samples were dropped, or heaptop was starved: once more"
  done
  while read -r verdict name; do
    if [ "$verdict" = ok ]; then pass "$how, $name"; else fail "$how, $name"; fi
  done < <(grep -E '^(ok|no) ' "$tmp/verdict")
  grep '^#' "$tmp/verdict"
  diag_file "$tmp/err"
  is "$how: everything was compared" "$(grep -cE '^(ok|no) ' "$tmp/verdict")" 26
  isnt "$how: something was proven" "$proven" 2
  is "$how: heaptop leaves with 0" "$left" 0
done
done_testing
