/*
 * export/cells.h: sizes, ages and threads of live blocks written into a profile and read back are the same, also where
 * a filter lets only some traces through; what doesn't add up any more is said not to; nonsense is left out.
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
#include "export/cells.h"
#include "export/pprof.h"
#include "heap/heap.h"
#include "heap/view.h"
#include "report/report.h"
#include "symbol/names.h"
#include "tests/lib/whole.h"

#define LEAVES 9

static struct names *leaf_names(void)
{
	struct names *names = names_create(NULL);

	for (uint64_t i = 0; i < LEAVES; i++) {
		CLEANUP_FREE char *text = xasprintf("leaf_%llu", (unsigned long long)i);
		struct name_func f = { .function = text, .linkage = text, .file = "a.c", .line = (uint32_t)i + 1 };
		names_put(names, 1, 0x1000 + i * 16, false, "prog", &f, 1);
	}
	return names;
}

static struct view *program_view(uint64_t rate, bool fresh)
{
	static const char *const threads[] = { "main", "worker=1", "\033[1mbad\377", "" };
	const struct view_info info = { .pid = 1, .command = (char *)"./prog", .rate = rate };
	struct heap *heap = heap_create(NULL);
	uint64_t now = 0;

	for (uint32_t t = 0; t < 4; t++) {
		char name[16] = "";
		snprintf(name, sizeof(name), "%s", threads[t]);
		heap_thread(heap, t, 100 + t, name, 0);
	}
	for (uint32_t i = 0; i < 3000; i++) {
		uint64_t leaf = i * 7 % LEAVES, frame = frame_addr(1, 0x1000 + leaf * 16);
		now += (uint64_t)i * 3000 * (i % 3);
		heap_alloc_whole(heap, 0x10000 + (uint64_t)i % 700 * 16, (i * 131) % 5000 << i % 5, rate, now, i % 5,
				 &frame, 1, 0);
		if (i % 11 == 0)
			heap_free(heap, 0x10000 + (uint64_t)i % 500 * 16, now, 0, false);
	}
	heap_map(heap, 0x7f0000000000, 1 << 20, now, 0,
		 &(struct heap_stack){ .addrs = (const uint64_t[]){ frame_addr(1, 0x1000) }, .n = 1 });
	heap_classify(heap, now + 5000000, true);
	struct view *view = heap_publish(heap, &info, now + 5000000);
	view->classes_fresh = fresh;
	heap_destroy(heap);
	return view;
}

static void to_bytes(struct view *view, struct names *names, const char *filter, char **ret, size_t *ret_len)
{
	FILE *out = open_memstream(ret, ret_len);
	struct report *r = report_create(names, true);

	assert_null(report_set_filter(r, filter));
	report_set_view(r, view);
	assert_null(pprof_write(out, r, names, NULL, false));
	report_destroy(r);
	fclose(out);
}

static void from_bytes(const char *bytes, size_t len, struct view **ret, struct names **ret_names)
{
	struct err *err = pprof_read(bytes, len, "x", ret, ret_names);

	if (err)
		fail_msg("%s", err->text);
}

/* Cells of the trace whose innermost frame is that of a leaf. */
static const struct class_cell *cells_of_leaf(const struct view *view, uint64_t leaf, size_t *ret_n)
{
	for (size_t i = 0; i < view->ntraces; i++) {
		const struct view_trace *t = view_trace(view, i);
		if (t && frame_vaddr(tree_get(view->tree, t->node).addr) == 0x1000 + leaf * 16)
			return classes_of_node(view->classes, t->node, ret_n);
	}
	*ret_n = 0;
	return NULL;
}

static void assert_same_cells(const struct view *a, const struct view *b, uint64_t leaf)
{
	size_t na, nb;
	const struct class_cell *ca = cells_of_leaf(a, leaf, &na), *cb = cells_of_leaf(b, leaf, &nb);

	assert_true(na > 10);
	assert_int_equal(na, nb);
	for (size_t i = 0; i < na; i++) {
		assert_int_equal(ca[i].size, cb[i].size);
		assert_int_equal(ca[i].age, cb[i].age);
		assert_int_equal(ca[i].thread, cb[i].thread);
		assert_int_equal(ca[i].bytes, cb[i].bytes);
		assert_int_equal(ca[i].q10, cb[i].q10);
		assert_int_equal(ca[i].samples, cb[i].samples);
	}
}

