#!/usr/bin/env bash
# -o x.json: valid whatever the names are, and the same figures as batch output has, from snapshots and of a live program.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need python3
make_snapshot=$abs_top_builddir/tests/screen/make_snapshot
says() {
  local name=$1
  shift
  if python3 "$abs_top_srcdir/tests/lib/json_says.py" "$@" >"$tmp/said" 2>&1; then pass "$name"; else
    fail "$name"
    diag_file "$tmp/said" 30
  fi
}

for kind in exact:1 sampled:512; do
  "$make_snapshot" "$tmp/heap.pb.gz" "${kind#*:}" || bail_out "no snapshot"
  run 20 "$HEAPTOP" -b -i "$tmp/heap.pb.gz"
  mv "$tmp/out" "$tmp/batch"
  run 20 "$HEAPTOP" -o "$tmp/heap.json" -i "$tmp/heap.pb.gz"
  is "${kind%:*}: written" "$status" 0
  diag_file "$tmp/err"
  says "${kind%:*}: as batch has it" "$tmp/heap.json" "$tmp/batch"
done
"$make_snapshot" "$tmp/hostile.json" 1 hostile || bail_out "no hostile heap"
says "hostile names" "$tmp/hostile.json"
names=$(python3 -c 'import json, sys
names = {f for s in json.load(open(sys.argv[1], encoding="utf-8"))["stacks"] for f in s["frames"]}
print("?[31mred?[0m????" in names, any(n.endswith(" family??") for n in names), "漢字テスト::関数" in names,
      max(len(n) for n in names))' "$tmp/hostile.json")
is "are those that the screen has: escapes, bad bytes, wide ones, very long ones" "$names" "True True True 50000"

# what a file says that is none of ours: quotes, backslashes, all control bytes, cut sequences, infinity
cat >"$tmp/make.py" <<'END'
import sys, gzip

def varint(n):
    out = b""
    while True:
        out += bytes([n & 127 | (128 if n > 127 else 0)])
        n >>= 7
        if not n:
            return out

def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value

names = [b"", b"inuse_space", b"bytes", b'say "hi" \\ back', bytes(range(1, 32)) + b"\x7f", b"\xed\xa0\x80 surrogate",
         b"\xc0\xaf overlong \xf5 \xe2\x82", b"\xc2\x85 next line", b"</script>\xe2\x80\xa8"]
profile = field(1, field(1, 1) + field(2, 2))
for i in range(3, len(names)):
    profile += field(2, field(1, varint(i) + varint(3)) + field(2, varint(1000 + i)))
    profile += field(4, field(1, i) + field(4, field(1, i)))
    profile += field(5, field(1, i) + field(2, i))
for name in names:
    profile += field(6, name)
sys.stdout.buffer.write(gzip.compress(profile))
END
python3 "$tmp/make.py" >"$tmp/other.pb.gz"
run 20 "$HEAPTOP" -o "$tmp/other.json" -i "$tmp/other.pb.gz"
is "a file with bad names is read and written" "$status" 0
diag_file "$tmp/err"
says "and what is written is JSON" "$tmp/other.json"
is "with all its stacks" "$(python3 -c 'import json, sys; print(len(json.load(open(sys.argv[1], encoding="utf-8"))["stacks"]))' "$tmp/other.json")" 6
ok "and quotes in names" grep -qF '"frames":["say \"hi\" \\ back","say' "$tmp/other.json"

run 20 "$HEAPTOP" -f leaf -o "$tmp/leaf.json" -i "$tmp/heap.pb.gz"
is "with -f only what passes" "$(python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(len(d["sites"]), d["sites"][0]["site"])' "$tmp/leaf.json")" "1 leaf"
run 20 "$HEAPTOP" -o "$tmp/x.jsn" -i "$tmp/heap.pb.gz"
like "a suffix that is none: the message has this one" "$(cat "$tmp/err")" '\.json'

if "$abs_top_builddir/tests/lib/can-ptrace"; then
  run 60 "$HEAPTOP" -q -e -b -x -o "$tmp/known.json" "$VICTIMS/known" 4 0 "$tmp/truth"
  is "a live program's code" "$status" 0
  last_frame "$tmp/out" >"$tmp/batch"
  says "its figures at the end are those of the last frame" "$tmp/known.json" "$tmp/batch" later
else
  skip "a live program" "ptrace isn't permitted here"
fi
done_testing
