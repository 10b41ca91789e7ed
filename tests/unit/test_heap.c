/*
 * The heap model and its live table: every sum against a brute-force model that keeps all blocks, the
 * lazily kept peak against one recomputed at every step, weights against their formula, bounds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "heap/heap.h"
#include "heap/live.h"
#include "heap/view.h"
#include "unwind/unwind.h"
#include "tests/lib/whole.h"

static uint64_t random_state = 7;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % n;
}

/* ---- live table ---- */

#define ADDRS 3000

static size_t live_in_slots(const struct live *live)
{
	size_t n = 0;

	for (size_t i = 0; i < live_slots(live); i++)
		n += live_slot(live, i)->addr != 0;
	return n;
}

/* Puts and removals of random blocks, from an empty table on. */
static void live_round(int steps)
{
	struct live live;
	bool there[ADDRS] = { 0 };
	size_t count = 0;

	live_init(&live, 2500);
	for (int k = 0; k < steps; k++) {
		uint32_t i = random_below(ADDRS);
		/* close together, which hashes evenly, and all over, so that probes run into each other */
		uint64_t addr = 0x7f0000000000ull + (i & 1 ? (uint64_t)i * i * 2654435761u % 0x3fffffff * 16
						     : (uint64_t)(i % 7) * 0x100000 + i * 16);
		live_ahead(&live, addr);
		struct live_block *found = live_find(&live, addr);
		assert_int_equal(found != NULL, there[i]);
		if (found) {
			assert_int_equal(found->size, i);
			live_remove(&live, found);
			there[i] = false;
			count--;
		} else {
			struct live_block block = { .addr = addr, .size = i };
			bool put = live_put(&live, &block);
			assert_int_equal(put, count < 2500);
			there[i] = put;
			count += put;
		}
		assert_int_equal(live.count, count);
		if (k % 16 == 0)
			assert_int_equal(live_in_slots(&live), count);
	}
	assert_null(live_find(&live, 0));
	live_deinit(&live);
}

static void test_live_random(void **state)
{
	(void)state;
	live_round(400000);
}

/* While a table grows each of its blocks is in one place, and found there. */
static void test_live_grows(void **state)
{
	(void)state;
	for (int round = 0; round < 300; round++)
		live_round(2500);
}

/* ---- weights ---- */

static void test_weights(void **state)
{
	(void)state;
	struct heap_weight w = heap_weigh(100, 1);
	assert_int_equal(w.bytes, 100);
	assert_int_equal(w.blocks_q10, 1024);
	assert_true(w.variance == 0);
	w = heap_weigh(100, 0);
	assert_int_equal(w.bytes, 100);

	w = heap_weigh(1000, 4096);
	double weight = 1 / (1 - exp(-1000 / 4096.0));
	assert_true(fabs((double)w.bytes - 1000 * weight) <= 1);
	assert_true(fabs((double)w.blocks_q10 - 1024 * weight) <= 1);
	assert_true(fabs(w.variance / (1e6 * weight * weight * (1 - 1 / weight)) - 1) < 1e-6);
	/* far larger than the interval: hit for certain */
	w = heap_weigh(1 << 30, 4096);
	assert_int_equal(w.bytes, 1 << 30);
	/* nonsense from outside stays finite */
	w = heap_weigh(0, UINT64_MAX);
	assert_int_equal(w.bytes, 0);
	assert_true(w.blocks_q10 > 0);
	w = heap_weigh(UINT64_MAX, UINT64_MAX);
	assert_true(isfinite(w.variance));
}

/* ---- the whole model ---- */

#define STACKS 40
#define SLOTS 300

struct block {
	bool live;
	uint64_t size, rate, time;
	uint32_t stack;
};

struct model {
	struct block blocks[SLOTS];
	struct trace_stats s[STACKS];
	uint64_t total, peak;
	uint64_t lost;
};

static void model_peak(struct model *m)
{
	if (m->total <= m->peak)
		return;
	m->peak = m->total;
	for (int i = 0; i < STACKS; i++) {
		m->s[i].peak_bytes = m->s[i].live_bytes;
		m->s[i].peak_q10 = m->s[i].live_q10;
	}
}

