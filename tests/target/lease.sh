#!/usr/bin/env bash
# On a machine that gives heaptop little time, placing hooks may take longer than a lease lasts, and looking up
# symbols does so anywhere. So a program is let go with a new lease, and of several none is hooked before all look-ups
# are done. strace's view of heaptop: the order in which it does things, which no load changes.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need strace
need_ptrace
traced=process_vm_writev,pwrite64,pread64,ptrace
pids=()
for i in 1 2; do
  start "$tmp/said$i" "$VICTIMS/victim_crowd" 1 0
  pids+=("$started")
  ok "program $i is there" wait_for "$tmp/said$i" '^ready'
done
# watch PID...: heaptop's calls in $tmp/trace. A jump is a write of five bytes, a lease one of eight.
watch() {
  run 100 strace -f -o "$tmp/raw" -e "trace=$traced" "$HEAPTOP" -e -b -n 1 -d 0.2 -p "$1" ${2:+-p "$2"}
  is "$# watched under strace" "$status" 0
  diag_file "$tmp/err" 8
  sed -nE '/resumed>/d; s/.* pwrite64\(.*, 5, [0-9a-fx]+.*/jump/p; s/.* pread64\(.*/look/p
    s/.* process_vm_writev\(.*iov_len=8\}\].*/lease/p; s/.* ptrace\(PTRACE_DETACH.*/go/p' "$tmp/raw" >"$tmp/trace"
}

watch "${pids[0]}"
hooks=$(header "$tmp/out" hooks)
ok "it has hooks" test "${hooks:-0}" -gt 0
is "between the last jump and letting go lies a lease" \
  "$(awk -v hooks="$hooks" '$1 == "jump" { n++ } n == hooks && $1 != "jump" { print; if ($1 == "go") exit }' \
    "$tmp/trace" | head -n 2 | tr '\n' ' ')" "lease go "

watch "${pids[0]}" "${pids[1]}"
is "all that is looked up is looked up before the first jump" \
  "$(awk -v hooks="$hooks" '$1 == "jump" && ++n == 2 * hooks { exit } n && $1 == "look" { print }' "$tmp/trace" |
    wc -l)" 0
done_testing
