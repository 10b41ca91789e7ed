#!/usr/bin/env bash
# Resident bytes: a program that asks for much and touches little of it; with huge pages and without, page by page and
# by sampling, with pages swapped out where the system can; what RSS is made of; as a plain user, attached and launched.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need_ptrace
mib=1024 touched=100
quick && mib=256 touched=50
victim=("$VICTIMS/victim_rss" "$mib" "$touched")

# near GOT WANTED PERCENT
near() {
  awk -v a="$1" -v b="$2" -v p="$3" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a != "" && b > 0 && d <= b * p / 100) }'
}
truth() { sed -n "s/^$1 //p" "$tmp/victim"; }
of_site() { sites "$tmp/frames" site "$2" | awk -F '\t' -v s="$1" '$1 == s { n += $2 } END { printf "%.0f", n }'; }
# The parts of RSS in $tmp/frames add up to it.
adds_up() {
  last_frame "$tmp/frames" | awk '/^# rss_sum: / { sum = $3 }
    /^# rss_(tracked|older|slack|files|shared|data|stacks|agent): / { n += $3; k++ } END { exit !(k == 8 && n == sum && sum > 0) }'
}
# ask WORDS OPTIONS...: the victim to its end under heaptop: what the last frame says, and the victim.
ask() {
  local words=$1
  shift
  # shellcheck disable=SC2086 # words
  run 60 "$HEAPTOP" -b -x -d 0.5 "$@" -- sh -c 'exec "$@" >"$0"' "$tmp/victim" "${victim[@]}" $words
  cp "$tmp/out" "$tmp/frames"
}

for pages in nothp thp; do
  ask $pages -e
  is "$pages: the victim ends well" "$status" 0
  ok "$pages: RES of who asked is what was touched" near "$(of_site site_reserve res_bytes)" "$(truth grown)" 2
  diag "$(of_site site_reserve live_bytes) asked for, $(of_site site_reserve res_bytes) resident, RSS grew by $(truth grown)"
  is "$pages: all of it is live" "$(of_site site_reserve live_bytes)" $((mib << 20))
  is "$pages: small blocks have all their bytes in memory" "$(of_site site_small res_bytes)" "$(truth small)"
  is "$pages: what touched it has asked for nothing" "$(of_site touch_pages live_bytes)" 0
  is "$pages: the rest is untouched" "$(header "$tmp/frames" untouched_bytes)" \
    $(($(header "$tmp/frames" live_bytes) - $(header "$tmp/frames" res_bytes) - $(header "$tmp/frames" swap_bytes)))
  ok "$pages: the parts of RSS add up to it" adds_up
  ok "$pages: tracked is RES" near "$(header "$tmp/frames" rss_tracked)" "$(header "$tmp/frames" res_bytes)" 1
  like "$pages: what there is to say of it is said" "$(header "$tmp/frames" rss_note)" "never touched"
done

mib=256 touched=50
victim=("$VICTIMS/victim_rss" "$mib" "$touched")

# sampled: blocks of 100 bytes stand for many, so the estimate strays by some percent
ask nothp -r 16K
tracked=$(header "$tmp/frames" rss_tracked) error=$(header "$tmp/frames" rss_error)
ok "sampled: an error is told" test "$error" -gt 0
ok "sampled: small blocks within five of it" \
  awk -v a="$(of_site site_small res_bytes)" -v b="$(truth small)" -v e="$error" 'BEGIN { exit !(a - b < 5 * e && b - a < 5 * e) }'
ok "sampled: the one large block" near "$(of_site site_reserve res_bytes)" "$(truth grown)" 2
ok "sampled: the parts of RSS add up to it" adds_up
diag "tracked $tracked +- $error"

# ---- with mappings that the program makes itself ----
run 60 "$HEAPTOP" -e --mmap -b -x -d 0.5 --io=null "$VICTIMS/victim_mmap"
cp "$tmp/out" "$tmp/frames"
ok "mappings: no site has more in memory than is live" \
  awk -F '\t' '$2 > $1 { exit 1 }' <(sites "$tmp/frames" live_bytes res_bytes)
ok "mappings: the parts of RSS add up to it" adds_up

# ---- swapped out ----
swap=$(awk 'END { print NR - 1 }' /proc/swaps)
if [ "$swap" = 0 ] && [ "$(id -u)" = 0 ] && have mkswap && dd if=/dev/zero of="$tmp/swap" bs=1M count=$((touched + 20)) 2>/dev/null &&
  chmod 600 "$tmp/swap" && mkswap "$tmp/swap" >/dev/null 2>&1 && swapon "$tmp/swap" 2>"$tmp/why"; then
  on_exit() { swapoff "$tmp/swap"; }
  swap=1
fi
ask "nothp out" -e
if [ "$swap" = 0 ] || [ "$(truth swapped)" = 0 ]; then
  diag "nothing can be swapped out here: $(cat "$tmp/why" 2>/dev/null)"
  is "without swap nothing is swapped out" "$(header "$tmp/frames" swap_bytes)" 0
else
  ok "swapped bytes are told" near "$(of_site site_reserve swap_bytes)" "$(truth swapped)" 2
  diag "$(of_site site_reserve swap_bytes) swapped, $(of_site site_reserve res_bytes) resident; VmSwap grew by $(truth swapped)"
fi

# ---- attached, and live ----
# shellcheck disable=SC2086 # words
start "$tmp/victim" "${victim[@]}" wait "$tmp/go"
pid=$started
wait_for "$tmp/victim" ^small
run 30 "$HEAPTOP" -b -n 3 -d 0.5 -p "$pid"
cp "$tmp/out" "$tmp/frames"
ok "attached: the parts of RSS add up to it" adds_up
ok "attached: nearly all is older" near "$(header "$tmp/frames" rss_older)" "$(($(truth grown) + $(truth small)))" 10
like "attached: which is said" "$(header "$tmp/frames" rss_note)" "older than the attach"
touch "$tmp/go"
finish "$pid"

# a running program is looked at again and again: what its frames say becomes right without its end
rm "$tmp/go"
# shellcheck disable=SC2086,SC2016 # words; for the inner shell
start "$tmp/out" "$HEAPTOP" -e -b -x -d 0.3 -- sh -c 'exec "$@" >"$0"' "$tmp/victim" "${victim[@]}" wait "$tmp/go"
pid=$started
seen() {
  cp "$tmp/out" "$tmp/frames"
  near "$(of_site site_reserve res_bytes)" "$(truth grown)" 2
}
ok "while it runs its frames come to say so" until_true 20 seen
touch "$tmp/go"
finish "$pid"

# ---- a plain user ----
if [ "$(id -u)" = 0 ] && have setpriv; then
  chmod 755 "$tmp"
  mkdir -m 777 "$tmp/user"
  cp "$HEAPTOP" "$VICTIMS/victim_rss" "$tmp/user/"
  # shellcheck disable=SC2016 # for the inner shell
  run 60 setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all \
    "$tmp/user/heaptop" -e -b -x -d 0.5 -- sh -c 'exec "$@" >"$0"' "$tmp/user/victim" "$tmp/user/victim_rss" "$mib" "$touched"
  cp "$tmp/out" "$tmp/frames"
  cp "$tmp/user/victim" "$tmp/victim"
else
  ask nothp -e
fi
ok "a plain user: RES is what was touched" near "$(of_site site_reserve res_bytes)" "$(truth grown)" 2
ok "a plain user: the parts of RSS add up to it" adds_up
done_testing