static void model_end(struct model *m, struct block *b, uint64_t time, bool lost)
{
	struct heap_weight w = heap_weigh(b->size, b->rate);
	struct trace_stats *s = &m->s[b->stack];

	s->live_bytes -= w.bytes;
	s->live_q10 -= w.blocks_q10;
	s->free_bytes += w.bytes;
	s->free_q10 += w.blocks_q10;
	s->live_samples--;
	if (!lost && time - b->time < 10000000) {
		s->temp_bytes += w.bytes;
		s->temp_q10 += w.blocks_q10;
	}
	m->total -= w.bytes;
	m->lost += lost;
	b->live = false;
}

static size_t stack_of(uint32_t i, uint64_t *addrs)
{
	/* prefixes of each other included */
	size_t n = 1 + i % 5;

	for (size_t k = 0; k < n; k++)
		addrs[n - 1 - k] = frame_addr(1, 0x1000 + (k == 0 ? i / 10 : 0x100 * (k + i / 5 % 2)));
	return n;
}

static void compare(const struct view *view, const struct model *m, struct tree *reference,
		    const uint32_t *node_stack)
{
	struct trace_stats sum = { 0 };
	size_t seen = 0;

	for (size_t i = 0; i < view->ntraces; i++) {
		const struct view_trace *t = view_trace(view, i);
		assert_non_null(t);
		/* find the stack again by its addresses */
		uint64_t addrs[8];
		size_t n = 0;
		for (uint32_t id = t->node; id; id = tree_get(view->tree, id).parent)
			addrs[n++] = tree_get(view->tree, id).addr;
		uint32_t k = node_stack[tree_find(reference, NULL, 0, addrs, n)];
		const struct trace_stats *a = &t->s, *b = &m->s[k];
		assert_int_equal(a->alloc_bytes, b->alloc_bytes);
		assert_int_equal(a->alloc_q10, b->alloc_q10);
		assert_int_equal(a->free_bytes, b->free_bytes);
		assert_int_equal(a->free_q10, b->free_q10);
		assert_int_equal(a->live_bytes, b->live_bytes);
		assert_int_equal(a->live_q10, b->live_q10);
		assert_int_equal(a->temp_bytes, b->temp_bytes);
		assert_int_equal(a->temp_q10, b->temp_q10);
		assert_int_equal(a->peak_bytes, b->peak_bytes);
		assert_int_equal(a->peak_q10, b->peak_q10);
		assert_int_equal(a->samples, b->samples);
		assert_int_equal(a->live_samples, b->live_samples);
		assert_true(a->live_var >= 0);
		trace_stats_add(&sum, a);
		seen++;
	}
	for (int i = 0; i < STACKS; i++)
		seen -= m->s[i].samples > 0;
	assert_int_equal(seen, 0);
	assert_int_equal(sum.peak_bytes, m->peak);
	assert_int_equal(view->totals.s.peak_bytes, m->peak);
	assert_int_equal(view->totals.s.live_bytes, m->total);
	assert_int_equal(view->totals.lost_frees, m->lost);
}

static void random_run(bool sampled)
{
	struct heap *heap = heap_create(NULL);
	struct model *m = xcalloc(1, sizeof(*m));
	struct tree *reference = tree_create();
	uint32_t node_stack[1000] = { 0 };
	uint64_t addrs[8], time = 0;
	struct view_info info = { .command = "x" };

	for (uint32_t i = 0; i < STACKS; i++)
		node_stack[tree_insert(reference, NULL, 0, addrs, stack_of(i, addrs))] = i;
	for (int step = 0; step < 60000; step++) {
		uint32_t i = random_below(SLOTS);
		uint64_t addr = 0x10000 + i * 32;
		uint32_t thread = random_below(4);
		struct block *b = &m->blocks[i];
		time += random_below(2000000);
		/* phases of growing and shrinking, so that maxima come and go */
		bool grow = step / 5000 % 2 == 0;
		if (random_below(grow ? 3 : 6) > 1) {
			/* a free, also of what isn't there; sometimes of a realloc that fails */
			bool by_realloc = random_below(4) == 0;
			heap_free(heap, addr, time, thread, by_realloc);
			if (by_realloc && random_below(2)) {
				heap_unfree(heap, addr, thread);
				heap_unfree(heap, addr, thread);
			} else if (b->live) {
				model_end(m, b, time, false);
			}
		} else {
			uint32_t k = random_below(STACKS);
			uint64_t size = random_below(step % 1000 < 10 ? 100000 : 1000);
			uint64_t rate = sampled ? 512u << step / 3000 % 4 : 1;
			if (b->live)
				model_end(m, b, time, true);
			*b = (struct block){ true, size, rate, time, node_stack[
				tree_insert(reference, NULL, 0, addrs, stack_of(k, addrs))] };
			struct heap_weight w = heap_weigh(size, rate);
			struct trace_stats *s = &m->s[b->stack];
			s->alloc_bytes += w.bytes;
			s->alloc_q10 += w.blocks_q10;
			s->live_bytes += w.bytes;
			s->live_q10 += w.blocks_q10;
			s->samples++;
			s->live_samples++;
			m->total += w.bytes;
			model_peak(m);
			heap_alloc_whole(heap, addr, size, rate, time, thread, addrs, stack_of(k, addrs), 0);
		}
		if (step % 997 == 0 || step == 59999) {
			struct view *view = heap_publish(heap, &info, time);
			compare(view, m, reference, node_stack);
			view_unref(view);
		}
	}
	free(m);
	tree_destroy(reference);
	heap_destroy(heap);
}

