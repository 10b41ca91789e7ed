/*
 * Rows by function, stack, module and thread, and the filter by module: their sums against the report's
 * totals and against a plain count over whole stacks.
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
#include "report/groups.h"
#include "report/report.h"
#include "tests/lib/fakeheap.h"
#include "tests/lib/whole.h"

struct fixture {
	struct fakeheap *heap;
	struct view *early, *view;
	struct report *r;
};

static void open_fixture(struct fixture *f, uint64_t rate)
{
	struct fakeheap_config config = { .rate = rate };

	f->heap = fakeheap_create(&config);
	f->early = fakeheap_view(f->heap);
	for (int i = 0; i < 5; i++)
		fakeheap_step(f->heap);
	f->view = fakeheap_view(f->heap);
	f->r = report_create(fakeheap_names(f->heap), true);
	report_set_view(f->r, f->view);
}

static void close_fixture(struct fixture *f)
{
	report_destroy(f->r);
	view_unref(f->early);
	view_unref(f->view);
	fakeheap_destroy(f->heap);
}

static void add_all(struct trace_stats *sum, const struct report_site *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		trace_stats_add(sum, &rows[i].s);
}

static void assert_same_sums(const struct trace_stats *a, const struct trace_stats *b)
{
	assert_int_equal(a->live_bytes, b->live_bytes);
	assert_int_equal(a->live_q10, b->live_q10);
	assert_int_equal(a->alloc_bytes, b->alloc_bytes);
	assert_int_equal(a->alloc_q10, b->alloc_q10);
	assert_int_equal(a->free_bytes, b->free_bytes);
	assert_int_equal(a->temp_q10, b->temp_q10);
	assert_int_equal(a->peak_bytes, b->peak_bytes);
	assert_int_equal(a->samples, b->samples);
}

static void test_sums(void **state)
{
	static const uint64_t rates[] = { 1, 4096 };
	static const char *const filters[] = { NULL, "png|config", "!worker" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rates); i++)
		for (size_t k = 0; k < ARRAY_SIZE(filters); k++) {
			struct fixture f;
			open_fixture(&f, rates[i]);
			assert_null(report_set_filter(f.r, filters[k]));
			struct trace_stats total = report_total(f.r);
			assert_true(total.live_bytes > 0);
			for (int g = REPORT_BY_SITE; g <= REPORT_BY_MODULE; g++) {
				size_t n;
				struct trace_stats sum = { 0 };
				const struct report_site *rows = report_rows(f.r, g, REPORT_LIVE_BYTES, false, &n);
				add_all(&sum, rows, n);
				assert_same_sums(&sum, &total);
				assert_true(report_rows_whole(rows, n, REPORT_LIVE_BYTES) == (double)total.live_bytes);
				for (size_t j = 1; j < n; j++) {
					assert_true(rows[j - 1].s.live_bytes >= rows[j].s.live_bytes);
					for (size_t h = 0; h < j; h++)
						assert_true(rows[h].id != rows[j].id);
				}
			}
			close_fixture(&f);
		}
}

static const struct report_site *row_of(const struct report_site *rows, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(rows[i].function, name))
			return &rows[i];
	return NULL;
}

/* Self and total of a module, stack by stack. */
static void test_modules(void **state)
{
	static const char *const modules[] = {
		"sceneview", "libc.so.6", "libstdc++.so.6", "libpng16.so.16", "libssl.so.3",
	};
	struct fixture f;
	size_t n, found = 0;

	(void)state;
	open_fixture(&f, 1);
	const struct report_site *rows = report_rows(f.r, REPORT_BY_MODULE, REPORT_LIVE_BYTES, false, &n);
	for (size_t m = 0; m < ARRAY_SIZE(modules); m++) {
		struct trace_stats self = { 0 }, total = { 0 };
		for (size_t t = 0; t < f.view->ntraces; t++) {
			size_t frames, site;
			const struct report_frame *stack = report_stack(f.r, t, &frames, &site);
			bool in = false;
			for (size_t k = 0; k < frames; k++)
				in |= !strcmp(stack[k].module, modules[m]);
			if (in)
				trace_stats_add(&total, &view_trace(f.view, t)->s);
			if (frames && !strcmp(stack[site].module, modules[m]))
				trace_stats_add(&self, &view_trace(f.view, t)->s);
		}
		const struct report_site *row = row_of(rows, n, modules[m]);
		assert_non_null(row);
		assert_same_sums(&row->s, &self);
		assert_same_sums(&row->more->total, &total);
		found++;
	}
	assert_int_equal(found, n);
	/* operator new, strdup are wrappers: no site is in their modules, but stacks pass through them */
	assert_int_equal(row_of(rows, n, "libstdc++.so.6")->s.alloc_bytes, 0);
	assert_true(row_of(rows, n, "libstdc++.so.6")->more->total.alloc_bytes > 0);
	assert_int_equal(row_of(rows, n, "libpng16.so.16")->more->nsites, 1);
	assert_int_equal(row_of(rows, n, "libssl.so.3")->more->nsites, 2);
	assert_int_equal(row_of(rows, n, "sceneview")->more->symbols, REPORT_SYMBOLS_LINES);
	assert_int_equal(row_of(rows, n, "libc.so.6")->more->symbols, REPORT_SYMBOLS_NAMES);
	close_fixture(&f);
}

