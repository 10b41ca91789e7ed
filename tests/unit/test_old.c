/*
 * What of the live bytes is a minute old or more: of each trace exactly what the cells of its live blocks say, bounded by
 * what is live until somebody looks again; the same in sums, sites, both trees, of some threads, and in a file read back.
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
#include "export/pprof.h"
#include "heap/classes.h"
#include "heap/heap.h"
#include "heap/merge.h"
#include "heap/view.h"
#include "report/groups.h"
#include "report/report.h"
#include "symbol/names.h"
#include "tests/lib/whole.h"

#define SECOND UINT64_C(1000000000)
#define LEAVES 5u
#define BLOCKS 600u

static const struct view_info info = { .command = (char *)"x" };

/* Blocks of two threads, one every half second; some are freed. */
static struct heap *old_heap(uint64_t rate, uint64_t *ret_now)
{
	struct heap *heap = heap_create(NULL);
	uint64_t now = SECOND;

	heap_thread(heap, 0, 1, "main\0\0\0\0\0\0\0\0\0\0\0", 0);
	heap_thread(heap, 1, 2, "other\0\0\0\0\0\0\0\0\0\0", 0);
	for (uint32_t i = 0; i < BLOCKS; i++, now += SECOND / 2) {
		const uint64_t stack[2] = { frame_addr(1, 0x1000 + i % LEAVES * 16), frame_addr(1, 0x8000) };
		heap_alloc_whole(heap, 0x10000 + i * 64, 100 + i % 7 * 50, rate, now, i & 1, stack, 2, 0);
		if (i % 4 == 3)
			heap_free(heap, 0x10000 + (i - 3) * 64, now, i & 1, false);
	}
	*ret_now = now;
	return heap;
}

static struct view *look(struct heap *heap, uint64_t now)
{
	heap_classify(heap, now, true);
	return heap_publish(heap, &info, now);
}

static uint64_t by_cells(const struct view *view, uint32_t node)
{
	size_t n;
	const struct class_cell *cell = classes_of_node(view->classes, node, &n);
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += cell[i].age >= CLASS_AGE_MINUTE ? cell[i].bytes : 0;
	return bytes;
}

static void assert_old(const struct view *view)
{
	uint64_t sum = 0;

	assert_true(report_value_known(view, REPORT_OLD_BYTES));
	for (size_t i = 0; i < view->ntraces; i++) {
		const struct view_trace *t = view_trace(view, i);
		if (!t)
			continue;
		assert_int_equal(t->s.old_bytes, by_cells(view, t->node));
		assert_true(t->s.old_bytes <= t->s.live_bytes);
		sum += t->s.old_bytes;
	}
	assert_true(sum > 0 && sum < view->totals.s.live_bytes);
	assert_int_equal(view->totals.s.old_bytes, sum);
}

static void check(uint64_t rate)
{
	uint64_t now;
	struct heap *heap = old_heap(rate, &now);
	struct view *first = look(heap, now), *later = look(heap, now + 30 * SECOND);

	assert_old(first);
	assert_old(later);
	assert_true(later->totals.s.old_bytes > first->totals.s.old_bytes);
	heap_choose_threads(heap, "other");
	struct view *some = look(heap, now + 30 * SECOND);
	assert_old(some);
	assert_true(some->totals.s.old_bytes < later->totals.s.old_bytes);
	view_unref(first);
	view_unref(later);
	view_unref(some);
	heap_destroy(heap);
}

static void test_exact(void **state)
{
	(void)state;
	check(1);
}

static void test_sampled(void **state)
{
	(void)state;
	check(300);
}

