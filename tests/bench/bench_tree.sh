#!/usr/bin/env bash
# The trace tree on the stacks of real programs, recorded by heaptop itself: what the last-lookup
# cache brings. Run by `make bench`.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=${abs_top_builddir:-$PWD}
heaptop=${HEAPTOP:-$build/heaptop}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

record() {
  local name=$1
  shift
  echo "# $name: heaptop -e --record-stacks=… $*"
  "$heaptop" -q -e --record-stacks="$tmp/$name" -o "$tmp/$name.txt" -- "$@" >/dev/null 2>"$tmp/err" ||
    { sed 's/^/# /' "$tmp/err"; exit 1; }
  "$build/tests/bench/bench_tree" "$tmp/$name" 300000
}

cc1plus=$(g++ -print-prog-name=cc1plus)
g++ -E "$here/templates.cc" -o "$tmp/templates.ii"
record cc1plus "$cc1plus" -quiet -fpreprocessed "$tmp/templates.ii" -o "$tmp/templates.s"
record python3 env PYTHONMALLOC=malloc python3 -c 'import json
d = [{"k%d" % i: [i, str(i)]} for i in range(20000)]
print(len(json.loads(json.dumps(d))))'
record sqlite3 sqlite3 :memory: "create table t(a integer, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000)
insert into t select i, 'text ' || (i * 7919 % 60000), i * 0.5 from n;
create index t_b on t(b); select count(*), sum(c) from t where b like 'text 1%';"