static void test_module_filter(void **state)
{
	struct fixture f;
	size_t n;

	(void)state;
	open_fixture(&f, 1);
	uint64_t all = report_total(f.r).live_bytes, sum = 0;
	struct { char name[40]; uint64_t live; } seen[8];
	const struct report_site *rows = report_rows(f.r, REPORT_BY_MODULE, REPORT_LIVE_BYTES, false, &n);
	size_t nseen = n;
	assert_true(nseen <= ARRAY_SIZE(seen));
	for (size_t i = 0; i < n; i++) {
		snprintf(seen[i].name, sizeof(seen[i].name), "%s", rows[i].function);
		seen[i].live = rows[i].s.live_bytes;
	}
	for (size_t i = 0; i < nseen; i++) {
		report_set_module(f.r, seen[i].name);
		assert_int_equal(report_total(f.r).live_bytes, seen[i].live);
		const struct report_site *sites = report_sites(f.r, REPORT_LIVE_BYTES, false, &n);
		for (size_t k = 0; k < n; k++)
			assert_string_equal(sites[k].module, seen[i].name);
		struct report_tree *tree = report_tree(f.r, false);
		assert_int_equal(report_tree_root(tree)->total.live_bytes, seen[i].live);
		sum += report_total(f.r).live_bytes;
		/* and the next view, and the text filter with it */
		fakeheap_step(f.heap);
		struct view *next = fakeheap_view(f.heap);
		report_set_view(f.r, next);
		struct trace_stats total = report_total(f.r);
		report_set_module(f.r, NULL);
		rows = report_rows(f.r, REPORT_BY_MODULE, REPORT_LIVE_BYTES, false, &n);
		assert_int_equal(row_of(rows, n, seen[i].name)->s.live_bytes, total.live_bytes);
		view_unref(next);
		report_set_view(f.r, f.view);
	}
	assert_int_equal(sum, all);
	report_set_module(f.r, "sceneview");
	assert_null(report_set_filter(f.r, "png"));
	assert_int_equal(report_total(f.r).live_bytes, 0);
	report_set_module(f.r, "libpng16.so.16");
	assert_true(report_total(f.r).live_bytes > 0);
	assert_null(report_set_filter(f.r, NULL));
	report_set_module(f.r, "no such module");
	assert_int_equal(report_total(f.r).live_bytes, 0);
	close_fixture(&f);
}

static void test_base(void **state)
{
	struct fixture f;
	size_t idle = 0;

	(void)state;
	open_fixture(&f, 1);
	assert_null(report_set_base(f.r, f.early, fakeheap_names(f.heap)));
	int64_t grew = (int64_t)(f.view->totals.s.live_bytes - f.early->totals.s.live_bytes);
	assert_true(grew > 0);
	for (int g = REPORT_BY_SITE; g <= REPORT_BY_MODULE; g++) {
		size_t n;
		int64_t sum = 0;
		const struct report_site *rows = report_rows(f.r, g, REPORT_DELTA_BYTES, false, &n);
		for (size_t i = 0; i < n; i++) {
			assert_false(rows[i].gone);
			/* a module that only lies on the way hasn't begun to allocate */
			idle += !rows[i].s.alloc_q10;
			assert_false(rows[i].fresh && !rows[i].s.alloc_q10);
			sum += rows[i].delta;
		}
		assert_int_equal(sum, grew);
	}
	assert_true(idle > 0);
	/* the other way around: what has grown has shrunk, and nothing is lost of it */
	report_set_view(f.r, f.early);
	assert_null(report_set_base(f.r, f.view, fakeheap_names(f.heap)));
	for (int g = REPORT_BY_SITE; g <= REPORT_BY_MODULE; g++) {
		size_t n;
		int64_t sum = 0;
		const struct report_site *rows = report_rows(f.r, g, REPORT_DELTA_BYTES, false, &n);
		for (size_t i = 0; i < n; i++)
			sum += rows[i].delta;
		assert_int_equal(sum, -grew);
	}
	close_fixture(&f);
}

