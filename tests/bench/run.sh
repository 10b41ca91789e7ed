#!/usr/bin/env bash
# All benchmarks, or those named, and one table of what they measured; run by `make bench`, which
# builds them.
#
#	run.sh [NAME]...
#
# A name is a program's or script's without bench_ and suffix: pairs, programs, own, growth, tree ...
# Each prints lines of the table as bench.py says; a benchmark that prints none, or fails without one
# that says MISSED, or with a code above 1, is a missed line itself. The exit code is 1 if any line is.
#
# Environment: HEAPTOP_QUICK=1: few and short rounds, nothing is judged but that everything ran and
# every figure is a number. HEAPTOP_BENCH_MINUTES: how long memory is watched (10). BENCHES,
# BENCH_SCRIPTS: what there is, set by `make bench`.
set -u
here=$(cd "$(dirname "$0")" && pwd)
export abs_top_builddir=${abs_top_builddir:-$PWD}
export abs_top_srcdir=${abs_top_srcdir:-$(cd "$here/../.." && pwd)}
export LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
# the user's own settings must not change what is measured
unset HEAPTOP_OPTS HEAPTOP_CONFIG HEAPTOP_SCRIPT

tmp=$(mktemp -d "${TMPDIR:-/tmp}/heaptop-bench.XXXXXX") || exit 1
child=
leave() {
  [ -z "$child" ] || kill "$child" 2>/dev/null
  rm -rf "$tmp"
}
trap leave EXIT
trap 'exit 143' TERM HUP INT

name_of() {
  local name=${1##*/}
  name=${name#bench_}
  printf '%s\n' "${name%.*}"
}

wanted=("$@")
is_wanted() {
  local name
  [ ${#wanted[@]} -gt 0 ] || return 0
  for name in "${wanted[@]}"; do
    [ "$name" != "$1" ] || return 0
  done
  return 1
}

# judged FILE: its lines of the table. A figure must be a number; without judgement, that is all.
judged() {
  awk -F ' [|] ' -v OFS=' | ' -v quick="${HEAPTOP_QUICK:+1}" '
    /^#/ || NF != 5 { next }
    {
      number = $3 ~ /[0-9]/ && $3 !~ /(^|[^a-z])-?(nan|inf)([^a-z]|$)/
      $5 = number && (quick || $5 == "ok") ? "ok" : "MISSED"
      print
    }' "$1"
}

# run_one NAME COMMAND...
run_one() {
  local name=$1 status
  shift
  echo "== $name: ${*##*/}"
  # not in the foreground: a signal reaches the trap at once
  tee "$tmp/out" <"$tmp/fifo" &
  local tee=$!
  "$@" </dev/null >"$tmp/fifo" 2>&1 &
  child=$!
  wait "$child"
  status=$?
  child=
  wait "$tee"
  judged "$tmp/out" >"$tmp/lines"
  cat "$tmp/lines" >>"$tmp/table"
  if [ ! -s "$tmp/lines" ]; then
    echo "$name | ${*##*/} | nothing measured, exit code $status | a line | MISSED" >>"$tmp/table"
  elif [ "$status" -gt 1 ] || { [ "$status" -ne 0 ] && ! grep -q '| MISSED$' "$tmp/out"; }; then
    echo "$name | ${*##*/} | exit code $status | 0 | MISSED" >>"$tmp/table"
  fi
}

: >"$tmp/table"
mkfifo "$tmp/fifo"
known=()
for one in ${BENCHES-} ${BENCH_SCRIPTS-}; do
  name=$(name_of "$one")
  known+=("$name")
  is_wanted "$name" || continue
  case $one in
  *.py) run_one "$name" python3 "$abs_top_srcdir/$one" ;;
  *.sh) run_one "$name" bash "$abs_top_srcdir/$one" ;;
  *) run_one "$name" "$abs_top_builddir/$one" ;;
  esac
done
for name in "${wanted[@]}"; do
  case " ${known[*]} " in
  *" $name "*) ;;
  *) echo "$name | run.sh $name | 0 of that name; there are: ${known[*]} | 1 | MISSED" >>"$tmp/table" ;;
  esac
done

echo
awk -F ' [|] ' '
  { for (i = 1; i <= 5; i++) cell[NR, i] = $i; for (i = 1; i <= 5; i++) if (length($i) > width[i]) width[i] = length($i) }
  END {
    for (r = 1; r <= NR; r++)
      printf "%-6s  %-*s  %-*s  %-*s  %s\n", cell[r, 5], width[1], cell[r, 1], width[3], cell[r, 3],
        width[4], cell[r, 4], cell[r, 2]
  }' "$tmp/table"
lines=$(wc -l <"$tmp/table")
missed=$(awk -F ' [|] ' '$5 != "ok" { printf " %s", $1 }' "$tmp/table")
count=$(echo "$missed" | wc -w)
echo "$lines lines, $count missed${missed:+:$missed}"
[ "$lines" -gt 0 ] && [ "$count" -eq 0 ]
