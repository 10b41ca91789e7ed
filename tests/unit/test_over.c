/*
 * What has ended, or was let go: in its last view nothing is allocated or freed any more, not by a trace, a thread, nor in
 * all, while its graph goes on telling of what was; in a sum with one that goes on only that one's rates count, and
 * nothing of the other is judged as growing.
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
#include "report/judge.h"
#include "tests/lib/whole.h"

#define SECOND UINT64_C(1000000000)
#define LEAVES 40u		/* more than a chunk of traces has */
#define QUIET 40u		/* stacks that allocate at the start alone: nothing of them differs from view to view */

/* A process that leaks for so many seconds at all of its stacks, and frees a part; published once a second. */
static struct heap *leaky(unsigned seconds, struct view **ret_last)
{
	const struct view_info info = { .command = (char *)"leaky" };
	struct heap *heap = heap_create(NULL);

	*ret_last = NULL;
	heap_thread(heap, 0, 1, "main\0\0\0\0\0\0\0\0\0\0\0", 0);
	for (uint32_t i = 0; i < QUIET; i++) {
		const uint64_t stack[2] = { frame_addr(1, 0x9000 + i * 16), frame_addr(1, 0x8000) };
		heap_alloc_whole(heap, 0x1000 + i * 64, 50, 1, 0, 0, stack, 2, 0);
	}
	for (unsigned s = 0; s < seconds; s++) {
		for (uint32_t i = 0; i < 100; i++) {
			uint64_t now = s * SECOND + i * (SECOND / 100), addr = 0x10000 + (s * 100 + i) * 64ull;
			const uint64_t stack[2] = { frame_addr(1, 0x1000 + i % LEAVES * 16), frame_addr(1, 0x8000) };
			heap_alloc_whole(heap, addr, 50, 1, now, 0, stack, 2, 0);
			if (i % 10 == 9)
				heap_free(heap, addr, now, 0, false);
		}
		view_unref(*ret_last);
		*ret_last = heap_publish(heap, &info, (s + 1) * SECOND - 1);
	}
	return heap;
}

static bool still(const struct trace_stats *s)
{
	return !s->alloc_bps && !s->alloc_cps && !s->free_bps && !s->free_cps && s->over_bytes == s->live_bytes;
}

static void assert_still(const struct view *view)
{
	assert_true(still(&view->totals.s));
	assert_true(view->totals.trend_bps == 0);
	assert_true(view->totals.s.live_bytes > 0);
	for (size_t i = 0; i < view->ntraces; i++)
		assert_true(!view_trace(view, i) || still(&view_trace(view, i)->s));
	for (size_t i = 0; i < view->nthreads; i++)
		assert_true(still(&view->threads[i].s));
}

static void test_ends(void **state)
{
	static const enum view_state states[] = { VIEW_EXITED, VIEW_DETACHED };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		const struct view_info over = { .command = (char *)"leaky", .state = states[i] };
		struct view *before;
		struct heap *heap = leaky(5, &before);
		assert_true(before->totals.s.alloc_bps > 4000 && before->totals.s.free_bps > 0);
		assert_true(before->totals.trend_bps > 3000);
		assert_true(before->threads[0].s.alloc_bps > 4000);
		assert_int_equal(before->totals.s.over_bytes, 0);
		struct view *after = heap_publish(heap, &over, 5 * SECOND);
		assert_still(after);
		assert_int_equal(after->totals.s.live_bytes, before->totals.s.live_bytes);
		assert_true(after->points[after->npoints - 1].alloc_bps > 4000);
		/* asked for again, of a choice of threads, and of all again */
		struct view *again = heap_publish(heap, &over, 5 * SECOND + SECOND / 10);
		assert_still(again);
		heap_choose_threads(heap, "main");
		struct view *chosen = heap_publish(heap, &over, 6 * SECOND);
		assert_still(chosen);
		heap_choose_threads(heap, NULL);
		struct view *all = heap_publish(heap, &over, 7 * SECOND);
		assert_still(all);
		view_unref(all);
		view_unref(chosen);
		view_unref(again);
		view_unref(after);
		view_unref(before);
		heap_destroy(heap);
	}
}

