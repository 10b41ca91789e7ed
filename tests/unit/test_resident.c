/*
 * Resident bytes by trace: against a count byte by byte over a made-up page map, whole and in slices, with blocks
 * within blocks; the sampled estimate against the truth and against the error it claims.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "heap/heap.h"
#include "heap/live.h"
#include "heap/ranges.h"
#include "heap/resident.h"
#include "heap/traces.h"
#include "heap/view.h"
#include "heap/weight.h"
#include "unwind/unwind.h"

#define PAGE 4096u
#define BASE 0x7f0000000000ull
#define PAGES 600u
#define TRACES 8u

static uint64_t random_state = 11;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % n;
}

/* ---- a made-up page map ---- */

struct fakemap {
	unsigned flags[PAGES];	/* from BASE on; nothing elsewhere */
	size_t max;		/* runs a call, 0: as asked for */
	int errnum, last;	/* of each question, and of the last one */
	unsigned calls;
};

static int fake_runs(void *ctx, uint64_t start, uint64_t end, struct page_run *ret, size_t max, size_t *ret_n,
		     uint64_t *ret_next)
{
	struct fakemap *map = ctx;
	size_t n = 0;

	map->calls++;
	if (map->max && max > map->max)
		max = map->max;
	*ret_n = 0;
	*ret_next = end;
	for (uint64_t page = 0; page < PAGES && !map->errnum; page++) {
		uint64_t at = BASE + page * PAGE;
		unsigned flags = map->flags[page];
		if (!flags || at + PAGE <= start || at >= end)
			continue;
		if (n && ret[n - 1].end == at && ret[n - 1].flags == flags) {
			ret[n - 1].end += PAGE;
		} else if (n == max) {
			*ret_next = at;
			break;
		} else {
			ret[n++] = (struct page_run){ at, at + PAGE, flags };
		}
	}
	*ret_n = n;
	return end ? map->errnum : map->last;
}

static void random_pages(struct fakemap *map)
{
	static const unsigned kinds[] = { 0, PAGE_RESIDENT, PAGE_RESIDENT, PAGE_SWAPPED, PAGE_RESIDENT | PAGE_FILE };

	memset(map, 0, sizeof(*map));
	for (size_t i = 0; i < PAGES; ) {
		size_t n = 1 + random_below(20);
		unsigned flags = kinds[random_below(ARRAY_SIZE(kinds))];
		for (; n && i < PAGES; n--)
			map->flags[i++] = flags;
	}
}

/* ---- a heap, byte by byte ---- */

struct model {
	struct heap *heap;
	struct fakemap map;
	uint8_t *owner;		/* by byte: trace + 1 */
	uint64_t res[TRACES], swap[TRACES], file;
};

static void alloc(struct heap *heap, uint64_t addr, uint64_t size, uint64_t rate, uint64_t trace, uint32_t slot)
{
	uint64_t pc = 0x1000 + trace * 16;
	const struct heap_stack stack = { .addrs = &pc, .n = 1, .why = UNWIND_END_ROOT };

	heap_alloc(heap, addr, size, rate, 1, slot, &stack);
}

static void model_init(struct model *m)
{
	memset(m, 0, sizeof(*m));
	m->heap = heap_create(NULL);
	m->owner = xcalloc(PAGES, PAGE);
	random_pages(&m->map);
}

static void model_deinit(struct model *m)
{
	heap_destroy(m->heap);
	free(m->owner);
}

static void count(struct model *m)
{
	memset(m->res, 0, sizeof(m->res));
	memset(m->swap, 0, sizeof(m->swap));
	m->file = 0;
	for (size_t i = 0; i < (size_t)PAGES * PAGE; i++) {
		unsigned flags = m->map.flags[i / PAGE];
		if (!m->owner[i] || !flags)
			continue;
		if (flags & PAGE_SWAPPED)
			m->swap[m->owner[i] - 1]++;
		else
			m->res[m->owner[i] - 1]++;
		m->file += (flags & PAGE_FILE) != 0;
	}
}

static void look(struct model *m, double seconds)
{
	int errnum;

	heap_resident_begin(m->heap);
	while (!heap_resident_step(m->heap, fake_runs, &m->map, seconds, &errnum))
		;
	assert_int_equal(errnum, 0);
}

static struct view *publish(struct heap *heap)
{
	const struct view_info info = { .pid = 1, .command = (char *)"x" };

	return heap_publish(heap, &info, 1000000000);
}

