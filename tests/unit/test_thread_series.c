/*
 * What threads held at the last times: of each what the views of those times said, and together all that was live then, also
 * where ended threads have been added up; written into a profile and read back the rows' trends are the same; nonsense is
 * left out.
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
#include "heap/series.h"
#include "heap/threads.h"
#include "heap/view.h"
#include "report/groups.h"
#include "report/report.h"
#include "symbol/names.h"
#include "tests/lib/fakeheap.h"
#include "tests/lib/whole.h"

#define SECOND UINT64_C(1000000000)
#define VIEWS 14
#define BORN 60			/* threads a second, all of one slot: beyond THREADS_ENDED they are merged */

static const struct view_info info = { .command = (char *)"x", .state = VIEW_RUNNING };

/* views[i]: a second apart; the last one has the series. */
static void make_views(struct view *views[VIEWS])
{
	struct heap *heap = heap_create(NULL);
	const uint64_t stack[1] = { frame_addr(1, 0x1000) };
	uint64_t addr = 0x10000;
	uint32_t tid = 1000;

	for (uint64_t i = 0; i < VIEWS; i++) {
		uint64_t now = (i + 1) * SECOND;
		for (uint32_t k = 0; k < BORN; k++, tid++) {
			heap_thread(heap, 1, tid, k % 2 ? "odd\0\0\0\0\0\0\0\0\0\0\0\0\0" : "even\0\0\0\0\0\0\0\0\0\0\0\0", now);
			heap_alloc_whole(heap, addr, 100 + tid % 50, 1, now, 1, stack, 1, 0);
			addr += 4096;
		}
		/* blocks of threads that ended long ago go, too */
		for (uint64_t k = 0; i > 2 && k < BORN / 4; k++)
			heap_free(heap, 0x10000 + ((i - 3) * BORN + k * 3) * 4096, now, 1, false);
		if (i + 1 == VIEWS)
			heap_classify(heap, now, true);
		views[i] = heap_publish(heap, &info, now);
		/* too soon for a step */
		view_unref(heap_publish(heap, &info, now + SECOND / 4));
	}
	heap_destroy(heap);
}

/* Of a thread that isn't a sum; false: there was none. */
static bool live_of(const struct view *view, uint32_t tid, uint64_t *ret)
{
	for (size_t i = 0; i < view->nthreads; i++) {
		if (view->threads[i].tid != tid)
			continue;
		*ret = view->threads[i].s.live_bytes;
		return true;
	}
	return false;
}

static void test_heap(void **state)
{
	struct view *views[VIEWS];
	const struct view *last;
	uint32_t merged = 0;

	(void)state;
	make_views(views);
	for (int i = 0; i + 1 < VIEWS; i++)
		assert_null(views[i]->thread_series);
	last = views[VIEWS - 1];
	struct view_series *series = last->thread_series;
	assert_non_null(series);
	assert_int_equal(series->n, SERIES_STEPS);
	assert_int_equal(series->ntraces, last->nthreads);
	for (uint32_t k = 0; k < series->n; k++) {
		const struct view *then = views[VIEWS - series->n + k];
		uint64_t sum = 0, was;
		assert_true(series->times[k] == then->time);
		for (size_t i = 0; i < last->nthreads; i++) {
			uint64_t held = view_series_of(series, i)[k];
			sum += held;
			merged += last->threads[i].merged;
			if (last->threads[i].merged)
				continue;
			assert_int_equal(held, live_of(then, last->threads[i].tid, &was) ? was : 0);
		}
		assert_int_equal(sum, then->totals.s.live_bytes);
	}
	assert_true(merged > THREADS_ENDED);
	for (int i = 0; i < VIEWS; i++)
		view_unref(views[i]);
}

static const struct report_site *row_of(const struct report_site *rows, size_t n, const struct report_site *which)
{
	for (size_t i = 0; i < n; i++)
		if (rows[i].more->tid == which->more->tid && rows[i].more->merged == which->more->merged &&
		    !strcmp(rows[i].function, which->function))
			return &rows[i];
	fail_msg("the file has no such thread");
	return NULL;
}

