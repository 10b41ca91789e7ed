/*
 * A report that goes from view to view against a fresh one of the same view: every site, every cell of both
 * trees, the total. What happens in between is random: allocations, frees, new stacks, stacks merged
 * away, names that come in, filters, views skipped.
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

#include "base/mem.h"
#include "elf/modules.h"
#include "heap/heap.h"
#include "heap/view.h"
#include "report/report.h"
#include "report/wrappers.h"
#include "symbol/names.h"
#include "tests/lib/whole.h"

static uint64_t random_state;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % n;
}

/* ---- names that come in when the test says so ---- */

#define FRAMES 60
#define TEXT 32

struct names {
	struct name names[FRAMES];
	struct name_func funcs[FRAMES][2];
	char text[FRAMES][2][TEXT];
	bool known[FRAMES];
	uint64_t generation;
};

/* Frames of the same function, inlined ones, wrappers, some without a symbol. */
static void fill_names(struct names *names)
{
	static const char *const wrappers[] = { "operator new(unsigned long)", "strdup", "xmalloc" };

	for (uint32_t k = 0; k < FRAMES; k++) {
		struct name *name = &names->names[k];
		uint32_t n = name->nfuncs = k % 7 == 0 ? 2 : 1;
		name->module = 1;
		name->module_name = "prog";
		name->funcs = names->funcs[k];
		for (uint32_t i = 0; i < n; i++) {
			struct name_func *func = &names->funcs[k][i];
			if (k % 10 == 9 && !i)
				snprintf(names->text[k][i], TEXT, "%s", wrappers[k / 10 % 3]);
			else
				snprintf(names->text[k][i], TEXT, "f%u", (k + i) / 2);
			func->function = func->linkage = names->text[k][i];
			func->file = k % 3 ? "a.c" : k % 5 ? "b.c" : NULL;
			func->line = func->file ? k / 4 : 0;
			func->inlined = n == 2 && i == 0;
			func->unknown = (k + i) / 2 % 6 == 5;
		}
	}
}

const struct name *names_get(struct names *names, uint32_t module, uint64_t vaddr, bool exact)
{
	(void)exact;
	return module == 1 && vaddr < FRAMES && names->known[vaddr] ? &names->names[vaddr] : NULL;
}

const struct name *names_wait(struct names *names, uint32_t module, uint64_t vaddr, bool exact)
{
	return names_get(names, module, vaddr, exact);
}

uint64_t names_generation(const struct names *names)
{
	return names->generation;
}

const struct module *module_get(const struct modules *mods, uint32_t id)
{
	static const struct module fake = { .id = 1, .name = "prog" };

	(void)mods;
	return id == 1 ? &fake : NULL;
}

/* ---- comparing ---- */

static bool close_to(double a, double b)
{
	return fabs(a - b) <= 1e-6 * fmax(fabs(a), fabs(b));
}

static void compare_stats(const struct trace_stats *a, const struct trace_stats *b)
{
	assert_memory_equal(a, b, offsetof(struct trace_stats, live_var));
	assert_true(close_to(a->live_var, b->live_var));
	assert_true(close_to(a->alloc_var, b->alloc_var));
	assert_true(close_to(a->alloc_bps, b->alloc_bps));
	assert_true(close_to(a->alloc_cps, b->alloc_cps));
	assert_true(close_to(a->free_bps, b->free_bps));
	assert_true(close_to(a->free_cps, b->free_cps));
}

static void compare_text(const char *a, const char *b)
{
	assert_int_equal(!a, !b);
	if (a)
		assert_string_equal(a, b);
}

/* Ids depend on what a function was called first, so rows are found by their names. */
static void compare_sites(struct report *a, struct report *b)
{
	size_t na, nb;
	const struct report_site *sa = report_sites(a, REPORT_LIVE_BYTES, false, &na);
	const struct report_site *sb = report_sites(b, REPORT_LIVE_BYTES, false, &nb);

	assert_int_equal(na, nb);
	for (size_t i = 0; i < na; i++) {
		size_t k = 0;
		while (k < nb && (strcmp(sa[i].function, sb[k].function)
				  || strcmp(sa[i].module, sb[k].module)))
			k++;
		assert_true(k < nb);
		compare_stats(&sa[i].s, &sb[k].s);
		assert_int_equal(sa[i].line, sb[k].line);
		assert_int_equal(sa[i].unknown, sb[k].unknown);
		assert_true(close_to(sa[i].se, sb[k].se));
		compare_text(sa[i].file, sb[k].file);
		assert_int_equal(report_site_trace(a, sa[i].id), report_site_trace(b, sb[k].id));
		/* the site's own trace is one whose site it is */
		size_t n, at;
		const struct report_frame *stack =
			report_stack(a, report_site_trace(a, sa[i].id), &n, &at);
		assert_true(n == 0 || !strcmp(stack[at].function, sa[i].function));
	}
	struct trace_stats ta = report_total(a), tb = report_total(b);
	compare_stats(&ta, &tb);
}

