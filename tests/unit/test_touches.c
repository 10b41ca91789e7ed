/*
 * Who touched whose memory: random blocks, blocks in mappings, some used again, and touches of them at random times,
 * told in rounds as a session tells them, against a look at who had which byte when; then the same figures by sites, by rows
 * of the trees, in a sum of heaps and in a file.
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
#include "heap/heap.h"
#include "heap/merge.h"
#include "heap/touches.h"
#include "heap/tree.h"
#include "heap/view.h"
#include "report/touched.h"
#include "symbol/names.h"
#include "tests/lib/whole.h"
#include "unwind/unwind.h"

#define PLACES 40u		/* where blocks may begin */
#define PLACE 65536u		/* bytes from one to the next */
#define BASE 0x7f0000000000ull
#define ROUNDS 60u
#define SITES 5u
#define TOUCHERS 3u

static uint64_t random_state = 5;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % n;
}

/* Frames: 1..SITES ask, 11.. touch; 30 is main. */
static uint64_t address(uint32_t function)
{
	return frame_addr(1, 0x1000 + function * 16ull);
}

static void stack_of(uint32_t function, uint64_t addrs[2], struct heap_stack *ret)
{
	addrs[0] = address(function);
	addrs[1] = address(30);
	*ret = (struct heap_stack){ .addrs = addrs, .n = 2, .why = UNWIND_END_ROOT };
}

static void fault(struct heap *heap, size_t hit, uint64_t bytes, uint32_t function, bool chosen)
{
	uint64_t addrs[2];
	struct heap_stack stack;

	stack_of(function, addrs, &stack);
	heap_fault(heap, &(struct heap_fault){ .hit = hit, .bytes = bytes, .chosen = chosen }, &stack);
}

static void alloc(struct heap *heap, uint64_t addr, uint64_t size, uint64_t time, uint32_t function)
{
	uint64_t addrs[2];
	struct heap_stack stack;

	stack_of(function, addrs, &stack);
	heap_alloc(heap, addr, size, 1, time, 0, &stack);
}

static void map(struct heap *heap, uint64_t addr, uint64_t bytes, uint64_t time, uint32_t function)
{
	uint64_t addrs[2];
	struct heap_stack stack;

	stack_of(function, addrs, &stack);
	heap_map(heap, addr, bytes, time, 0, &stack);
}

static struct view *publish(struct heap *heap)
{
	const struct view_info info = { .command = (char *)"x", .rate = 1, .faults = true };

	return heap_publish(heap, &info, 1000000000);
}

/* Which function's pair a node is: 0 for nobody. */
static uint32_t function_of(const struct view *view, uint32_t node)
{
	if (node == TOUCH_NOBODY)
		return 0;
	return (uint32_t)((frame_vaddr(tree_get(view->tree, node).addr) - 0x1000) / 16);
}

static uint64_t pair(const struct view *view, uint32_t toucher, uint32_t owner)
{
	uint64_t bytes = 0;

	for (size_t i = 0; view->touches && i < view->touches->n; i++) {
		const struct touch_pair *p = &view->touches->pairs[i];
		if (function_of(view, p->toucher) == toucher && function_of(view, p->owner) == owner)
			bytes += p->bytes;
	}
	return bytes;
}

/* ---- blocks and times ---- */

