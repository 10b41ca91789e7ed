#!/usr/bin/env bash
# a and O where nothing is selected that could have a source file: it is said why, in words for what is selected.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
screenrun=$abs_top_builddir/tests/screen/screenrun

for key in a O; do
  cat >"$tmp/script" <<END
size 120x40
key 2 g $key
expect select a function: all has no source file
key Esc Down
key 6 g $key
expect has no source file
expect-not debug information
key 5 g $key
expect has no source file
expect-not debug information
key 1
type /SSL_CTX
key Enter $key
expect no source file is known of SSL_CTX_new: its module has no debug information
END
  run 20 "$screenrun" --threads "$tmp/script"
  is "$key" "$status" 0
  diag_file "$tmp/err" 50
done
done_testing
