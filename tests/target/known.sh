#!/usr/bin/env bash
# The figures are right: under -e every one equals what the victim itself counted; sampled, each
# lies within its standard error and the total is unbiased.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need python3
need_ptrace
known=$VICTIMS/known

# ---- every call ----
run 60 "$HEAPTOP" -e -b -x -d 0.5 "$known" 1 0 "$tmp/truth"
is "known under -e leaves with 0" "$status" 0
diag_file "$tmp/err"
cp "$tmp/out" "$tmp/exact"
is "the mode is exact" "$(header "$tmp/exact" mode)" exact
is "nothing was dropped" "$(header "$tmp/exact" dropped)" 0
python3 "$abs_top_srcdir/tests/lib/known.py" exact "$tmp/truth" "$tmp/exact" >"$tmp/verdict"
while read -r verdict name; do
  if [ "$verdict" = ok ]; then pass "$name"; else fail "$name"; fi
done < <(grep -E '^(ok|no) ' "$tmp/verdict")
grep '^#' "$tmp/verdict"
isnt "figures were compared" "$(grep -c '^ok' "$tmp/verdict")" 0

# ---- the same in a run long enough for several frames, drains in between ----
run 120 "$HEAPTOP" -e -b -x -d 0.1 "$known" 10 0 "$tmp/truth"
is "a longer one leaves with 0" "$status" 0
ok "every figure of it equals the truth" known_right "$tmp/truth" "$tmp/out"

# ---- sampled: 20 runs of more than 200,000 allocations ----
# Of 20 runs, one figure of a site may lie beyond three standard errors by chance (0.3% each). With
# some 30 figures a correct sampler still fails this rule in a few of a hundred test runs, a biased
# one in every: so the rule must fail twice in a row.
runs=20
quick && runs=5
# A run in which a loaded machine made heaptop drop samples says so in its header; it proves nothing
# about the estimates and is done again, at most as often as there are runs. The program rests most of the time, so that
# nothing need be dropped: several runs at a time leave each as much.
at_once=$(($(getconf _NPROCESSORS_ONLN) * 2))
sampled() {
  local done=0 again=0 i pids
  rm -f "$tmp"/sample.*
  while [ $done -lt $runs ]; do
    pids=()
    for ((i = 0; i < at_once && i < runs - done; i++)); do
      "$HEAPTOP" -r 4K -b -x -d 1 "$known" 20 4096 "$tmp/truth.$i" >"$tmp/try.$i" 2>"$tmp/err.$i" </dev/null &
      pids+=($!)
      tap_pids+=($!)
    done
    for i in "${!pids[@]}"; do
      finish "${pids[i]}" 60
      [ "$status" = 0 ] || { diag "left with $status"; diag_file "$tmp/err.$i"; return 1; }
      if [ "$(header "$tmp/try.$i" dropped)" = 0 ] && [ "$(header "$tmp/try.$i" gap)" = 0 ]; then
        mv "$tmp/try.$i" "$tmp/sample.$done"
        done=$((done + 1))
      elif [ $((++again)) -gt $runs ]; then
        diag "samples dropped in $again runs"
        return 1
      fi
    done
  done
  [ $again = 0 ] || diag "$again runs done again: samples were dropped"
  python3 "$abs_top_srcdir/tests/lib/known.py" sampled "$tmp/truth.0" "$tmp"/sample.*
}
sampled_twice() { sampled || { echo "# once more"; sampled; }; }
ok "-r 4K: each estimate within 3 standard errors in all runs but one, the total unbiased" sampled_twice
is "the mode is sampled" "$(header "$tmp/sample.0" mode)" sampled
like "every site says how sure it is" "$(sites "$tmp/sample.0" site se_pct | grep -w site_leak_list)" \
  $'\t[0-9]+(\\.[0-9]+)?$'
done_testing