static void test_random_exact(void **state)
{
	(void)state;
	random_run(false);
}

static void test_random_sampled(void **state)
{
	(void)state;
	random_run(true);
}

/* What everything allocated and freed leaves: exactly nothing, whatever the intervals were. */
static void test_back_to_zero(void **state)
{
	(void)state;
	struct heap *heap = heap_create(NULL);
	struct view_info info = { 0 };
	uint64_t frame = frame_addr(1, 1);

	for (uint32_t i = 0; i < 5000; i++)
		heap_alloc_whole(heap, 16 + i * 16, 1 + i % 700, 1000 + i * 7, i, 0, &frame, 1, 0);
	assert_int_equal(heap_live_samples(heap), 5000);
	assert_true(heap_alloc_calls(heap) >= 5000 && heap_free_calls(heap) == 0);
	for (uint32_t i = 5000; i-- > 0; )
		heap_free(heap, 16 + i * 16, 20000000000ull, 1, false);
	assert_int_equal(heap_alloc_calls(heap), heap_free_calls(heap));
	struct view *view = heap_publish(heap, &info, 20000000000ull);
	assert_int_equal(view->totals.s.live_bytes, 0);
	assert_int_equal(view->totals.s.live_q10, 0);
	assert_true(view->totals.s.live_var == 0);
	assert_true(view->totals.s.alloc_var > 0);
	assert_int_equal(view->totals.s.alloc_bytes, view->totals.s.free_bytes);
	view_unref(view);
	heap_destroy(heap);
}

static void test_incomplete(void **state)
{
	(void)state;
	struct heap *heap = heap_create(NULL);
	struct view_info info = { 0 };
	uint64_t addrs[2] = { frame_addr(1, 2), frame_addr(1, 1) };

	heap_alloc_whole(heap, 16, 8, 1, 0, 0, addrs, 2, UNWIND_END_CUT);
	heap_alloc_whole(heap, 32, 8, 1, 0, 0, NULL, 0, 12345);
	struct view *view = heap_publish(heap, &info, 0);
	assert_int_equal(view->ntraces, 2);
	uint32_t id = view_trace(view, 0)->node;
	assert_int_equal(tree_get(view->tree, id).addr, addrs[0]);
	id = tree_get(view->tree, tree_get(view->tree, id).parent).parent;
	assert_int_equal(tree_get(view->tree, id).addr, 1 + UNWIND_END_CUT);
	assert_int_equal(tree_get(view->tree, id).parent, 0);
	assert_int_equal(tree_get(view->tree, view_trace(view, 1)->node).addr, 1 + UNWIND_END_BAD);
	/* the view lives on by itself */
	heap_destroy(heap);
	assert_int_equal(tree_get(view->tree, id).depth, 1);
	view_unref(view);
}

static void test_max_live(void **state)
{
	(void)state;
	struct heap *heap = heap_create(&(struct heap_config){ .max_live = 10 });
	struct view_info info = { .untracked = 3 };
	uint64_t frame = frame_addr(1, 1);

	for (uint32_t i = 0; i < 15; i++)
		heap_alloc_whole(heap, 16 + i * 16, 8, 1, 0, 0, &frame, 1, 0);
	struct view *view = heap_publish(heap, &info, 0);
	assert_int_equal(view->info.untracked, 8);
	assert_int_equal(view->totals.s.live_bytes, 80);
	view_unref(view);
	heap_destroy(heap);
}