static struct view *sum_of(struct merge *m)
{
	const struct view_info info = { .command = (char *)"all" };

	return merge_publish(m, &info, 6);
}

/* Of several that were attached to it stays a member; a child leaves. */
static void test_one_of_several(void **state)
{
	(void)state;
	for (int leaves = 0; leaves < 2; leaves++) {
		const struct view_info over = { .command = (char *)"leaky", .state = VIEW_EXITED };
		const struct view_info running = { .command = (char *)"leaky" };
		struct merge *m = merge_create(0);
		struct merge_member *a = merge_join(m), *b = merge_join(m);
		struct view *view_a, *view_b;
		struct heap *heap_a = leaky(5, &view_a), *heap_b = leaky(4, &view_b);
		merge_take(m, a, view_a);
		merge_take(m, b, view_b);
		struct view *both = sum_of(m);
		assert_true(both->totals.s.alloc_bps > 8000 && both->totals.trend_bps > 7000);
		view_unref(view_a);
		view_a = heap_publish(heap_a, &over, 5 * SECOND);
		merge_take(m, a, view_a);
		if (leaves)
			merge_leave(m, a);
		struct view *one = sum_of(m);
		/* to the last bit but for the sums' own rounding */
		float of_b = view_b->totals.s.alloc_bps;
		assert_true(one->totals.s.alloc_bps > of_b - 1 && one->totals.s.alloc_bps < of_b + 1);
		assert_true(one->totals.trend_bps == view_b->totals.trend_bps);
		assert_int_equal(one->totals.s.over_bytes, view_a->totals.s.live_bytes);
		assert_int_equal(one->totals.s.live_bytes, view_a->totals.s.live_bytes + view_b->totals.s.live_bytes);
		/* the other one goes on, and then ends, too */
		view_unref(view_b);
		view_b = heap_publish(heap_b, &running, 5 * SECOND);
		merge_take(m, b, view_b);
		view_unref(view_b);
		view_b = heap_publish(heap_b, &over, 6 * SECOND);
		merge_take(m, b, view_b);
		struct view *none = sum_of(m);
		assert_still(none);
		view_unref(none);
		view_unref(one);
		view_unref(both);
		view_unref(view_a);
		view_unref(view_b);
		heap_destroy(heap_a);
		heap_destroy(heap_b);
		merge_destroy(m);
	}
}

static void test_judged(void **state)
{
	(void)state;
	static const uint64_t rising[] = { 1000000, 1100000, 1200000, 1300000, 1400000, 1500000 };
	struct trace_stats s = { .alloc_bytes = 1500000, .alloc_q10 = 300 << 10, .live_bytes = 1500000, .live_q10 = 300 << 10,
				 .samples = 300, .live_samples = 300, .alloc_bps = 100000, .alloc_cps = 20 };
	struct judge_facts f = { .s = &s, .trend = rising, .ntrend = ARRAY_SIZE(rising), .seconds = 5 };
	char text[JUDGE_TEXT];

	assert_false(judge_over(&s));
	assert_int_equal(judge(&f, text), VERDICT_LEAK);
	/* all of it, though the sum goes on */
	s.over_bytes = s.live_bytes;
	s.alloc_bps = s.alloc_cps = 0;
	assert_true(judge_over(&s));
	assert_int_equal(judge(&f, text), VERDICT_LEFT);
	assert_string_equal(text, "1.4M still held when its process ended or was let go");
	/* a part of it: by the other part */
	s.over_bytes = 700000;
	assert_true(judge_over(&s));
	assert_int_equal(judge(&f, text), VERDICT_STEADY);
	s.alloc_bps = 100000;
	s.alloc_cps = 20;
	assert_false(judge_over(&s));
	assert_int_equal(judge(&f, text), VERDICT_LEAK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_one_of_several),
		cmocka_unit_test(test_judged),
	};

	return cmocka_run_group_tests_name("over", tests, NULL, NULL);
}
