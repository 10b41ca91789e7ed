/*
 * Reports against a base: a mark of the same heap, and another heap with modules numbered otherwise.
 * Every difference is compared with what two plain reports say, matched by the names' texts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "heap/heap.h"
#include "heap/view.h"
#include "report/report.h"
#include "symbol/names.h"
#include "tests/lib/whole.h"

#define FUNCTIONS 12
#define BLOCKS 4000

struct program {
	struct heap *heap;
	struct names *names;
	uint32_t first_module;	/* functions lie in this one and the next */
	uint64_t live[BLOCKS];	/* addresses, 0: freed */
	size_t n;
	uint64_t time;
	uint64_t random;
};

static uint32_t below(struct program *p, uint32_t n)
{
	p->random = p->random * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(p->random >> 33) % n;
}

static uint64_t address(const struct program *p, uint32_t function)
{
	return frame_addr(p->first_module + function % 2, 0x100 * (function + 1));
}

static void program_init(struct program *p, uint32_t first_module, uint64_t seed)
{
	memset(p, 0, sizeof(*p));
	p->heap = heap_create(NULL);
	p->names = names_create(NULL);
	p->first_module = first_module;
	p->random = seed;
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		char text[32];
		snprintf(text, sizeof(text), i ? "function_%u" : "strdup", i);
		struct name_func func = { .function = text, .linkage = text, .file = "a.c", .line = i + 1 };
		names_put(p->names, p->first_module + i % 2, 0x100 * (i + 1), false,
			  i % 2 ? "odd.so" : "even", &func, 1);
	}
}

static void program_deinit(struct program *p)
{
	heap_destroy(p->heap);
	names_destroy(p->names);
}

/* Allocations from stacks of functions in [lo, hi), and some frees. */
static void run(struct program *p, size_t n, uint32_t lo, uint32_t hi)
{
	for (size_t i = 0; i < n && p->n < BLOCKS; i++) {
		uint64_t addrs[6];
		size_t depth = 1 + below(p, 5);
		for (size_t k = 0; k < depth; k++)
			addrs[k] = address(p, k || below(p, 3) ? lo + below(p, hi - lo) : 0);
		p->live[p->n] = 16 * (p->n + 1);
		heap_alloc_whole(p->heap, p->live[p->n], 1 + below(p, 1000), 1, p->time += 1000, 0, addrs, depth, 0);
		p->n++;
		if (below(p, 3))
			continue;
		size_t k = below(p, (uint32_t)p->n);
		if (p->live[k])
			heap_free(p->heap, p->live[k], p->time += 1000, 0, false);
		p->live[k] = 0;
	}
}

static struct view *view_of(struct program *p)
{
	struct view_info info = { .command = "prog" };

	return heap_publish(p->heap, &info, p->time);
}

static struct report *report_of(struct view *view, struct names *names)
{
	struct report *r = report_create(names, false);

	report_set_view(r, view);
	return r;
}

static bool same(const char *af, const char *am, const char *bf, const char *bm)
{
	return !strcmp(af, bf) && !strcmp(am, bm);
}

static uint64_t site_bytes(struct report *plain, const char *function, const char *module, bool *ret_there)
{
	size_t n;
	const struct report_site *rows = report_sites(plain, REPORT_LIVE_BYTES, false, &n);

	for (size_t i = 0; i < n; i++)
		if (same(rows[i].function, rows[i].module, function, module)) {
			*ret_there = true;
			return rows[i].s.live_bytes;
		}
	*ret_there = false;
	return 0;
}

static void check_sites(struct report *r, struct report *then)
{
	size_t n, gone = 0, with = 0;
	int64_t sum = 0;
	double whole = 0;
	const struct report_site *rows = report_sites(r, REPORT_DELTA_BYTES, false, &n);

	for (size_t i = 0; i < n; i++) {
		bool there;
		int64_t was = (int64_t)site_bytes(then, rows[i].function, rows[i].module, &there);
		assert_true(rows[i].delta == (int64_t)rows[i].s.live_bytes - was);
		assert_true(!rows[i].gone || (there && !rows[i].s.alloc_q10 && was));
		assert_int_equal(rows[i].fresh, !there && !rows[i].gone);
		assert_true(report_site_value(&rows[i], REPORT_DELTA_BYTES) == (double)rows[i].delta);
		if (i)
			assert_true(llabs(rows[i - 1].delta) >= llabs(rows[i].delta));
		sum += rows[i].delta;
		whole += (double)llabs(rows[i].delta);
		gone += rows[i].gone;
		with += !rows[i].gone;
	}
	assert_true(sum == (int64_t)(report_total(r).live_bytes - report_total(then).live_bytes));
	assert_true(report_whole(r, REPORT_DELTA_BYTES) == whole);
	assert_true(report_whole(r, REPORT_LIVE_BYTES) == (double)report_total(r).live_bytes);
	assert_int_equal(with + gone, n);
}