/* By the clock: a minute is old, a moment less isn't. */
static void test_minute(void **state)
{
	struct heap *heap = heap_create(NULL);
	const uint64_t stack = frame_addr(1, 0x1000);

	(void)state;
	heap_alloc_whole(heap, 0x1000, 100, 1, 5 * SECOND, 0, &stack, 1, 0);
	struct view *before = look(heap, 65 * SECOND - 1), *after = look(heap, 65 * SECOND);
	assert_int_equal(before->totals.s.old_bytes, 0);
	assert_int_equal(after->totals.s.old_bytes, 100);
	/* nobody has looked since, but it has gone */
	heap_free(heap, 0x1000, 66 * SECOND, 0, false);
	struct view *gone = heap_publish(heap, &info, 66 * SECOND);
	assert_int_equal(gone->totals.s.old_bytes, 0);
	assert_false(gone->classes_fresh);
	heap_forget_classes(heap);
	struct view *unknown = heap_publish(heap, &info, 67 * SECOND);
	assert_false(report_value_known(unknown, REPORT_OLD_BYTES));
	view_unref(before);
	view_unref(after);
	view_unref(gone);
	view_unref(unknown);
	heap_destroy(heap);
}

static uint64_t below(struct report_tree *tree, const struct report_cell *cell)
{
	size_t n = 0;
	const struct report_cell *const *children = cell->has_children
		? report_tree_children(tree, cell, REPORT_OLD_BYTES, &n) : NULL;
	uint64_t sum = cell->self.old_bytes;

	for (size_t i = 0; i < n; i++)
		sum += below(tree, children[i]);
	assert_int_equal(sum, cell->total.old_bytes);
	return sum;
}

static void assert_everywhere(struct report *r, const struct view *view)
{
	uint64_t want = view->totals.s.old_bytes;

	for (int group = 0; group < REPORT_GROUPS; group++) {
		size_t n;
		uint64_t sum = 0;
		const struct report_site *rows = report_rows(r, group, REPORT_OLD_BYTES, false, &n);
		for (size_t i = 0; i < n; i++) {
			sum += rows[i].s.old_bytes;
			assert_true(!i || rows[i - 1].s.old_bytes >= rows[i].s.old_bytes);
		}
		/* nobody counts it by thread */
		assert_int_equal(sum, group == REPORT_BY_THREAD ? 0 : want);
	}
	assert_int_equal(below(report_tree(r, false), report_tree_root(report_tree(r, false))), want);
	assert_int_equal(report_tree_root(report_tree(r, true))->total.old_bytes, want);
}

static void test_everywhere(void **state)
{
	uint64_t now;
	struct heap *heap = old_heap(1, &now);
	struct names *names = names_create(NULL), *back_names;
	struct report *r = report_create(names, true);

	(void)state;
	/* the second is a step on from the first: sums take the difference */
	for (int i = 0; i < 2; i++) {
		struct view *view = look(heap, now + (uint64_t)i * 20 * SECOND);
		report_set_view(r, view);
		assert_everywhere(r, view);
		view_unref(view);
	}
	CLEANUP_FREE char *bytes = NULL;
	size_t len;
	FILE *out = open_memstream(&bytes, &len);
	assert_null(pprof_write(out, r, names, NULL, false));
	fclose(out);
	struct view *back;
	assert_null(pprof_read(bytes, len, "x", &back, &back_names));
	assert_old(back);
	assert_int_equal(back->totals.s.old_bytes, report_view(r)->totals.s.old_bytes);
	view_unref(back);
	names_destroy(back_names);
	report_destroy(r);
	names_destroy(names);
	heap_destroy(heap);
}

/* Of several processes: the sum, also of one that has gone. */
static void test_processes(void **state)
{
	struct merge *m = merge_create(0);
	struct merge_member *members[2];
	uint64_t now, sum = 0;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct heap *heap = old_heap(1, &now);
		struct view *view = look(heap, now + (uint64_t)i * 10 * SECOND);
		members[i] = merge_join(m);
		merge_take(m, members[i], view);
		sum += view->totals.s.old_bytes;
		view_unref(view);
		heap_destroy(heap);
	}
	for (int i = 0; i < 2; i++) {
		struct view *view = merge_publish(m, &info, 1);
		assert_old(view);
		assert_int_equal(view->totals.s.old_bytes, sum);
		view_unref(view);
		if (!i)
			merge_leave(m, members[0]);
	}
	merge_destroy(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_sampled),
		cmocka_unit_test(test_minute),
		cmocka_unit_test(test_everywhere),
		cmocka_unit_test(test_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