static void test_random(void **state)
{
	(void)state;
	struct heap *heap = heap_create(NULL);
	uint64_t expected[TOUCHERS + 11][SITES + 1] = { 0 }, now = 1000;
	struct { uint64_t size; uint32_t site; } live[PLACES] = { 0 };
	struct { uint32_t toucher, owner; } told[64];

	/* the second half of the places lies in a mapping, by site 5 */
	map(heap, BASE + PLACES / 2 * PLACE, PLACES / 2 * PLACE, now++, SITES);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct { uint32_t place; uint64_t size, time; uint32_t site; } todo[200];
		size_t ntodo = 0, nhits = 0;
		/* what happens in the round, first only in time: the touches are told before the events */
		for (int i = 0; i < 150; i++) {
			uint32_t place = random_below(PLACES);
			now += 10;
			if (random_below(3) == 0 && nhits < ARRAY_SIZE(told)) {
				uint64_t at = random_below(PLACE);
				told[nhits].toucher = 11 + random_below(TOUCHERS);
				told[nhits].owner = live[place].site && at < live[place].size ? live[place].site
						  : place >= PLACES / 2 ? SITES : 0;
				expected[told[nhits].toucher][told[nhits].owner] += 4096;
				nhits++;
				heap_hit(heap, BASE + place * PLACE + at, now);
				continue;
			}
			if (live[place].site) {
				live[place].site = 0;
			} else {
				live[place].site = 1 + random_below(SITES - 1);
				live[place].size = 1 + random_below(random_below(2) ? 200 : PLACE);
			}
			todo[ntodo].place = place;
			todo[ntodo].size = live[place].size;
			todo[ntodo].site = live[place].site;
			todo[ntodo++].time = now;
		}
		for (size_t i = 0; i < ntodo; i++) {
			uint64_t addr = BASE + todo[i].place * PLACE;
			if (todo[i].site)
				alloc(heap, addr, todo[i].size, todo[i].time, todo[i].site);
			else
				heap_free(heap, addr, todo[i].time, 0, false);
		}
		heap_find_hits(heap);
		for (size_t i = 0; i < nhits; i++)
			fault(heap, i, 4096, told[i].toucher, false);
		heap_drop_hits(heap, nhits);
		/* so long that nothing of the next round is early for a block of this one */
		now += 1000000000;
	}
	struct view *view = publish(heap);
	/* a touch just before a block is told of may be its own: those that nobody else has had, up to the last */
	for (uint32_t t = 11; t < 11 + TOUCHERS; t++) {
		uint64_t all = 0, told_all = 0;
		for (uint32_t o = 1; o <= SITES; o++) {
			assert_true(pair(view, t, o) >= expected[t][o]);
			all += expected[t][o];
			told_all += pair(view, t, o);
		}
		assert_int_equal(pair(view, t, 0) + told_all, expected[t][0] + all);
		assert_int_equal(pair(view, t, SITES), expected[t][SITES]);
	}
	view_unref(view);
	heap_destroy(heap);
}

static void one(struct heap *heap, uint64_t bytes, uint32_t toucher)
{
	heap_find_hits(heap);
	fault(heap, 0, bytes, toucher, false);
	heap_drop_hits(heap, 1);
}

/* realloc and calloc touch before they have told; but not that much before, and not what another block has. */
static void test_early(void **state)
{
	(void)state;
	struct heap *heap = heap_create(NULL);

	heap_hit(heap, BASE + 100, 5000);
	alloc(heap, BASE, 4096, 6000, 1);
	one(heap, 1, 11);
	heap_hit(heap, BASE + PLACE, 5000);
	alloc(heap, BASE + PLACE, 4096, 5001 + 100000000ull, 2);
	one(heap, 10, 11);
	heap_free(heap, BASE, 200000000, 0, false);
	alloc(heap, BASE, 4096, 200001000, 3);
	heap_hit(heap, BASE + 100, 200002000);
	heap_free(heap, BASE, 200003000, 0, false);
	alloc(heap, BASE, 200, 200004000, 4);	/* smaller, but later */
	one(heap, 100, 11);
	struct view *view = publish(heap);
	assert_int_equal(pair(view, 11, 1), 1);
	assert_int_equal(pair(view, 11, 0), 10);
	assert_int_equal(pair(view, 11, 2), 0);
	assert_int_equal(pair(view, 11, 3), 100);
	assert_int_equal(pair(view, 11, 4), 0);
	view_unref(view);
	heap_destroy(heap);
}

/* Hostile sizes and places, and what is dropped before it is settled. */
static void test_ends_of_memory(void **state)
{
	(void)state;
	struct heap *heap = heap_create(NULL);

	alloc(heap, UINT64_MAX - 15, UINT64_MAX, 1, 1);
	alloc(heap, 16, UINT64_MAX - 16, 2, 2);
	alloc(heap, 4096, 0, 3, 3);
	heap_hit(heap, UINT64_MAX, 10);
	heap_hit(heap, 4096, 10);
	heap_hit(heap, 0, UINT64_MAX);
	heap_find_hits(heap);
	for (size_t i = 0; i < 3; i++)
		fault(heap, i, 1 + 9 * i, 11, false);
	heap_hit(heap, 4097, 10);
	heap_drop_hits(heap, 3);
	heap_find_hits(heap);
	fault(heap, 0, 1000, 12, false);
	struct view *view = publish(heap);
	assert_int_equal(pair(view, 11, 2), 10);
	assert_int_equal(pair(view, 11, 0), 1 + 19);
	assert_int_equal(pair(view, 12, 2), 1000);
	assert_int_equal(view->totals.s.fault_bytes, 1030);
	view_unref(view);
	heap_destroy(heap);
}

static void test_bound(void **state)
{
	(void)state;
	struct touch_table t = { 0 };
	uint64_t sum = 0;

	for (uint32_t i = 0; i < TOUCH_PAIRS_MAX + 1000; i++)
		touch_table_add(&t, i % 7, i, 3);
	struct touches *list = touch_table_list(&t), *again = touch_table_list(&t);
	assert_ptr_equal(list, again);
	assert_int_equal(list->n, TOUCH_PAIRS_MAX + 7);
	for (size_t i = 0; i < list->n; i++)
		sum += list->pairs[i].bytes;
	assert_int_equal(sum, 3 * (TOUCH_PAIRS_MAX + 1000));
	touches_unref(again);
	touch_table_deinit(&t);
	assert_int_equal(list->refs, 1);
	touches_unref(list);
}

