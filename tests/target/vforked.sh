#!/usr/bin/env bash
# Children that their parent waits for as after vfork, but that have memory of their own: each is a process with a
# heap of its own, and the parent's doesn't have theirs.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need_ptrace
run 60 "$HEAPTOP" -e -b -x -d 3600 --process=all -- "$VICTIMS/victim_vforked"
is "it ends with its own code" "$status" 7
diag_file "$tmp/err"
# of all frames: a site's rows, one a process
rows() { awk -F '\t' -v site="$1" '!/^#/ { for (i = 1; i <= NF; i++) { if ($i == "alloc_blocks") n = i; if ($i == "site") s = i } if (s && $s == site) print $n }' "$tmp/out" | sort | uniq -c | awk '{ print $1 "x" $2 }'; }
is "three children, their blocks in each" "$(rows child_site)" 3x30
is "the parent's once" "$(rows parent_site)" 1x10
done_testing
