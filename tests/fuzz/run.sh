#!/usr/bin/env bash
# Run the fuzzers, so many at a time as there are processors (but one, as long as the file FUZZ_BESIDE is there: something
# else is at work then), and print one line for each:
#
#	ring: 180233 executions, 1790 edges, 61 s, ok
#
#	run.sh SRCDIR SECONDS [NAME]...		(from the build folder, by `make fuzz`)
#
# Seeds are those in tests/data/fuzz/NAME; what the fuzzer finds worth keeping is in tests/fuzz/corpus/NAME
# in the build folder, and goes on from there next time; FUZZ_SEED=N goes other ways (1). An input that crashed something is left as
# tests/fuzz/crash-NAME-…, with the log beside it. Exit code 1 if there is one.
set -u
srcdir=$1 seconds=$2
shift 2
fuzzers=tests/fuzz/fuzzers
# memory of one input and of the whole process, MiB; seconds of one input
limits="-malloc_limit_mb=768 -rss_limit_mb=2048 -timeout=20"

declare -A max_len
while read -r name len; do max_len[$name]=$len; done < <($fuzzers)
[ $# -gt 0 ] || mapfile -t names < <(printf '%s\n' "${!max_len[@]}" | sort)
[ $# = 0 ] || names=("$@")

run_one() {
  local name=$1 log=tests/fuzz/$1.log status began=$SECONDS
  mkdir -p "tests/fuzz/corpus/$name"
  # shellcheck disable=SC2086 # limits are several words
  HEAPTOP_FUZZ=$name $fuzzers -seed="${FUZZ_SEED:-1}" -max_total_time="$seconds" -max_len="${max_len[$name]}" $limits \
    -print_final_stats=1 -artifact_prefix="tests/fuzz/crash-$name-" \
    "tests/fuzz/corpus/$name" "$srcdir/tests/data/fuzz/$name" >"$log" 2>&1 </dev/null
  status=$?
  # what it held when it ended
  local runs edges
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  edges=$(grep -ao 'cov: [0-9]*' "$log" | tail -n 1 | tr -dc '0-9')
  printf '%s: %s executions, %s edges, %d s, ' "$name" "${runs:-0}" "${edges:-0}" $((SECONDS - began))
  if [ $status = 0 ]; then
    echo ok
    return 0
  fi
  echo "FAILED: $(grep -aE '^(ERROR|==.*ERROR|.*runtime error|.*not so:)' "$log" | head -n 1)"
  grep -aE 'Test unit written to' "$log" | sed 's/^.*to /  input: /'
  return 1
}

failed=0
for name in "${names[@]}"; do
  if [ -z "${max_len[$name]-}" ]; then
    echo "no fuzzer is called '$name'; there are: ${!max_len[*]}" >&2
    exit 2
  fi
done
processors=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
full() {
  local most=$processors
  [ ! -e "${FUZZ_BESIDE-}" ] || [ "$most" = 1 ] || most=$((most - 1))
  [ "$(jobs -rp | wc -l)" -ge "$most" ]
}
for name in "${names[@]}"; do
  if full; then
    wait -n || failed=$((failed + 1))
  fi
  run_one "$name" &
done
while [ -n "$(jobs -p)" ]; do
  wait -n
  status=$?
  [ $status = 127 ] && break
  [ $status = 0 ] || failed=$((failed + 1))
done
[ $failed = 0 ]
