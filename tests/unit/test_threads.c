/*
 * Statistics per thread: each block is its thread's whoever frees it, slots pass on, threads that have ended
 * are added up by name within bounds, and views of chosen threads show what those hold.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heap/heap.h"
#include "heap/threads.h"
#include "heap/tree.h"
#include "heap/view.h"
#include "unwind/unwind.h"

static struct heap *heap;
static uint64_t now;

static int setup(void **state)
{
	(void)state;
	heap = heap_create(NULL);
	now = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	heap_destroy(heap);
	return 0;
}

static void begin(uint32_t slot, uint32_t tid, const char *name)
{
	char copy[16] = "";

	strncpy(copy, name, sizeof(copy));
	heap_thread(heap, slot, tid, copy, ++now);
}

/* At a site of its own. */
static void alloc_at(uint32_t slot, uint64_t addr, uint64_t size, uint64_t site)
{
	const uint64_t frame = frame_addr(0, 0x1000 + site * 16);

	heap_alloc(heap, addr, size, 1, ++now, slot, &(struct heap_stack){ .addrs = &frame, .n = 1,
									   .why = UNWIND_END_ROOT });
}

static void alloc(uint32_t slot, uint64_t addr, uint64_t size)
{
	alloc_at(slot, addr, size, 1);
}

static void release(uint32_t slot, uint64_t addr)
{
	heap_free(heap, addr, ++now, slot, false);
}

static struct view *publish(void)
{
	const struct view_info info = { .command = (char *)"x" };

	now += 1000000000;
	return heap_publish(heap, &info, now);
}

static const struct view_thread *row(const struct view *view, uint32_t tid, const char *name)
{
	for (size_t i = 0; i < view->nthreads; i++)
		if (view->threads[i].tid == tid && !strcmp(view->threads[i].name, name))
			return &view->threads[i];
	return NULL;
}

static void assert_adds_up(const struct view *view)
{
	struct trace_stats sum = { 0 };

	for (size_t i = 0; i < view->nthreads; i++)
		trace_stats_add(&sum, &view->threads[i].s);
	assert_int_equal(sum.alloc_bytes, view->totals.s.alloc_bytes);
	assert_int_equal(sum.alloc_q10, view->totals.s.alloc_q10);
	assert_int_equal(sum.free_bytes, view->totals.s.free_bytes);
	assert_int_equal(sum.live_bytes, view->totals.s.live_bytes);
	assert_int_equal(sum.live_q10, view->totals.s.live_q10);
	assert_int_equal(sum.live_samples, view->totals.s.live_samples);
}

static void test_whose(void **state)
{
	(void)state;
	begin(1, 100, "one");
	begin(2, 200, "two\033[2J");
	alloc(1, 0x10, 10);
	alloc(1, 0x20, 20);
	alloc(2, 0x30, 30);
	release(2, 0x10);		/* by the other one */
	alloc(3, 0x40, 5);		/* nobody has said who that is */
	alloc(WIRE_SLOTS, 0x50, 7);	/* nor can */
	heap_free(heap, 0x20, ++now, 1, true);
	heap_unfree(heap, 0x20, 1);
	struct view *view = publish();
	const struct view_thread *one = row(view, 100, "one"), *two = row(view, 200, "two?[2J");
	assert_non_null(one);
	assert_non_null(two);
	assert_int_equal(one->s.alloc_bytes, 30);
	assert_int_equal(one->s.live_bytes, 20);
	assert_int_equal(one->s.free_bytes, 10);
	assert_int_equal(one->s.live_samples, 1);
	assert_int_equal(two->s.live_bytes, 30);
	assert_true(one->s.alloc_bps > 0);
	assert_int_equal(row(view, 0, "")->s.live_bytes, 5 + (view->threads[0].tid ? 0 : 2));
	assert_adds_up(view);
	view_unref(view);
}

/* Another thread in the same slot: the blocks before stay the first one's, which has ended. */
static void test_handed_on(void **state)
{
	(void)state;
	begin(1, 100, "one");
	alloc(1, 0x10, 10);
	begin(1, 100, "uno");		/* the same once more: only its name is new */
	begin(1, 101, "next");
	alloc(1, 0x20, 20);
	release(1, 0x10);
	struct view *view = publish();
	assert_int_equal(view->nthreads, 2);
	assert_true(row(view, 100, "uno")->ended);
	assert_int_equal(row(view, 100, "uno")->s.live_bytes, 0);
	assert_false(row(view, 101, "next")->ended);
	assert_int_equal(row(view, 101, "next")->s.live_bytes, 20);
	view_unref(view);
}