static void round_trip(uint64_t rate)
{
	struct names *names = leaf_names(), *read_names;
	struct view *view = program_view(rate, true), *back;
	char *bytes;
	size_t len;

	to_bytes(view, names, NULL, &bytes, &len);
	from_bytes(bytes, len, &back, &read_names);
	assert_true(back->classes_fresh);
	assert_int_equal(back->classes->n, view->classes->n);
	for (uint64_t leaf = 0; leaf < LEAVES; leaf++)
		assert_same_cells(view, back, leaf);
	assert_int_equal(back->classes->nthreads, view->classes->nthreads);
	for (uint32_t i = 0; i < back->classes->nthreads; i++) {
		const struct class_thread *t = &back->classes->threads[i];
		assert_int_equal(t->tid, view->classes->threads[i].tid);
		assert_int_equal(t->ended, view->classes->threads[i].ended);
		assert_string_equal(t->name, view->classes->threads[i].name);
	}
	assert_int_equal(back->nthreads, view->nthreads);
	assert_true(back->nthreads >= 4);
	for (size_t i = 0; i < back->nthreads; i++) {
		const struct view_thread *t = &back->threads[i], *was = &view->threads[i];
		assert_int_equal(t->tid, was->tid);
		assert_string_equal(t->name, was->name);
		assert_memory_equal(&t->s, &was->s, sizeof(t->s));
	}
	free(bytes);
	view_unref(back);
	names_destroy(read_names);
	view_unref(view);
	names_destroy(names);
}

static void test_round_trip(void **state)
{
	(void)state;
	round_trip(1);
	round_trip(4096);
}

static void test_filter(void **state)
{
	(void)state;
	struct names *names = leaf_names(), *read_names;
	struct view *view = program_view(1, true), *back;
	char *bytes;
	size_t len, n;

	to_bytes(view, names, "leaf_[35]", &bytes, &len);
	from_bytes(bytes, len, &back, &read_names);
	assert_true(back->classes_fresh);
	assert_same_cells(view, back, 3);
	assert_same_cells(view, back, 5);
	cells_of_leaf(back, 4, &n);
	assert_int_equal(n, 0);
	free(bytes);
	view_unref(back);
	names_destroy(read_names);
	view_unref(view);
	names_destroy(names);
}

/* An older view's classes aren't written: they wouldn't add up. */
static void test_older(void **state)
{
	(void)state;
	struct names *names = leaf_names(), *read_names;
	struct view *view = program_view(1, false), *back;
	char *bytes;
	size_t len;

	to_bytes(view, names, NULL, &bytes, &len);
	from_bytes(bytes, len, &back, &read_names);
	assert_null(back->classes);
	assert_false(back->classes_fresh);
	free(bytes);
	view_unref(back);
	names_destroy(read_names);
	view_unref(view);
	names_destroy(names);
}

/* Another tool has changed what the comments say. */
static void test_changed(void **state)
{
	(void)state;
	struct names *names = leaf_names(), *read_names;
	struct view *view = program_view(1, true), *back;
	char *bytes;
	size_t len;

	to_bytes(view, names, NULL, &bytes, &len);
	char *cells = memmem(bytes, len, "#heaptop cells 2 ", 17);
	assert_non_null(cells);
	/* size, age, thread, then the bytes' first digit */
	char *at = cells + 17;
	for (int blanks = 0; blanks < 3; at++)
		blanks += *at == ' ';
	*at = *at == '1' ? '2' : '1';
	from_bytes(bytes, len, &back, &read_names);
	assert_non_null(back->classes);
	assert_false(back->classes_fresh);
	free(bytes);
	view_unref(back);
	names_destroy(read_names);
	view_unref(view);
	names_destroy(names);
}

static void test_nonsense(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"cells", "cells ", "cells 5 1 1 0 1 400 1", "cells 0 30 1 0 1 400 1", "cells 0 1 9 0 1 400 1",
		"cells 0 1 1 1 1 400 1", "cells 0 1 1 0 1 400", "cells 0 1 1 0 1 400 100000000", "cells 0 1 1 0 1 400 0",
		"row ", "row 1 0 0 1 2 3=x", "row 1 0 0 1 1 2 1 1 1 0 0 0 0 0 0=less than freed", "who", "who 1 0", "who x=y",
	};
	struct cells cells;
	struct view *view = view_create();

	cells_init(&cells);
	assert_true(cells_read(&cells, view, 2, "who 7 0 0=a\033b"));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		cells_read(&cells, view, 2, bad[i]);
		assert_int_equal(cells.build.n, 0);
		assert_int_equal(view->nthreads, 0);
		assert_int_equal(cells.build.nthreads, 1);
	}
	assert_false(cells_read(&cells, view, 2, "sample 0 1"));
	assert_false(cells_read(&cells, view, 2, "rowing 1"));
	assert_string_equal(cells.build.threads[0].name, "a?b");
	assert_true(cells_read(&cells, view, 2, "cells 1 5 1 0 1f 400 1 5 2 ffff 1f 400 1 rest"));
	assert_int_equal(cells.build.n, 2);
	cells_deinit(&cells);
	view_unref(view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_older),
		cmocka_unit_test(test_changed),
		cmocka_unit_test(test_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
