/*
 * Mappings in the heap model: unmapped in part, in the middle, several at once, replaced, moved, and all
 * of that undone, against a model that knows of every page whose it is.
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
#include "heap/ranges.h"
#include "heap/view.h"
#include "unwind/unwind.h"

#define PAGES 400u
#define PAGE 4096ull
#define BASE 0x7f0000000000ull
#define STACKS 5u
#define SLOTS 3u

static uint64_t random_state = 11;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % n;
}

/* ---- the table ---- */

static void test_cut(void **state)
{
	(void)state;
	struct ranges r;
	struct range_part part;

	ranges_init(&r, 3);
	uint32_t a = ranges_begin(&r, &(struct range_mapping){ .trace = 7 });
	uint64_t id = r.mappings[a].id;
	ranges_add(&r, a, 100, 200);
	assert_false(ranges_cut(&r, 200, 300, &part));
	assert_false(ranges_cut(&r, 0, 100, &part));
	assert_false(ranges_cut(&r, 150, 150, &part));
	assert_true(ranges_free(&r, 0, 100));
	assert_false(ranges_free(&r, 0, 101));

	/* a hole: two pieces */
	assert_true(ranges_cut(&r, 140, 160, &part));
	assert_int_equal(part.start, 140);
	assert_int_equal(part.end, 160);
	assert_int_equal(part.mapping.pieces, 2);
	assert_int_equal(part.mapping.trace, 7);
	assert_int_equal(ranges_count(&r), 2);
	assert_false(ranges_cut(&r, 140, 160, &part));

	/* across both: two parts, the last one ends it */
	assert_true(ranges_cut(&r, 0, 1000, &part));
	assert_int_equal(part.start, 100);
	assert_int_equal(part.end, 140);
	assert_int_equal(part.mapping.pieces, 1);
	assert_true(ranges_is(&r, a, id));
	assert_true(ranges_cut(&r, 0, 1000, &part));
	assert_int_equal(part.start, 160);
	assert_int_equal(part.end, 200);
	assert_int_equal(part.mapping.pieces, 0);
	assert_int_equal(part.mapping.id, id);
	assert_false(ranges_is(&r, a, id));
	assert_false(ranges_cut(&r, 0, 1000, &part));
	assert_int_equal(ranges_count(&r), 0);

	/* at its bound: what lies behind a hole goes with it */
	for (uint64_t i = 0; i < 3; i++)
		ranges_add(&r, ranges_begin(&r, &(struct range_mapping){ 0 }), i * 100, i * 100 + 50);
	assert_false(ranges_room(&r));
	assert_true(ranges_cut(&r, 110, 120, &part));
	assert_int_equal(part.start, 110);
	assert_int_equal(part.end, 150);
	assert_int_equal(ranges_count(&r), 3);
	ranges_deinit(&r);
}

/* Ascending addresses, as the kernel often gives them: still a tree. */
static void test_many(void **state)
{
	(void)state;
	struct ranges r;
	struct range_part part;
	const uint32_t n = 200000;

	ranges_init(&r, n);
	for (uint32_t i = 0; i < n; i++)
		ranges_add(&r, ranges_begin(&r, &(struct range_mapping){ .trace = i }), i * PAGE, (i + 1) * PAGE);
	for (uint32_t i = 0; i < n; i += 2) {
		assert_true(ranges_cut(&r, i * PAGE, (i + 1) * PAGE, &part));
		assert_int_equal(part.mapping.trace, i);
	}
	assert_int_equal(ranges_count(&r), n / 2);
	assert_true(ranges_cut(&r, 0, n * PAGE, &part));
	assert_int_equal(part.mapping.trace, 1);
	ranges_deinit(&r);
}

/* ---- the model ---- */

struct page {
	uint32_t mapping;	/* 0: none */
	uint32_t stack;
};

struct truth {
	struct page pages[PAGES];
	uint32_t last;
	uint64_t alloc_bytes, blocks;
	/* by slot: what the last unmapping took */
	struct page taken[SLOTS][PAGES];
	uint32_t n[SLOTS];
};

static struct heap_stack stack_of(uint32_t i)
{
	static uint64_t addrs[STACKS];

	addrs[i] = frame_addr(1, 0x1000 + i);
	return (struct heap_stack){ .addrs = &addrs[i], .n = 1, .why = UNWIND_END_ROOT };
}

static void check(struct heap *heap, const struct truth *t, uint64_t time)
{
	uint64_t live[STACKS] = { 0 }, pages = 0, blocks = 0;
	static bool seen[1u << 20];
	struct view_info info = { .command = (char *)"" };

	memset(seen, 0, sizeof(seen));
	for (uint32_t i = 0; i < PAGES; i++) {
		if (!t->pages[i].mapping)
			continue;
		pages++;
		live[t->pages[i].stack] += PAGE;
		blocks += !seen[t->pages[i].mapping];
		seen[t->pages[i].mapping] = true;
	}
	struct view *view = heap_publish(heap, &info, time);
	const struct trace_stats *s = &view->totals.s;
	assert_int_equal(s->live_bytes, pages * PAGE);
	assert_int_equal(s->live_q10, blocks << 10);
	assert_int_equal(s->live_samples, blocks);
	assert_int_equal(s->alloc_bytes, t->alloc_bytes);
	assert_int_equal(s->alloc_bytes - s->free_bytes, s->live_bytes);
	assert_int_equal(s->alloc_q10 - s->free_q10, s->live_q10);
	assert_int_equal(s->alloc_q10, t->blocks << 10);
	for (size_t i = 0; i < view->ntraces; i++) {
		const struct view_trace *r = view_trace(view, i);
		if (!r)
			continue;
		uint64_t addr = tree_get(view->tree, r->node).addr;
		if (frame_module(addr) == 1)
			assert_int_equal(r->s.live_bytes, live[frame_vaddr(addr) - 0x1000]);
	}
	view_unref(view);
}

