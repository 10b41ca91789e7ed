/*
 * A heap that leaves small blocks out: the others' figures are exact, a small block that takes a large one's place ends
 * it, realloc across the bound counts what it leaves, and stacks told by their difference stay right.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "heap/heap.h"
#include "heap/view.h"
#include "tests/lib/whole.h"

#define MIN 1000

static const uint64_t stack[] = { 0x1000, 0x2000, 0x3000 };

static void expect(struct heap *heap, uint64_t live, uint64_t allocated, uint64_t blocks)
{
	const struct view_info info = { .command = (char *)"x", .rate = 1, .min_size = MIN };
	struct view *view = heap_publish(heap, &info, 1000);

	assert_int_equal(view->totals.s.live_bytes, live);
	assert_int_equal(view->totals.s.alloc_bytes, allocated);
	assert_int_equal(q10_round(view->totals.s.live_q10), blocks);
	assert_int_equal(view->info.min_size, MIN);
	view_unref(view);
}

static void alloc(struct heap *heap, uint64_t addr, uint64_t size)
{
	heap_alloc_whole(heap, addr, size, 1, 10, 0, stack, 3, 0);
}

static void test_bound(void **state)
{
	struct heap *heap = heap_create(&(struct heap_config){ .min_size = MIN });

	(void)state;
	alloc(heap, 0x10, MIN - 1);
	expect(heap, 0, 0, 0);
	alloc(heap, 0x20, MIN);
	expect(heap, MIN, MIN, 1);
	heap_free(heap, 0x10, 11, 0, false);
	expect(heap, MIN, MIN, 1);
	/* larger, and back */
	alloc(heap, 0x30, 1);
	heap_free(heap, 0x30, 12, 0, true);
	alloc(heap, 0x30, 5000);
	expect(heap, MIN + 5000, MIN + 5000, 2);
	heap_free(heap, 0x30, 13, 0, true);
	alloc(heap, 0x30, 1);
	expect(heap, MIN, MIN + 5000, 1);
	/* its free was lost */
	alloc(heap, 0x20, 1);
	expect(heap, 0, MIN + 5000, 0);
	heap_destroy(heap);
}

static void test_mappings(void **state)
{
	struct heap *heap = heap_create(&(struct heap_config){ .min_size = 8192 });
	const struct heap_stack s = { .addrs = stack, .n = 3 };

	(void)state;
	heap_map(heap, 0x100000, 4096, 10, 0, &s);
	heap_map(heap, 0x200000, 8192, 10, 0, &s);
	const struct view_info info = { .command = (char *)"x" };
	struct view *view = heap_publish(heap, &info, 1000);
	assert_int_equal(view->totals.s.live_bytes, 8192);
	view_unref(view);
	heap_destroy(heap);
}

/* The next stack is told by its difference to one of a block that was left out. */
static void test_stacks(void **state)
{
	struct heap *heap = heap_create(&(struct heap_config){ .min_size = MIN });
	const struct heap_stack next = { .addrs = stack, .n = 1, .keep = 2 };
	uint64_t found[8];

	(void)state;
	alloc(heap, 0x10, 1);
	heap_alloc(heap, 0x20, MIN, 1, 11, 0, &next);
	assert_int_equal(heap_last_stack(heap, 0, found, 8), 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(found[i], stack[i]);
	heap_destroy(heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_mappings),
		cmocka_unit_test(test_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
