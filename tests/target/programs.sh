#!/usr/bin/env bash
# Real programs, launched and attached, in batch and behind the screen: output and exit code are
# those without heaptop, sites have names, stacks reach main or the thread's start, and a program
# that was attached to goes on with its own text.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
. "${abs_top_srcdir:-.}/tests/lib/tmux.sh"
need python3
need_ptrace
on_exit() { tmux_stop; }

# program NAME CODE NAMED COMMAND...: launched. In the command @OUT@ is where its output goes: first
# standard output, which must be the same byte for byte; then a file, so that the frames have
# standard output for themselves.
program() {
  local name=$1 code=$2 least=$3 word plain=() filed=()
  shift 3
  for word in "$@"; do
    plain+=("${word//@OUT@//proc/self/fd/1}")
    filed+=("${word//@OUT@/$tmp/$name.out}")
  done
  timeout 60 "${plain[@]}" >"$tmp/$name.want" 2>"$tmp/$name.wanterr" </dev/null
  is "$name alone: exit code" "$?" "$code"

  run 120 "$HEAPTOP" -o "$tmp/$name.pb.gz" -- "${plain[@]}"
  is "$name launched: exit code" "$status" "$code"
  ok "$name launched: its output" cmp "$tmp/$name.want" "$tmp/out"
  ok "$name launched: a snapshot" test -s "$tmp/$name.pb.gz"

  run 120 "$HEAPTOP" -r 16K -b -x -d 1 -- "${filed[@]}"
  is "$name in batch: exit code" "$status" "$code"
  ok "$name in batch: its output" cmp "$tmp/$name.want" "$tmp/$name.out"
  diag_file "$tmp/err" 5
  quality "$name" "$tmp/out" "$least"
}