static size_t cells_compared;

static void compare_cells(struct report_tree *ta, const struct report_cell *a,
			  struct report_tree *tb, const struct report_cell *b)
{
	size_t na, nb;

	cells_compared++;
	compare_stats(&a->total, &b->total);
	compare_stats(&a->self, &b->self);
	assert_int_equal(a->has_children, b->has_children);
	assert_int_equal(a->line, b->line);
	assert_int_equal(a->inlined, b->inlined);
	assert_int_equal(a->unknown, b->unknown);
	compare_text(a->file, b->file);
	const struct report_cell *const *ca = report_tree_children(ta, a, REPORT_LIVE_BYTES, &na);
	const struct report_cell *const *cb = report_tree_children(tb, b, REPORT_LIVE_BYTES, &nb);
	assert_int_equal(na, nb);
	assert_int_equal(a->has_children, na > 0);
	for (size_t i = 0; i < na; i++) {
		size_t k = 0;
		while (k < nb && (strcmp(ca[i]->function, cb[k]->function)
				  || strcmp(ca[i]->module, cb[k]->module)))
			k++;
		assert_true(k < nb);
		compare_cells(ta, ca[i], tb, cb[k]);
	}
}

static void compare_trees(struct report *a, struct report *b, bool inverted)
{
	struct report_tree *ta = report_tree(a, inverted), *tb = report_tree(b, inverted);

	compare_cells(ta, report_tree_root(ta), tb, report_tree_root(tb));
}

/* ---- what happens ---- */

#define SLOTS 4000

static size_t random_stack(uint64_t *addrs, uint32_t variety)
{
	size_t n = 1 + random_below(8);

	/* outermost last; few choices outside, more inside: shared outer parts, and chains */
	for (size_t i = 0; i < n; i++) {
		uint32_t depth = (uint32_t)(n - 1 - i), choices = 1 + (depth + 1) * variety / 4 % 6;
		addrs[i] = frame_addr(1, (depth * 7 + random_below(choices) * 3) % FRAMES);
	}
	return n;
}

static void run(uint64_t seed, uint32_t max_traces, bool sampled)
{
	static struct names names;
	static const char *const filters[] = { "f1", "!f2", "a\\.c", "" };
	struct heap *heap = heap_create(&(struct heap_config){ .max_traces = max_traces });
	struct report *r = report_create(&names, false);
	struct view_info info = { .command = "x" };
	const char *filter = "";
	/* few blocks where traces are to be merged: those without any are */
	uint32_t slots = max_traces ? max_traces : SLOTS;
	uint64_t time = 0, addrs[8];

	report_set_modules(r, (const struct modules *)&names);	/* the fake never looks inside */
	random_state = seed;
	memset(&names, 0, sizeof(names));
	fill_names(&names);
	struct wrappers *wrappers = wrappers_create();
	assert_null(wrappers_add(wrappers, "^xmalloc$"));
	report_set_wrappers(r, wrappers);
	for (int round = 0; round < 120; round++) {
		uint32_t n = round % 20 == 0 ? 1500 : random_below(4) ? random_below(60) : 0;
		for (uint32_t k = 0; k < n; k++) {
			uint64_t addr = 16 * (1 + random_below(slots));
			uint32_t depth = (uint32_t)random_stack(addrs, 2 + (uint32_t)round / 8);
			if (random_below(5) < 2)
				heap_free(heap, addr, time, 0, false);
			else
				heap_alloc_whole(heap, addr, 1 + random_below(900),
					   sampled && random_below(2) ? 700 : 1, time, 0, addrs,
					   random_below(300) ? depth : 0, (int)(random_below(20) == 0) * 2);
			time += 100000;
		}
		time += random_below(2) ? 1000000000 : 200000000;
		if (random_below(4) == 0) {
			names.known[random_below(FRAMES)] = true;
			names.generation += random_below(3) > 0;
		}
		struct view *view = heap_publish(heap, &info, time);
		if (random_below(5) == 0) {	/* not looked at */
			view_unref(view);
			continue;
		}
		report_set_view(r, view);
		if (random_below(12) == 0)
			assert_null(report_set_filter(r, filter = filters[random_below(4)]));
		/* the same names as were asked for */
		if (report_stale(r))
			report_set_view(r, view);
		if (random_below(4)) {
			struct report *fresh = report_create(&names, false);
			report_set_wrappers(fresh, wrappers);
			assert_null(report_set_filter(fresh, filter));
			report_set_modules(fresh, (const struct modules *)&names);
			names.generation++;	/* what came in without a word is there now */
			report_set_view(r, view);
			report_set_view(fresh, view);
			compare_sites(r, fresh);
			if (random_below(3))
				compare_trees(r, fresh, false);
			if (random_below(3) == 0)
				compare_trees(r, fresh, true);
			report_destroy(fresh);
		}
		view_unref(view);
	}
	struct view *view = heap_publish(heap, &info, time);
	heap_destroy(heap);
	report_set_view(r, view);
	view_unref(view);
	report_destroy(r);
	wrappers_destroy(wrappers);
}

