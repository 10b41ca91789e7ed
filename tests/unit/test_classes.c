/*
 * heap/classes.h: what live blocks are like, against a plain list of them: random heaps with sampling, threads
 * that come and go, reallocs that fail and mappings; a filter by threads; the sum of several; rationing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "heap/classes.h"
#include "heap/heap.h"
#include "heap/merge.h"
#include "heap/view.h"
#include "unwind/unwind.h"

#define LEAVES 12
#define PLACES 400		/* addresses that blocks may have */
#define SLOTS 5
#define MS 1000000ull

static uint64_t random_state = 4;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % n;
}

/* ---- classes ---- */

static void test_bounds(void **state)
{
	(void)state;
	assert_int_equal(class_of_size(0), 0);
	for (unsigned k = 1; k < CLASS_SIZES; k++) {
		assert_int_equal(class_of_size(class_size_from(k)), k);
		assert_int_equal(class_of_size(class_size_from(k) - 1), k - 1);
	}
	assert_int_equal(class_of_size(UINT64_MAX), CLASS_SIZES - 1);
	assert_int_equal(class_of_age(0), 0);
	for (unsigned k = 0; k + 1 < CLASS_AGES; k++) {
		assert_int_equal(class_of_age(class_age_until(k) - 1), k);
		assert_int_equal(class_of_age(class_age_until(k)), k + 1);
	}
	assert_int_equal(class_of_age(UINT64_MAX), CLASS_AGES - 1);
	assert_int_equal(class_of_age(60 * 1000 * MS), CLASS_AGE_MINUTE);
	assert_int_equal(class_of_age(3600 * 1000 * MS), CLASS_AGE_HOUR);
}

/* ---- a heap and the list it must agree with ---- */

struct block {
	bool live;
	uint64_t size, rate, time;
	uint32_t leaf;
	uint32_t tid;		/* 0: nobody */
};

struct model {
	struct heap *heap;
	struct block blocks[PLACES];
	uint64_t now;
	uint32_t tids[SLOTS];
	uint32_t last_tid;
};

static void name_of(uint32_t tid, char *buf)
{
	memset(buf, 0, 16);
	if (tid)
		snprintf(buf, 16, "t-%u", tid);
}

static struct heap_stack stack_of(uint32_t leaf, uint64_t addrs[3])
{
	addrs[0] = frame_addr(1, 0x1000 + leaf);
	addrs[1] = frame_addr(1, 0x100 + leaf % 5);
	addrs[2] = frame_addr(2, 0x10);
	return (struct heap_stack){ .addrs = addrs, .n = 3, .why = UNWIND_END_ROOT };
}

static uint64_t addr_of(size_t place)
{
	return 0x10000 + place * 16;
}

static void begin_thread(struct model *m, uint32_t slot)
{
	char name[16];

	m->tids[slot] = ++m->last_tid;
	name_of(m->tids[slot], name);
	heap_thread(m->heap, slot, m->tids[slot], name, m->now);
}

static void step(struct model *m)
{
	static const uint64_t steps[] = { 0, 1, 100, MS, 20 * MS, 300 * MS, 4000 * MS, 90000 * MS };
	size_t place = random_below(PLACES);
	struct block *b = &m->blocks[place];
	uint32_t slot = random_below(SLOTS + 1);
	uint64_t addrs[3];

	m->now += steps[random_below(30) ? random_below(4) : random_below(ARRAY_SIZE(steps))];
	if (!random_below(60) && slot < SLOTS)
		begin_thread(m, slot);
	if (b->live && random_below(3)) {
		bool undone = !random_below(4) && slot < SLOTS;
		heap_free(m->heap, addr_of(place), m->now, slot < SLOTS ? slot : UINT32_MAX, undone);
		if (undone)
			heap_unfree(m->heap, addr_of(place), slot);
		b->live = undone;
		return;
	}
	*b = (struct block){ .live = true, .size = (uint64_t)random_below(3000) << random_below(12), .time = m->now,
			     .rate = random_below(2) ? 1 : 4096, .leaf = random_below(LEAVES),
			     .tid = slot < SLOTS ? m->tids[slot] : 0 };
	struct heap_stack stack = stack_of(b->leaf, addrs);
	heap_alloc(m->heap, addr_of(place), b->size, b->rate, m->now, slot < SLOTS ? slot : UINT32_MAX, &stack);
}

