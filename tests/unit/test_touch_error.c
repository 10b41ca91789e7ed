/*
 * How sure bytes first touched are: variances of faults add up in traces, in totals and back out of them, go into files and
 * come back, also from files of before there were any; and what is shown of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "export/meta.h"
#include "export/pprof.h"
#include "heap/heap.h"
#include "heap/sums.h"
#include "heap/tree.h"
#include "heap/view.h"
#include "report/report.h"
#include "symbol/names.h"
#include "unwind/unwind.h"

static void touch(struct heap *heap, uint32_t function, uint64_t bytes, double variance)
{
	uint64_t addrs[] = { frame_addr(1, 0x1000 + function * 16ull), frame_addr(1, 0x9000) };
	const struct heap_stack stack = { .addrs = addrs, .n = 2, .why = UNWIND_END_ROOT };

	heap_hit(heap, 0x7f0000000000ull, 0);
	heap_fault(heap, &(struct heap_fault){ .bytes = bytes, .variance = variance }, &stack);
	heap_drop_hits(heap, 1);
}

/* Four estimated by one, of which two are a view later; one counted by another. */
static struct heap *some_heap(struct view **ret_first, struct view **ret_last)
{
	const struct view_info info = { .command = (char *)"x", .rate = 1, .faults = true };
	struct heap *heap = heap_create(NULL);

	touch(heap, 1, 1 << 20, 9e10);
	touch(heap, 1, 1 << 20, 7e10);
	touch(heap, 2, 2 << 20, 0);
	*ret_first = heap_publish(heap, &info, 1000000000);
	touch(heap, 1, 1 << 20, 9e10);
	touch(heap, 1, 1 << 20, 0);
	*ret_last = heap_publish(heap, &info, 2000000000);
	return heap;
}

static double site_error(struct report *r, uint64_t bytes)
{
	size_t n;
	double of;
	const struct report_site *sites = report_sites(r, REPORT_FAULT_BYTES, false, &n);

	for (size_t i = 0; i < n; i++) {
		double se = report_error(&sites[i].s, REPORT_FAULT_BYTES, &of);
		if (sites[i].s.fault_bytes == bytes) {
			assert_true(of == (double)bytes);
			return se;
		}
	}
	fail_msg("no site of %llu", (unsigned long long)bytes);
	return 0;
}

static void check(struct view *view, struct names *names, uint64_t bytes, double var)
{
	struct report *r = report_create(names, true);

	assert_true(fabs(view->totals.s.fault_var - var) < 1);
	report_set_view(r, view);
	assert_true(fabs(site_error(r, bytes) - sqrt(var)) < 1);
	assert_true(site_error(r, 2 << 20) == 0);
	report_destroy(r);
}

static struct names *some_names(void)
{
	struct names *names = names_create(NULL);

	for (uint32_t i = 1; i <= 2; i++) {
		struct name_func func = { .function = i == 1 ? "some" : "more", .file = "a.c", .line = i };
		func.linkage = func.function;
		names_put(names, 1, 0x1000 + i * 16ull, false, "prog", &func, 1);
	}
	return names;
}

static void test_sums(void **state)
{
	(void)state;
	struct trace_stats a = { .fault_bytes = 10, .fault_var = 123.5, .live_var = 1 }, b = { .fault_bytes = 1, .fault_var = 0.25 };
	struct sums sums = { 0 }, more = { 0 };

	sums_add(&sums, &a);
	sums_add(&more, &b);
	sums_merge(&sums, &more);
	assert_true(sums_get(&sums).fault_var == 123.75);
	sums_sub(&sums, &a);
	assert_true(sums_get(&sums).fault_var == 0.25 && sums_get(&sums).live_var == 0);
	sums_sub(&sums, &b);
	assert_true(sums_get(&sums).fault_var == 0);
	trace_stats_add(&a, &b);
	assert_true(a.fault_var == 123.75 && a.fault_bytes == 11);
}

/* The error is that of the value: of live bytes where rows are by anything else. */
static void test_value(void **state)
{
	(void)state;
	const struct trace_stats s = { .live_bytes = 100, .live_var = 16, .fault_bytes = 50, .fault_var = 25 };
	double of;

	assert_true(report_error(&s, REPORT_FAULT_BYTES, &of) == 5 && of == 50);
	assert_true(report_error(&s, REPORT_LIVE_BYTES, &of) == 4 && of == 100);
	assert_true(report_error(&s, REPORT_ALLOC_BPS, &of) == 4 && of == 100);
}

static void test_views_and_file(void **state)
{
	(void)state;
	struct names *names = some_names(), *read_names;
	struct view *first, *last, *back;
	struct heap *heap = some_heap(&first, &last);
	struct report *r = report_create(names, true);
	char *bytes;
	size_t len;

	check(last, names, 4 << 20, 25e10);
	report_set_view(r, last);
	FILE *f = open_memstream(&bytes, &len);
	assert_null(pprof_write(f, r, names, NULL, false));
	fclose(f);
	assert_null(pprof_read(bytes, len, "x", &back, &read_names));
	check(back, read_names, 4 << 20, 25e10);
	report_destroy(r);
	view_unref(back);
	names_destroy(read_names);
	view_unref(first);
	view_unref(last);
	names_destroy(names);
	heap_destroy(heap);
	free(bytes);
}

/* A site that has grown from one view to the next: its error is the new one, to the last bit. */
static void test_differences(void **state)
{
	(void)state;
	struct names *names = some_names();
	struct view *first, *last;
	struct heap *heap = some_heap(&first, &last);
	struct report *r = report_create(names, true);
	size_t n;

	report_set_view(r, first);
	report_sites(r, REPORT_FAULT_BYTES, false, &n);
	assert_int_equal(n, 2);
	report_set_view(r, last);
	assert_true(site_error(r, 4 << 20) == sqrt(25e10));
	report_destroy(r);
	view_unref(first);
	view_unref(last);
	names_destroy(names);
	heap_destroy(heap);
}

static char *comment;

static void keep(void *ctx, const char *text)
{
	(void)ctx;
	free(comment);
	comment = strdup(text);
}

static void test_older_file(void **state)
{
	(void)state;
	struct trace_stats s = { .alloc_q10 = 5 << 10, .samples = 7, .live_samples = 3, .free_cps = 2, .fault_var = 81 };
	struct trace_stats back = { .alloc_q10 = 5 << 10 };
	struct view *view = view_create();

	meta_write_sample(&s, 0, keep, NULL);
	assert_non_null(comment);
	assert_true(meta_read(view, &back, 1, comment));
	assert_true(back.fault_var == 81 && back.samples == 7 && back.free_cps == 2);
	/* one that ends before it; one that ends earlier is none */
	*strrchr(comment, ' ') = '\0';
	back = (struct trace_stats){ .alloc_q10 = 5 << 10 };
	meta_read(view, &back, 1, comment);
	assert_true(back.fault_var == 0 && back.samples == 7 && back.free_cps == 2);
	*strrchr(comment, ' ') = '\0';
	back = (struct trace_stats){ .alloc_q10 = 5 << 10 };
	meta_read(view, &back, 1, comment);
	assert_true(back.samples == 0);
	free(comment);
	view_unref(view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_value),
		cmocka_unit_test(test_views_and_file),
		cmocka_unit_test(test_differences),
		cmocka_unit_test(test_older_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
