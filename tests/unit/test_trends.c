/*
 * Live bytes of modules and threads over time: each second's are that view's row's, a row that has gone is forgotten,
 * the oldest gives way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/mem.h"
#include "heap/view.h"
#include "report/groups.h"
#include "report/report.h"
#include "report/trends.h"
#include "tests/lib/fakeheap.h"

#define STEPS 13

static uint64_t find(const struct report_site *rows, size_t n, uint64_t id, bool *ret_there)
{
	for (size_t i = 0; i < n; i++)
		if (rows[i].id == id) {
			*ret_there = true;
			return rows[i].s.live_bytes;
		}
	*ret_there = false;
	return 0;
}

/* A report per view, which knows nothing of the time before, says what each second's value must be. */
static void check(enum report_group group)
{
	struct fakeheap_config config = { .rate = 1, .threads = true };
	struct fakeheap *heap = fakeheap_create(&config);
	struct report *r = report_create(fakeheap_names(heap), true);
	struct view *views[STEPS];
	size_t n, compared = 0;

	for (int i = 0; i < STEPS; i++) {
		fakeheap_step(heap);
		views[i] = fakeheap_view(heap);
		report_set_view(r, views[i]);
	}
	const struct report_site *rows = report_rows(r, group, REPORT_LIVE_BYTES, false, &n);
	assert_true(n > 1);
	for (uint32_t back = 1; back <= REPORT_TREND; back++) {
		struct report *then = report_create(fakeheap_names(heap), true);
		size_t nthen;
		report_set_view(then, views[STEPS - back]);
		const struct report_site *were = report_rows(then, group, REPORT_LIVE_BYTES, false, &nthen);
		for (size_t i = 0; i < n; i++) {
			bool there;
			assert_true(rows[i].ntrend <= REPORT_TREND);
			if (rows[i].ntrend < back)
				continue;
			uint64_t was = find(were, nthen, rows[i].id, &there);
			assert_true(there);
			assert_int_equal(rows[i].trend[rows[i].ntrend - back], was);
			compared++;
		}
		report_destroy(then);
	}
	assert_true(compared > 2 * REPORT_TREND);
	assert_int_equal(rows[0].ntrend, REPORT_TREND);
	assert_true(rows[0].trend_seconds > REPORT_TREND - 1.5 && rows[0].trend_seconds < REPORT_TREND - 0.5);
	for (int i = 0; i < STEPS; i++)
		view_unref(views[i]);
	report_destroy(r);
	fakeheap_destroy(heap);
}

static void test_modules(void **state)
{
	(void)state;
	check(REPORT_BY_MODULE);
}

static void test_threads(void **state)
{
	(void)state;
	check(REPORT_BY_THREAD);
}

static void put(struct trends *trends, const uint64_t ids[], const uint64_t values[], size_t n)
{
	struct trend *now = xcalloc(n + 1, sizeof(*now));

	for (size_t i = 0; i < n; i++)
		now[i] = (struct trend){ .id = ids[i], .now = values[i] };
	trends_put(trends, now, n);
	free(now);
}

static uint32_t length(const struct trends *trends, uint64_t id)
{
	struct report_site row = { .id = id };

	trends_get(trends, &row);
	return row.ntrend;
}

static void test_come_and_go(void **state)
{
	struct trends trends = { 0 };

	(void)state;
	assert_int_equal(length(&trends, 5), 0);
	put(&trends, (uint64_t[]){ 9, 5 }, (uint64_t[]){ 90, 50 }, 2);
	put(&trends, (uint64_t[]){ 5, 7, 9 }, (uint64_t[]){ 51, 70, 91 }, 3);
	assert_int_equal(length(&trends, 5), 2);
	assert_int_equal(length(&trends, 7), 1);
	assert_int_equal(length(&trends, 9), 2);
	put(&trends, (uint64_t[]){ 9 }, (uint64_t[]){ 92 }, 1);
	assert_int_equal(length(&trends, 5), 0);
	struct report_site row = { .id = 9 };
	trends_get(&trends, &row);
	assert_int_equal(row.ntrend, 3);
	assert_int_equal(row.trend[0], 90);
	assert_int_equal(row.trend[2], 92);
	put(&trends, NULL, NULL, 0);
	assert_int_equal(length(&trends, 9), 0);
	trends_deinit(&trends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modules),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
