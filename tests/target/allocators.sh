#!/usr/bin/env bash
# Other allocators, preloaded and linked in, and such as only the user can name: each block counts, and once. C++'s
# operators new and delete in all their forms, exceptions through them included. What the victims print
# is what is shown.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need python3 g++ gcc nm objcopy strip
need_ptrace
src=$abs_top_srcdir/tests/victims
lib=$abs_top_srcdir/tests/lib
flags="-g -O1 -Wall -Wextra -Werror -fno-builtin -fno-inline -fno-ipa-icf -fno-optimize-sibling-calls"

compile() { # NAME COMPILER SOURCE ARGUMENT...
  local name=$1 compiler=$2 source=$3
  shift 3
  # shellcheck disable=SC2086 # words
  "$compiler" $flags -o "$tmp/$name" "$source" "$@" >"$tmp/compile.log" 2>&1 && return
  diag_file "$tmp/compile.log"
  fail "$name compiles"
  return 1
}

# A figure lies beyond three standard errors once in 300 times by chance, and there are more than
# 100 here; twice in a row isn't chance.
RATE=2048
options=()
command=()
watched() { run 60 "$HEAPTOP" "$@" "${options[@]}" -b -x -- "${command[@]}"; }
estimated() {
  watched -r $RATE
  [ "$status" = 3 ] && python3 "$lib/allocators.py" "$tmp/truth" "$tmp/out" $RATE
}
estimated_twice() { estimated || { echo "# once more"; estimated; }; }
# right LABEL [OPTION]... -- COMMAND...: exact and sampled, and it ends as it does alone.
right() {
  local label=$1
  shift
  options=()
  while [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  shift
  command=("$@")
  watched -e
  is "$label: exit code" "$status" 3
  diag_file "$tmp/err"
  is "$label: nothing dropped" "$(header "$tmp/out" dropped)" 0
  ok "$label, exact: every figure equal" python3 "$lib/allocators.py" "$tmp/truth" "$tmp/out"
  [ $sample = no ] || ok "$label, sampled: within three standard errors" estimated_twice
}
sample=yes

library() { PATH=$PATH:/sbin:/usr/sbin ldconfig -p | sed -n "s/.*$1.* => //p" | head -n 1; }
archive() {
  local path
  path=$(g++ -print-file-name="$1")
  [ "$path" != "$1" ] && echo "$path"
}

# ---- C++, each allocator preloaded ----
compile new.o g++ "$src/victim_new.cc" -std=gnu++17 -c || done_testing
compile new g++ "$tmp/new.o" && {
  right "the C++ library's" -- "$tmp/new" "$tmp/truth"
  for name in libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2; do
    path=$(library "$name")
    [ -n "$path" ] || { skip "$name" "not installed"; continue; }
    # mimalloc as Debian builds it aborts where it should throw
    extra=()
    [ "$name" != libmimalloc.so.2 ] || extra=(none-fails)
    right "$name preloaded" -- env "LD_PRELOAD=$path" "$tmp/new" "$tmp/truth" "${extra[@]}"
  done
}

# ---- the same linked in; what is sampled is the same then ----
sample=no
for name in libjemalloc.a libtcmalloc_minimal.a; do
  path=$(archive "$name") || { skip "$name" "not installed"; continue; }
  compile linked g++ "$tmp/new.o" "$path" -lpthread &&
    right "$name linked in" -- "$tmp/linked" "$tmp/truth"
done
if archive libmimalloc.so >"$tmp/found"; then
  compile linked g++ "$tmp/new.o" -Wl,--no-as-needed -lmimalloc &&
    right "libmimalloc linked" -- "$tmp/linked" "$tmp/truth" none-fails
else
  skip "libmimalloc linked" "not installed"
fi
compile static g++ "$tmp/new.o" -static && right "a static C++ program" -- "$tmp/static" "$tmp/truth"

# ---- as in Rust programs ----
sample=yes
if path=$(archive libjemalloc_pic.a); then
  nm -g --defined-only "$path" 2>/dev/null | awk 'NF == 3 { print $3, "_rjem_" $3 }' | sort -u >"$tmp/names"
  objcopy --redefine-syms="$tmp/names" "$path" "$tmp/librjem.a"
  compile rjem gcc "$src/victim_rjem.c" "$tmp/librjem.a" -lpthread -ldl -lm -lstdc++ &&
    right "jemalloc with the prefix _rjem_" -- "$tmp/rjem" "$tmp/truth"
else
  skip "jemalloc with a prefix" "not installed"
fi

# ---- what the user names ----
compile pool gcc "$src/victim_pool.c" && {
  right "named by symbol" --alloc='pool_get(size=2)' --free='pool_put(ptr=2)' \
    --realloc='pool_resize(ptr=2, size=3)' --alloc='make(out=2,size=3)' \
    --alloc='slab_new(count=1,size=2,int)' --alloc='pool!object_new(bytes=640)' -- "$tmp/pool" "$tmp/truth"

  # a stripped static program: by address
  compile stripped gcc "$src/victim_pool.c" -static -no-pie && {
    named=(--alloc='pool_get(size=2)' --free='pool_put(ptr=2)' --realloc='pool_resize(ptr=2,size=3)'
      --alloc='make(out=2,size=3)' --alloc='slab_new(count=1,size=2,int)' --alloc='object_new(bytes=640)')
    sample=no
    right "the same, static" "${named[@]}" -- "$tmp/stripped" "$tmp/truth"
    # its functions will have no names: the sums of all there is
    figures() { for key in alloc_blocks alloc_bytes live_blocks live_bytes; do header "$tmp/out" $key; done; }
    watched -e
    wanted=$(figures)
    at() { nm "$tmp/stripped" | sed -n "s/^0*\([0-9a-f]*\) . $1\$/0x\1/p" | head -n 1; }
    options=(--alloc="$(at pool_get)(size=2)" --free="$(at pool_put)(ptr=2)"
      --realloc="$(at pool_resize)(ptr=2,size=3)" --alloc="stripped+$(at make)(out=2,size=3)"
      --alloc="$(at slab_new)(count=1,size=2,int)" --alloc="$(at object_new)(bytes=640)"
      --alloc="$(at malloc)(size=1)" --alloc="$(at calloc)(count=1,size=2)"
      --free="$(at free)(ptr=1)" --realloc="$(at realloc)(ptr=1,size=2)")
    strip -s "$tmp/stripped"
    watched -e
    is "a stripped static program by addresses: exit code" "$status" 3
    diag_file "$tmp/err"
    is "... has the same figures" "$(figures)" "$wanted"
  }

  run 60 "$HEAPTOP" -e --alloc='no_such_function(size=1)' -b -x -- "$tmp/pool" "$tmp/truth"
  is "a name nobody has: the program runs all the same" "$status" 3
  like "... and it is said" "$(header "$tmp/out" not_hooked)" "no_such_function.*no module that is loaded has it"
}

refused() { # OPTION MESSAGE
  run 20 "$HEAPTOP" -b "$1" -- true
  is "$1: usage error" "$status" 2
  like "$1: says what is wrong" "$(head -n 1 "$tmp/err")" "$2"
  is "$1: in one line" "$(grep -c heaptop: "$tmp/err")" 1
}
refused --alloc=x 'write it as FUNCTION\(size=N\)'
refused '--alloc=x(size=7)' 'from 1 to 6'
refused '--alloc=x(ptr=1,size=2)' 'ptr is for'
refused '--free=x()' 'ptr=N must say'
refused '--realloc=x(size=1)' 'old block'
refused '--alloc=x(siz=1)' "'siz' is none of"
refused '--alloc=m+0xzz(size=1)' 'no offset'
refused --preset=nobody "no preset 'nobody'"

# ---- presets ----
mkdir -p "$XDG_CONFIG_HOME/heaptop"
cp -r "$abs_top_srcdir/presets" "$XDG_CONFIG_HOME/heaptop/presets"
echo 'alloc=pool_get(size=two)' >"$XDG_CONFIG_HOME/heaptop/presets/broken"
refused --preset=broken 'broken, line 1: .*from 1 to 6'
cat >"$tmp/objects.py" <<'END'
import ctypes, os
get = ctypes.pythonapi.PyObject_Malloc
get.restype, get.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
put = ctypes.pythonapi.PyObject_Free
put.restype, put.argtypes = None, [ctypes.c_void_p]
# those beyond 512 bytes come from malloc
blocks = [get(777) for i in range(1000)] + [get(333) for i in range(500)]
for block in blocks[:400]: put(block)
os._exit(3)
END
if /usr/bin/python3 -c 'import ctypes' 2>/dev/null; then
  run 60 "$HEAPTOP" -e --preset=cpython -b -x -- /usr/bin/python3 "$tmp/objects.py"
  is "CPython's objects: exit code" "$status" 3
  sites "$tmp/out" alloc_blocks alloc_bytes live_blocks live_bytes >"$tmp/rows"
  ok "... as many as the script gets and frees" grep -qx $'1500\t943500\t1100\t632700' "$tmp/rows"
else
  skip "CPython's objects" "no python3 with ctypes"
fi
done_testing