static const struct report_cell *child_like(struct report_tree *tree, const struct report_cell *parent,
					    const struct report_cell *like)
{
	size_t n;
	const struct report_cell *const *list =
		parent ? report_tree_children(tree, parent, REPORT_LIVE_BYTES, &n) : NULL;

	for (size_t i = 0; parent && i < n; i++)
		if (same(list[i]->function, list[i]->module, like->function, like->module))
			return list[i];
	return NULL;
}

/* Returns the number of cells that are gone. */
static size_t check_cell(struct report_tree *tree, const struct report_cell *cell, struct report_tree *then,
			 const struct report_cell *was)
{
	int64_t before = was ? (int64_t)was->total.live_bytes : 0;
	size_t n, gone = cell->gone;

	assert_true(cell->delta == (int64_t)cell->total.live_bytes - before);
	assert_true(!cell->gone || (was && before && !cell->total.alloc_q10));
	const struct report_cell *const *list = report_tree_children(tree, cell, REPORT_DELTA_BYTES, &n);
	size_t matched = 0, live = 0;
	for (size_t i = 0; i < n; i++) {
		const struct report_cell *old = child_like(then, was, list[i]);
		matched += old && old->total.live_bytes;
		gone += check_cell(tree, list[i], then, old);
		for (size_t k = 0; k < i; k++)
			assert_true(list[k]->key != list[i]->key);
	}
	/* and none of the base's is missing */
	size_t m = 0;
	const struct report_cell *const *olds = was ? report_tree_children(then, was, REPORT_LIVE_BYTES, &m) : NULL;
	for (size_t i = 0; i < m; i++)
		live += olds[i]->total.live_bytes != 0;
	assert_int_equal(matched, live);
	return gone;
}

static size_t check(struct report *r, struct report *then)
{
	size_t gone = 0;

	check_sites(r, then);
	for (int inverted = 0; inverted < 2; inverted++) {
		struct report_tree *a = report_tree(r, inverted), *b = report_tree(then, inverted);
		gone += check_cell(a, report_tree_root(a), b, report_tree_root(b));
	}
	return gone;
}

static void test_mark(void **state)
{
	(void)state;
	struct program p;
	program_init(&p, 1, 1);
	run(&p, 500, 1, 8);
	struct view *mark = view_of(&p);
	struct report *then = report_of(mark, p.names);
	struct report *r = report_of(mark, p.names);

	assert_null(report_base(r));
	size_t n;
	assert_int_equal(report_sites(r, REPORT_DELTA_BYTES, false, &n)->delta, 0);
	assert_null(report_set_base(r, mark, p.names));
	assert_ptr_equal(report_base(r), mark);
	const struct report_site *rows = report_sites(r, REPORT_DELTA_BYTES, false, &n);
	assert_true(n > 3);
	for (size_t i = 0; i < n; i++)
		assert_true(!rows[i].delta && !rows[i].fresh && !rows[i].gone);
	for (int round = 0; round < 5; round++) {
		run(&p, 300, 2, FUNCTIONS);
		struct view *now = view_of(&p);
		report_set_view(r, now);
		view_unref(now);
		assert_int_equal(check(r, then), 0);
	}
	/* the filter is both's */
	assert_null(report_set_filter(r, "function_5"));
	assert_null(report_set_filter(then, "function_5"));
	check(r, then);
	assert_null(report_set_filter(r, "!function_5"));
	assert_null(report_set_filter(then, "!function_5"));
	check(r, then);
	assert_null(report_set_filter(r, NULL));
	assert_null(report_set_filter(then, NULL));
	check(r, then);
	assert_null(report_set_base(r, NULL, NULL));
	assert_null(report_base(r));
	assert_int_equal(report_sites(r, REPORT_DELTA_BYTES, false, &n)->delta, 0);
	report_destroy(r);
	report_destroy(then);
	view_unref(mark);
	program_deinit(&p);
}

/* Another run of the program: other module ids, some functions only there, some only here. */
static void test_file(void **state)
{
	(void)state;
	struct program old, new;
	program_init(&old, 7, 3);
	program_init(&new, 1, 4);
	run(&old, 600, 1, 9);
	run(&new, 600, 4, FUNCTIONS);
	struct view *a = view_of(&old), *b = view_of(&new);
	struct report *then = report_of(a, old.names), *r = report_of(b, new.names);

	assert_null(report_set_filter(r, "function"));
	assert_null(report_set_filter(then, "function"));
	assert_null(report_set_base(r, a, old.names));	/* takes over the filter there is */
	assert_true(check(r, then) > 10);
	assert_null(report_set_filter(r, NULL));
	assert_null(report_set_filter(then, NULL));
	assert_true(check(r, then) > 10);
	report_destroy(r);
	report_destroy(then);
	view_unref(a);
	view_unref(b);
	program_deinit(&old);
	program_deinit(&new);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mark),
		cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