/* ---- chosen threads ---- */

static void test_threads(void **state)
{
	(void)state;
	struct heap *heap = heap_create(NULL);
	struct view *view;

	assert_false(heap_has_choice(heap));
	assert_false(heap_chooses(heap, 1, "worker"));
	heap_thread(heap, 0, 1, "other\0\0\0\0\0\0\0\0\0\0\0", 0);
	heap_thread(heap, 1, 2, "worker-2\0\0\0\0\0\0\0\0", 0);
	alloc(heap, BASE, 4096, 1, 1);		/* by thread 1 */
	heap_hit(heap, BASE, 5);
	one(heap, 1, 11);			/* before there was a choice */
	heap_choose_threads(heap, "worker*");
	assert_true(heap_has_choice(heap));
	assert_true(heap_chooses(heap, 2, "renamed since"));	/* chosen once, chosen always */
	assert_false(heap_chooses(heap, 1, "other"));
	assert_true(heap_chooses(heap, 77, "worker-77"));	/* which has allocated nothing */
	assert_false(heap_chooses(heap, 78, "idle"));
	for (int chosen = 0; chosen < 2; chosen++) {
		heap_hit(heap, BASE + 1, 6);
		heap_find_hits(heap);
		fault(heap, 0, chosen ? 100 : 10, 12, chosen);
		heap_drop_hits(heap, 1);
	}
	view = publish(heap);
	assert_int_equal(view->totals.s.fault_bytes, 100);
	assert_int_equal(pair(view, 12, 1), 100);
	assert_int_equal(pair(view, 11, 1), 0);
	view_unref(view);
	heap_choose_threads(heap, NULL);
	view = publish(heap);
	assert_int_equal(view->totals.s.fault_bytes, 111);
	assert_int_equal(pair(view, 12, 1), 110);
	view_unref(view);
	heap_destroy(heap);
}

/* ---- rows, sums, files ---- */

static struct names *some_names(void)
{
	struct names *names = names_create(NULL);

	for (uint32_t i = 1; i <= 30; i++) {
		char text[16];
		snprintf(text, sizeof(text), i == 30 ? "main" : i > 10 ? "touch%u" : "site%u", i);
		struct name_func func = { .function = text, .linkage = text, .file = "a.c", .line = i };
		names_put(names, 1, frame_vaddr(address(i)), false, "prog", &func, 1);
	}
	return names;
}

/* touch11 touches 1000 bytes of site1's, 200 of site2's and 30 of nobody's; touch12 4 of site1's. */
static struct heap *some_heap(void)
{
	struct heap *heap = heap_create(NULL);
	const struct { uint32_t place, toucher; uint64_t bytes; } touched[] = {
		{ 0, 11, 1000 }, { 1, 11, 200 }, { 2, 11, 30 }, { 0, 12, 4 },
	};

	alloc(heap, BASE, 4096, 1, 1);
	alloc(heap, BASE + PLACE, 4096, 2, 2);
	for (size_t i = 0; i < ARRAY_SIZE(touched); i++) {
		heap_hit(heap, BASE + touched[i].place * PLACE, 5);
		one(heap, touched[i].bytes, touched[i].toucher);
	}
	return heap;
}

static void assert_list(const struct report_touched_list *list, const char *text)
{
	char got[300] = "";

	for (size_t i = 0; i < list->n; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s %llu; ", list->items[i].function,
			 (unsigned long long)list->items[i].bytes);
	assert_string_equal(got, text);
}

static void row_touched(struct report *r, const char *function, struct report_touched *ret)
{
	size_t n;
	const struct report_site *sites = report_sites(r, REPORT_FAULT_BYTES, false, &n);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(sites[i].function, function)) {
			report_site_touched(r, sites[i].id, ret);
			return;
		}
	fail_msg("no row %s", function);
}

