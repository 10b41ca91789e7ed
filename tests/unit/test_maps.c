/* Lines of /proc/PID/maps and gaps between mappings: text and records in, values out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "elf/modules.h"
#include "target/maps.h"

static bool parse(char *buf, const char *line, struct mapping *m)
{
	strcpy(buf, line);
	return maps_parse_line(buf, m);
}

static void test_lines(void **state)
{
	(void)state;
	char buf[512];
	struct mapping m;

	assert_true(parse(buf, "7f0c1a200000-7f0c1a228000 r-xp 00001000 fe:01 131204"
			       "                     /usr/lib/x86_64-linux-gnu/libc.so.6", &m));
	assert_int_equal(m.start, 0x7f0c1a200000);
	assert_int_equal(m.end, 0x7f0c1a228000);
	assert_int_equal(m.offset, 0x1000);
	assert_int_equal(m.prot, PROT_READ | PROT_EXEC);
	assert_false(m.shared);
	assert_int_equal(m.dev, makedev(0xfe, 1));
	assert_int_equal(m.inode, 131204);
	assert_string_equal(m.path, "/usr/lib/x86_64-linux-gnu/libc.so.6");
	assert_false(m.deleted);

	assert_true(parse(buf, "00400000-00401000 rw-s 00000000 00:05 9 /dev/shm/a b\\012c (deleted)",
			  &m));
	assert_string_equal(m.path, "/dev/shm/a b\nc");
	assert_true(m.deleted);
	assert_true(m.shared);
	assert_int_equal(m.prot, PROT_READ | PROT_WRITE);

	/* No trailing blanks, or any number of them; other backslashes are just that. */
	assert_true(parse(buf, "00400000-00401000 ---p 00000000 00:00 0", &m));
	assert_string_equal(m.path, "");
	assert_int_equal(m.prot, 0);
	assert_true(parse(buf, "00400000-00401000 ---p 00000000 00:00 0 ", &m));
	assert_string_equal(m.path, "");
	assert_true(parse(buf, "00400000-00401000 r--p 00000000 08:01 7 /a\\b\\0121", &m));
	assert_string_equal(m.path, "/a\\b\n1");
	assert_true(parse(buf, "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]", &m));
	assert_int_equal(m.end, 0xffffffffff601000);
	/* A name alone doesn't make a file deleted. */
	assert_true(parse(buf, "00400000-00401000 r--p 00000000 00:00 0 [anon:x (deleted)]", &m));
	assert_false(m.deleted);
}

static void test_malformed(void **state)
{
	(void)state;
	static const char *const lines[] = {
		"", " ", "-", "400000", "400000-", "400000-401000", "400000-401000 ",
		"400000-401000 r-x", "400000-401000 r-xp", "400000-401000 r-xp ",
		"400000-401000 r-xp 0", "400000-401000 r-xp 0 8", "400000-401000 r-xp 0 8:1",
		"400000-401000 r-xp 0 8:1 ", "400000-401000 r-xp 0 8:1 x", "401000-400000 r-xp 0 8:1 3",
		"400000-400000 r-xp 0 8:1 3", "-400000-401000 r-xp 0 8:1 3",
		"400000-1ffffffffffffffff r-xp 0 8:1 3", "400000-401000 r-xp 0 8:1 3/a",
		"0x400000-401000 r-xp 0 8:1 3", "400000 -401000 r-xp 0 8:1 3",
		"400000-401000 r-xpp 0 8:1 3",
	};
	char buf[128];
	struct mapping m;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		if (parse(buf, lines[i], &m))
			fail_msg("taken: \"%s\"", lines[i]);
	}
}

/* ---- gaps ---- */

#define MIB (1ull << 20)
#define GIB (1ull << 30)

static struct gap_query query(uint64_t lo, uint64_t hi, uint64_t bytes)
{
	return (struct gap_query){ .lo = lo, .hi = hi, .reach = 2 * GIB - 65536, .bytes = bytes,
				   .page = 4096, .min_addr = 65536, .max_addr = (1ull << 47) - 4096,
				   .heap_room = 64 * MIB, .stack_room = 10 * MIB };
}

