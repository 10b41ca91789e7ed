#!/bin/bash
# --wrapper and the setting of that name: which functions are no sites. In batch, screen, files written, conditions and what
# is compared with, the same; the last rule that matches counts, and the table's can be taken away.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"

heaptop=$abs_top_builddir/heaptop
file=$tmp/made.pb.gz
export LC_ALL=C.UTF-8 XDG_CONFIG_HOME=$tmp/config
mkdir -p "$tmp/config/heaptop"
"$abs_top_builddir/tests/screen/make_snapshot" "$file" || bail_out "no snapshot"

# of what function are so many live bytes, by batch
holds() { sites "$tmp/frame" site live_bytes | awk -F '\t' -v name="$1" 'index($1, name) == 1 { n += $2 } END { print n + 0 }'; }
frame() { timeout 30 "$heaptop" -i "$file" -b "$@" >"$tmp/frame" 2>"$tmp/err"; }

frame
queue=$(holds 'Queue<') thread=$(holds worker_thread) total=$(header "$tmp/frame" live_bytes)
is "without a rule the queue is a site" "$((queue > 0))" 1

frame --wrapper='^Queue<'
is "a wrapper is no site" "$(holds 'Queue<')" 0
is "what it held is its caller's" "$(holds worker_thread)" "$((queue + thread))"
is "nothing else has changed" "$(sites "$tmp/frame" live_bytes | awk '{ n += $1 } END { print n }')" "$total"

frame --wrapper='^Queue<' --wrapper='!push'
is "the last rule that matches counts" "$(holds 'Queue<')" "$queue"

frame --wrapper='!operator new'
is "the table's can be taken away" "$(($(holds 'operator new') > 0))" 1

printf 'wrapper = ^Queue<\n' >"$tmp/config/heaptop/heaptoprc"
frame
is "as a setting" "$(holds 'Queue<')" 0
frame --wrapper='!^Queue<'
is "the command line counts after it" "$(holds 'Queue<')" "$queue"
printf 'wrapper = (\n' >"$tmp/config/heaptop/heaptoprc"
frame
is "a setting that is none changes nothing" "$(holds 'Queue<')" "$queue"
rm "$tmp/config/heaptop/heaptoprc"

printf 'size 120x40\n:save-display %s\n' "$tmp/shown" >"$tmp/script"
HEAPTOP_SCRIPT=$tmp/script timeout 30 "$heaptop" -i "$file" --wrapper='^Queue<' >/dev/null 2>&1
is "on the screen" "$(grep -c 'Queue<' "$tmp/shown") $(($(grep -c worker_thread "$tmp/shown") > 0))" "0 1"

timeout 30 "$heaptop" -i "$file" --wrapper='^Queue<' -o "$tmp/out.txt" 2>/dev/null
sed -n '/SITE$/,/^$/p' "$tmp/out.txt" >"$tmp/list"
is "in a text file" "$(grep -c 'Queue<' "$tmp/list") $(($(grep -c worker_thread "$tmp/list") > 0))" "0 1"

timeout 30 "$heaptop" -i "$file" -b --wrapper='^Queue<' --fail-if='site~^Queue<' >/dev/null 2>&1
is "no condition finds it" $? 0
timeout 30 "$heaptop" -i "$file" -b --fail-if='site~^Queue<' >/dev/null 2>&1
is "without the rule it does" $? 3

frame --base="$file" --wrapper='^Queue<'
is "against itself nothing differs" "$(sites "$tmp/frame" delta_bytes | sort -u)" 0

for rule in '(' '!' ''; do
  timeout 30 "$heaptop" -i "$file" -b --wrapper="$rule" >"$tmp/out" 2>"$tmp/err"
  is "'$rule' is refused" "$? $(head -n 1 "$tmp/err" | grep -c '^heaptop: --wrapper: ')" "2 1"
done
is "help lists the table" "$(timeout 30 "$heaptop" --wrapper=help | grep -Ec '^(operator new|strdup|g_malloc\*)$')" 3

done_testing
