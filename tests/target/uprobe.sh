#!/usr/bin/env bash
# The second probe: nothing is placed in the program, and the figures are the same. Both ways that the kernel offers,
# allocators and C libraries, a program that somebody else traces, rounds and kills, rights.
#
# HEAPTOP_ROUNDS=N: so many rounds and half as many kills; 100 and 50 if it isn't set, with HEAPTOP_QUICK 10 and 5.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
. "$abs_top_srcdir/tests/lib/inkernel.sh"
need python3 gcc strace bpftool setpriv
need_ptrace
grep -q "define WITH_BPF" "$abs_top_builddir/config.h" || skip_all "built without BPF"
known=$VICTIMS/known
rounds=100
quick && rounds=10
rounds=${HEAPTOP_ROUNDS:-$rounds}
kills=$((rounds / 2))

# ---- figures ----
for way in uprobe uprobe-multi; do
  run 60 "$HEAPTOP" --probe=$way -r 1 -b -x -d 0.5 "$known" 1 0 "$tmp/truth"
  is "$way: leaves with 0" "$status" 0
  diag_file "$tmp/err"
  cp "$tmp/out" "$tmp/$way"
  ok "$way: every figure equals the truth" known_right "$tmp/truth" "$tmp/out"
  is "$way: nothing was dropped" "$(header "$tmp/out" dropped)" 0
  is "$way: every stack is complete" "$(header "$tmp/out" stacks_complete_pct)" 100.00
done
is "the best way is named" "$(header "$tmp/uprobe" probe)" "BPF session uprobes"
is "so is the other" "$(header "$tmp/uprobe-multi" probe)" "BPF uprobes at entries and returns (as asked, not BPF session uprobes)"
run 60 "$HEAPTOP" -e -b -x -d 0.5 "$known" 1 0 "$tmp/truth"
figures() { sites "$1" site alloc_blocks alloc_bytes live_blocks live_bytes free_blocks | sort; }
is "the agent has the same figures" "$(figures "$tmp/out")" "$(figures "$tmp/uprobe")"

runs=6
quick && runs=2
sampled() {
  rm -f "$tmp"/sample.*
  for ((i = 0; i < runs; i++)); do
    run 60 "$HEAPTOP" --probe=uprobe -r 4K -b -x -d 1 "$known" 4 4096 "$tmp/truth"
    [ "$status" = 0 ] && [ "$(header "$tmp/out" dropped)" = 0 ] || { diag "left with $status"; diag_file "$tmp/err"; return 1; }
    cp "$tmp/out" "$tmp/sample.$i"
  done
  python3 "$abs_top_srcdir/tests/lib/known.py" sampled "$tmp/truth" "$tmp"/sample.*
}
# as in known.sh: by chance a correct sampler fails in a few of a hundred runs, a biased one in all
sampled_twice() { sampled || { echo "# once more"; sampled; }; }
ok "-r 4K: estimates within three standard errors, the total unbiased" sampled_twice

# kinds of target: C libraries, allocators, children, threads, exceptions, modules that come later
kinds=('^glibc, static$' '^musl' 'forked child' 'execs it' 'preloaded' 'exceptions' 'loaded later' '1,000 threads'
  'another PID namespace')
quick && kinds=('^musl, static$' 'forked child')
reach --probe=uprobe "${kinds[@]}"

# ---- a program that is traced already ----
start "$tmp/traced" "$VICTIMS/checker" 2 0 1000 still
traced=$started
wait_for "$tmp/traced" '^ready'
start "$tmp/strace" strace -f -o /dev/null -p "$traced"
tracer=$started
is_traced() { grep -q '^TracerPid:[^0-9]*[1-9]' "/proc/$traced/status"; }
ok "a tracer is there" until_true 10 is_traced
run 30 "$HEAPTOP" -b -n 1 -p "$traced"
is "the agent can't be placed then" "$status" 1
run 30 "$HEAPTOP" --probe=uprobe -e -b -n 2 -d 0.3 -p "$traced"
is "uprobes can" "$status" 0
diag_file "$tmp/err"
isnt "and see what it does" "$(header "$tmp/out" alloc_blocks)" 0
ok "the tracer is still there" is_traced
kill -TERM "$tracer" 2>/dev/null
finish "$tracer" 10
kill -KILL "$traced"

