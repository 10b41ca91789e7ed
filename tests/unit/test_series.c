/*
 * What traces held at the last times: of each exactly what the views of those times said, also where traces were merged and
 * their places taken again; written into a profile and read back it is the same, and so are the trends of rows made of it;
 * nonsense is left out.
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
#include "export/steps.h"
#include "heap/heap.h"
#include "heap/merge.h"
#include "heap/series.h"
#include "heap/view.h"
#include "report/groups.h"
#include "report/report.h"
#include "symbol/names.h"
#include "tests/lib/whole.h"

#define SECOND UINT64_C(1000000000)
#define VIEWS 14

static uint64_t random_state = 5;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % n;
}

static const struct view_info info = { .command = (char *)"x", .state = VIEW_RUNNING };

static void allocate(struct heap *heap, uint64_t now, uint32_t stacks)
{
	for (uint32_t i = 0; i < 300; i++) {
		const uint64_t stack[2] = { frame_addr(1, 0x1000 + random_below(stacks) * 16), frame_addr(1, 0x8000) };
		uint64_t addr = 0x10000 + random_below(500) * 64;
		if (random_below(3))
			heap_alloc_whole(heap, addr, 1 + random_below(4000), 1, now, 0, stack, 2, 0);
		else
			heap_free(heap, addr, now, 0, false);
	}
}

static uint64_t live_of(const struct view *view, uint32_t node)
{
	for (size_t i = 0; i < view->ntraces; i++)
		if (view_trace(view, i) && view_trace(view, i)->node == node)
			return view_trace(view, i)->s.live_bytes;
	return 0;
}

/* views[i]: a second apart; the last one has the series. */
static void make_views(struct view *views[VIEWS], uint32_t stacks)
{
	struct heap *heap = heap_create(NULL);

	for (uint64_t i = 0; i < VIEWS; i++) {
		uint64_t now = (i + 1) * SECOND;
		allocate(heap, now, stacks + (uint32_t)i);
		if (i + 1 == VIEWS)
			heap_classify(heap, now, true);
		views[i] = heap_publish(heap, &info, now);
		/* one in between is too soon for a step */
		view_unref(heap_publish(heap, &info, now + SECOND / 4));
	}
	heap_destroy(heap);
}

static void drop_views(struct view *views[VIEWS])
{
	for (int i = 0; i < VIEWS; i++)
		view_unref(views[i]);
}

static void assert_series(struct view *const views[VIEWS], const struct view *last)
{
	struct view_series *series = last->series;
	uint64_t moved = 0;

	assert_non_null(series);
	assert_int_equal(series->n, SERIES_STEPS);
	for (uint32_t k = 0; k < series->n; k++)
		assert_true(series->times[k] == views[VIEWS - series->n + k]->time);
	for (size_t i = 0; i < last->ntraces; i++) {
		const struct view_trace *t = view_trace(last, i);
		for (uint32_t k = 0; t && k < series->n; k++) {
			uint64_t was = live_of(views[VIEWS - series->n + k], t->node);
			assert_int_equal(view_series_of(series, i)[k], was);
			moved += was != t->s.live_bytes;
		}
	}
	assert_true(moved > 10);
}

static void test_heap(void **state)
{
	struct view *views[VIEWS];

	(void)state;
	make_views(views, 20);
	for (int i = 0; i + 1 < VIEWS; i++)
		assert_null(views[i]->series);
	assert_series(views, views[VIEWS - 1]);
	drop_views(views);
}

/* Places of merged traces are taken by others, which held nothing before; nothing of the sum is lost. */
static void test_move(void **state)
{
	struct series series = { 0 };

	(void)state;
	assert_null(series_publish(&series, 3));
	for (int i = 0; i < 3; i++) {
		double time = i;
		assert_true(series_due(&series, time));
		uint64_t *live = series_step(&series, time, 3);
		for (uint64_t k = 0; k < 3; k++)
			live[k] = (uint64_t)i * 10 + k;
		assert_false(series_due(&series, time + 0.5));
	}
	series_move(&series, 0, 5);
	series_move(&series, 99, 1);
	struct view_series *published = series_publish(&series, 8);
	assert_int_equal(published->n, 3);
	for (uint32_t k = 0; k < 3; k++) {
		assert_int_equal(view_series_of(published, 0)[k], 0);
		assert_int_equal(view_series_of(published, 1)[k], k * 10 + 1);
		assert_int_equal(view_series_of(published, 5)[k], k * 10);
		assert_int_equal(view_series_of(published, 7)[k], 0);
	}
	assert_null(view_series_of(published, 8));
	view_series_unref(published);
	series_deinit(&series);
}

static void test_merged(void **state)
{
	struct view *views[VIEWS], *sums[VIEWS];
	struct merge *m = merge_create(0);
	struct merge_member *member = merge_join(m);

	(void)state;
	make_views(views, 20);
	for (int i = 0; i < VIEWS; i++) {
		merge_take(m, member, views[i]);
		sums[i] = merge_publish(m, &info, views[i]->time);
	}
	assert_series(sums, sums[VIEWS - 1]);
	assert_null(sums[VIEWS - 2]->series);
	drop_views(sums);
	drop_views(views);
	merge_destroy(m);
}

