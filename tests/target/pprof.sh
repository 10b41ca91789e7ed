#!/usr/bin/env bash
# The forms of a snapshot agree: the last batch frame, pprof as `go tool pprof` reads it, the
# folded stacks, and the snapshot opened again.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need python3
need_ptrace

run 60 "$HEAPTOP" -e -b -x -o "$tmp/known.pb.gz" "$VICTIMS/known" 4 0 "$tmp/truth"
is "a snapshot at the program's end" "$status" 0
diag_file "$tmp/err" 5
cp "$tmp/out" "$tmp/frame"
ok "the frame is right" known_right "$tmp/truth" "$tmp/frame"
ok "it is gzip" gzip -t "$tmp/known.pb.gz"

# ---- opened again ----
run 30 "$HEAPTOP" -b -n 1 -i "$tmp/known.pb.gz"
is "-i leaves with 0" "$status" 0
ok "-i shows the same sites and numbers" diff \
  <(sites "$tmp/frame" site live_bytes live_blocks alloc_bytes alloc_blocks free_bytes free_blocks peak_bytes file line module | sort) \
  <(sites "$tmp/out" site live_bytes live_blocks alloc_bytes alloc_blocks free_bytes free_blocks peak_bytes file line module | sort)
for key in live_bytes live_blocks peak_bytes alloc_bytes alloc_blocks pid command; do
  is "-i: $key" "$(header "$tmp/out" $key)" "$(header "$tmp/frame" $key)"
done

# ---- against an earlier one: two runs, each of which knows its own numbers ----
run 60 "$HEAPTOP" -e -q -x -o "$tmp/less.pb.gz" "$VICTIMS/known" 2 0 "$tmp/less"
is "another snapshot" "$status" 0
run 30 "$HEAPTOP" -b -n 1 -s delta -i "$tmp/known.pb.gz" --base="$tmp/less.pb.gz"
is "--base leaves with 0" "$status" 0
# site<TAB>bytes: what the two runs say of themselves, the difference
live() { sed -n 's/^site \([^ ]*\) .* live_bytes \([0-9]*\) .*/\1\t\2/p' "$1" | sort; }
join -t "$(printf '\t')" -a 1 -a 2 -o 0,1.2,2.2 -e 0 <(live "$tmp/truth") <(live "$tmp/less") |
  awk -F '\t' '$2 != $3 { print $1 "\t" $2 - $3 }' | sort >"$tmp/differ"
sites "$tmp/out" site delta_bytes | grep '^site_' | awk -F '\t' '$2' | sort >"$tmp/delta"
ok "there are differences" test -s "$tmp/differ"
is "--base: the differences of the sites" "$(cat "$tmp/delta")" "$(cat "$tmp/differ")"
is "the largest comes first" "$(sites "$tmp/out" delta_bytes | head -n 1)" \
  "$(sites "$tmp/out" delta_bytes | awk '{ d = $1 < 0 ? -$1 : $1; if (d > m) { m = d; x = $1 } } END { print x }')"
run 30 "$HEAPTOP" -b -s delta -i "$tmp/known.pb.gz"
is "delta without a base is a mistake" "$status" 2
run 30 "$HEAPTOP" -b -i "$tmp/known.pb.gz" --base="$tmp/truth"
is "a base that is no snapshot is refused" "$status" 1

# ---- folded: the sums, and the whole names in it ----
for value in live:live_bytes alloc:alloc_bytes blocks:live_blocks allocs:alloc_blocks; do
  run 60 "$HEAPTOP" -e -b -x --value="${value%:*}" -o "$tmp/known.folded" "$VICTIMS/known" 4 0 "$tmp/truth"
  is "folded ${value#*:} sum to the total" \
    "$(awk '{ sum += $NF } END { printf "%.0f", sum }' "$tmp/known.folded")" "$(header "$tmp/out" "${value#*:}")"
done
ok "stacks are root first, the caller of the allocator last" \
  grep -Eq '(^|;)main;run;site_leak_list [0-9]+$' "$tmp/known.folded"
run 60 "$HEAPTOP" -e -b -x -o "$tmp/known.txt" "$VICTIMS/known" 4 0 "$tmp/truth"
ok "the text report names the sites" grep -q site_cache_fill "$tmp/known.txt"

# ---- go tool pprof ----
if ! have go; then
  skip "go tool pprof agrees" "no go"
  done_testing
fi
# top INDEX: "name cumulative" lines, bytes or counts without unit
top() {
  HOME=$tmp timeout 60 go tool pprof -top -cum -sample_index="$1" -unit="$2" -nodecount=100000 \
    -nodefraction=0 "$tmp/known.pb.gz" 2>"$tmp/err" |
    awk 'header { sub(/[A-Za-z]+$/, "", $4); name = $6; print name "\t" $4 } $1 == "flat" { header = 1 }'
}
agree() {
  local column=$1 unit=$2 index=$3
  top "$index" "$unit" >"$tmp/top"
  sites "$tmp/frame" site "$column" | sort -t $'\t' -k 2,2nr | head -n 10 >"$tmp/ten"
  local site bytes got rc=0
  while IFS=$'\t' read -r site bytes; do
    # a function's name may have blanks in it: compare its first word
    got=$(awk -F '\t' -v site="${site%% *}" '$1 == site { print $2; exit }' "$tmp/top")
    if [ "${got:-none}" != "$bytes" ]; then
      diag "$index $site: $bytes in the frame, ${got:-none} in pprof"
      rc=1
    fi
  done <"$tmp/ten"
  [ "$(wc -l <"$tmp/ten")" = 10 ] || rc=1
  [ $rc = 0 ] || diag_file "$tmp/err" 5
  return $rc
}
ok "go tool pprof agrees on the ten largest sites' live bytes" agree live_bytes B inuse_space
ok "and allocated bytes" agree alloc_bytes B alloc_space
ok "and live blocks" agree live_blocks count inuse_objects
ok "and allocations" agree alloc_blocks count alloc_objects
default=$(HOME=$tmp timeout 60 go tool pprof -top "$tmp/known.pb.gz" 2>/dev/null | sed -n 's/^Type: //p')
is "its default is what is in use" "$default" inuse_space
done_testing