# ---- rounds and kills; what the kernel holds ----
start "$tmp/checker" "$VICTIMS/checker" 16 0 100000 lively
pid=$started
alive() { kill -0 "$pid" 2>/dev/null; }
ok "the victim is at work" wait_for "$tmp/checker" '^ready'
note_before
fds=$(find "/proc/$pid/fd" -mindepth 1 | wc -l)
options=(-e '-r 512K' '-r 16K' '')
bad=0
for ((i = 0; i < rounds && bad < 3; i++)); do
  # shellcheck disable=SC2086 # an option is two words
  run 60 "$HEAPTOP" --probe=uprobe ${options[i % 4]} -b -n 1 -d 0.05 -p "$pid"
  [ "$status" = 0 ] && alive && continue
  bad=$((bad + 1))
  diag_file "$tmp/err" 5
done
is "$rounds rounds went well" "$bad" 0
note_new
ok "the kernel holds nothing of them" until_true 60 new_gone
for ((i = 0; i < kills; i++)); do
  # shellcheck disable=SC2086
  start "$tmp/killed" "$HEAPTOP" --probe=uprobe ${options[i % 4]} -b -n 9 -d 0.05 -p "$pid"
  read -r -t "0.$(printf %03d $((RANDOM % 400)))" < <(sleep 2)
  kill -KILL "$started" 2>/dev/null
  wait "$started" 2>/dev/null
  alive || break
done
is "the program survived $kills kills of heaptop" "$i" "$kills"
note_new
ok "the kernel holds nothing of that either" until_true 60 new_gone
ok "its text is its files'" text_intact "$pid"
is "it has no more descriptors" "$(find "/proc/$pid/fd" -mindepth 1 | wc -l)" "$fds"
kill -TERM "$pid"
finish "$pid" 60
is "the program ends by itself with 0" "$status" 0
like "its checks hold" "$(cat "$tmp/checker")" $'\nok [0-9]+ checks'
like "no call of it was interrupted" "$(cat "$tmp/checker")" $'\neintr 0'

# ---- rights ----
chmod 711 "$tmp"
mkdir "$tmp/bin" && cp "$HEAPTOP" "$known" "$tmp/bin" && chmod 755 "$tmp/bin"
plain=(setpriv --reuid=65534 --regid=65534 --clear-groups)
run 30 "${plain[@]}" "$tmp/bin/heaptop" --probe=uprobe -b -x "$tmp/bin/known" 1 0 /dev/null
is "without rights: 125" "$status" 125
is "in one line" "$(wc -l <"$tmp/err")" 1
like "that names them and the remedy" "$(cat "$tmp/err")" 'CAP_BPF and CAP_PERFMON.*setcap'
run 60 "${plain[@]}" --inh-caps=+bpf,+perfmon --ambient-caps=+bpf,+perfmon "$tmp/bin/heaptop" --probe=uprobe -r 1 -b -x \
  "$tmp/bin/known" 1 0 /dev/null
is "with these two alone: 0" "$status" 0
diag_file "$tmp/err"
is "and every call" "$(header "$tmp/out" alloc_blocks)" "$(header "$tmp/uprobe" alloc_blocks)"
start "$tmp/roots" "$VICTIMS/checker" 1 0 1000 still
wait_for "$tmp/roots" '^ready'
run 30 "${plain[@]}" --inh-caps=+bpf,+perfmon --ambient-caps=+bpf,+perfmon "$tmp/bin/heaptop" --probe=uprobe -b -n 1 -p "$started"
is "they don't open another user's process" "$status" 1
like "and heaptop says whose it is" "$(cat "$tmp/err")" 'owned by'

run 10 "$HEAPTOP" --probe=upprobe true
is "no such probe: a usage error" "$status" 2
run 10 "$HEAPTOP" --probe=uprobe --mmap true
is "mappings take the agent: a usage error" "$status" 2
done_testing