static char *written(struct view *view, struct names *names, size_t *ret_len)
{
	char *bytes;
	FILE *out = open_memstream(&bytes, ret_len);
	struct report *r = report_create(names, true);

	report_set_view(r, view);
	assert_null(pprof_write(out, r, names, NULL, false));
	report_destroy(r);
	fclose(out);
	return bytes;
}

static const struct report_site *row_of(const struct report_site *rows, size_t n, uint64_t live)
{
	for (size_t i = 0; i < n; i++)
		if (rows[i].s.live_bytes == live)
			return &rows[i];
	fail_msg("no row with so much");
	return NULL;
}

static void test_file(void **state)
{
	struct view *views[VIEWS], *back;
	struct names *names = names_create(NULL), *back_names;
	size_t len, n, nback;

	(void)state;
	make_views(views, 20);
	struct view *last = views[VIEWS - 1];
	CLEANUP_FREE char *bytes = written(last, names, &len);
	assert_null(pprof_read(bytes, len, "x", &back, &back_names));
	/* the live report saw the views, the other one opens the file: the rows' trends are the same */
	struct report *live = report_create(names, true), *file = report_create(back_names, true);
	for (int i = 0; i < VIEWS; i++)
		report_set_view(live, views[i]);
	report_set_view(file, back);
	for (int group = 0; group < REPORT_GROUPS; group++) {
		const struct report_site *was = report_rows(live, group, REPORT_LIVE_BYTES, false, &n);
		const struct report_site *is = report_rows(file, group, REPORT_LIVE_BYTES, false, &nback);
		assert_int_equal(n, nback);
		for (size_t i = 0; i < n && group != REPORT_BY_THREAD; i++) {
			assert_int_equal(is[i].ntrend, SERIES_STEPS);
			assert_true(is[i].trend_seconds == 9);
			/* rows of the same size may stand in another order; by function and stack nobody keeps live trends */
			if (group != REPORT_BY_SITE && group != REPORT_BY_MODULE)
				continue;
			const struct report_site *same = row_of(is, nback, was[i].s.live_bytes);
			if (was[i].ntrend == SERIES_STEPS && was[i].s.live_bytes)
				assert_memory_equal(same->trend, was[i].trend, sizeof(same->trend));
		}
	}
	/* of what a filter lets through alone */
	assert_null(report_set_filter(file, "nothing at all"));
	report_rows(file, REPORT_BY_SITE, REPORT_LIVE_BYTES, false, &n);
	assert_int_equal(n, 0);
	report_destroy(live);
	report_destroy(file);
	view_unref(back);
	names_destroy(back_names);
	names_destroy(names);
	drop_views(views);
}

static void test_nonsense(void **state)
{
	static const char *const ignored[] = {
		"held 0 5 6",				/* before the times */
		"steps 0",
		"steps 3ff0000000000000 3ff0000000000000",	/* time stands still */
		"steps 7ff0000000000000 7ff0000000000000",
		"steps 1 2 3 4 5 6 7 8 9 a b c",
		"steps x",
	};
	static const char *const held[] = { "held 9 1 2", "held 0 1", "held 0 1 2 3", "held", "held 0 1 2 x", "held ffffffffff 1 2" };
	struct steps steps = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++) {
		assert_true(steps_read(&steps, 2, ignored[i]));
		assert_int_equal(steps.n + steps.nheld, 0);
	}
	assert_false(steps_read(&steps, 2, "cells 0"));
	assert_true(steps_read(&steps, 2, "steps 3ff0000000000000 4000000000000000"));
	assert_int_equal(steps.n, 2);
	for (size_t i = 0; i < ARRAY_SIZE(held); i++)
		steps_read(&steps, 2, held[i]);
	assert_int_equal(steps.nheld, 0);
	/* a million times the same comment takes no more than the samples do */
	for (int i = 0; i < 1000; i++)
		steps_read(&steps, 2, "held 1 a b");
	assert_int_equal(steps.nheld, 2);
	struct view *view = view_create();
	view->nnodes = 2;
	const uint32_t nodes[] = { 0, 1 };
	const struct trace_stats samples[] = { { .live_bytes = 7 }, { .live_bytes = 9 } };
	const struct view_trace traces[] = { { .node = 0 }, { .node = 1 } };
	steps_finish(&steps, nodes, samples, 2, traces, 2, view);
	assert_int_equal(view_series_of(view->series, 0)[0], 7);
	assert_int_equal(view_series_of(view->series, 1)[0], 10);
	assert_int_equal(view_series_of(view->series, 1)[1], 11);
	view_unref(view);
	steps_deinit(&steps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_heap),
		cmocka_unit_test(test_move),
		cmocka_unit_test(test_merged),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
