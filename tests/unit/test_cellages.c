/*
 * report_cells_held: random stacks of functions with inlined and library's ones in them, blocks of seconds to hours. Of
 * every cell of both trees, asked for alone or among others, the age is what its parts and its old bytes say, with a
 * filter and without libraries, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "heap/heap.h"
#include "heap/view.h"
#include "report/parts.h"
#include "symbol/names.h"
#include "tests/lib/whole.h"

#define ADDRESSES 30
#define SECOND UINT64_C(1000000000)
#define CELLS_MAX 4000u

static uint64_t random_state = 5;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % n;
}

/* Each address is one function, or two, one in the other; few names, so that paths coincide. Module 2 is a library. */
static struct names *random_names(void)
{
	static const char *const functions[] = { "alpha", "beta", "gamma", "malloc", "main" };
	struct names *names = names_create(NULL);

	for (uint64_t i = 0; i < 2 * ADDRESSES; i++) {
		struct name_func funcs[2] = { 0 };
		uint32_t n = 1 + random_below(2), module = 1 + (i >= ADDRESSES);
		for (uint32_t k = 0; k < n; k++)
			funcs[k].function = funcs[k].linkage = functions[random_below(ARRAY_SIZE(functions))];
		names_put(names, module, 0x1000 + i % ADDRESSES * 16, false, module == 1 ? "prog" : "libc.so.6", funcs, n);
	}
	return names;
}

static struct view *random_view(void)
{
	const struct view_info info = { .command = (char *)"x", .rate = 1 };
	struct heap *heap = heap_create(NULL);
	uint64_t now = 0;

	for (uint32_t i = 0; i < 1500; i++) {
		uint64_t stack[6];
		uint32_t depth = random_below(6);
		for (uint32_t k = 0; k < depth; k++)
			stack[k] = frame_addr(1 + (random_below(4) == 0), 0x1000 + random_below(ADDRESSES) * 16ull);
		/* the last ones are young */
		now += i < 1000 ? random_below(10) * SECOND : random_below(30) * (SECOND / 100);
		heap_alloc_whole(heap, 0x10000 + random_below(900) * 16ull, random_below(9000), 1, now, 0, stack, depth, 0);
	}
	heap_classify(heap, now, true);
	struct view *view = heap_publish(heap, &info, now);
	heap_destroy(heap);
	return view;
}

static size_t all_cells(struct report_tree *tree, const struct report_cell *cell, const struct report_cell **ret, size_t n)
{
	size_t nchildren;

	assert_true(n < CELLS_MAX);
	ret[n++] = cell;
	if (!cell->has_children)
		return n;
	const struct report_cell *const *children = report_tree_children(tree, cell, REPORT_LIVE_BYTES, &nchildren);
	for (size_t i = 0; i < nchildren && n < CELLS_MAX; i++)
		n = all_cells(tree, children[i], ret, n);
	return n;
}

/* Half of the bytes and no less are that old. `by_parts`: these don't know which frames are left out. */
static void assert_age(struct report_tree *tree, const struct report_cell *cell, const struct report_held *held, bool by_parts)
{
	uint64_t live = cell->total.live_bytes;
	struct report_parts parts;

	assert_int_equal(held->known, live > 0);
	assert_int_equal(held->threads, 0);
	if (!held->known)
		return;
	assert_int_equal(held->age >= CLASS_AGE_MINUTE, cell->total.old_bytes >= live - live / 2);
	if (!by_parts)
		return;
	report_cell_parts(tree, cell, &parts);
	uint64_t older = 0, than = 0;
	for (unsigned k = 0; k < CLASS_AGES; k++) {
		older += k >= held->age ? parts.ages[k].bytes : 0;
		than += k > held->age ? parts.ages[k].bytes : 0;
	}
	assert_true(older >= live - older);
	assert_true(than < live - than);
}

static void check(const char *filter, bool user_only)
{
	struct names *names = random_names();
	struct view *view = random_view();
	struct report *r = report_create(names, true);
	const struct report_cell **cells = xcalloc(CELLS_MAX, sizeof(*cells));
	struct report_held *held = xcalloc(CELLS_MAX, sizeof(*held));
	unsigned ages = 0;

	assert_null(report_set_filter(r, filter));
	report_set_user_only(r, user_only);
	report_set_view(r, view);
	for (int inverted = 0; inverted < 2; inverted++) {
		struct report_tree *tree = report_tree(r, inverted);
		size_t n = all_cells(tree, report_tree_root(tree), cells, 0);
		assert_true(n > 300);
		/* all at once; a window of the list; each alone, without those on the way to it */
		report_cells_held(tree, cells, n, held);
		for (size_t i = 0; i < n; i++) {
			assert_age(tree, cells[i], &held[i], !user_only && i % 7 == 0);
			ages |= 1u << held[i].age;
		}
		for (size_t i = 0; i + 20 < n; i += 13) {
			struct report_held some[20];
			report_cells_held(tree, cells + i, 20, some);
			assert_memory_equal(some, &held[i], sizeof(some));
		}
		for (size_t i = 0; i < n; i += 5) {
			struct report_held one;
			report_cells_held(tree, &cells[i], 1, &one);
			assert_memory_equal(&one, &held[i], sizeof(one));
		}
		report_cells_held(tree, cells, 0, held);
	}
	/* there was something to confuse */
	assert_true(__builtin_popcount(ages) > 3);
	report_destroy(r);
	view_unref(view);
	names_destroy(names);
	free(cells);
	free(held);
}

static void test_all(void **state)
{
	(void)state;
	check(NULL, false);
}

static void test_filter(void **state)
{
	(void)state;
	check("gamma", false);
	check("!gamma", false);
}

static void test_user_only(void **state)
{
	(void)state;
	check(NULL, true);
	check("!gamma", true);
}

/* Against a base there are cells that only that has: they hold nothing. And a view of which nobody knows. */
static void test_gone_and_unknown(void **state)
{
	(void)state;
	struct names *names = random_names();
	struct view *before = random_view(), *after = random_view();
	struct report *r = report_create(names, true);
	const struct report_cell **cells = xcalloc(CELLS_MAX, sizeof(*cells));
	struct report_held *held = xcalloc(CELLS_MAX, sizeof(*held));
	size_t gone = 0;

	assert_null(report_set_base(r, before, names));
	report_set_view(r, after);
	struct report_tree *tree = report_tree(r, false);
	size_t n = all_cells(tree, report_tree_root(tree), cells, 0);
	report_cells_held(tree, cells, n, held);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(held[i].known, cells[i]->total.live_bytes > 0);
		gone += cells[i]->gone;
	}
	assert_true(gone > 10);
	classes_unref(before->classes);
	before->classes = NULL;
	before->classes_fresh = false;
	report_set_view(r, before);
	tree = report_tree(r, true);
	n = all_cells(tree, report_tree_root(tree), cells, 0);
	report_cells_held(tree, cells, n, held);
	for (size_t i = 0; i < n; i++)
		assert_false(held[i].known);
	report_destroy(r);
	view_unref(before);
	view_unref(after);
	names_destroy(names);
	free(cells);
	free(held);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_user_only),
		cmocka_unit_test(test_gone_and_unknown),
	};

	return cmocka_run_group_tests_name("cellages", tests, NULL, NULL);
}
