#!/usr/bin/env bash
# Usage errors: one line that begins with the program's name, whatever it was started as, then where to look; exit code 2,
# and nothing on standard output.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
export LC_ALL=C

# refused NAME COMMAND...
refused() {
  local name=$1
  shift
  run 20 "$@"
  is "$name: exit code" "$status" 2
  is "$name: nothing on standard output" "$(cat "$tmp/out")" ""
  is "$name: two lines, the second one says where to look" "$(sed -n '2,$p' "$tmp/err")" "Try 'heaptop --help'."
  like "$name: the first one is heaptop's" "$(head -n 1 "$tmp/err")" '^heaptop: .'
  ok "$name: no path of it" sh -c "! grep -qF -- '$HEAPTOP' '$tmp/err'"
}
ln -s "$HEAPTOP" "$tmp/ht"
refused "an unknown option" "$HEAPTOP" --nosuch
is "an unknown option: is named" "$(head -n 1 "$tmp/err")" "heaptop: unrecognized option '--nosuch'"
refused "by another name" "$tmp/ht" -Z
refused "without its argument" "$HEAPTOP" -p
refused "without its argument, long" "$HEAPTOP" --rate
refused "with an argument it doesn't take" "$HEAPTOP" --batch=1
refused "that could be several" "$HEAPTOP" --pr
refused "a bad value" "$HEAPTOP" --rate=much true
refused "no process of that name" "$HEAPTOP" -p no-such-program
refused "two that exclude each other" "$HEAPTOP" -b --tui true
refused "nothing to watch" "$HEAPTOP" -b
refused "in HEAPTOP_OPTS" env HEAPTOP_OPTS=--nosuch "$HEAPTOP" true
refused "a settings file that isn't there" "$HEAPTOP" --config="$tmp/no-such-file" true
done_testing
