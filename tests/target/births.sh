#!/usr/bin/env bash
# A launched program's threads in its first second, when the agent asks the kernel nothing: a filter may be on
# its way. What it must know of each thread is told at its birth: all stacks are complete, nothing is asked.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need_ptrace
births=$VICTIMS/victim_births

# watch NAME THREADS [WAY]: fewer threads than are told of in a second
watch() {
  local name=$1 n=$2
  run 60 "$HEAPTOP" -e -b -x -d 3600 -- "$births" "${@:2}"
  is "$name: ends with its own code" "$status" 7
  [ "$status" = 7 ] || diag_file "$tmp/err"
  is "$name: each thread's calls are counted" \
    "$(sites "$tmp/out" site alloc_blocks free_blocks | awk -F '\t' '$1 == "deep" { print $2, $3 }')" "$((5 * n)) $((5 * n))"
  is "$name: no stack is incomplete" "$(header "$tmp/out" stacks_incomplete)" ""
  is "$name: no thread is without a slot" "$(header "$tmp/out" untracked)" 0
}
watch "stacks of their own" 100
watch "the same stack again and again" 150 again
watch "under a filter that kills for what only an agent calls" 150 kill
done_testing
