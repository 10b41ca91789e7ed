/*
 * heap/merge.h: random heaps that share some of their stacks, and their sum against a brute-force one made of
 * all their views; members that leave, a member whose heap begins anew, and the bound.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "heap/heap.h"
#include "heap/merge.h"
#include "heap/view.h"
#include "unwind/unwind.h"

#define MEMBERS 4
#define LEAVES 40		/* stacks are root, i % 5, i */

static uint64_t random_state = 11;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % n;
}

static void alloc(struct heap *heap, uint64_t addr, uint64_t size, uint32_t leaf, uint64_t rate, uint64_t time)
{
	const uint64_t addrs[] = { frame_addr(1, 0x1000 + leaf), frame_addr(1, 0x100 + leaf % 5),
				   frame_addr(2, 0x10) };
	const struct heap_stack stack = { .addrs = addrs, .n = 3, .why = UNWIND_END_ROOT };

	heap_alloc(heap, addr, size, rate, time, 0, &stack);
}

/* Figures by the innermost frame, FRAME_MERGED's apart. */
struct figures {
	struct trace_stats of[LEAVES], rest;
};

static void collect(struct figures *f, const struct view *view)
{
	for (size_t i = 0; i < view->ntraces; i++) {
		const struct view_trace *t = view_trace(view, i);
		if (!t)
			continue;
		uint64_t addr = tree_get(view->tree, t->node).addr;
		if (addr == frame_addr(0, FRAME_MERGED)) {
			trace_stats_add(&f->rest, &t->s);
			continue;
		}
		/* also the way to it */
		struct tree_node up = tree_get(view->tree, tree_get(view->tree, t->node).parent);
		uint32_t leaf = (uint32_t)(frame_vaddr(addr) - 0x1000);
		assert_true(leaf < LEAVES);
		assert_int_equal(up.addr, frame_addr(1, 0x100 + leaf % 5));
		assert_int_equal(tree_get(view->tree, up.parent).addr, frame_addr(2, 0x10));
		trace_stats_add(&f->of[leaf], &t->s);
	}
}

static void assert_stats(const struct trace_stats *a, const struct trace_stats *b)
{
	assert_int_equal(a->alloc_bytes, b->alloc_bytes);
	assert_int_equal(a->alloc_q10, b->alloc_q10);
	assert_int_equal(a->free_bytes, b->free_bytes);
	assert_int_equal(a->live_bytes, b->live_bytes);
	assert_int_equal(a->live_q10, b->live_q10);
	assert_int_equal(a->peak_bytes, b->peak_bytes);
	assert_int_equal(a->samples, b->samples);
	assert_true(a->live_var - b->live_var < 1 && b->live_var - a->live_var < 1);
}

static void assert_sum(struct merge *m, struct view **views, size_t n)
{
	static const struct view_info info = { .pid = 7, .command = (char *)"all" };
	struct figures want = { 0 }, got = { 0 };
	struct trace_stats total = { 0 };
	struct view *sum = merge_publish(m, &info, 1);

	for (size_t i = 0; i < n; i++) {
		if (!views[i])
			continue;
		collect(&want, views[i]);
		trace_stats_add(&total, &views[i]->totals.s);
	}
	collect(&got, sum);
	for (uint32_t i = 0; i < LEAVES; i++)
		assert_stats(&got.of[i], &want.of[i]);
	assert_stats(&sum->totals.s, &total);
	assert_string_equal(sum->info.command, "all");
	view_unref(sum);
}