# quality NAME FRAME NAMED: what a frame says of itself. At least NAMED percent of the bytes belong to
# sites with a function name: 0 for programs that are stripped of all symbols but the exported ones,
# where module and offset must do.
quality() {
  local name=$1 frame=$2 least=$3 share named
  share=$(header "$frame" stacks_complete_pct)
  ok "$name: at least 98% of the stacks are complete (${share:-none}%)" \
    awk -v s="${share:-0}" 'BEGIN { exit !(s >= 98) }'
  last_frame "$frame" | grep '^# ' | grep -E 'stacks|ends|rate|overhead|dropped|events' | sed 's/^/#   /'
  named=$(sites "$frame" alloc_bytes site | awk -F '\t' '
    { all += $1 } $2 !~ /\+0x[0-9a-f]+$/ && $2 != "" { named += $1 } END { printf "%.0f", all ? 100 * named / all : 0 }')
  ok "$name: sites have function names ($named% of the bytes)" test "$named" -ge "$least"
  is "$name: each site has a name of some kind" "$(sites "$frame" site | grep -c '^$')" 0
}

# attached NAME PID [OPTION]...: two frames of a running program, its text afterwards.
attached() {
  local name=$1 pid=$2
  shift 2
  run 60 "$HEAPTOP" -b -n 2 -d 0.5 "$@" -p "$pid"
  is "$name attached: exit code" "$status" 0
  diag_file "$tmp/err" 5
  is "$name attached: two frames" "$(grep -c '^# command: ' "$tmp/out")" 2
  ok "$name attached: there are sites" test "$(sites "$tmp/out" site | wc -l)" -gt 0
  ok "$name attached: it goes on with its own text" text_intact "$pid"
}

# ---- known: the one with debug info of our own ----
run 60 "$HEAPTOP" -e -b -x "$VICTIMS/known" 1 0 "$tmp/truth"
like "file and line where there is debug info" \
  "$(sites "$tmp/out" site file line | grep '^site_cache_fill')" 'known\.c'$'\t[1-9][0-9]*$'

# ---- python3 ----
cat >"$tmp/work.py" <<'END'
import json, sys, threading
out = open(sys.argv[1], "w")
def work(n):
    return json.dumps([{"key%d" % (i * n): list(range(i % 50))} for i in range(3000)])
results = [None] * 4
def run(i):
    results[i] = len(work(i + 1))
threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print(results, file=out)
out.close()
sys.exit(3)
END
program python3 3 50 env PYTHONMALLOC=malloc python3 "$tmp/work.py" @OUT@
cat >"$tmp/loop.py" <<'END'
import sys, json
print("ready", flush=True)
keep = []
for i in range(10**9):
    keep.append(json.loads('{"a": [1, 2, 3, "%d"]}' % i))
    if len(keep) > 20000: keep = keep[10000:]
END
start "$tmp/loop" env PYTHONMALLOC=malloc python3 "$tmp/loop.py"
wait_for "$tmp/loop" ready
attached python3 "$started"
kill -KILL "$started"

# ---- sqlite3 ----
if have sqlite3; then
  program sqlite3 0 0 sqlite3 :memory: ".output @OUT@" \
    "with recursive n(i) as (select 1 union all select i + 1 from n where i < 30000)
     select count(*), sum(length(hex(i * 7919))), group_concat(i % 97) from n group by i % 50;" \
    "create table t(a, b); create index x on t(b);" \
    "insert into t select value, hex(value) from json_each('[' || replace(hex(zeroblob(9000)), '00', '1,') || '1]'); select count(*) from t;"
else
  skip sqlite3 "no sqlite3"
fi

# ---- git log on a repository made here ----
if have git; then
  export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_PAGER=cat
  git init -q "$tmp/repo"
  for ((i = 1; i <= 400; i++)); do
    printf 'commit refs/heads/all\ncommitter A <a@example.org> %d +0000\n' $((1600000000 + i))
    printf 'data <<END\ncommit %d\n\nEND\n' "$i"
    printf 'M 644 inline dir%d/file%d\ndata <<END\n' $((i % 7)) $((i % 31))
    seq "$i" $((i + 40))
    echo END
  done | git -C "$tmp/repo" fast-import --quiet
  program git 0 0 git -C "$tmp/repo" log --stat -p --output=@OUT@ all
else
  skip git "no git"
fi

# ---- cc1plus on templates ----
if have g++; then
  cc1plus=$(g++ -print-prog-name=cc1plus)
  multiarch=$(g++ -print-multiarch)
  cat >"$tmp/templates.cc" <<'END'
#include <map>
#include <string>
#include <vector>
#include <algorithm>
template <int N> struct chain : chain<N - 1> { std::map<int, std::string> m[N % 3 + 1]; };
template <> struct chain<0> {};
int count(std::vector<std::map<std::string, std::vector<int>>> &v)
{
	chain<60> c;
	std::sort(v.begin(), v.end(), [](auto &a, auto &b) { return a.size() < b.size(); });
	return static_cast<int>(v.size() + sizeof(c));
}
END
  program cc1plus 0 0 "$cc1plus" -quiet ${multiarch:+-imultiarch "$multiarch"} -O1 -D_GNU_SOURCE "$tmp/templates.cc" -o @OUT@
else
  skip cc1plus "no g++"
fi

# ---- node ----
if have node; then
  # after a second of its processor time: before, the agent asks the kernel nothing, and stacks of node's many new
  # threads are cut
  program node 5 50 node -e 'const used = () => { const u = process.cpuUsage(); return u.user + u.system };
    while (used() < 1.2e6);
    setTimeout(() => {
    const s = []; for (let i = 0; i < 20000; i++) s.push(Buffer.alloc(300 + i % 7, i & 255).toString("hex"));
    require("fs").writeFileSync(process.argv[1], s.length + " " + s[77].length + "\n"); process.exitCode = 5 }, 300)' @OUT@
else
  skip node "no node"
fi

# ---- redis-server under redis-benchmark ----
server=
if have redis-server; then
  server="redis-server"
elif have redis-check-rdb; then
  # Debian's tools package has the server under this name; it goes by its first argument
  ln -s "$(command -v redis-check-rdb)" "$tmp/redis-server"
  server=$tmp/redis-server
fi
if [ -n "$server" ] && have redis-benchmark; then
  socket=$tmp/redis.sock
  config=(--port 0 --unixsocket "$socket" --save '' --appendonly no --daemonize no)
  answers() { [ "$(redis-cli -s "$socket" ping 2>/dev/null)" = PONG ]; }
  load() { timeout 60 redis-benchmark -s "$socket" -q -n "$1" -c 10 -d 100 -r 10000 -t set,get,lpush,hset >>"$tmp/bench" 2>&1; }

  start "$tmp/redis.batch" "$HEAPTOP" -r 16K -b -x -d 1 -- "$server" "${config[@]}" --logfile "$tmp/redis.log"
  heaptop=$started
  ok "redis launched: answers" until_true 20 answers
  ok "redis launched: the benchmark runs" load 5000
  redis-cli -s "$socket" shutdown nosave >/dev/null 2>&1
  finish "$heaptop" 30
  is "redis launched: exit code" "$status" 0
  quality redis "$tmp/redis.batch" 50

  start "$tmp/redis.out" "$server" "${config[@]}"
  redis=$started
  ok "redis alone: answers" until_true 20 answers
  : >"$tmp/bench"
  (while load 20000; do :; done) &
  tap_pids+=($!)
  wait_for "$tmp/bench" SET
  attached redis "$redis"
  attached redis-exact "$redis" -e
  ok "redis attached: still answers" answers
  redis-cli -s "$socket" shutdown nosave >/dev/null 2>&1
  finish "$redis" 20
  is "redis attached: ends with 0" "$status" 0
else
  skip redis "no redis-server or no redis-benchmark"
fi

# ---- other allocators, preloaded: the same program, the same figures ----
library() { PATH=$PATH:/sbin:/usr/sbin ldconfig -p | sed -n "s/.*$1.* => //p" | head -n 1; }
for name in libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2; do
  path=$(library "$name")
  [ -n "$path" ] || { skip "$name" "not installed"; continue; }
  run 60 "$HEAPTOP" -e -b -x -- env "LD_PRELOAD=$path" "$VICTIMS/checker" 4 1
  is "checker with $name: exit code" "$status" 0
  like "checker with $name: its checks hold" "$(cat "$tmp/out")" $'ok [0-9]+ checks'
  like "checker with $name: sites" "$(sites "$tmp/out" site alloc_blocks)" $'(^|\n)make\t[1-9]'
done

# ---- behind the screen ----
if have tmux; then
  tmux_start 80 24
  tmux_run "'$HEAPTOP' -x -- env PYTHONMALLOC=malloc python3 '$tmp/work.py' '$tmp/screen.out'"
  ok "python3 behind the screen ends, and the screen with it" until_true 60 tmux_ended
  tmux_ended || { tmux_capture | sed 's/^/#   | /'; pgrep -af "$tmp" | sed 's/^/#   /'; }
  is "python3 behind the screen: exit code" "$(tmux_status)" 3
  is "python3 behind the screen: its output" "$(cat "$tmp/screen.out")" "$(cat "$tmp/python3.want")"
  is "the terminal is as before" "$(tmux_flags)" "0 1 0"

  start "$tmp/demo" "$VICTIMS/demo" 1000
  wait_for "$tmp/demo" serving
  tmux_run "'$HEAPTOP' -d 0.3 -p $started"
  ok "attached behind the screen: the leak is there" tmux_wait audit_append 20
  tmux_keys q
  until_true 5 tmux_ended || tmux_keys y
  ok "q leaves" until_true 10 tmux_ended
  is "attached behind the screen: exit code" "$(tmux_status)" 0
  is "the terminal is as before" "$(tmux_flags)" "0 1 0"
  ok "the program goes on with its own text" text_intact "$started"
else
  skip "behind the screen" "no tmux"
fi
done_testing
