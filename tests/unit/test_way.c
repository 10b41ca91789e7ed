/* Ways into the kernel and back in a program's code: bytes in, what they would do out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "target/cpu.h"

#define BASE 0x401000u

static bool find(const char *bytes, size_t len, struct cpu_way *way)
{
	*way = (struct cpu_way){ 0 };
	return cpu_way_find_direct((const uint8_t *)bytes, len, BASE, way);
}
#define FIND(bytes, way) find(bytes, sizeof(bytes) - 1, way)

static void test_trampoline(void **state)
{
	struct cpu_way way;

	(void)state;
	assert_true(FIND("\x0f\x05\x58\xc3\x48\xc7\xc0\x0f\0\0\0\x0f\x05\x90", &way));
	assert_true(way.direct && way.words == 0);
	assert_int_equal(way.back, BASE + 4);
	assert_int_equal(way.trap, BASE + 11);
	assert_int_equal(way.len, 9);
	assert_true(FIND("\x90\xb8\x0f\0\0\0\x0f\x05", &way));
	assert_int_equal(way.back, BASE + 1);
	assert_int_equal(way.trap, BASE + 6);
	/* another call's number */
	assert_false(FIND("\xb8\x0e\0\0\0\x0f\x05", &way));
}

static void test_endings(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		unsigned words;
	} good[] = {
		{ "\x58\xc3", 2, 1 },					/* pop %rax; ret */
		{ "\x89\xd8\x5b\xc3", 4, 1 },				/* mov %ebx,%eax; pop %rbx; ret */
		{ "\x44\x89\xe0\x48\x83\xc4\x18\x5b\x5d\x41\x5c\xc3", 12, 6 },
		{ "\x89\xe8\xc3", 3, 0 },
		{ "\xb8\x0f\0\0\0\xc3", 6, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		uint8_t code[32] = { 0x0f, 0x05, 0xcc };
		struct cpu_way way = { 0 };
		memcpy(code + 3, good[i].bytes, good[i].len);
		assert_true(cpu_way_find(code, sizeof(code), BASE, &way));
		assert_false(way.direct);
		assert_int_equal(way.trap, BASE);
		assert_int_equal(way.back, BASE + 3);
		assert_int_equal(way.words, good[i].words);
		assert_int_equal(way.len, good[i].len);
		assert_memory_equal(way.bytes, good[i].bytes, good[i].len);
		/* cut off before its return it is none */
		way = (struct cpu_way){ 0 };
		assert_false(cpu_way_find(code, 3 + good[i].len - 1, BASE, &way));
		assert_int_equal(way.back, 0);
	}
}

static void test_no_endings(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} bad[] = {
		{ "\x58\x5c\xc3", 3 },				/* pop %rsp */
		{ "\x89\xc8\xc3", 3 },				/* mov %ecx,%eax: the kernel changes it */
		{ "\x89\xd8\x31\xc0\xc3", 5 },			/* %eax changes */
		{ "\x89\xd8\x48\x83\xc4\x09\xc3", 7 },		/* half a word */
		{ "\x89\xd8\x48\x83\xc4\xf8\xc3", 7 },		/* down */
		{ "\x89\xd8\x48\x83\xc4\x78\x48\x83\xc4\x78\x48\x83\xc4\x78\xc3", 15 },	/* 45 words */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct cpu_way way = { .trap = BASE };
		assert_false(cpu_way_find((const uint8_t *)bad[i].bytes, bad[i].len, BASE, &way));
	}
}

/* The two halves may lie in different pieces of code. */
static void test_pieces(void **state)
{
	struct cpu_way way = { 0 };

	(void)state;
	assert_false(cpu_way_find((const uint8_t *)"\x90\x0f\x05", 3, BASE, &way));
	assert_true(cpu_way_find((const uint8_t *)"\x90\x58\xc3", 3, 2 * BASE, &way));
	assert_int_equal(way.trap, BASE + 1);
	assert_int_equal(way.back, 2 * BASE + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trampoline),
		cmocka_unit_test(test_endings),
		cmocka_unit_test(test_no_endings),
		cmocka_unit_test(test_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