static void test_random(void **state)
{
	(void)state;
	struct merge *m = merge_create(0);
	struct heap *heaps[MEMBERS];
	struct merge_member *members[MEMBERS];
	struct view *views[MEMBERS + 2] = { 0 };	/* and of those that have left */
	const struct view_info info = { .command = (char *)"" };

	for (int i = 0; i < MEMBERS; i++) {
		heaps[i] = heap_create(&(struct heap_config){ 0 });
		members[i] = merge_join(m);
	}
	for (uint64_t round = 1; round < 300; round++) {
		for (uint32_t i = 0; i < MEMBERS; i++) {
			for (uint32_t k = random_below(20); k > 0; k--) {
				uint64_t addr = 0x10000 + random_below(300) * 16;
				if (random_below(2))
					alloc(heaps[i], addr, random_below(5000), random_below(LEAVES) / (i + 1),
					      random_below(2) ? 1 : 4096, round * 1000000);
				else
					heap_free(heaps[i], addr, round * 1000000, 0, false);
			}
			/* not each one every time */
			if (views[i] && random_below(3) == 0)
				continue;
			view_unref(views[i]);
			views[i] = heap_publish(heaps[i], &info, round * 1000000);
			merge_take(m, members[i], views[i]);
		}
		if (round == 100 || round == 200) {
			/* an exec, and one that ends */
			heap_destroy(heaps[1]);
			heaps[1] = heap_create(&(struct heap_config){ 0 });
			merge_leave(m, members[2]);
			views[MEMBERS + round / 200] = views[2];
			views[2] = NULL;
			heap_destroy(heaps[2]);
			heaps[2] = heap_create(&(struct heap_config){ 0 });
			members[2] = merge_join(m);
		}
		assert_sum(m, views, ARRAY_SIZE(views));
	}
	for (int i = 0; i < MEMBERS; i++)
		heap_destroy(heaps[i]);
	merge_destroy(m);
	for (size_t i = 0; i < ARRAY_SIZE(views); i++)
		view_unref(views[i]);
}

/* What has no room goes into one trace, comes off it again, and nothing is lost. */
static void test_bound(void **state)
{
	(void)state;
	struct merge *m = merge_create(10);
	struct heap *heap = heap_create(&(struct heap_config){ 0 });
	struct merge_member *member = merge_join(m);
	const struct view_info info = { .command = (char *)"" };

	for (uint32_t i = 0; i < LEAVES; i++)
		alloc(heap, 0x10000 + i * 16, 100, i, 1, 1000);
	struct view *view = heap_publish(heap, &info, 1000);
	merge_take(m, member, view);
	view_unref(view);
	struct view *sum = merge_publish(m, &info, 1);
	struct figures got = { 0 };
	collect(&got, sum);
	assert_true(sum->ntraces <= 11);
	assert_true(sum->totals.merged > 0);
	assert_int_equal(sum->totals.s.live_bytes, 100 * LEAVES);
	assert_true(got.rest.live_bytes >= 100 * (LEAVES - 10));
	view_unref(sum);

	for (uint32_t i = 0; i < LEAVES; i++)
		heap_free(heap, 0x10000 + i * 16, 2000, 0, false);
	view = heap_publish(heap, &info, 2000);
	merge_take(m, member, view);
	view_unref(view);
	sum = merge_publish(m, &info, 2);
	memset(&got, 0, sizeof(got));
	collect(&got, sum);
	assert_int_equal(got.rest.live_bytes, 0);
	assert_int_equal(sum->totals.s.live_bytes, 0);
	view_unref(sum);
	heap_destroy(heap);
	merge_destroy(m);
}

/* Unchanged traces are the same chunks in the next view: readers find differences by that. */
static void test_shares_chunks(void **state)
{
	(void)state;
	struct merge *m = merge_create(0);
	struct heap *heap = heap_create(&(struct heap_config){ 0 });
	struct merge_member *member = merge_join(m);
	const struct view_info info = { .command = (char *)"" };
	struct view *sums[2] = { NULL, NULL };

	/* until the rates of the first allocations have faded */
	for (uint64_t round = 0; round < 12; round++) {
		uint64_t time = 1000 + round * 1000000000;
		for (uint32_t i = 0; i < LEAVES && (!round || i < 1); i++)
			alloc(heap, 0x10000 + i * 16 + round * 0x10000, 10, i, 1, time);
		struct view *view = heap_publish(heap, &info, time);
		merge_take(m, member, view);
		view_unref(view);
		view_unref(sums[0]);
		sums[0] = sums[1];
		sums[1] = merge_publish(m, &info, (double)round);
	}
	assert_ptr_equal(sums[0]->tree, sums[1]->tree);
	assert_true(sums[1]->seq > sums[0]->seq);
	size_t same = 0;
	for (size_t c = 0; c * VIEW_CHUNK < sums[1]->ntraces; c++)
		same += sums[0]->chunks[c] == sums[1]->chunks[c];
	assert_true(same > 0);
	view_unref(sums[0]);
	view_unref(sums[1]);
	heap_destroy(heap);
	merge_destroy(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_shares_chunks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
