# Shell tests: TAP output, waiting for a marker, things that end with the test. Sourced by the
# scripts of tests/target/ and tests/screen/ (bash):
#
#	. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
#	need_ptrace
#	ok "what is shown" test 1 = 1
#	is "name" "$got" "$wanted"
#	done_testing
#
# Environment: HEAPTOP (the binary; default: the build's), abs_top_srcdir, abs_top_builddir (default:
# the current folder), HEAPTOP_QUICK=1: fewer rounds. A test skips where it can't run (no ptrace,
# no such tool); a runner that counts a skip as a failure sees it in the TAP output.

set -u
export LC_ALL=C.UTF-8
abs_top_builddir=${abs_top_builddir:-$PWD}
abs_top_srcdir=${abs_top_srcdir:-$abs_top_builddir}
HEAPTOP=${HEAPTOP:-$abs_top_builddir/heaptop}
VICTIMS=$abs_top_builddir/tests/victims
# the user's own settings must not change what a test sees
unset HEAPTOP_OPTS HEAPTOP_CONFIG HEAPTOP_SCRIPT NO_COLOR
quick() { [ -n "${HEAPTOP_QUICK-}" ]; }

tap_count=0
tap_failed=0
tap_pids=()
tmp=$(mktemp -d "${TMPDIR:-/tmp}/heaptop-test.XXXXXX") || exit 99
export XDG_CONFIG_HOME=$tmp/config XDG_STATE_HOME=$tmp/state

# Run at the end: everything the test started in the background, and its files. Not by a background
# subshell: one that is told to end before it has come to reset its traps would take the test's files.
tap_cleanup() {
  local status=$? pid
  [ "$BASHPID" = $$ ] || exit "$status"
  for pid in "${tap_pids[@]}"; do
    kill -KILL "$pid" 2>/dev/null
  done
  declare -F on_exit >/dev/null && on_exit
  rm -rf "$tmp"
  exit "$status"
}
trap tap_cleanup EXIT
trap 'exit 143' TERM HUP INT

diag() { printf '%s\n' "$*" | sed 's/^/# /'; }
# Show a file in the log, at most $2 lines.
diag_file() { [ -s "$1" ] && head -n "${2:-20}" "$1" | sed 's/^/#   | /'; return 0; }