static void test_random(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++)
		run(seed, 0, false);
	assert_true(cells_compared > 10000);
}

static void test_random_sampled(void **state)
{
	(void)state;
	for (uint64_t seed = 11; seed <= 13; seed++)
		run(seed, 0, true);
}

static void test_random_merged(void **state)
{
	(void)state;
	for (uint64_t seed = 21; seed <= 24; seed++)
		run(seed, seed < 23 ? 150 : 30, seed % 2);
}

/* From one program to another and back: nothing of the one is left in the other. */
static void test_other_heap(void **state)
{
	(void)state;
	static struct names names;
	struct view_info info = { .command = "x" };
	struct heap *heaps[2] = { heap_create(NULL), heap_create(NULL) };
	struct report *r = report_create(&names, false);
	uint64_t addrs[8];

	random_state = 99;
	memset(&names, 0, sizeof(names));
	fill_names(&names);
	memset(names.known, 1, sizeof(names.known));
	for (int round = 0; round < 40; round++) {
		struct heap *heap = heaps[round / 3 % 2];
		for (int k = 0; k < 50; k++) {
			size_t n = random_stack(addrs, 5);
			heap_alloc_whole(heap, 16 * (1 + random_below(SLOTS)), 100, 1,
				   (uint64_t)round * 1000000000, 0, addrs, n, 0);
		}
		struct view *view = heap_publish(heap, &info, (uint64_t)round * 1000000000);
		struct report *fresh = report_create(&names, false);
		report_set_view(r, view);
		report_set_view(fresh, view);
		compare_sites(r, fresh);
		compare_trees(r, fresh, false);
		compare_trees(r, fresh, true);
		report_destroy(fresh);
		if (round == 20)
			report_set_view(r, NULL);
		view_unref(view);
	}
	report_destroy(r);
	heap_destroy(heaps[0]);
	heap_destroy(heaps[1]);
}

/* Of two traces of a site, the one that ends there is merged away: the other's callers stay. */
static void test_end_merged(void **state)
{
	(void)state;
	static struct names names;
	struct view_info info = { .command = "x" };
	struct heap *heap = heap_create(&(struct heap_config){ .max_traces = 8 });
	struct report *r = report_create(&names, false), *fresh = report_create(&names, false);
	uint64_t addrs[2] = { frame_addr(1, 1), frame_addr(1, 2) };

	memset(&names, 0, sizeof(names));
	heap_alloc_whole(heap, 16, 10, 1, 0, 0, addrs, 1, 0);
	heap_free(heap, 16, 0, 0, false);
	heap_alloc_whole(heap, 32, 10, 1, 0, 0, addrs, 2, 0);
	struct view *view = heap_publish(heap, &info, 1000000000);
	report_set_view(r, view);
	view_unref(view);
	for (uint32_t k = 0; k < 20; k++) {
		addrs[0] = frame_addr(1, 10 + k);
		heap_alloc_whole(heap, 16, 10, 1, 2000 + k, 0, addrs, 2, 0);
		heap_free(heap, 16, 2000 + k, 0, false);
	}
	view = heap_publish(heap, &info, 2000000000);
	report_set_view(r, view);
	report_set_view(fresh, view);
	compare_sites(r, fresh);
	compare_trees(r, fresh, true);
	report_destroy(r);
	report_destroy(fresh);
	view_unref(view);
	heap_destroy(heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_random_sampled),
		cmocka_unit_test(test_random_merged),
		cmocka_unit_test(test_other_heap),
		cmocka_unit_test(test_end_merged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