/* Few records, many stacks: the sums stay right, cold traces are merged, live ones never. */
static void test_merge(void **state)
{
	(void)state;
	struct heap *heap = heap_create(&(struct heap_config){ .max_traces = 64 });
	struct view_info info = { 0 };
	uint64_t allocated = 0, live = 0, peak = 0;
	uint64_t *sizes = xcalloc(3000, sizeof(*sizes));

	/* one long-lived block that must keep its stack */
	uint64_t keep = frame_addr(2, 0x42);
	heap_alloc_whole(heap, 8, 1000, 1, 0, 0, &keep, 1, 0);
	allocated = live = peak = 1000;
	for (uint32_t i = 0; i < 3000; i++) {
		uint64_t frame = frame_addr(1, 0x1000 + i * 8);
		uint64_t size = 1 + random_below(500);
		heap_alloc_whole(heap, 0x1000 + i * 16, size, 1, i, 0, &frame, 1, 0);
		allocated += size;
		live += size;
		if (live > peak)
			peak = live;
		sizes[i] = size;
		if (i >= 20 && i % 500 > 100) {
			heap_free(heap, 0x1000 + (i - 20) * 16, i, 0, false);
			live -= sizes[i - 20];
			sizes[i - 20] = 0;
		}
	}
	free(sizes);
	struct view *view = heap_publish(heap, &info, 3000);
	assert_int_equal(view->totals.s.alloc_bytes, allocated);
	assert_int_equal(view->totals.s.peak_bytes, peak);
	assert_int_equal(view->totals.s.live_bytes, live);
	assert_int_equal(view->totals.s.alloc_bytes - view->totals.s.free_bytes, live);
	assert_true(view->ntraces <= 65);
	assert_true(view->totals.merged > 1000);
	assert_true(view->nnodes <= 64 * HEAP_NODES_PER_TRACE + TREE_MAX_DEPTH);
	bool kept = false, merged = false;
	for (size_t i = 0; i < view->ntraces; i++) {
		const struct view_trace *t = view_trace(view, i);
		if (!t)
			continue;
		uint64_t addr = tree_get(view->tree, t->node).addr;
		kept |= addr == keep && t->s.live_bytes == 1000;
		merged |= addr == FRAME_MERGED && t->s.alloc_bytes > 0;
	}
	assert_true(kept);
	assert_true(merged);
	view_unref(view);
	heap_destroy(heap);
}

/* A trace that was merged between a realloc's free and the news that the realloc failed. */
static void test_unfree_merged(void **state)
{
	(void)state;
	struct heap *heap = heap_create(&(struct heap_config){ .max_traces = 16 });
	struct view_info info = { 0 };
	uint64_t frame = frame_addr(1, 8);

	heap_alloc_whole(heap, 16, 100, 1, 0, 0, &frame, 1, 0);
	heap_free(heap, 16, 1, 0, true);
	for (uint32_t i = 1; i < 17; i++) {
		frame = frame_addr(1, 8 + i * 8);
		heap_alloc_whole(heap, 16 + i * 16, 10, 1, i, 1, &frame, 1, 0);
		if (i <= 3)	/* so that merging frees more records than it needs at once */
			heap_free(heap, 16 + i * 16, i, 1, false);
	}
	heap_unfree(heap, 16, 0);
	/* as many stacks again, for the records that are left */
	for (uint32_t i = 17; i < 33; i++) {
		frame = frame_addr(1, 8 + i * 8);
		heap_alloc_whole(heap, 16 + i * 16, 10, 1, i, 1, &frame, 1, 0);
	}
	struct view *view = heap_publish(heap, &info, 100);
	assert_int_equal(view->totals.s.live_bytes, 390);
	assert_int_equal(view->totals.s.alloc_bytes, 420);
	assert_int_equal(view->totals.s.free_bytes, 30);
	view_unref(view);
	heap_free(heap, 16, 101, 0, false);
	view = heap_publish(heap, &info, 102);
	assert_int_equal(view->totals.s.live_bytes, 290);
	for (size_t i = 0; i < view->ntraces; i++)
		assert_true(!view_trace(view, i) || view_trace(view, i)->s.live_bytes <= 290);
	view_unref(view);
	heap_destroy(heap);
}

#define SECOND 1000000000ull

