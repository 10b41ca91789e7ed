#!/usr/bin/env bash
# --mmap: the program's own mappings, made, unmapped in part, several at once, replaced, moved, and the break:
# every figure is what the program itself says. At any rate, as they aren't sampled.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need_ptrace

# Sums of the victim's lines "NAME live live_blocks bytes blocks", sorted.
truth() {
  awk '{ for (i = 2; i <= 5; i++) n[$1, i] += $i; name[$1] }
    END { for (s in name) print s, n[s, 2], n[s, 3], n[s, 4], n[s, 5] }' "$1" | sort
}
# The same of heaptop's rows; only those the victim has named.
told() {
  sites "$1" site live_bytes live_blocks alloc_bytes alloc_blocks |
    awk 'NR == FNR { wanted[$1]; next } $1 in wanted { for (i = 2; i <= 5; i++) n[$1, i] += $i; name[$1] }
      END { for (s in name) print s, n[s, 2], n[s, 3], n[s, 4], n[s, 5] }' "$tmp/truth" - | sort
}
# compare NAME: what the victim has printed, and the last frame in $tmp/out.
compare() {
  grep -E '^(site_|anonymous )' "$tmp/victim" >"$tmp/lines"
  truth "$tmp/lines" | grep -v "${2:-^$}" >"$tmp/truth"
  told "$tmp/out" >"$tmp/told"
  if diff "$tmp/truth" "$tmp/told" >"$tmp/diff"; then pass "$1"; else fail "$1"; fi
  diag_file "$tmp/diff" 40
}
for victim in victim_mmap victim_mmap_static; do
  threads=threads
  [ $victim = victim_mmap ] || threads=none
  run 60 "$VICTIMS/$victim" $threads
  is "$victim alone ends well" "$status" 0
  cp "$tmp/out" "$tmp/victim"
  run 60 "$HEAPTOP" -e --mmap -b -x -v -d 0.5 --io=null "$VICTIMS/$victim" $threads
  is "$victim: watched, too" "$status" 0
  compare "$victim: every figure of every site, every call recorded"
  is "$victim: nothing else has mapped anything" \
    "$(sites "$tmp/out" site live_bytes | awk -F '\t' '$1 !~ /^site_|^anonymous$/ && $2 > 100000')" ""
  # allocations are hardly sampled, and what malloc gets from the system isn't counted in their place
  run 60 "$HEAPTOP" -r 1G --mmap -b -x -v -d 0.5 --io=null "$VICTIMS/$victim" $threads
  is "$victim: at a rate" "$status" 0
  compare "$victim: mappings aren't sampled" ^site_malloc
  like "$victim: what malloc maps isn't the program's" \
    "$(sites "$tmp/out" site alloc_blocks samples | grep -E 'sysmalloc|site_malloc|mmap_chunk')" '^(site_malloc.*)?$'
done

# ---- threads that get each other's addresses ----
run 60 "$VICTIMS/victim_mmap" race
cp "$tmp/out" "$tmp/victim"
run 60 "$HEAPTOP" -e --mmap -b -x -v -d 0.5 --io=null "$VICTIMS/victim_mmap" race
is "threads map and unmap at the same time" "$status" 0
compare "and every figure is right"

run 60 "$HEAPTOP" -e -b -x -d 0.5 --io=null "$VICTIMS/victim_mmap"
is "without --mmap no mapping counts" "$(sites "$tmp/out" site | grep -c '^site_[^m]')" 0
done_testing
