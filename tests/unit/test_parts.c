/*
 * report/parts.h: random stacks of functions with inlined ones in them. Of every site, of every row by other things, and
 * of every cell of both trees the parts' sums are the row's own figures, with a filter, too; threads are the largest,
 * and their rest.
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
#include "report/parts.h"
#include "symbol/names.h"
#include "tests/lib/whole.h"

#define FUNCTIONS 6
#define ADDRESSES 40
#define THREADS 30

static uint64_t random_state = 9;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % n;
}

/* Each address is one function, or two or three, one in the other; few names, so that paths coincide. */
static struct names *random_names(void)
{
	static const char *const functions[FUNCTIONS] = { "alpha", "beta", "gamma", "delta", "malloc", "main" };
	struct names *names = names_create(NULL);

	for (uint64_t i = 0; i < ADDRESSES; i++) {
		struct name_func funcs[3] = { 0 };
		uint32_t n = 1 + random_below(3);
		for (uint32_t k = 0; k < n; k++)
			funcs[k] = (struct name_func){ .function = functions[random_below(FUNCTIONS)], .linkage = "x",
						       .file = "a.c", .line = 1 + random_below(9), .inlined = k + 1 < n };
		for (uint32_t k = 0; k < n; k++)
			funcs[k].linkage = funcs[k].function;
		names_put(names, 1, 0x1000 + i * 16, false, "prog", funcs, n);
	}
	return names;
}

static struct view *random_view(uint64_t rate)
{
	const struct view_info info = { .command = (char *)"x", .rate = rate };
	struct heap *heap = heap_create(NULL);
	uint64_t now = 0;

	for (uint32_t t = 0; t < THREADS; t++) {
		char name[16] = "";
		snprintf(name, sizeof(name), "t%u", t);
		heap_thread(heap, t, t + 1, name, 0);
	}
	for (uint32_t i = 0; i < 2000; i++) {
		uint64_t stack[6];
		uint32_t depth = random_below(6);
		for (uint32_t k = 0; k < depth; k++)
			stack[k] = frame_addr(1, 0x1000 + random_below(ADDRESSES) * 16ull);
		now += random_below(1000000);
		heap_alloc_whole(heap, 0x10000 + random_below(900) * 16ull, random_below(9000), rate, now,
				 random_below(THREADS), stack, depth, 0);
	}
	heap_classify(heap, now, true);
	struct view *view = heap_publish(heap, &info, now);
	heap_destroy(heap);
	return view;
}

static void assert_parts(const struct report_parts *p, const struct trace_stats *s)
{
	struct report_part sizes = { 0 }, ages = { 0 }, threads = p->rest;

	assert_true(p->known && p->fresh);
	assert_int_equal(p->total.bytes, s->live_bytes);
	assert_int_equal(p->total.q10, s->live_q10);
	assert_int_equal(p->total.samples, s->live_samples);
	for (unsigned i = 0; i < CLASS_SIZES; i++) {
		sizes.bytes += p->sizes[i].bytes;
		sizes.q10 += p->sizes[i].q10;
	}
	for (unsigned i = 0; i < CLASS_AGES; i++) {
		ages.bytes += p->ages[i].bytes;
		ages.q10 += p->ages[i].q10;
	}
	for (size_t i = 0; i < p->nthreads; i++) {
		threads.bytes += p->threads[i].part.bytes;
		threads.q10 += p->threads[i].part.q10;
		threads.samples += p->threads[i].part.samples;
		assert_true(!i || p->threads[i - 1].part.bytes >= p->threads[i].part.bytes);
	}
	assert_true(p->more == 0 || p->nthreads == REPORT_PART_THREADS);
	assert_true(!p->more || p->rest.bytes <= p->more * p->threads[p->nthreads - 1].part.bytes);
	assert_int_equal(sizes.bytes, s->live_bytes);
	assert_int_equal(sizes.q10, s->live_q10);
	assert_int_equal(ages.bytes, s->live_bytes);
	assert_int_equal(ages.q10, s->live_q10);
	assert_int_equal(threads.bytes, s->live_bytes);
	assert_int_equal(threads.q10, s->live_q10);
	assert_int_equal(threads.samples, s->live_samples);
	assert_true((p->heaviest == SIZE_MAX) == !p->ntraces);
}

/* A row's two figures are those of its parts: half of the bytes and no less are that old; threads, not mappings. */
static void assert_held(const struct report_parts *p, const struct report_held *held)
{
	uint64_t older = 0, than = 0;
	size_t threads = p->nthreads + p->more;

	assert_int_equal(held->known, p->total.samples > 0);
	if (!held->known)
		return;
	for (unsigned k = 0; k < CLASS_AGES; k++) {
		older += k >= held->age ? p->ages[k].bytes : 0;
		than += k > held->age ? p->ages[k].bytes : 0;
	}
	assert_true(older >= p->total.bytes - older);
	assert_true(than < p->total.bytes - than || !p->total.bytes);
	for (size_t i = 0; i < p->nthreads; i++)
		threads -= p->threads[i].nobody;
	assert_int_equal(held->threads, threads);
}

