#!/usr/bin/env bash
# A big program must not delay the first figures: the time from `heaptop -b -n 1 -p PID` to its first
# output, for a program of 130 MB with 300,000 functions, CFI for each and line tables for a part, over
# the same for a small one that does the same. Medians of interleaved runs; CPU time of heaptop, which other load on the machine doesn't change, decides, and the
# time on the wall is printed beside. Run by `make bench`. Each line: name | what was run | figure |
# target | ok or MISSED; exit status 1 if one is missed.
set -eu
build=${abs_top_builddir:-$PWD}
heaptop=${HEAPTOP:-$build/heaptop}
runs=${RUNS:-5}
tmp=$(mktemp -d)
victim=
trap '[ -z "$victim" ] || kill "$victim" 2>/dev/null; rm -rf "$tmp"' EXIT

cat >"$tmp/main.c" <<'C'
#include <stdlib.h>
#include <unistd.h>

static void *volatile kept[1000];

__attribute__((noinline)) static void *make(size_t n)
{
	void *p = malloc(n);
	__asm__ volatile("");
	return p;
}

int main(void)
{
	for (unsigned i = 0;; i++) {
		free(kept[i % 1000]);
		kept[i % 1000] = make(100 + i % 50);
		if (i % 100 == 0)
			usleep(1000);
	}
}
C
# text from the assembler, a tenth of it copied ten times, data by .space, line tables from gcc
awk 'BEGIN {
  print ".section .note.GNU-stack,\"\",@progbits\n.text"
  for (i = 0; i < 30000; i++) {
    f = "a_function_with_the_number_" i
    print ".globl " f "\n.type " f ",@function\n" f ":\n.cfi_startproc\npush %rbp\n.cfi_def_cfa_offset 16"
    print ".cfi_offset 6,-16\nmov %rsp,%rbp\n.cfi_def_cfa_register 6\nsub $" i % 100 * 16 + 16 ",%rsp\nleave"
    print ".cfi_def_cfa 7,8\nret\n.cfi_endproc\n.size " f ",.-" f "\n.space 120,0x90"
  }
  print ".section .rodata\n.space 6000000,1"
}' >"$tmp/text.s"
awk 'BEGIN {
  for (i = 0; i < 10000; i++)
    printf "int line%d(int x)\n{\n\tint y = x * %d;\n\tif (y > 3)\n\t\ty += x;\n\treturn y;\n}\n", i, i
}' >"$tmp/lines.c"
gcc -c "$tmp/text.s" -o "$tmp/text.o"
gcc -g -c "$tmp/lines.c" -o "$tmp/lines.o"
gcc -g "$tmp/main.c" -o "$tmp/small"
for i in 0 1 2 3 4 5 6 7 8 9; do
  objcopy --prefix-symbols="part_${i}_" "$tmp/text.o" "$tmp/text$i.o"
done
gcc -g "$tmp/main.c" "$tmp/lines.o" "$tmp"/text?.o -o "$tmp/big"
rm "$tmp"/text* "$tmp"/lines*
mb=$(($(stat -c %s "$tmp/big") / 1000000))

TIMEFORMAT='%R %U %S'
# Wall and CPU milliseconds of one run, appended to $tmp/$1.wall and .cpu; $2: the file that must name the
# program's own function, or nothing worked.
timed() {
  local name=$1 wall user sys
  shift
  { time timeout 60 "$@" >"$tmp/out" 2>"$tmp/err"; } 2>"$tmp/time" || { cat "$tmp/err"; exit 1; }
  read -r wall user sys <"$tmp/time"
  grep -q '	make	' "$tmp/out" || { echo "no figures from: $*"; cat "$tmp/out" "$tmp/err"; exit 1; }
  awk "BEGIN { print $wall * 1000 }" >>"$tmp/$name.wall"
  awk "BEGIN { print ($user + $sys) * 1000 }" >>"$tmp/$name.cpu"
}

attach() {
  "$tmp/$1" &
  victim=$!
  sleep 0.1
  timed "attach-$1" "$heaptop" -q -b -n 1 -d 0.1 -p "$victim"
  kill "$victim"
  wait "$victim" 2>/dev/null || :
  victim=
}

median() {
  sort -n "$1" | awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'
}

missed=0
# name, what, milliseconds that the big program may take more
report() {
  local small big small_wall big_wall verdict=ok
  small=$(median "$tmp/$1-small.cpu")
  big=$(median "$tmp/$1-big.cpu")
  small_wall=$(median "$tmp/$1-small.wall")
  big_wall=$(median "$tmp/$1-big.wall")
  awk "BEGIN { exit !($big - $small <= $3) }" || { verdict=MISSED; missed=1; }
  awk "BEGIN { printf \"bigbinary %s | %s | %.0f ms CPU, small program %.0f, ratio %.2f; wall %.0f and %.0f ms, ratio %.2f | at most %d ms CPU more | %s\\n\",
    \"$1\", \"$2, $mb MB\", $big, $small, $big / $small, $big_wall, $small_wall, $big_wall / $small_wall, $3, \"$verdict\" }"
}

for ((i = 0; i < runs; i++)); do
  attach small
  attach big
done
report attach "heaptop -b -n 1 -d 0.1 -p PID" 80
exit $missed