static void test_threads(void **state)
{
	const uint64_t stack[] = { frame_addr(1, 0x100) };
	struct heap *heap = heap_create(NULL);
	struct view_info info = { .command = "prog" };
	size_t n;

	(void)state;
	heap_thread(heap, 0, 400, "main\0\0\0\0\0\0\0\0\0\0\0\0", 0);
	heap_thread(heap, 1, 401, "io\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 0);
	heap_alloc_whole(heap, 0x1000, 64, 1, 0, 0, stack, 1, 0);
	heap_alloc_whole(heap, 0x2000, 192, 1, 0, 1, stack, 1, 0);
	struct view *early = heap_publish(heap, &info, 0);
	heap_alloc_whole(heap, 0x3000, 500, 1, 0, 0, stack, 1, 0);
	struct view *view = heap_publish(heap, &info, 1000000000);
	struct report *r = report_create(NULL, false);
	report_set_view(r, view);
	assert_null(report_set_base(r, early, NULL));
	const struct report_site *rows = report_rows(r, REPORT_BY_THREAD, REPORT_LIVE_BYTES, false, &n);
	assert_int_equal(n, 2);
	assert_string_equal(rows[0].function, "main");
	assert_int_equal(rows[0].more->tid, 400);
	assert_int_equal(rows[0].s.live_bytes, 564);
	assert_int_equal(rows[0].delta, 500);
	assert_int_equal(rows[1].delta, 0);
	assert_true(report_rows_whole(rows, n, REPORT_LIVE_BYTES) == (double)report_total(r).live_bytes);
	report_destroy(r);
	view_unref(early);
	view_unref(view);
	heap_destroy(heap);
}

/* Self and children add up, and no cell is of a library that is left out; deep: cells seen. */
static void check_cells(struct report_tree *t, const struct report_cell *cell, size_t *seen)
{
	size_t n;
	const struct report_cell *const *children = report_tree_children(t, cell, REPORT_LIVE_BYTES, &n);
	struct trace_stats sum = cell->self;

	(*seen)++;
	assert_int_equal(cell->has_children, n > 0);
	if (cell->depth) {
		assert_true(strncmp(cell->module, "libc.so", 7));
		assert_true(strncmp(cell->module, "libstdc++", 9));
	}
	for (size_t i = 0; i < n; i++) {
		trace_stats_add(&sum, &children[i]->total);
		check_cells(t, children[i], seen);
	}
	assert_same_sums(&sum, &cell->total);
}

static void test_user_only(void **state)
{
	struct fixture f;
	size_t n, all = 0, user = 0;

	(void)state;
	open_fixture(&f, 1);
	report_set_user_only(f.r, true);
	for (int inverted = 0; inverted < 2; inverted++) {
		struct report_tree *t = report_tree(f.r, inverted);
		assert_int_equal(report_tree_root(t)->total.live_bytes, f.view->totals.s.live_bytes);
		check_cells(t, report_tree_root(t), &user);
	}
	/* operator new is gone: what it allocated is its caller's own; what clone3 called begins at the root */
	struct report_tree *t = report_tree(f.r, false);
	const struct report_cell *const *top = report_tree_children(t, report_tree_root(t), REPORT_LIVE_BYTES, &n);
	assert_int_equal(n, 2);
	bool worker = false;
	for (size_t i = 0; i < n; i++) {
		if (strcmp(top[i]->function, "worker_thread(void*)"))
			continue;
		worker = true;
		size_t below;
		const struct report_cell *push = *report_tree_children(t, top[i], REPORT_LIVE_BYTES, &below);
		assert_int_equal(below, 1);
		assert_int_equal(push->self.live_bytes, push->total.live_bytes);
	}
	assert_true(worker);
	report_set_user_only(f.r, false);
	t = report_tree(f.r, false);
	top = report_tree_children(t, report_tree_root(t), REPORT_LIVE_BYTES, &n);
	for (size_t i = 0; i < n; i++)
		all += !strcmp(top[i]->function, "clone3");
	assert_int_equal(all, 1);
	close_fixture(&f);
}

static void test_raw_names(void **state)
{
	struct fixture f;
	size_t n;

	(void)state;
	open_fixture(&f, 1);
	const struct report_site *sites = report_sites(f.r, REPORT_LIVE_BYTES, false, &n);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(report_raw_name(f.r, sites[i].function), sites[i].function);
	assert_string_equal(report_raw_name(f.r, "no function of it"), "no function of it");
	close_fixture(&f);
}

static void test_names(void **state)
{
	(void)state;
	for (int g = 0; g < REPORT_GROUPS; g++)
		assert_int_equal(report_group_parse(report_group_name(g)), g);
	assert_int_equal(report_group_parse("frame"), -1);
	assert_null(report_group_name(REPORT_GROUPS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_modules),
		cmocka_unit_test(test_module_filter),
		cmocka_unit_test(test_base),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_user_only),
		cmocka_unit_test(test_raw_names),
		cmocka_unit_test(test_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
