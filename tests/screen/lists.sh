#!/bin/bash
# Time, Threads and Modules, rows by other groups, choices of threads and modules that hold on all screens, the
# selection that goes along: by scripted keys on a made-up heap, compared with tests/screen/expected/lists-*.
#
#	lists.sh --update	writes the expected files anew: look at the difference before believing it
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"

screenrun=${SCREENRUN:-$abs_top_builddir/tests/screen/screenrun}
expected=$abs_top_srcdir/tests/screen/expected
update=
[ "${1-}" = --update ] && update=1
export LC_ALL=C.UTF-8

without() { ok "$1" sh -c '! grep -Eq -- "$1" "$2"' sh "$3" "$2"; }
with() { ok "$1" grep -Eq -- "$3" "$2"; }
check() {
  if [ -n "$update" ]; then
    cp "$2" "$expected/$1"
    pass "$1 written"
  elif cmp -s "$2" "$expected/$1"; then
    pass "$1"
  else
    fail "$1" "the screen differs"
    diff -u "$expected/$1" "$2" | head -n 60 | sed 's/^/#   | /'
  fi
}

tour() {
  cat <<END
size $1
key 4
:save-display $2/01-time
key Home Right Right
:save-display $2/02-time-cursor
:save-attrs $2/03-time-styles
key 5
:save-display $2/04-threads
:save-attrs $2/05-threads-styles
type /ool
key Enter
:save-display $2/06-threads-find
key Esc
key g j j Enter
:save-display $2/07-threads-chosen
key 1
:save-display $2/08-sites-of-thread
key Del 5
type /pool-1
key Enter
key t
:save-display $2/09-threads-other
key t T j Space Space
:save-display $2/10-thread-menu
key Enter
:save-display $2/11-threads-several
key Del 6
:save-display $2/12-modules
:save-attrs $2/13-modules-styles
:sort allocs
:save-display $2/14-modules-allocs
:sort live
key g j Enter 1
:save-display $2/15-sites-of-module
key 2
:save-display $2/16-tree-of-module
key Del 2 u
:save-display $2/17-tree-user
key 3
:save-display $2/18-flame-user
key u 1 b
:save-display $2/19-by-function
key b
:save-display $2/20-by-stack
key b
:save-display $2/21-by-module
key b
:save-display $2/22-by-thread
key b w w
:save-display $2/23-raw-names
key w g j j 2
:save-display $2/24-tree-at-site
key 3
:save-display $2/25-flame-at-site
key i 1
:save-display $2/26-site-again
END
}

for size in 120x40 80x24 40x10; do
  for charset in unicode ascii; do
    dir=$tmp/$size-$charset
    mkdir -p "$dir"
    tour "$size" "$dir" >"$dir.script"
    option=
    [ $charset = ascii ] && option=--ascii
    if ! timeout 20 "$screenrun" --threads --gap 40 --steps 30 $option "$dir.script" >"$dir.log" 2>&1; then
      fail "$size-$charset runs"
      diag_file "$dir.log" 40
      continue
    fi
    for file in "$dir"/*; do
      printf '===== %s\n' "${file##*/}"
      cat "$file"
    done >"$dir.all"
    check "lists-$size-$charset.txt" "$dir.all"
    if [ $charset = ascii ]; then
      ok "$size in ASCII is ASCII" sh -c "! LC_ALL=C grep -q '[^ -~]' '$dir.all'"
    fi
    ok "$size-$charset: no row is too long" test "$(wc -L <"$dir.all")" -le "${size%x*}"
  done
done

# what must be true whatever the pictures look like
dir=$tmp/80x24-unicode
with "the chosen threads stand beside the tabs" "$dir/08-sites-of-thread" 'thr:job'
without "and are gone again" "$dir/12-modules" 'thr:'
with "a name with signs of patterns in it is taken literally" "$dir/08-sites-of-thread" 'worker_thread'
with "two are chosen together" "$dir/11-threads-several" '\* sceneview'
with "both of them" "$dir/11-threads-several" '\* pool-1'
with "so does the module" "$dir/15-sites-of-module" 'mod:libpng16.so.16'
without "no library of the system with u" "$dir/17-tree-user" 'clone3|operator new'
with "the selection goes from Sites to Tree" "$dir/24-tree-at-site" '^>.*std::map'
with "and back" "$dir/26-site-again" '^>.*emplace'
total() { sed -n '2s/.*Live *\([0-9.]*[KM]\).*/\1/p' "$1"; }
is "the header has what the thread's row says" "$(total "$dir/09-threads-other")" \
  "$(sed -n 's/^>  *4243  *\([0-9.]*[KM]\).*pool-1.*/\1/p' "$dir/09-threads-other")"

# a snapshot: refused, and said
cat >"$tmp/none.script" <<END
size 80x24
key 5 t
:save-display $tmp/none
END
ok "a snapshot runs" timeout 20 "$screenrun" --snapshot --threads "$tmp/none.script"
with "a snapshot says why no thread can be chosen" "$tmp/none" "a snapshot doesn't say which thread"

# names that try to break the screen, and odd sizes
mkdir -p "$tmp/hostile"
tour 80x24 "$tmp/hostile" >"$tmp/hostile.script"
ok "hostile names run" timeout 20 "$screenrun" --hostile --threads "$tmp/hostile.script"
cat "$tmp/hostile"/* >"$tmp/hostile.all"
ok "no control bytes" sh -c "! LC_ALL=C grep -q '[[:cntrl:]]' '$tmp/hostile.all'"
for size in 1x1 20x4 25x6 400x200; do
  mkdir -p "$tmp/$size"
  tour $size "$tmp/$size" >"$tmp/$size.script"
  ok "$size runs" timeout 30 "$screenrun" --threads "$tmp/$size.script"
done
done_testing