/* The view's figures by trace, found by the frame's address. */
static void check(struct model *m)
{
	struct view *view = publish(m->heap);
	uint64_t res = 0, swap = 0;

	count(m);
	for (size_t i = 0; i < view->ntraces; i++) {
		const struct view_trace *t = view_trace(view, i);
		uint64_t trace = (frame_vaddr(tree_get(view->tree, t->node).addr) - 0x1000) / 16;
		assert_int_equal(t->s.res_bytes, m->res[trace]);
		assert_int_equal(t->s.swap_bytes, m->swap[trace]);
		assert_true(t->s.res_bytes + t->s.swap_bytes <= t->s.live_bytes);
		res += m->res[trace];
		swap += m->swap[trace];
	}
	assert_int_equal(view->totals.s.res_bytes, res);
	assert_int_equal(view->totals.s.swap_bytes, swap);
	const struct resident_totals *totals = heap_resident_totals(m->heap);
	assert_int_equal(totals->anon + totals->file, res);
	assert_int_equal(totals->swapped, swap);
	assert_int_equal(totals->file, m->file);
	assert_true(totals->variance == 0);
	view_unref(view);
}

/* Blocks side by side, small and large, with gaps; a fifth of them freed again. */
static void fill(struct model *m)
{
	for (uint64_t at = random_below(100); ; ) {
		uint64_t size = random_below(50) ? 1 + random_below(900) : random_below(300000);
		uint32_t trace = random_below(TRACES);
		if (at + size > (uint64_t)PAGES * PAGE)
			break;
		alloc(m->heap, BASE + at, size, 1, trace, 0);
		if (random_below(5))
			memset(m->owner + at, (int)trace + 1, size);
		else
			heap_free(m->heap, BASE + at, 1, 0, false);
		at += size + random_below(200);
	}
}

static void test_bytes(void **state)
{
	(void)state;
	for (int round = 0; round < 20; round++) {
		struct model m;
		model_init(&m);
		fill(&m);
		m.map.max = round % 3 ? 0 : 1 + random_below(4);
		look(&m, round % 2 ? 1 : 0);
		check(&m);
		/* the pages change, the blocks don't */
		unsigned max = (unsigned)m.map.max;
		random_pages(&m.map);
		m.map.max = max;
		look(&m, 1);
		check(&m);
		model_deinit(&m);
	}
}

/* A block from BASE + at on within another, or beginning with it: its bytes are its own. */
static void test_within(void **state)
{
	(void)state;
	struct model m;
	uint64_t pc = 0x1000 + 16 * 7;
	const struct heap_stack stack = { .addrs = &pc, .n = 1, .why = UNWIND_END_ROOT };
	static const struct { uint64_t at, size; uint32_t trace; } blocks[] = {
		{ 50000, 400000, 0 }, { 60000, 100000, 1 }, { 60100, 500, 2 }, { 61000, 500, 3 },
		{ 159000, 1500, 4 },	/* beyond the end of the one it begins in: an end that wasn't seen */
		{ 449000, 100, 5 }, { 600000, 100, 6 },
	};

	model_init(&m);
	memset(m.owner + 40960, 8, 500 * PAGE);
	heap_map(m.heap, BASE + 40960, 500 * PAGE, 1, 0, &stack);
	/* begins where the mapping does */
	alloc(m.heap, BASE + 40960, 100, 1, 6, 0);
	memset(m.owner + 40960, 7, 100);
	for (size_t i = 0; i < ARRAY_SIZE(blocks); i++) {
		alloc(m.heap, BASE + blocks[i].at, blocks[i].size, 1, blocks[i].trace, 0);
		memset(m.owner + blocks[i].at, (int)blocks[i].trace + 1, blocks[i].size);
	}
	/* a hole in the mapping, with nothing in it */
	heap_unmap(m.heap, BASE + 40960 + 300 * PAGE, 50 * PAGE, 1, 0);
	memset(m.owner + 40960 + 300 * PAGE, 0, 50 * PAGE);
	look(&m, 1);
	check(&m);
	model_deinit(&m);
}

/* A pass that ends with that error leaves what was known. */
static void gives_up(struct model *m, int error, uint64_t known)
{
	int errnum;

	heap_resident_begin(m->heap);
	assert_true(heap_resident_step(m->heap, fake_runs, &m->map, 1, &errnum));
	assert_int_equal(errnum, error);
	struct view *view = publish(m->heap);
	assert_int_equal(view->totals.s.res_bytes, known);
	view_unref(view);
}