static void set(struct truth *t, uint32_t first, uint32_t n, uint32_t stack)
{
	t->last++;
	t->blocks++;
	t->alloc_bytes += n * PAGE;
	for (uint32_t i = first; i < first + n; i++)
		t->pages[i] = (struct page){ t->last, stack };
}

static void clear(struct truth *t, uint32_t first, uint32_t n)
{
	memset(&t->pages[first], 0, n * sizeof(t->pages[0]));
}

/* mremap: the known pages at their distances, and growth behind a known last page. */
static void move(struct truth *t, uint32_t slot, uint32_t to, uint32_t n, uint32_t stack)
{
	uint32_t old = t->n[slot];
	bool any = false;

	clear(t, to, n);
	for (uint32_t i = 0; i < n; i++) {
		bool known = old && t->taken[slot][i < old ? i : old - 1].mapping;
		if (!known)
			continue;
		if (!any) {
			t->last++;
			t->blocks++;
		}
		any = true;
		t->alloc_bytes += PAGE;
		t->pages[to + i] = (struct page){ t->last, stack };
	}
}

static uint32_t runs(const struct page *pages, uint32_t n)
{
	uint32_t ret = 0;

	for (uint32_t i = 0; i < n; i++)
		ret += pages[i].mapping && (!i || pages[i].mapping != pages[i - 1].mapping);
	return ret;
}

static void test_random(void **state)
{
	(void)state;
	struct heap *heap = heap_create(NULL);
	struct truth *t = xcalloc(1, sizeof(*t));
	uint64_t time = 0;

	for (uint32_t round = 0; round < 60000; round++) {
		uint32_t first = random_below(PAGES), n = 1 + random_below(random_below(8) ? 12 : PAGES);
		uint32_t slot = random_below(SLOTS), stack = random_below(STACKS);
		struct heap_stack s = stack_of(stack);

		n = n < PAGES - first ? n : PAGES - first;
		time += 1000000;
		switch (random_below(4)) {
		case 0:
		case 1:
			heap_map(heap, BASE + first * PAGE, n * PAGE, time, slot, &s);
			set(t, first, n, stack);
			t->n[slot] = 0;
			break;
		default:
			heap_unmap(heap, BASE + first * PAGE, n * PAGE, time, slot);
			memcpy(t->taken[slot], &t->pages[first], n * sizeof(t->pages[0]));
			t->n[slot] = n;
			clear(t, first, n);
			/* more of them than are kept: neither undone nor moved */
			if (random_below(2) || runs(t->taken[slot], n) > 64)
				break;
			if (random_below(2)) {
				/* the call failed */
				heap_ununmap(heap, slot);
				memcpy(&t->pages[first], t->taken[slot], n * sizeof(t->pages[0]));
			} else {
				uint32_t to = random_below(PAGES), len = 1 + random_below(2 * n);
				len = len < PAGES - to ? len : PAGES - to;
				time += 1000;
				heap_move(heap, BASE + to * PAGE, len * PAGE, time, slot, &s);
				move(t, slot, to, len, stack);
			}
			t->n[slot] = 0;
		}
		if (round % 16 == 0 || round < 500)
			check(heap, t, time);
	}
	heap_destroy(heap);
	free(t);
}

/* What can't be is no mapping, and does no harm. */
static void test_hostile(void **state)
{
	(void)state;
	struct heap *heap = heap_create(NULL);
	struct heap_stack s = stack_of(0);

	heap_map(heap, 0, UINT64_MAX, 1, 0, &s);
	heap_map(heap, UINT64_MAX - 10, 100, 2, 0, &s);
	heap_map(heap, 4096, 0, 3, 70000, &s);
	heap_unmap(heap, UINT64_MAX, UINT64_MAX, 4, 1);
	heap_unmap(heap, 1000, 10, 5, 1);
	heap_ununmap(heap, 1);
	heap_ununmap(heap, 1);
	heap_ununmap(heap, 2);
	heap_ununmap(heap, 100000);
	heap_unmap(heap, 1000, 10, 6, 1);
	heap_map(heap, 1005, 10, 7, 2, &s);
	heap_ununmap(heap, 1);
	heap_unmap(heap, 0, 10000, 7, 90000);
	heap_move(heap, 0, 100, 8, 90000, &s);
	heap_move(heap, 0, 100, 8, 5, &s);
	heap_destroy(heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