static struct mapping map(uint64_t start, uint64_t end, const char *path)
{
	return (struct mapping){ .start = start, .end = end, .path = path };
}

static void test_gap_near(void **state)
{
	(void)state;
	const struct mapping maps[] = {
		map(0x555500000000, 0x555500100000, "/prog"),
		map(0x7f0000000000, 0x7f0000200000, "/lib/a"),
		map(0x7f0000203000, 0x7f0000300000, "/lib/b"),
	};
	struct gap_query q = query(0x7f0000000000, 0x7f0000300000, 4096);

	/* Between a and b there are 3 pages, and one on either side stays free. */
	assert_int_equal(maps_find_gap(maps, 3, &q), 0x7f0000201000);
	q = query(0x7f0000000000, 0x7f0000200000, 8192);
	assert_int_equal(maps_find_gap(maps, 3, &q), 0x7f0000000000 - 4096 - 8192);
	q = query(0x555500000000, 0x555500100000, MIB);
	uint64_t at = maps_find_gap(maps, 3, &q);
	assert_true(at == 0x555500101000 || at == 0x555500000000 - 4096 - MIB);
	/* Nothing within reach of both. */
	q = query(0x555500000000, 0x7f0000300000, 4096);
	assert_int_equal(maps_find_gap(maps, 3, &q), 0);
	/* Larger than all that is within reach. */
	q = query(0x7f0000000000, 0x7f0000200000, 5 * GIB);
	assert_int_equal(maps_find_gap(maps, 3, &q), 0);
	/* No mapping at all. */
	q = query(GIB, GIB, 4096);
	assert_true(maps_find_gap(NULL, 0, &q) != 0);
}

static void test_gap_heap(void **state)
{
	(void)state;
	const struct mapping with_heap[] = {
		map(0x10000, 0x500000, "/prog"),	/* nothing free below */
		map(0x600000, 0x700000, "[heap]"),
		map(1 * GIB, 1 * GIB + MIB, "/lib"),
	};
	struct gap_query q = query(0x400000, 0x500000, 2 * MIB);

	/* Between program and heap there is 1 MiB only. */
	assert_int_equal(maps_find_gap(with_heap, 3, &q), 0x700000 + 4096 + 64 * MIB);
	/* A heap that isn't there yet. */
	const struct mapping without[] = { with_heap[0], with_heap[2] };
	q.brk_start = 0x600000;
	assert_int_equal(maps_find_gap(without, 2, &q), 0x600000 + 64 * MIB);
	q.bytes = 65536;
	assert_int_equal(maps_find_gap(without, 2, &q), 0x501000);
	q.heap_room = 1ull << 40;
	q.bytes = 2 * MIB;
	assert_int_equal(maps_find_gap(without, 2, &q), GIB + MIB + 4096);
	assert_int_equal(maps_find_gap(without, 1, &q), 0);
}

static void test_gap_stack_and_low(void **state)
{
	(void)state;
	const struct mapping maps[] = {
		map(0x400000, 0x500000, "/prog"),
		map(0x600000, 0x40000000, "x"),
		map(0x40c00000, 0x40d00000, "[stack]"),
		map(0x40d00000, 0x100000000, "y"),
	};
	struct gap_query q = query(0x40000000, 0x40000000, 4 * MIB);

	/* Free below the stack: 12 MiB, of which 10 belong to it. */
	assert_int_equal(maps_find_gap(maps, 4, &q), 0);
	q.bytes = MIB;
	assert_int_equal(maps_find_gap(maps, 4, &q), 0x40001000);
	/* Never below min_addr. */
	q = query(0x400000, 0x500000, 0x400000 - 65536);
	assert_int_not_equal(maps_find_gap(maps, 4, &q), 65536);
	q.bytes = 0x400000 - 65536 - 4096;
	assert_int_equal(maps_find_gap(maps, 1, &q) >= 65536, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_gap_near),
		cmocka_unit_test(test_gap_heap),
		cmocka_unit_test(test_gap_stack_and_low),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
