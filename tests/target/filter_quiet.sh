#!/usr/bin/env bash
# A program that sets a seccomp filter when it has been there for a while, but has done next to nothing: a server whose
# first client comes, or any program on a busy machine. No time of ours tells when that will be.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need_ptrace
for way in quiet forked; do
  for rate in -e '-r 1K'; do
    # shellcheck disable=SC2086 # an option is two words
    run 120 sh -c 'sleep 3 | exec "$@"' sh "$HEAPTOP" -q $rate -b -d 3600 --io=inherit -- "$VICTIMS/victim_filter" "$way"
    is "$way, $rate: its filter isn't run into" "$status" 0
    diag_file "$tmp/err"
    ok "$way, $rate: something was recorded" test "$(header "$tmp/out" alloc_blocks)" -gt 0
  done
done
done_testing