static void test_file(void **state)
{
	struct fakeheap *heap = fakeheap_create(&(struct fakeheap_config){ .rate = 1, .threads = true });
	struct view *views[VIEWS], *back;
	struct names *names = fakeheap_names(heap), *back_names;
	struct report *live = report_create(names, true);
	size_t len, n, nback, compared = 0;
	char *bytes;

	(void)state;
	for (int i = 0; i < VIEWS; i++) {
		fakeheap_step(heap);
		views[i] = fakeheap_view(heap);
		report_set_view(live, views[i]);
	}
	FILE *out = open_memstream(&bytes, &len);
	assert_null(pprof_write(out, live, names, NULL, false));
	fclose(out);
	assert_null(pprof_read(bytes, len, "x", &back, &back_names));
	free(bytes);
	struct report *file = report_create(back_names, true);
	report_set_view(file, back);
	const struct report_site *was = report_rows(live, REPORT_BY_THREAD, REPORT_LIVE_BYTES, false, &n);
	const struct report_site *is = report_rows(file, REPORT_BY_THREAD, REPORT_LIVE_BYTES, false, &nback);
	assert_int_equal(n, nback);
	assert_true(n > 2);
	for (size_t i = 0; i < n; i++) {
		const struct report_site *same = row_of(is, nback, &was[i]);
		assert_int_equal(same->ntrend, SERIES_STEPS);
		assert_true(same->trend_seconds == SERIES_STEPS - 1);
		assert_int_equal(same->trend[SERIES_STEPS - 1], was[i].s.live_bytes);
		/* who came later held nothing before */
		for (uint32_t k = 0; k < SERIES_STEPS - was[i].ntrend; k++)
			assert_int_equal(same->trend[k], 0);
		/* what a sum held is told of all that are in it now */
		if (was[i].more->merged)
			continue;
		assert_memory_equal(same->trend + SERIES_STEPS - was[i].ntrend, was[i].trend, was[i].ntrend * sizeof(was[i].trend[0]));
		compared += was[i].ntrend == SERIES_STEPS && same->trend[0] != same->trend[SERIES_STEPS - 1];
	}
	assert_true(compared > 1);
	report_destroy(live);
	report_destroy(file);
	for (int i = 0; i < VIEWS; i++)
		view_unref(views[i]);
	view_unref(back);
	names_destroy(back_names);
	fakeheap_destroy(heap);
}

static void test_nonsense(void **state)
{
	static const char *const ignored[] = {
		"thread-held 0 5 6",		/* before the times */
		"thread-steps 3ff0000000000000 3ff0000000000000",
		"thread-steps",
	};
	static const char *const held[] = { "thread-held 2 1 2", "thread-held 0 1", "thread-held 0 1 2 3", "thread-held ffffffffff 1 2" };
	struct steps steps = { 0 };
	struct view *view = view_create();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		steps_read_threads(&steps, 2, ignored[i]);
	assert_int_equal(steps.n + steps.nheld, 0);
	steps_finish_threads(&steps, view);
	assert_null(view->thread_series);
	/* those of traces are others */
	assert_false(steps_read_threads(&steps, 2, "steps 3ff0000000000000 4000000000000000"));
	assert_true(steps_read_threads(&steps, 2, "thread-steps 3ff0000000000000 4000000000000000"));
	for (size_t i = 0; i < ARRAY_SIZE(held); i++)
		steps_read_threads(&steps, 2, held[i]);
	assert_int_equal(steps.nheld, 0);
	for (int i = 0; i < 1000; i++)
		steps_read_threads(&steps, 2, "thread-held 1 a b");
	assert_int_equal(steps.nheld, 2);
	view->nthreads = 2;
	view->threads = xcalloc(2, sizeof(*view->threads));
	view->threads[0].s.live_bytes = 7;
	steps_finish_threads(&steps, view);
	assert_int_equal(view_series_of(view->thread_series, 0)[1], 7);
	assert_int_equal(view_series_of(view->thread_series, 1)[0], 10);
	assert_int_equal(view_series_of(view->thread_series, 1)[1], 11);
	view_unref(view);
	steps_deinit(&steps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_heap),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
