/*
 * The agent's free filter, in this process (tests/lib/placed.h): which frees are recorded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "tests/lib/placed.h"
#include "wire/wire.h"

static uint32_t more_tags(void *p)
{
	return ((uint32_t *)(state + WIRE_STATE_FILTER))[wire_filter_bucket((uint64_t)p) * WIRE_FILTER_WORDS +
							 WIRE_FILTER_WAYS];
}

/* A bucket holds seven; the others lie elsewhere, and each is found. */
static void test_filter_overflow(void **unused)
{
	(void)unused;
	void *p[WIRE_FILTER_WAYS + 200];

	ctl->max_stack = 0;
	for (unsigned i = 0; i < WIRE_FILTER_WAYS + 200; i++) {	/* all in one bucket */
		bump = 0x600000000000 + (uint64_t)i * (1u << 18);
		p[i] = h_malloc(16);
		expect_alloc(p[i], 16);
		assert_int_equal(more_tags(p[i]), i < WIRE_FILTER_WAYS ? 0 :
				 WIRE_FILTER_MORE + (i - WIRE_FILTER_WAYS + 1));
	}
	h_free((char *)p[0] + 8);
	h_free((char *)p[0] + (1ull << 30));
	expect_nothing();
	for (unsigned i = 0; i < WIRE_FILTER_WAYS + 200; i++) {
		h_free(p[i]);
		expect_free(p[i], WIRE_FREE);
		h_free(p[i]);
	}
	expect_nothing();
	assert_int_equal(more_tags(p[0]), 0);
	assert_int_equal(ctl->free_all, 0);
	for (unsigned i = 0; i < 1u << WIRE_TAG_LINES_LOG2; i++)
		for (unsigned k = 0; k < WIRE_TAG_WAYS; k++)
			assert_int_equal(tags->tag[i][k], 0);
	bump = 0x700000000000;
}

/* No room at all: then every free is recorded. */
static void test_filter_full(void **unused)
{
	(void)unused;
	memset(tags, 0xff, sizeof(*tags));
	ctl->max_stack = 0;
	for (unsigned i = 0; i < WIRE_FILTER_WAYS + 1; i++) {
		bump = 0x600000000000 + (uint64_t)i * (1u << 18);
		expect_alloc(h_malloc(16), 16);
		assert_int_equal(ctl->free_all, i >= WIRE_FILTER_WAYS);
	}
	h_free((void *)bump);
	expect_free((void *)bump, WIRE_FREE);
	bump = 0x700000000000;
}

/* Every address has its own tags, and its own line for each. */
static void test_tags(void **unused)
{
	(void)unused;
	for (uint64_t a = 8; a < 1ull << 47; a = a * 3 + 8)
		for (uint64_t b = a + 8; b < 1ull << 47; b = b * 5 + 24) {
			uint64_t x = wire_tag_hash(a & ~7ull), y = wire_tag_hash(b & ~7ull);

			for (unsigned second = 0; second < 2; second++)
				assert_false(wire_tag_of(x, second) == wire_tag_of(y, second) &&
					     wire_tag_line(x, second) == wire_tag_line(y, second));
			assert_int_not_equal(wire_tag_line(x, 0), wire_tag_line(x, 1));
		}
}

/* Two addresses 8 bytes apart, or the same bucket bits: told apart. */
static void test_filter_exact(void **unused)
{
	(void)unused;
	ctl->max_stack = 0;
	void *p = h_malloc(16);
	expect_alloc(p, 16);
	h_free((char *)p + 8);
	h_free((char *)p + 16);
	h_free((char *)p + (1u << 18));
	h_free((char *)p + (1ull << 40));
	expect_nothing();
	h_free(p);
	expect_free(p, WIRE_FREE);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, placed_setup, placed_teardown)
	const struct CMUnitTest tests[] = {
		T(test_filter_overflow), T(test_filter_full), T(test_tags), T(test_filter_exact),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