static struct model *model_create(void)
{
	struct model *m = xcalloc(1, sizeof(*m));

	m->heap = heap_create(&(struct heap_config){ 0 });
	for (uint32_t i = 0; i < SLOTS; i++)
		begin_thread(m, i);
	return m;
}

static void model_destroy(struct model *m)
{
	heap_destroy(m->heap);
	free(m);
}

static struct view *publish(struct model *m, bool now)
{
	static const struct view_info info = { .command = (char *)"x" };

	heap_classify(m->heap, m->now, now);
	return heap_publish(m->heap, &info, m->now);
}

/* ---- comparing ---- */

static uint32_t leaf_of(const struct view *view, uint32_t node)
{
	return (uint32_t)(frame_vaddr(tree_get(view->tree, node).addr) - 0x1000);
}

/* Of every trace the cells' sums are what the view says. */
static void assert_sums(const struct view *view)
{
	const struct classes *c = view->classes;
	size_t seen = 0;

	assert_non_null(c);
	assert_true(view->classes_fresh);
	assert_true(c->time == view->time);
	for (size_t i = 0; i < view->ntraces; i++) {
		const struct view_trace *t = view_trace(view, i);
		uint64_t bytes = 0, q10 = 0, samples = 0;
		size_t n;
		if (!t)
			continue;
		const struct class_cell *cell = classes_of_node(c, t->node, &n);
		for (size_t k = 0; k < n; k++) {
			bytes += cell[k].bytes;
			q10 += cell[k].q10;
			samples += cell[k].samples;
		}
		assert_int_equal(bytes, t->s.live_bytes);
		assert_int_equal(q10, t->s.live_q10);
		assert_int_equal(samples, t->s.live_samples);
		seen += n;
	}
	assert_int_equal(seen, c->n);
	for (size_t i = 1; i < c->n; i++)
		assert_true(c->cells[i - 1].node <= c->cells[i].node);
}

static const char *thread_name(const struct classes *c, const struct class_cell *cell)
{
	return cell->thread == CLASS_NO_THREAD ? "none" : c->threads[cell->thread].name;
}

/* Take the listed blocks out of a copy of the cells: nothing may be left. `which`: only that thread's. */
static void assert_blocks(struct model **models, size_t nmodels, const struct view *view, uint32_t which)
{
	const struct classes *c = view->classes;
	struct class_cell *left = xcalloc(c->n + 1, sizeof(*left));

	if (c->n)
		memcpy(left, c->cells, c->n * sizeof(*left));
	for (size_t m = 0; m < nmodels; m++)
		for (size_t i = 0; i < PLACES; i++) {
			const struct block *b = &models[m]->blocks[i];
			char name[16];
			size_t k = 0;
			if (!b->live || (which && b->tid != which))
				continue;
			struct heap_weight w = heap_weigh(b->size, b->rate);
			name_of(b->tid, name);
			while (k < c->n && (leaf_of(view, left[k].node) != b->leaf ||
					    left[k].size != class_of_size(b->size) ||
					    left[k].age != class_of_age(models[m]->now - b->time) ||
					    strcmp(thread_name(c, &left[k]), name)))
				k++;
			assert_true(k < c->n);
			assert_true(left[k].samples > 0);
			left[k].bytes -= w.bytes;
			left[k].q10 -= w.blocks_q10;
			left[k].samples--;
		}
	for (size_t k = 0; k < c->n; k++) {
		assert_int_equal(left[k].bytes, 0);
		assert_int_equal(left[k].q10, 0);
		assert_int_equal(left[k].samples, 0);
	}
	free(left);
}

static void test_random(void **state)
{
	(void)state;
	struct model *m = model_create();

	for (int round = 0; round < 60; round++) {
		for (uint32_t n = random_below(200); n > 0; n--)
			step(m);
		struct view *view = publish(m, true);
		assert_sums(view);
		assert_blocks(&m, 1, view, 0);
		view_unref(view);
	}
	model_destroy(m);
}

/* Only what the chosen thread holds. */
static void test_chosen(void **state)
{
	(void)state;
	struct model *m = model_create();
	char which[32];

	for (int round = 0; round < 20; round++) {
		for (uint32_t n = 300; n > 0; n--)
			step(m);
		uint32_t tid = m->tids[random_below(SLOTS)];
		snprintf(which, sizeof(which), "%u", tid);
		heap_choose_threads(m->heap, which);
		struct view *view = publish(m, true);
		assert_sums(view);
		assert_blocks(&m, 1, view, tid);
		view_unref(view);
	}
	model_destroy(m);
}