static void test_present(void **state)
{
	static const uint32_t both[] = { 100, 200 }, second[] = { 200 };
	uint32_t tid;

	(void)state;
	begin(1, 100, "one");
	begin(2, 200, "two");
	alloc(1, 0x10, 10);
	alloc(2, 0x20, 10);
	heap_threads_present(heap, second, 1);
	heap_threads_present(heap, both, 2);	/* a reading that missed it */
	heap_threads_present(heap, second, 1);
	struct view *view = publish();
	assert_false(row(view, 100, "one")->ended);
	view_unref(view);
	heap_threads_present(heap, second, 1);
	view = publish();
	assert_true(row(view, 100, "one")->ended);
	assert_false(row(view, 200, "two")->ended);
	view_unref(view);
	for (int i = 0; i < 3; i++) {
		uint16_t number = heap_thread_next(heap, &tid);
		assert_int_equal(tid, 200);
		heap_thread_name(heap, number, "zwei\0\0\0\0\0\0\0\0\0\0\0");
	}
	heap_threads_present(heap, NULL, 0);
	assert_int_equal(heap_thread_next(heap, &tid), 0);
	view = publish();
	assert_true(row(view, 200, "zwei")->ended);
	view_unref(view);
}

/* Far more threads than there are numbers, each of which leaves a block that goes much later. */
static void test_bounded(void **state)
{
	const uint32_t n = 200000;
	char name[16];

	(void)state;
	begin(2, 1, "main");
	for (uint32_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "pool-%u", i % 3);
		begin(1, 1000 + i, name);
		alloc(1, 0x100000 + (uint64_t)i * 16, 8);
		alloc(1, 8, 8);
		release(2, 8);
	}
	struct view *view = publish();
	assert_true(view->nthreads <= THREADS_ENDED + 3 + 2);
	assert_adds_up(view);
	uint32_t threads = 0;
	for (size_t i = 0; i < view->nthreads; i++)
		threads += view->threads[i].merged ? view->threads[i].merged : 1;
	assert_int_equal(threads, n + 1);
	assert_true(row(view, 0, "pool-1")->ended && row(view, 0, "pool-1")->merged > n / 3 - THREADS_ENDED);
	view_unref(view);
	for (uint32_t i = 0; i < n; i++)
		release(2, 0x100000 + (uint64_t)i * 16);
	view = publish();
	assert_adds_up(view);
	for (size_t i = 0; i < view->nthreads; i++)
		assert_int_equal(view->threads[i].s.live_bytes, 0);
	view_unref(view);
	/* and names without end */
	for (uint32_t i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		begin(1, 1000000 + i, name);
		alloc(1, 0x100000 + (uint64_t)i * 16, 8);
	}
	view = publish();
	assert_true(view->nthreads <= THREADS_ENDED + THREADS_NAMES + 4);
	assert_true(row(view, 0, THREADS_OTHERS)->merged > 19000);
	assert_adds_up(view);
	view_unref(view);
}

static uint64_t shown(struct view *view, uint64_t *ret_alloc)
{
	uint64_t live = view->totals.s.live_bytes, sum = 0;

	*ret_alloc = view->totals.s.alloc_bytes;
	for (size_t i = 0; i < view->ntraces; i++)
		if (view_trace(view, i))
			sum += view_trace(view, i)->s.live_bytes;
	assert_int_equal(sum, live);
	view_unref(view);
	return live;
}

