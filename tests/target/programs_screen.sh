#!/usr/bin/env bash
# Real programs behind the screen, launched and attached to, and attached to in batch: their output
# and exit code are those without heaptop, function names show, and a program that was let go has
# its own text again, which heaptop says, too.
#
# Nothing here depends on how fast anything is. What is attached to reads three gates, fifos that it
# can't get past before the test opens them: "ready" when it has begun, "work" once heaptop watches, "end"
# after heaptop has left. For the run that is compared with, and when launched, they are empty files.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
. "${abs_top_srcdir:-.}/tests/lib/onscreen.sh"
need python3
need_ptrace

# only a launched server would outlive heaptop and the test
on_exit() { [ -S "$tmp/redis.sock" ] && sh "$tmp/shutdown" 2>/dev/null; }
# a machine with much else to do takes long; who waits for a marker loses nothing by patience
patience=120
gates=$tmp/gates
mkdir "$gates"
gates_off() { rm -f "$gates"/*; touch "$gates/ready" "$gates/work" "$gates/end"; }
gates_on() { rm -f "$gates"/*; mkfifo "$gates/ready" "$gates/work" "$gates/end"; }
# Opening to write waits for whoever opens to read. gate_opener NAME: as a command.
gate_opener() { echo "timeout $patience sh -c ': >$gates/$1'"; }
open_gate() { sh -c "$(gate_opener "$1")"; }

# shows FUNCTION: $filter leaves the stacks with such a function, from the first frame on; $show are the
# actions after which one is on the screen, whole. The first row there is has the only ">": names come
# in when they may. In the pattern the first letter is a set, or the filter's own text would do.
shows() {
  filter=--filter=[${1:0:1}]${1:1}
  show=(--expect '>' --send x --expect STACK --send x --expect "$1" --send '\e')
}

# launched NAME CODE SHOWN COMMAND...: behind the screen; its output, to a file, is that of the run alone.
# SHOWN: the beginning of a function name.
launched() {
  local name=$1 code=$2 shown=$3
  shift 3
  shows "$shown"
  gates_off
  timeout $patience "$@" >"$tmp/$name.want" 2>/dev/null </dev/null
  is "$name alone: exit code" "$?" "$code"
  on_screen "$name launched behind the screen" --size 140x60 --stdin /dev/null --stdout "$tmp/$name.out" \
    --expect 'exited' "${show[@]}" --send q \
    --wait --status "$code" --check-screen --check-restored -- "$HEAPTOP" -e "$filter" -- "$@"
  ok "$name launched behind the screen: its output" cmp "$tmp/$name.want" "$tmp/$name.out"
}

# begin NAME COMMAND...: it waits at the gate "work".
begin() {
  local name=$1
  shift
  gates_on
  start "$tmp/$name.out" sh -c 'exec "$@" 2>/dev/null' sh "$@"
  ok "$name: has begun" open_gate ready
}
# let_go NAME CODE: heaptop has left it; it does the rest.
let_go() {
  ok "$1: goes on" open_gate end
  finish "$started" $patience
  is "$1: exit code" "$status" "$2"
}

# attached NAME CODE SHOWN COMMAND...: in batch, then behind the screen. After launched.
named() { sites "$tmp/frames" site | grep -Eqv '^$|\+0x[0-9a-f]+$'; }
attached() {
  local name=$1 code=$2 shown=$3 watched
  shift 3
  shows "$shown"

  begin "$name in batch" "$@"
  watched=$started
  start "$tmp/frames" "$HEAPTOP" -e -b -d 0.2 -p "$watched"
  heaptop=$started
  ok "$name in batch: watched" wait_for "$tmp/frames" '^# command: ' $patience
  ok "$name in batch: works" open_gate work
  ok "$name in batch: function names" until_true $patience named
  kill -INT "$heaptop"
  finish "$heaptop" $patience
  is "$name in batch: heaptop's exit code" "$status" 0
  ok "$name in batch: heaptop found its code identical" grep -q 'its code is identical' "$tmp/frames"
  started=$watched
  let_go "$name in batch" "$code"
  ok "$name in batch: its output" cmp "$tmp/$name.want" "$tmp/$name in batch.out"

  begin "$name on screen" "$@"
  on_screen "$name attached behind the screen" --size 140x60 --expect 'since attach' \
    --exec "$(gate_opener work)" "${show[@]}" --send q \
    --wait --status 0 --expect 'its code is identical' --check-screen --check-restored -- \
    "$HEAPTOP" -e "$filter" -d 0.2 -p "$started"
  ok "$name on screen: has its own text" text_intact "$started"
  let_go "$name on screen" "$code"
  ok "$name on screen: its output" cmp "$tmp/$name.want" "$tmp/$name on screen.out"
}

# ---- sqlite3 ----
if have sqlite3; then
  rows="with recursive n(i) as (select 1 union all select i + 1 from n where i < 10000)
    select count(*), sum(length(hex(i * 7919))), group_concat(i % 97) from n group by i % 50;"
  sqlite=(sqlite3 -batch :memory: ".read $gates/ready" ".read $gates/work" "$rows" ".read $gates/end" "select count(*) from t;")
  launched sqlite3 1 sqlite3_ "${sqlite[@]}"
  attached sqlite3 1 sqlite3_ "${sqlite[@]}"
else
  skip sqlite3 "no sqlite3"
fi

# ---- node ----
if have node; then
  script='
    const fs = require("fs"), s = [];
    function gate(name) { fs.readFileSync(process.argv[1] + "/" + name); }
    gate("ready"); gate("work");
    for (let i = 0; i < 5000; i++) s.push(Buffer.alloc(300 + i % 7, i & 255).toString("hex"));
    gate("end");
    console.log(s.length + " " + s[77].length); process.exitCode = 5'
  launched node 5 node:: node -e "$script" "$gates"
  attached node 5 node:: node -e "$script" "$gates"
else
  skip node "no node"
fi

# ---- cc1plus ----
if have g++; then
  multiarch=$(g++ -print-multiarch)
  cat >"$tmp/templates.cc" <<'END'
#include "ready"
#include "work"
#include <string>
template <int N> struct chain : chain<N - 1> { std::string m[N % 3 + 1]; };
template <> struct chain<0> {};
#include "end"
int count(const std::string &v)
{
	chain<20> c;
	return static_cast<int>(v.size() + sizeof(c));
}
END
  cc1plus=("$(g++ -print-prog-name=cc1plus)" -quiet ${multiarch:+-imultiarch "$multiarch"} -O1 -D_GNU_SOURCE
    -I "$gates" "$tmp/templates.cc" -o /proc/self/fd/1)
  launched cc1plus 0 cpp_ "${cc1plus[@]}"
  attached cc1plus 0 cpp_ "${cc1plus[@]}"
else
  skip cc1plus "no g++"
fi

# ---- git ----
if have git; then
  export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_PAGER=cat
  git init -q "$tmp/repo"
  for ((i = 1; i <= 50; i++)); do
    printf 'commit refs/heads/all\ncommitter A <a@example.org> %d +0000\n' $((1600000000 + i))
    printf 'data <<END\ncommit %d\n\nEND\n' "$i"
    printf 'M 644 inline dir%d/file%d\ndata <<END\n' $((i % 7)) $((i % 31))
    seq "$i" $((i + 40))
    echo END
  done | git -C "$tmp/repo" fast-import --quiet
  # it reads no gate itself: what it is fed comes through them, after it has answered and so is past its start
  git -C "$tmp/repo" rev-list --objects all | cut -d ' ' -f 1 >"$tmp/objects"
  feed='exec git -C "$1/repo" cat-file --batch < <(
    echo all
    while [ -e /proc/$$ ] && ! [ -s /proc/$$/fd/1 ]; do sleep 0.05; done
    timeout 1000 cat "$2/ready" "$2/work" "$1/objects" "$2/end"
    echo all)'
  launched git 0 inflateInit bash -c "$feed" git "$tmp" "$gates"
  attached git 0 inflateInit bash -c "$feed" git "$tmp" "$gates"
else
  skip git "no git"
fi

# ---- redis-server: a client's values are the answer ----
server=
if have redis-server; then
  server=$(command -v redis-server)
elif have redis-check-rdb; then
  # Debian's tools package has the server under this name; it goes by its first argument
  ln -s "$(command -v redis-check-rdb)" "$tmp/redis-server"
  server=$tmp/redis-server
fi
if [ -n "$server" ] && have redis-cli; then
  cat >"$tmp/client" <<END
until redis-cli -s $tmp/redis.sock ping >/dev/null 2>&1; do sleep 0.05; done
for i in \$(seq 2000); do echo "rpush list\$((i % 17)) value-\$i"; done | redis-cli -s $tmp/redis.sock >/dev/null
for i in \$(seq 0 16); do redis-cli -s $tmp/redis.sock lrange list\$i 0 -1; done >$tmp/redis.values
END
  echo "redis-cli -s $tmp/redis.sock shutdown nosave; :" >"$tmp/shutdown"
  shows processCommand
  on_screen "redis launched behind the screen" --size 140x60 --expect 'heaptop' --exec "timeout $patience sh $tmp/client" \
    "${show[@]}" --exec "sh $tmp/shutdown" --expect 'exited' --send q \
    --wait --status 0 --check-screen --check-restored -- "$HEAPTOP" -e "$filter" -- \
    "$server" --port 0 --unixsocket "$tmp/redis.sock" --save '' --appendonly no --daemonize no
  want() { for ((k = 0; k < 17; k++)); do for ((i = k ? k : 17; i <= 2000; i += 17)); do echo "value-$i"; done; done; }
  ok "redis launched behind the screen: its values" cmp <(want) "$tmp/redis.values"
else
  skip redis "no redis-server or no redis-cli"
fi
done_testing
