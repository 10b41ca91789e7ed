#!/bin/bash
# Detail of rows that aren't sites: by function, stack, module and thread, on Sites, Threads and Modules: the same parts as
# of a site, of what the row stands for. And a stack to copy.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"

screenrun=${SCREENRUN:-$abs_top_builddir/tests/screen/screenrun}
export LC_ALL=C.UTF-8

# script NAME OPTION...: the script of stdin
script() {
  local name=$1
  shift
  cat >"$tmp/script"
  if timeout 30 "$screenrun" "$@" "$tmp/script" >"$tmp/log" 2>&1; then
    pass "$name"
  else
    fail "$name"
    diag_file "$tmp/log" 45
  fi
}

# the heaviest stack stands below, in order; the row's own numbers above
for size in 120x40 120x50 80x24; do
  script "by function at $size" --threads <<END
size $size
:group function
key Enter
expect STACK
expect innermost first
expect ▶
expect SIZE
expect live blocks
key Esc
expect-not STACK
END
done

script "by stack, module, thread" --threads <<END
size 120x40
:group stack
key Enter
expect STACK innermost first
expect THREADS
expect live bytes
key Esc
:group module
key Enter
expect heaviest of
expect ▶
key Esc
:group thread
key Enter
expect heaviest of
expect-not temporary
END

script "on Modules and Threads" --threads <<END
size 80x24
key 6
expect TREND
key x
expect heaviest of
expect SIZE
key Esc 5
expect TREND
key x
expect heaviest of
expect-not at peak
key Esc j x
expect STACK
expect AGE
key Right
expect STACK
key Esc
expect THREAD
END

script "a module as a pane follows the cursor" --threads <<END
size 120x40
key 6 x
expect ─ sceneview ─
key j
expect-not ─ sceneview ─
expect STACK
END

script "of threads that aren't chosen it is said why there is nothing" --threads <<END
size 80x24
key 5 j Enter
key g x
expect other threads are chosen (t)
END

script "a snapshot has rows by module, too" --snapshot <<END
size 80x24
:group module
key Enter
expect heaviest of
END

script "40 columns" --threads --ascii <<END
size 40x10
key 6 x
expect blk
key PgDn PgDn PgDn
key Esc 5 x
expect blk
END

cd "$tmp" || exit 99
script "a stack of any row can be copied" --threads <<END
size 80x24
key 6 Y
expect copied to
key 1
:group stack
key Y
expect copied to
key 5 Y
expect no stack is known of this row
END

done_testing