/* Freed since it was looked, or by another at its place: never more than is live. */
static void test_later(void **state)
{
	(void)state;
	struct model m;
	int errnum;

	model_init(&m);
	for (size_t i = 0; i < PAGES; i++)
		m.map.flags[i] = PAGE_RESIDENT;
	alloc(m.heap, BASE, 100000, 1, 0, 0);
	alloc(m.heap, BASE + 200000, 50000, 1, 0, 0);
	look(&m, 1);
	heap_free(m.heap, BASE, 1, 0, false);
	struct view *view = publish(m.heap);
	assert_int_equal(view->totals.s.live_bytes, 50000);
	assert_int_equal(view->totals.s.res_bytes, 50000);
	view_unref(view);
	/* while it is looked */
	heap_resident_begin(m.heap);
	heap_free(m.heap, BASE + 200000, 1, 0, false);
	while (!heap_resident_step(m.heap, fake_runs, &m.map, 0, &errnum))
		;
	view = publish(m.heap);
	assert_int_equal(view->totals.s.res_bytes, 0);
	view_unref(view);
	/* what can't be read leaves all as it was */
	alloc(m.heap, BASE, 5000, 1, 0, 0);
	look(&m, 1);
	m.map.errnum = EACCES;
	gives_up(&m, EACCES, 5000);
	/* neither does what went while it was looked at */
	memset(&m.map, 0, sizeof(m.map));
	m.map.last = ESRCH;
	gives_up(&m, ESRCH, 5000);
	model_deinit(&m);
}

/* Threads chosen: theirs alone are in the view. */
static void test_chosen(void **state)
{
	(void)state;
	struct model m;

	model_init(&m);
	for (size_t i = 0; i < PAGES; i++)
		m.map.flags[i] = PAGE_RESIDENT;
	heap_thread(m.heap, 0, 100, "main\0\0\0\0\0\0\0\0\0\0\0\0", 1);
	heap_thread(m.heap, 1, 101, "worker\0\0\0\0\0\0\0\0\0\0", 1);
	alloc(m.heap, BASE, 10000, 1, 0, 0);
	alloc(m.heap, BASE + 20000, 3000, 1, 0, 1);
	alloc(m.heap, BASE + 30000, 500, 1, 1, 1);
	heap_choose_threads(m.heap, "worker");
	look(&m, 1);
	struct view *view = publish(m.heap);
	assert_int_equal(view->totals.s.res_bytes, 3500);
	view_unref(view);
	heap_choose_threads(m.heap, NULL);
	view = publish(m.heap);
	assert_int_equal(view->totals.s.res_bytes, 13500);
	view_unref(view);
	model_deinit(&m);
}

/* ---- estimates ---- */

/*
 * 3,000 small blocks that share pages, half of which are resident; sampled again and again: the mean of the
 * estimates is the truth, and they stray as far as they say.
 */
static void test_estimate(void **state)
{
	(void)state;
	enum { BLOCKS = 3000, ROUNDS = 400, RATE = 4096 };
	struct fakemap map = { 0 };
	uint64_t at[BLOCKS], size[BLOCKS], end = 0;
	double truth = 0, sum = 0, squares = 0, claimed = 0;

	for (size_t i = 0; i < PAGES; i++)
		map.flags[i] = i % 7 < 3 ? PAGE_RESIDENT : 0;
	for (size_t i = 0; i < BLOCKS; i++) {
		at[i] = end;
		size[i] = 16 + random_below(700);
		end += size[i] + 16;
		for (uint64_t b = at[i]; b < at[i] + size[i]; b++)
			truth += map.flags[b / PAGE] != 0;
	}
	assert_true(end < (uint64_t)PAGES * PAGE);
	for (int round = 0; round < ROUNDS; round++) {
		struct heap *heap = heap_create(NULL);
		int errnum;
		for (size_t i = 0; i < BLOCKS; i++)
			if ((double)random_below(1u << 30) / (1u << 30) < -expm1(-(double)size[i] / RATE))
				alloc(heap, BASE + at[i], size[i], RATE, 0, 0);
		heap_resident_begin(heap);
		while (!heap_resident_step(heap, fake_runs, &map, 1, &errnum))
			;
		const struct resident_totals *totals = heap_resident_totals(heap);
		double r = (double)(totals->anon + totals->file);
		sum += r;
		squares += (r - truth) * (r - truth);
		claimed += totals->variance;
		heap_destroy(heap);
	}
	double mean = sum / ROUNDS, error = sqrt(squares / ROUNDS), told = sqrt(claimed / ROUNDS);
	print_message("# truth %.0f, mean of %d estimates %.0f, they stray by %.0f and claim %.0f\n", truth, ROUNDS,
		      mean, error, told);
	/* four standard errors of the mean; the spread of 400 is known to 4 % */
	assert_true(fabs(mean - truth) < 4 * error / sqrt(ROUNDS));
	assert_true(error > told * 0.85 && error < told * 1.15);
}