/* Mappings count with what is left of them. */
static void test_mappings(void **state)
{
	(void)state;
	struct model *m = model_create();
	uint64_t addrs[3];
	struct heap_stack stack = stack_of(3, addrs);
	size_t n;

	heap_map(m->heap, 0x7000000, 1 << 20, 0, 0, &stack);
	heap_unmap(m->heap, 0x7001000, 1 << 12, 0, 0);	/* two pieces of it are left */
	heap_map(m->heap, 0x9000000, 1 << 13, 500 * MS, 0, &stack);
	heap_alloc(m->heap, 0x10, 100, 1, 500 * MS, 0, &stack);
	m->now = 2000 * MS;
	struct view *view = publish(m, true);
	assert_sums(view);
	const struct class_cell *cell = classes_of_node(view->classes, view->classes->cells[0].node, &n);
	assert_int_equal(n, 3);
	assert_int_equal(cell[0].size, class_of_size(100));
	assert_string_equal(thread_name(view->classes, &cell[0]), "t-1");
	assert_int_equal(cell[1].bytes, 1 << 13);
	assert_int_equal(cell[1].thread, CLASS_NO_THREAD);
	assert_int_equal(cell[2].bytes, (1 << 20) - (1 << 12));
	assert_int_equal(cell[2].size, class_of_size((1 << 20) - (1 << 12)));
	assert_int_equal(cell[2].age, class_of_age(2000 * MS));
	view_unref(view);
	model_destroy(m);
}

/* The sum of several heaps, of which one leaves: threads of one name are one. */
static void test_merged(void **state)
{
	(void)state;
	enum { N = 3 };
	static const struct view_info info = { .command = (char *)"all" };
	struct merge *sum = merge_create(0);
	struct merge_member *members[N];
	struct model *models[N];

	for (int i = 0; i < N; i++) {
		models[i] = model_create();
		members[i] = merge_join(sum);
	}
	for (int round = 0; round < 20; round++) {
		int there = round < 10 ? N : N - 1;
		for (int i = 0; i < there; i++) {
			for (uint32_t n = random_below(300); n > 0; n--)
				step(models[i]);
			struct view *view = publish(models[i], true);
			merge_take(sum, members[i], view);
			view_unref(view);
		}
		if (round == 10)
			merge_leave(sum, members[N - 1]);
		struct view *view = merge_publish(sum, &info, 1);
		assert_sums(view);
		assert_blocks(models, N, view, 0);
		for (uint32_t i = 0; i < view->classes->nthreads; i++)
			for (uint32_t k = 0; k < i; k++)
				assert_string_not_equal(view->classes->threads[i].name, view->classes->threads[k].name);
		view_unref(view);
	}
	/* of one that doesn't tell there is no sum */
	heap_forget_classes(models[0]->heap);
	struct view *view = heap_publish(models[0]->heap, &info, models[0]->now);
	merge_take(sum, members[0], view);
	view_unref(view);
	view = merge_publish(sum, &info, 1);
	assert_null(view->classes);
	assert_false(view->classes_fresh);
	view_unref(view);
	merge_destroy(sum);
	for (int i = 0; i < N; i++)
		model_destroy(models[i]);
}

/* Passes that aren't asked for at once are left out for a while: the table before is given again. */
static void test_rationed(void **state)
{
	(void)state;
	struct model *m = model_create();

	for (uint32_t n = 2000; n > 0; n--)
		step(m);
	struct view *first = publish(m, false);
	assert_true(first->classes_fresh);
	assert_true(first->classes->cost_ns > 0);
	/* a pass took some microseconds: fifty times that can't be over by then */
	struct view *second = publish(m, false);
	assert_false(second->classes_fresh);
	assert_ptr_equal(second->classes, first->classes);
	struct view *third = publish(m, true);
	assert_true(third->classes_fresh);
	assert_ptr_not_equal(third->classes, first->classes);
	heap_forget_classes(m->heap);
	assert_int_equal(first->classes->n > 0, true);
	view_unref(first);
	view_unref(second);
	view_unref(third);
	model_destroy(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_chosen),
		cmocka_unit_test(test_mappings),
		cmocka_unit_test(test_merged),
		cmocka_unit_test(test_rationed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