static void test_chosen(void **state)
{
	uint64_t allocated;

	(void)state;
	begin(1, 100, "io-1");
	begin(2, 200, "io-2");
	begin(3, 300, "main");
	alloc_at(1, 0x10, 1, 1);
	alloc_at(2, 0x20, 20, 2);
	alloc_at(3, 0x30, 300, 2);
	heap_choose_threads(heap, "io-*");
	assert_int_equal(shown(publish(), &allocated), 21);
	assert_int_equal(allocated, 21);
	alloc_at(1, 0x40, 4000, 3);
	alloc_at(3, 0x50, 50000, 3);
	release(3, 0x20);
	assert_int_equal(shown(publish(), &allocated), 4001);
	assert_int_equal(allocated, 4021);
	heap_free(heap, 0x40, ++now, 1, true);
	heap_unfree(heap, 0x40, 1);
	assert_int_equal(shown(publish(), &allocated), 4001);
	/* one that gets such a name brings what it holds; one that loses it stays */
	heap_thread(heap, 3, 300, "io-3\0\0\0\0\0\0\0\0\0\0\0", ++now);
	heap_thread(heap, 1, 100, "other\0\0\0\0\0\0\0\0\0\0", ++now);
	assert_int_equal(shown(publish(), &allocated), 4001 + 50300);
	release(1, 0x50);
	release(1, 0x30);
	assert_int_equal(shown(publish(), &allocated), 4001);
	begin(4, 400, "io-4");
	alloc(4, 0x60, 600000);
	assert_int_equal(shown(publish(), &allocated), 604001);
	/* by id; then all of them again */
	heap_choose_threads(heap, "400");
	struct view *view = publish();
	assert_string_equal(view->info.thread, "400");
	assert_true(row(view, 400, "io-4")->chosen && !row(view, 100, "other")->chosen);
	assert_int_equal(row(view, 100, "other")->s.live_bytes, 4001);
	assert_int_equal(shown(view, &allocated), 600000);
	heap_choose_threads(heap, "400,main,oth?r");
	assert_int_equal(shown(publish(), &allocated), 604001);
	heap_choose_threads(heap, ",io-4,");
	assert_int_equal(shown(publish(), &allocated), 600000);
	/* a name may have what is a sign in patterns */
	heap_thread(heap, 4, 400, "a,b[1]\0\0\0\0\0\0\0\0\0", ++now);
	heap_choose_threads(heap, "a,b\\[1\\]");
	assert_int_equal(shown(publish(), &allocated), 0);
	heap_choose_threads(heap, "main,a\\,b\\[1\\]");
	assert_int_equal(shown(publish(), &allocated), 600000);
	heap_choose_threads(heap, NULL);
	view = publish();
	assert_null(view->info.thread);
	assert_adds_up(view);
	assert_int_equal(shown(view, &allocated), 604001);
}

/* What those chosen hold was all there when the last of it came, wherever it stands in a table. */
static void test_chosen_peak(void **state)
{
	(void)state;
	begin(1, 100, "io-1");
	for (uint64_t i = 1; i <= 100; i++) {
		now = i * 1000000000;
		alloc(1, i << 12, 10);
	}
	heap_choose_threads(heap, "io-1");
	struct view *view = publish();
	assert_float_equal(view->totals.peak_time, 100, 0.001);
	view_unref(view);
}

/* The graph of those chosen begins with the choice; that of all goes on meanwhile. */
static void test_chosen_graph(void **state)
{
	struct view_info info = { 0 };

	(void)state;
	begin(1, 100, "a");
	begin(2, 200, "b");
	alloc(1, 0x10, 1000);
	for (uint64_t s = 1; s <= 20; s++) {
		if (s == 11)
			heap_choose_threads(heap, "b");
		if (s == 16)
			heap_choose_threads(heap, NULL);
		alloc(2, 0x100 + s * 0x10, 1);
		struct view *view = heap_publish(heap, &info, 1000000000 * (now + s));
		assert_int_equal(view->npoints, s < 11 || s > 15 ? s : s - 10);
		assert_int_equal(view->points[view->npoints - 1].live_bytes, s < 11 || s > 15 ? 1000 + s : s);
		/* no fall when others are looked at */
		assert_true(view->totals.trend_bps >= 0 && view->totals.trend_bps <= 1000);
		if (s > 15)
			assert_int_equal(view->points[12].live_bytes, 1013);
		view_unref(view);
	}
}

/* Chosen threads that end by the thousands: their blocks stay in the view as long as they live. */
static void test_chosen_ended(void **state)
{
	uint64_t allocated;

	(void)state;
	heap_choose_threads(heap, "w");
	begin(2, 1, "main");
	for (uint32_t i = 0; i < 70000; i++) {
		begin(1, 1000 + i, i % 2 ? "w" : "v");
		alloc_at(1, 0x100000 + (uint64_t)i * 16, 8, i % 50);
		if (i == 300)
			view_unref(publish());
	}
	assert_int_equal(shown(publish(), &allocated), 35000 * 8);
	for (uint32_t i = 0; i < 69000; i++)
		release(2, 0x100000 + (uint64_t)i * 16);
	assert_int_equal(shown(publish(), &allocated), 500 * 8);
	assert_int_equal(allocated, 35000 * 8);
	heap_choose_threads(heap, "v");
	assert_int_equal(shown(publish(), &allocated), 500 * 8);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_whose), T(test_handed_on), T(test_present), T(test_bounded), T(test_chosen), T(test_chosen_peak), T(test_chosen_graph), T(test_chosen_ended),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