/* Too many blocks to look at them all: those left out are stood for, large ones are never left out. */
static void test_thinned(void **state)
{
	(void)state;
	enum { BLOCKS = 20000, SIZE = 100 };
	struct fakemap map = { 0 };
	struct live live;
	struct ranges ranges;
	struct weights *weights = xcalloc(1, sizeof(*weights));
	struct trace items[2] = { { .node = 1 }, { .node = 2 } };
	struct traces traces = { .items = items, .n = 2 };
	struct resident *r = resident_create();
	int errnum;
	size_t n;

	live_init(&live, 1 << 20);
	ranges_init(&ranges, 10);
	weights_init(weights);
	for (size_t i = 0; i < PAGES; i++)
		map.flags[i] = PAGE_RESIDENT;
	for (uint64_t i = 0; i < BLOCKS; i++) {
		struct live_block block = { .addr = BASE + i * 112, .size = SIZE, .trace = 0 };
		live_put(&live, &block);
	}
	struct live_block large = { .addr = BASE + PAGE * 590, .size = 2 * RESIDENT_KEEP, .trace = 1 };
	live_put(&live, &large);
	const struct resident_source source = {
		.live = &live, .ranges = &ranges, .weights = weights, .traces = &traces, .max = 3000,
	};
	resident_begin(r, &source);
	while (!resident_step(r, weights, fake_runs, &map, 1, &errnum))
		;
	const struct resident_sum *sums = resident_sums(r, &n);
	assert_int_equal(n, 2);
	assert_int_equal(sums[1].bytes, 10 * PAGE);	/* where the page map ends */
	double truth = BLOCKS * SIZE, got = (double)sums[0].bytes;
	double error = sqrt(resident_totals(r)->variance);
	print_message("# %u of %u looked at: %.0f for %.0f, error claimed %.0f\n",
		      (unsigned)resident_totals(r)->blocks, BLOCKS, got, truth, error);
	assert_int_equal(resident_totals(r)->thinned, 7);
	assert_true(resident_totals(r)->blocks < 4000);
	assert_true(error > 0 && fabs(got - truth) < 4 * error);
	resident_destroy(r);
	live_deinit(&live);
	ranges_deinit(&ranges);
	free(weights);
}

/* Sizes and addresses are the target's: nothing may wrap, nothing may take forever. */
static void test_hostile(void **state)
{
	(void)state;
	struct model m;
	int errnum;

	model_init(&m);
	for (size_t i = 0; i < PAGES; i++)
		m.map.flags[i] = PAGE_RESIDENT;
	alloc(m.heap, UINT64_MAX - 10, 4096, 1, 0, 0);
	alloc(m.heap, 1, UINT64_MAX, 1, 1, 0);
	alloc(m.heap, 2, 1ull << 47, 1, 2, 0);
	alloc(m.heap, BASE, 0, 1, 3, 0);
	alloc(m.heap, BASE + 16, 1ull << 46, 1ull << 50, 4, 0);
	for (uint64_t i = 0; i < 100; i++)	/* each within the one before */
		alloc(m.heap, BASE + PAGE + i, PAGE * (200 - i), 1, 5, 0);
	heap_resident_begin(m.heap);
	assert_false(heap_resident_step(m.heap, fake_runs, &m.map, 0, &errnum));
	for (int i = 0; i < 2000000 && !heap_resident_step(m.heap, fake_runs, &m.map, 1, &errnum); i++)
		;
	struct view *view = publish(m.heap);
	const struct trace_stats *s = &view->totals.s;
	assert_true(s->res_bytes > 0 && s->res_bytes <= s->live_bytes);
	/* asked in steps of 256 MiB: 2^47 bytes are half a million of them */
	assert_true(m.map.calls < 1100000);
	view_unref(view);
	model_deinit(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_within),
		cmocka_unit_test(test_later),
		cmocka_unit_test(test_chosen),
		cmocka_unit_test(test_estimate),
		cmocka_unit_test(test_thinned),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
