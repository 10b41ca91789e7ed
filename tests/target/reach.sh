#!/usr/bin/env bash
# The reach table as a test: every kind of target, launched and attached, exact and sampled; a line of TAP
# is a kind. `make check-reach` prints it as a table.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need python3 gcc
need_ptrace
kinds=()
quick && kinds=(musl fork jemalloc coroutine)
python3 "$abs_top_srcdir/tests/reach/reach.py" --tap "${kinds[@]}"
exit