static unsigned check_cells(struct report_tree *tree, const struct report_cell *cell)
{
	struct report_parts parts;
	unsigned n = 1;
	size_t nchildren;

	report_cell_parts(tree, cell, &parts);
	assert_parts(&parts, &cell->total);
	if (!cell->has_children || cell->depth > 5)
		return n;
	const struct report_cell *const *children = report_tree_children(tree, cell, REPORT_LIVE_BYTES, &nchildren);
	for (size_t i = 0; i < nchildren; i++)
		n += check_cells(tree, children[i]);
	return n;
}

static void check(uint64_t rate, const char *filter)
{
	struct names *names = random_names();
	struct view *view = random_view(rate);
	struct report *r = report_create(names, true);
	struct report_parts parts;
	size_t n;

	assert_null(report_set_filter(r, filter));
	report_set_view(r, view);
	assert_false(report_sites(r, REPORT_LIVE_BYTES, false, &n)[0].held.known);
	report_set_held(r, true);
	const struct report_site *sites = report_sites(r, REPORT_LIVE_BYTES, false, &n);
	assert_true(n > 2);
	for (size_t i = 0; i < n; i++) {
		report_site_parts(r, sites[i].id, &parts);
		assert_parts(&parts, &sites[i].s);
		assert_int_equal(parts.heaviest, report_site_trace(r, sites[i].id));
		assert_held(&parts, &sites[i].held);
	}
	for (int g = 0; g < REPORT_GROUPS; g++) {
		const struct report_site *rows = report_rows(r, g, REPORT_LIVE_BYTES, false, &n);
		assert_true(n > 0);
		for (size_t i = 0; i < n; i++) {
			report_row_parts(r, g, &rows[i], &parts);
			assert_parts(&parts, &rows[i].s);
			if (rows[i].more && g != REPORT_BY_THREAD)
				assert_int_equal(parts.heaviest, rows[i].more->trace);
			if (g == REPORT_BY_THREAD)
				assert_false(rows[i].held.known);
			else
				assert_held(&parts, &rows[i].held);
			if (g == REPORT_BY_THREAD && parts.total.samples) {
				assert_int_equal(parts.nthreads, 1);
				assert_string_equal(parts.threads[0].name, rows[i].function);
			}
		}
	}
	report_site_parts(r, 12345, &parts);
	assert_int_equal(parts.ntraces, 0);
	assert_int_equal(parts.total.bytes, 0);
	for (int inverted = 0; inverted < 2; inverted++) {
		struct report_tree *tree = report_tree(r, inverted);
		assert_true(check_cells(tree, report_tree_root(tree)) > 100);
	}
	report_destroy(r);
	view_unref(view);
	names_destroy(names);
}

static void test_exact(void **state)
{
	(void)state;
	check(1, NULL);
}

static void test_sampled(void **state)
{
	(void)state;
	check(2048, NULL);
}

static void test_filter(void **state)
{
	(void)state;
	check(1, "gamma");
	check(1, "!gamma");
}

/* Nobody has looked at the blocks: that much is said, and which stack is the heaviest. */
static void test_unknown(void **state)
{
	(void)state;
	struct names *names = random_names();
	struct view *view = random_view(1);
	struct report *r = report_create(names, true);
	struct report_parts parts;
	size_t n;

	classes_unref(view->classes);
	view->classes = NULL;
	view->classes_fresh = false;
	report_set_held(r, true);
	report_set_view(r, view);
	const struct report_site *sites = report_sites(r, REPORT_LIVE_BYTES, false, &n);
	assert_false(sites[0].held.known);
	report_site_parts(r, sites[0].id, &parts);
	assert_false(parts.known || parts.fresh);
	assert_int_equal(parts.nthreads, 0);
	assert_int_equal(parts.heaviest, report_site_trace(r, sites[0].id));
	report_destroy(r);
	view_unref(view);
	names_destroy(names);
}

static void test_older(void **state)
{
	(void)state;
	struct report_parts parts = { .total.bytes = 200 };

	parts.ages[2].bytes = 150;
	parts.ages[CLASS_AGE_MINUTE].bytes = 20;
	parts.ages[CLASS_AGE_HOUR].bytes = 30;
	assert_true(report_parts_older(&parts, CLASS_AGE_MINUTE) == 0.25);
	assert_true(report_parts_older(&parts, 0) == 1);
	parts = (struct report_parts){ 0 };
	assert_true(report_parts_older(&parts, 0) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_sampled),
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_older),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
