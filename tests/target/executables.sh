#!/usr/bin/env bash
# Executables of every kind, launched and attached: every figure of every site equals what the program
# knows it did, and every stack is complete. Names, files that aren't there any more, other namespaces,
# little memory.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need gcc musl-gcc python3 unshare prlimit
need_ptrace
src=$abs_top_srcdir/tests/victims
flags=(-std=gnu11 -D_GNU_SOURCE -g -O1 -fno-builtin -fno-inline -fno-ipa-icf -fno-optimize-sibling-calls)
for musl in /usr/lib/*-linux-musl /usr/lib/musl/lib /usr/local/musl/lib; do
  [ -f "$musl/rcrt1.o" ] && break
done
mkdir "$tmp/bin" && cd "$tmp/bin" || exit 99
mkfifo "$tmp/in"
exec 7<>"$tmp/in"

# build NAME COMPILER FLAG...: bin/NAME from kinds.c
build() {
  local name=$1 cc=$2
  shift 2
  "$cc" "${flags[@]}" -o "$name" "$src/kinds.c" "$@" -pthread 2>"$tmp/cc" && return
  fail "$name is built"
  diag_file "$tmp/cc"
  return 1
}

# right FRAMES TRUTH: the figures of its sites, and no stack that isn't complete
right() {
  local incomplete
  sort "$2" >"$tmp/want"
  sites "$1" site alloc_blocks alloc_bytes live_blocks live_bytes | grep ^site_ | sort >"$tmp/got"
  incomplete=$(header "$1" stacks_incomplete)
  [ -s "$tmp/want" ] && [ -z "$incomplete" ] && cmp -s "$tmp/want" "$tmp/got" && return
  diag "incomplete stacks: $incomplete"
  diff "$tmp/want" "$tmp/got" | sed 's/^/# /'
  return 1
}
launched() {
  run 60 "$HEAPTOP" -e -b -x -- "$@" "$tmp/truth"
  [ "$status" = 7 ] && return
  diag "left with $status"
  diag_file "$tmp/err"
  return 1
}
# victim COMMAND...: waiting for a line, in $pid
victim() {
  : >"$tmp/said"
  "$@" "$tmp/truth" wait <"$tmp/in" >"$tmp/said" 2>&1 &
  victim=$!
  tap_pids+=("$victim")
  wait_for "$tmp/said" '^ready' && pid=$victim
}
# attached [PREFIX...]: heaptop to $pid, the work, and their ends
attached() {
  : >"$tmp/out"
  timeout -k 5 60 "$@" "$HEAPTOP" -e -b -d 0.2 -p "$pid" >"$tmp/out" 2>"$tmp/err" </dev/null &
  watcher=$!
  tap_pids+=("$watcher")
  until_true 30 in_or_gone || return 1
  echo >&7
  wait_for "$tmp/said" '^done' && echo >&7
  wait "$victim"
  local code=$?
  wait "$watcher"
  status=$?
  [ "$code/$status" = 7/0 ] && return
  diag "program: $code, heaptop: $status"
  diag_file "$tmp/err"
  return 1
}
in_or_gone() { grep -q '^# command' "$tmp/out" || ! kill -0 "$watcher" 2>/dev/null; }
# Refused in one line, and the program goes on: refused ERE
refused() {
  run 30 "$HEAPTOP" -e -b -x -p "$pid"
  isnt "$1: refused" "$status" 0
  is "$1: in one line" "$(wc -l <"$tmp/err")" 1
  like "$1: that says why" "$(cat "$tmp/err")" "$2"
  ended_well "$1: the program goes on"
}
ended_well() {
  echo >&7
  wait_for "$tmp/said" '^done' && echo >&7
  wait "$victim"
  is "$1" "$?" 7
}

# ---- kinds ----
musl_pie() {
  musl-gcc "${flags[@]}" -fPIE -c -o "$1.o" "$src/kinds.c" && ld -static -pie --no-dynamic-linker -z text \
    -o "$1" "$musl/rcrt1.o" "$musl/crti.o" "$1.o" -L"$musl" -lc "$(gcc -print-libgcc-file-name)" "$musl/crtn.o"
}
build glibc gcc -Wl,-z,now,-z,relro -fcf-protection=full
build glibc-lazy gcc -Wl,-z,lazy -Wl,-z,noseparate-code
build glibc-static gcc -static
build glibc-static-pie gcc -static-pie
build prelinked gcc -no-pie -Wl,-Ttext-segment=0x10000000
build musl musl-gcc
build musl-static musl-gcc -static
ok "musl-static-pie is built" musl_pie musl-static-pie
# functions and their symbols by the hundred thousand, and 100 MB of text
python3 - >huge.s <<'END'
print('.text')
for i in range(200000):
    print(f'.globl filler_function_with_a_long_name_{i}\n.type filler_function_with_a_long_name_{i},@function\n'
          f'filler_function_with_a_long_name_{i}: ret\n.size filler_function_with_a_long_name_{i},.-filler_function_with_a_long_name_{i}')
print('.zero 104857600, 0x90\n.section .note.GNU-stack')
END
build huge gcc huge.s
build huge-static gcc -static huge.s
rm -f huge.s
kinds=(glibc glibc-lazy glibc-static glibc-static-pie prelinked musl musl-static musl-static-pie huge huge-static)
# with glibc and musl those are compared that are stripped, below
quick && kinds=(glibc glibc-static musl musl-static huge)
for kind in "${kinds[@]}"; do
  [ -x "$kind" ] || continue
  rm -f "$tmp/truth"
  ok "$kind, launched: leaves with the program's code" launched "./$kind"
  ok "$kind, launched: figures and stacks" right "$tmp/out" "$tmp/truth"
  header "$tmp/out" alloc_blocks >"$tmp/blocks.$kind"
  rm -f "$tmp/truth"
  ok "$kind: starts" victim "./$kind"
  ok "$kind, attached: to its end" attached
  ok "$kind, attached: figures and stacks" right "$tmp/out" "$tmp/truth"
done

# ---- calls made by programs that lend no C library's code for them, heaptop killed in the middle ----
for cc in gcc musl-gcc; do
  mkdir "$tmp/$cc"
  for name in victim_threads victim_ends; do
    "$cc" "${flags[@]}" -idirafter /usr/include -idirafter "/usr/include/$(gcc -print-multiarch)" -static \
      -o "$tmp/$cc/$name" "$src/$name.c" -pthread 2>"$tmp/cc" || diag_file "$tmp/cc"
  done
  VICTIMS=$tmp/$cc ROUNDS=9 run 120 "$abs_top_builddir/tests/target/test_remote_kill"
  is "static by $cc: heaptop's death harms nobody" "$status" 0
  grep -E '^(not ok|#)' "$tmp/out" | sed 's/^/# /'
done

# ---- stripped ----
for kind in glibc-static musl-static; do
  cp "$kind" stripped
  objcopy --only-keep-debug stripped stripped.debug && strip stripped
  run 20 "$HEAPTOP" -e -b -x -- ./stripped "$tmp/truth"
  is "$kind, stripped: not launched" "$status" 125
  like "$kind, stripped: says why" "$(cat "$tmp/err")" '^heaptop: [^'$'\n'']* is stripped of its symbols'
  ok "$kind, stripped: starts" victim ./stripped
  refused "$kind, stripped" 'is stripped of its symbols'
  mkdir -p .debug && mv stripped.debug .debug && objcopy --add-gnu-debuglink=.debug/stripped.debug stripped
  ok "$kind, a debug file beside it: launched" launched ./stripped
  ok "$kind, a debug file beside it: figures and stacks" right "$tmp/out" "$tmp/truth"
  rm -rf .debug
done
for kind in glibc musl; do
  strip -o stripped "$kind"
  ok "$kind, stripped: launched" launched ./stripped
  is "$kind, stripped: as many blocks as with symbols" "$(header "$tmp/out" alloc_blocks)" "$(cat "$tmp/blocks.$kind")"
  is "$kind, stripped: complete stacks" "$(header "$tmp/out" stacks_incomplete)" ''
done

# ---- names, and files that are no longer there ----
odd=$'a b\nc'
cp glibc "$odd"
ok "blank and newline in its name: launched" launched "./$odd"
ok "blank and newline in its name: figures and stacks" right "$tmp/out" "$tmp/truth"
# other FILE: in place of FILE something with the same symbols elsewhere
other() { rm -f "$1" && cp glibc-static-pie "$1"; }
gcc "${flags[@]}" -shared -fPIC -Dmain=kinds_main -o libkinds.so "$src/kinds.c"
echo 'int kinds_main(int, char **); int main(int argc, char **argv) { return kinds_main(argc, argv); }' >uses.c
gcc -o uses uses.c -L. -lkinds -Wl,-rpath,"\$ORIGIN"
cp glibc deleted && cp glibc replaced
for case in "odd:$odd:" "deleted:deleted:rm -f deleted" "replaced:replaced:other replaced" \
  "library deleted:uses:mv libkinds.so kept" "library replaced:uses:other libkinds.so"; do
  IFS=: read -r -d '' name file change <<<"$case"
  ok "$name: starts" victim "./$file"
  ${change%$'\n'}
  ok "$name, attached: to its end" attached
  ok "$name, attached: figures and stacks" right "$tmp/out" "$tmp/truth"
  [ -e kept ] && mv kept libkinds.so
done

# ---- in other namespaces ----
mkdir -p "root$tmp"
cp glibc root/
# shellcheck disable=SC2046 # one word a library
cp --parents $(ldd glibc | grep -o '/[^ )]*') root/
ok "another root: starts" victim unshare -m chroot root /glibc
ok "another root, attached: to its end" attached
cp "root$tmp/truth" "$tmp/truth"
ok "another root, attached: figures and stacks" right "$tmp/out" "$tmp/truth"
ok "another PID namespace: starts" victim unshare -pf ./musl-static
pid=$(pgrep -P "$victim")
ok "another PID namespace, attached: to its end" attached
ok "another PID namespace, attached: figures and stacks" right "$tmp/out" "$tmp/truth"

# ---- not much memory ----
ok "little address space: starts" victim prlimit --as=60000000 ./musl-static
refused "little address space" 'only [0-9]+ MB more of address space .* prlimit'
ok "somewhat more: starts" victim prlimit --as=250000000 ./glibc-static
ok "somewhat more, attached: to its end" attached
ok "somewhat more, attached: figures and stacks" right "$tmp/out" "$tmp/truth"
done_testing