# A subshell, such as a command of a pipe, counts for itself alone: the next number would come twice, and a failure be
# forgotten. (shopt -s lastpipe makes the last command of a pipe this shell's.)
tap_counts() { [ "$BASHPID" = $$ ] || echo "Bail out! results of a subshell don't count: $1"; }
# What was got, for a log: of much text its beginning and its end.
tap_short() { if [ ${#1} -gt 4000 ]; then printf '%s\n[...]\n%s' "${1::1000}" "${1: -2500}"; else printf '%s' "$1"; fi; }

pass() {
  tap_counts "$1"
  printf 'ok %d - %s\n' $((++tap_count)) "$1"
}
fail() {
  tap_counts "$1"
  printf 'not ok %d - %s\n' $((++tap_count)) "$1"
  tap_failed=$((tap_failed + 1))
  shift
  [ $# -eq 0 ] || diag "$*"
}
# ok NAME COMMAND...: the command succeeds.
ok() {
  local name=$1
  shift
  if "$@"; then pass "$name"; else fail "$name" "failed: $*"; fi
}
is() { if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "got '$(tap_short "$2")', wanted '$3'"; fi; }
isnt() { if [ "$2" != "$3" ]; then pass "$1"; else fail "$1" "got '$(tap_short "$2")'"; fi; }
# like NAME TEXT ERE
like() { if [[ $2 =~ $3 ]]; then pass "$1"; else fail "$1" "got '$(tap_short "$2")', wanted a match of /$3/"; fi; }
skip() { printf 'ok %d - %s # SKIP %s\n' $((++tap_count)) "$1" "$2"; }
skip_all() {
  echo "1..0 # SKIP $1"
  exit 0
}
bail_out() {
  echo "Bail out! $1"
  exit 99
}
done_testing() {
  echo "1..$tap_count"
  [ "$tap_failed" -eq 0 ]
  exit
}

have() { command -v "$1" >/dev/null 2>&1; }
need() {
  local tool
  for tool in "$@"; do
    have "$tool" || skip_all "no $tool"
  done
}
# May this process trace its children? (Containers and sandboxes may forbid it.)
need_ptrace() {
  [ -x "$HEAPTOP" ] || bail_out "no heaptop binary at $HEAPTOP"
  "$abs_top_builddir/tests/lib/can-ptrace" || skip_all "ptrace isn't permitted here"
}

# run SECONDS COMMAND...: bounded; standard output in $tmp/out, errors in $tmp/err, code in $status.
run() {
  local seconds=$1
  shift
  timeout -k 5 "$seconds" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
  status=$?
  [ "$status" -ne 124 ] || diag "timed out after $seconds s: $*"
}

# start FILE COMMAND...: in the background, output to FILE; pid in $started, ended with the test.
# The shell that becomes the command opens FILE, sooner or later: until then what an earlier one has written
# would still be found there. So it is emptied first, here and wherever a file is waited for that was used before.
start() {
  local file=$1
  shift
  : >"$file"
  "$@" >"$file" 2>&1 </dev/null &
  started=$!
  tap_pids+=("$started")
}
# Wait for a background process; its code in $status. At most $2 seconds, then it is killed.
finish() {
  local pid=$1 watch
  (
    sleep "${2:-30}"
    kill -KILL "$pid"
  ) >/dev/null 2>&1 &
  watch=$!
  wait "$pid" 2>/dev/null
  status=$?
  # the watcher first: with its sleep gone it would go on to the kill
  # shellcheck disable=SC2046 # none, or a number
  kill "$watch" $(pgrep -P "$watch") 2>/dev/null
  wait "$watch" 2>/dev/null
  return 0
}

# until_true SECONDS COMMAND...: poll until it succeeds.
until_true() {
  local end=$((SECONDS + $1)) fd
  shift
  exec {fd}<> <(:)
  while ! "$@"; do
    if [ $SECONDS -gt $end ]; then
      exec {fd}>&-
      return 1
    fi
    read -r -t 0.03 -u "$fd"
  done
  exec {fd}>&-
}
# wait_for FILE ERE [SECONDS]: until the file has a line that matches.
wait_for() { until_true "${3:-20}" grep -Eqs -- "$2" "$1"; }

# ---- batch output ----
# Frames begin with "# command: ..."; a frame is "# key: value" lines, a line of column ids, rows.
# last_frame FILE: the last frame of it.
last_frame() { awk '/^# command: / { n = 0 } { line[n++] = $0 } END { for (i = 0; i < n; i++) print line[i] }' "$1"; }
# header FILE KEY: its value in the last frame.
header() { last_frame "$1" | sed -n "s/^# $2: //p" | head -n 1; }
# reach OPTIONS KIND...: rows of the reach table, heaptop with these OPTIONS, as results of this test.
reach() {
  local options=$1 line
  shift
  REACH_OPTIONS=$options python3 "$abs_top_srcdir/tests/reach/reach.py" --tap "$@" >"$tmp/reach"
  while IFS= read -r line; do
    case $line in
    "ok "*) pass "reach: ${line#ok * - }" ;;
    "not ok "*) fail "reach: ${line#not ok * - }" ;;
    "#"*) echo "$line" ;;
    esac
  done <"$tmp/reach"
  isnt "some kinds were there" "$(grep -c '^ok' "$tmp/reach")" 0
}
# sites FILE COLUMN...: these columns of the last frame's rows, tab separated.
sites() {
  local file=$1
  shift
  last_frame "$file" | awk -F '\t' -v want="$*" '
    /^# / { next }
    $0 == "" { next }
    !columns { for (i = 1; i <= NF; i++) at[$i] = i; columns = 1; n = split(want, name, " "); next }
    { for (i = 1; i <= n; i++) printf "%s%s", (i == 1 ? "" : "\t"), $(at[name[i]]); print "" }'
}
# The text of a process is its files' (or its own name for what differs).
text_intact() { python3 "$abs_top_srcdir/tests/lib/textcmp.py" "$1"; }
# known_right TRUTH FRAME: every figure of a batch file equals what the victim "known" printed.
known_right() {
  local right=0
  python3 "$abs_top_srcdir/tests/lib/known.py" exact "$1" "$2" >"$tmp/verdict" || right=1
  grep -v '^ok' "$tmp/verdict" | sed 's/^#* */# /'
  return $right
}
