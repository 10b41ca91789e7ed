#!/usr/bin/env bash
# The manual page is well-formed and knows the options that --help lists and the keys of --keys.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
page=$abs_top_srcdir/man/heaptop.1

if have mandoc; then
  mandoc -T lint -W warning "$page" >"$tmp/lint" 2>&1
  is "mandoc -T lint has nothing to say" "$(cat "$tmp/lint")" ""
else
  skip "mandoc -T lint" "no mandoc"
fi
# the page writes a long option as \-\-name or Fl -name
sed 's/\\-/-/g; s/\\&//g; s/\\e/\\/g; s/Fl -/--/g' "$page" >"$tmp/page"
run 10 "$HEAPTOP" --help
missing=$(grep -oE -- '--[a-z][a-z-]+' "$tmp/out" | sort -u | while read -r option; do
  grep -qE -- "$option([^a-z-]|\$)" "$tmp/page" || printf '%s ' "$option"
done)
isnt "--help lists options" "$(grep -c -- '--' "$tmp/out")" 0
is "the page has every option of --help" "$missing" ""
unknown=$(grep -oE -- '--[a-z][a-z-]+' "$tmp/page" | sort -u | while read -r option; do
  grep -qE -- "$option([^a-z-]|\$)" "$tmp/out" || printf '%s ' "$option"
done)
is "--help has every option of the page" "$unknown" ""
run 10 "$HEAPTOP" --keys
isnt "--keys lists keys" "$(wc -l <"$tmp/out")" 0
missing=$(cut -f 1 "$tmp/out" | while IFS= read -r keys; do
  grep -qxF -- ".It Ic $keys" "$tmp/page" || printf '%s; ' "$keys"
done)
is "gate 10: the page has every key" "$missing" ""
done_testing