static void test_rates(void **state)
{
	(void)state;
	struct heap *heap = heap_create(NULL);
	struct view_info info = { 0 };
	uint64_t frame = frame_addr(1, 1), addr = 16;
	struct view *view = NULL;

	/* 10 blocks of 100 bytes a tenth of a second, 4 of them freed; a view a second */
	for (uint64_t tick = 1; tick <= 100; tick++) {
		for (int i = 0; i < 10; i++, addr += 16)
			heap_alloc_whole(heap, addr, 100, 1, tick * SECOND / 10, 0, &frame, 1, 0);
		for (int i = 0; i < 4; i++)
			heap_free(heap, addr - 160 + (uint64_t)i * 16, tick * SECOND / 10, 0, false);
		if (tick % 10 == 0) {
			view_unref(view);
			view = heap_publish(heap, &info, tick * SECOND / 10);
		}
	}
	assert_true(fabsf(view->totals.s.alloc_bps - 10000) < 1);
	assert_true(fabsf(view->totals.s.alloc_cps - 100) < 0.1f);
	assert_true(fabsf(view->totals.s.free_bps - 4000) < 1);
	assert_true(fabsf(view->totals.trend_bps - 6000) < 1);
	assert_int_equal(view->npoints, 10);
	view_unref(view);
	/* quiet for 3 s: the window has moved past it */
	for (uint64_t s = 11; s <= 13; s++)
		view_unref(heap_publish(heap, &info, s * SECOND));
	view = heap_publish(heap, &info, 14 * SECOND);
	assert_true(view->totals.s.alloc_bps == 0);
	view_unref(view);
	heap_destroy(heap);
}

/* The graph ends with what the view says, however soon it is published; what came between doesn't stay. */
static void test_points_end(void **state)
{
	static const double times[] = { 1, 1, 1.2, 1.5, 2.1, 2.2, 2.2 };
	static const size_t n[] = { 1, 1, 2, 2, 2, 3, 3 };
	struct heap *heap = heap_create(NULL);
	struct view_info info = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		info.rss = (i + 1) << 20;
		struct view *view = heap_publish(heap, &info, (uint64_t)(times[i] * 1e9));
		assert_int_equal(view->npoints, n[i]);
		assert_int_equal(view->points[view->npoints - 1].rss, info.rss);
		assert_true(view->points[view->npoints - 1].time == (float)view->time);
		view_unref(view);
	}
	heap_destroy(heap);
}

static void test_points_bounded(void **state)
{
	(void)state;
	struct heap *heap = heap_create(NULL);
	struct view_info info = { 0 };
	struct view *view = NULL;

	/* three days, and a peak in each of them that lasts a second */
	for (uint64_t s = 0; s < 3 * 86400; s++) {
		view_unref(view);
		info.rss = s == 7777 ? 5 << 20 : s == 100001 ? 7 << 20 : s == 250000 ? 6 << 20 : 1 << 20;
		view = heap_publish(heap, &info, s * SECOND);
		if (s > 1000)
			assert_true(view->npoints <= 1000 && view->npoints >= 600);
	}
	uint64_t peaks[3] = { 0 };
	for (size_t i = 0; i < view->npoints; i++) {
		uint64_t *peak = &peaks[(size_t)(view->points[i].time / 86400)];
		*peak = view->points[i].rss > *peak ? view->points[i].rss : *peak;
	}
	assert_int_equal(peaks[0], 5 << 20);
	assert_int_equal(peaks[1], 7 << 20);
	assert_int_equal(peaks[2], 6 << 20);
	/* the last five minutes are whole; before that all points are equally far apart */
	for (size_t i = view->npoints - 300; i + 1 < view->npoints; i++)
		assert_true(view->points[i + 1].time - view->points[i].time == 1);
	for (size_t i = 0; i + 302 < view->npoints; i++)
		assert_true(view->points[i + 1].time - view->points[i].time == 512);
	for (size_t i = 1; i < view->npoints; i++)
		assert_true(view->points[i].time > view->points[i - 1].time);
	assert_true(view->points[0].time == 0);
	view_unref(view);
	heap_destroy(heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_live_random),
		cmocka_unit_test(test_live_grows),
		cmocka_unit_test(test_weights),
		cmocka_unit_test(test_random_exact),
		cmocka_unit_test(test_random_sampled),
		cmocka_unit_test(test_back_to_zero),
		cmocka_unit_test(test_incomplete),
		cmocka_unit_test(test_max_live),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_unfree_merged),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_points_end),
		cmocka_unit_test(test_points_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
