#!/usr/bin/env bash
# What kills a launched program kills all of it: the shell, and what it has started.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need_ptrace

# gone PID: within ten seconds; what a killed parent leaves behind may stay a zombie until somebody looks
gone() {
  local i state
  for ((i = 0; i < 200; i++)); do
    state=$(sed -n 's/^State:[[:blank:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null)
    case $state in '' | Z | X) return 0 ;; esac
    sleep 0.05
  done
  return 1
}
# shellcheck disable=SC2016 # for the inner shell
"$HEAPTOP" -b -d 1000 -- sh -c 'sleep 300 & echo $! >"$0.new"; mv "$0.new" "$0"; wait' "$tmp/child" >"$tmp/out" 2>"$tmp/err" &
heaptop=$!
child=
for ((i = 0; i < 400 && ${#child} == 0; i++)); do
  sleep 0.05
  [ -s "$tmp/child" ] && child=$(cat "$tmp/child")
done
like "a shell has started something" "$child" '^[0-9]+$'
kill -TERM $heaptop
wait $heaptop
ok "it ends with the shell" gone "${child:-1}"
[ -z "$child" ] || kill -KILL "$child" 2>/dev/null
done_testing