static void check_report(struct view *view, struct names *names, unsigned times)
{
	struct report *r = report_create(names, true);
	struct report_touched t;
	char text[100];
	size_t n;

	report_set_view(r, view);
	row_touched(r, "touch11", &t);
	snprintf(text, sizeof(text), "site1 %u; site2 %u; " REPORT_TOUCHED_NOBODY " %u; ", 1000 * times, 200 * times, 30 * times);
	assert_list(&t.owners, text);
	assert_int_equal(t.owners.bytes, 1230 * times);
	assert_list(&t.touchers, "");
	row_touched(r, "site1", &t);
	assert_list(&t.owners, "");
	snprintf(text, sizeof(text), "touch11 %u; touch12 %u; ", 1000 * times, 4 * times);
	assert_list(&t.touchers, text);

	/* trees: main is on both sides, and has all; inverted, its caller's row is the site's */
	for (int inverted = 0; inverted < 2; inverted++) {
		struct report_tree *tree = report_tree(r, inverted);
		const struct report_cell *at = report_tree_root(tree);
		report_cell_touched(tree, at, &t);
		assert_int_equal(t.owners.bytes, 1234 * times);
		assert_int_equal(t.touchers.bytes, 1204 * times);
		for (int depth = 0; depth < 2; depth++) {
			const struct report_cell *const *children = report_tree_children(tree, at, REPORT_FAULT_BYTES, &n);
			assert_true(n > 0);
			at = children[0];
		}
		assert_string_equal(at->function, inverted ? "main" : "touch11");
		report_cell_touched(tree, at, &t);
		assert_int_equal(t.owners.bytes, 1230 * times);
		assert_int_equal(t.touchers.bytes, 0);
	}

	CLEANUP_FREE struct report_touch *all = report_touches(r, &n);
	assert_int_equal(n, 4);
	assert_string_equal(all[0].toucher, "touch11");
	assert_string_equal(all[0].owner, "site1");
	assert_int_equal(all[0].bytes, 1000 * times);
	assert_string_equal(all[2].owner, REPORT_TOUCHED_NOBODY);

	/* what is filtered out is on no side a row's own */
	assert_null(report_set_filter(r, "!touch12"));
	free(all);
	all = report_touches(r, &n);
	assert_int_equal(n, 3);
	report_destroy(r);
}

static void test_rows(void **state)
{
	(void)state;
	struct heap *heap = some_heap();
	struct names *names = some_names();
	struct view *view = publish(heap);

	check_report(view, names, 1);
	view_unref(view);
	names_destroy(names);
	heap_destroy(heap);
}

static void test_sum(void **state)
{
	(void)state;
	const struct view_info info = { .command = (char *)"x", .faults = true };
	struct heap *heaps[2] = { some_heap(), some_heap() };
	struct merge *m = merge_create(0);
	struct merge_member *members[2];
	struct names *names = some_names();

	for (int i = 0; i < 2; i++) {
		struct view *view = publish(heaps[i]);
		members[i] = merge_join(m);
		merge_take(m, members[i], view);
		view_unref(view);
	}
	struct view *sum = merge_publish(m, &info, 1);
	check_report(sum, names, 2);
	view_unref(sum);
	/* one has ended: what it has told stays */
	merge_leave(m, members[0]);
	sum = merge_publish(m, &info, 2);
	check_report(sum, names, 2);
	view_unref(sum);
	merge_destroy(m);
	names_destroy(names);
	for (int i = 0; i < 2; i++)
		heap_destroy(heaps[i]);
}

static void write_file(struct view *view, struct names *names, char **ret, size_t *ret_len)
{
	struct report *r = report_create(names, true);
	FILE *f = open_memstream(ret, ret_len);

	report_set_view(r, view);
	assert_null(pprof_write(f, r, names, NULL, false));
	fclose(f);
	report_destroy(r);
}

static void test_file(void **state)
{
	(void)state;
	struct heap *heap = some_heap();
	struct names *names = some_names(), *read_names;
	struct view *view = publish(heap), *back;
	char *bytes, *at;
	size_t len;

	write_file(view, names, &bytes, &len);
	assert_null(pprof_read(bytes, len, "x", &back, &read_names));
	check_report(back, read_names, 1);
	view_unref(back);
	names_destroy(read_names);

	/* another tool has changed what is told: it isn't believed */
	at = memmem(bytes, len, " 3e8", 4);
	assert_non_null(at);
	at[1] = '4';
	assert_null(pprof_read(bytes, len, "x", &back, &read_names));
	assert_null(back->touches);
	assert_int_equal(back->totals.s.fault_bytes, 1234);
	view_unref(back);
	names_destroy(read_names);
	/* an owner that there isn't */
	memcpy(at, " ff8", 4);
	assert_null(pprof_read(bytes, len, "x", &back, &read_names));
	assert_null(back->touches);
	view_unref(back);
	names_destroy(read_names);
	free(bytes);
	view_unref(view);
	names_destroy(names);
	heap_destroy(heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random), cmocka_unit_test(test_early), cmocka_unit_test(test_ends_of_memory),
		cmocka_unit_test(test_bound), cmocka_unit_test(test_threads), cmocka_unit_test(test_rows),
		cmocka_unit_test(test_sum), cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
