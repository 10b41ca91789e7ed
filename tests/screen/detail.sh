#!/bin/bash
# Detail at three sizes, with Unicode and in ASCII, with its style layer: as a pane below, beside the list, on the whole
# screen; of a site, of cells of both trees; sampled, against a mark, of a snapshot; and that it follows the cursor.
# Compared with tests/screen/expected/detail-*.
#
#	detail.sh --update	writes the expected files anew: look at the difference before believing it
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"

screenrun=$(realpath "${SCREENRUN:-$abs_top_builddir/tests/screen/screenrun}")
expected=$(realpath "$abs_top_srcdir/tests/screen/expected")
update=
[ "${1-}" = --update ] && update=1

# check NAME FILE
check() {
  if [ -n "$update" ]; then
    cp "$2" "$expected/detail-$1"
    pass "$1 written"
  elif cmp -s "$2" "$expected/detail-$1"; then
    pass "$1"
  else
    fail "$1" "the screen differs"
    diff -u "$expected/detail-$1" "$2" | head -n 60 | sed 's/^/#   | /'
  fi
}

# run NAME OPTION...: the script of stdin, and what it saved as one file
run() {
  local name=$1
  shift
  cat >"$tmp/$name.script"
  mkdir "$tmp/$name"
  if ! timeout 30 "$screenrun" "$@" "$tmp/$name.script" >"$tmp/$name.log" 2>&1; then
    fail "$name runs"
    diag_file "$tmp/$name.log" 45
    return
  fi
  for file in "$tmp/$name"/*; do
    printf '===== %s\n' "${file##*/}"
    cat "$file"
  done >"$tmp/$name.all"
  check "$name.txt" "$tmp/$name.all"
}

# what debug info names, as far as it is there: lines with a tab, a control byte, one that is too long
mkdir "$tmp/work" "$tmp/work/src"
for ((i = 1; i <= 224; i++)); do
  case $i in
    219) printf '\tauto it = seen.find(key);\033[31m\n' ;;
    220) printf '\tnodes.emplace(key, parse(text));\n' ;;
    221) printf '%0500d\n' 0 ;;
    *) printf '// line %d\n' "$i" ;;
  esac
done >"$tmp/work/src/loader.cpp"
mkdir "$tmp/work/src/worker.cpp"
cd "$tmp/work" || exit 99

for size in 120x40 120x24 80x24 40x10; do
  for charset in unicode ascii; do
    option=
    [ $charset = ascii ] && option=--ascii
    dir=$tmp/$size-$charset
    # shellcheck disable=SC2086 # no option is no word
    run "$size-$charset" $option <<END
size $size
key Enter
:save-display $dir/01-site
key Esc
expect-not STACK
key j Enter
:save-display $dir/02-next
:save-attrs $dir/03-styles
key Enter
:save-display $dir/04-zoomed-or-closed
key Esc Esc
key 2 j j x
:save-display $dir/05-tree
key Esc
key i j j x
:save-display $dir/06-inverted
key G
:save-display $dir/07-end
key Esc Esc i
key 3 j j j x
:save-display $dir/08-flame
key x
:save-display $dir/09-flame-whole
END
    if [ $charset = ascii ]; then
      ok "$size in ASCII is ASCII" sh -c "! LC_ALL=C grep -q '[^ -~]' '$tmp/$size-$charset.all'"
    fi
    ok "$size-$charset: no row is too long" test "$(wc -L <"$tmp/$size-$charset.all")" -le "${size%x*}"
  done
done

run sampled --rate 65536 --attached <<END
size 120x40
key Enter
:save-display $tmp/sampled/1-site
key j j
:save-display $tmp/sampled/2-few
:save-attrs $tmp/sampled/3-styles
END

run snapshot --snapshot <<END
size 120x40
key j Enter
:save-display $tmp/snapshot/1-site
END

run base --base 8 <<END
size 80x24
key Enter
:save-display $tmp/base/1-site
END

# the pane follows the cursor; whole, arrows go on to the next row; what isn't there is said
cat >"$tmp/follow" <<END
size 120x40
key Enter
expect ─ Queue<…>::push() ─
expect SOURCE src/queue.h: No such file or directory
key j
expect ─ std::map<…>::emplace<…>() ─
key Enter
expect-not LIVE▼
key Right
expect ─ png_create_row ─
key Left Left
expect ─ Queue<…>::push() ─
key q
expect LIVE▼
expect-not STACK
key Enter 2 1
expect STACK
size 80x24
expect-not LIVE▼
key Esc
expect LIVE▼
key x x
expect LIVE▼
key 3
type /worker_thread
key Enter x
expect not a regular file
END
ok "it follows the cursor, opens and closes" timeout 30 "$screenrun" "$tmp/follow"

dir=$tmp/hostile
mkdir "$dir"
for size in 120x40 80x24 40x10 20x5 1x1; do
  printf 'size %s\nkey Home\n' "$size"
  for row in 1 2 3 4 5 6 7 8; do
    printf 'key x\n:save-display %s/%s-%s\nkey PgDn PgDn Esc Esc j\n' "$dir" "$size" "$row"
  done
done >"$dir.script"
ok "hostile names run" timeout 60 "$screenrun" --hostile "$dir.script"
cat "$dir"/* >"$dir.all"
ok "no control bytes" sh -c "! LC_ALL=C grep -q '[[:cntrl:]]' '$dir.all'"

done_testing
