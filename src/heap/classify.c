/* What the live blocks are like, by size, age and thread: a pass over all of them, when there is time for it; see heap.h. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/ticks.h"
#include "heap/model.h"
#include "heap/view.h"

static void class_threads(const struct view *view, struct classes_build *b)
{
	for (size_t i = 0; i < view->nthreads; i++) {
		const struct view_thread *t = &view->threads[i];
		struct class_thread thread = { .tid = t->tid, .merged = t->merged, .ended = t->ended };

		memcpy(thread.name, t->name, sizeof(thread.name));
		classes_thread(b, &thread);
	}
}

/* A block's or a mapping's trace in the view: its node, or (the filter's set of traces has its own bound) that of
 * the merged ones. */
static uint32_t class_node(void *ctx, uint32_t trace)
{
	const struct heap *heap = ctx;
	uint32_t node = heap->traces.items[trace].node;

	if (!heap->which)
		return node;
	return node < heap->chosen.of_node_cap && heap->chosen.of_node[node] ? node : heap->merged_node;
}

/* The row of a block's thread; nobody's has one only if it has allocated. */
static uint16_t class_thread(const struct heap *heap, uint16_t number)
{
	const struct thread *t = &heap->threads.items[number];

	if (t->into)
		t = &heap->threads.items[t->into];
	return number || t->samples ? t->row : CLASS_NO_THREAD;
}

/*
 * Cells lie all over a table that may be larger than the caches: each block's is fetched while those of
 * the blocks before are added to.
 */
#define CLASS_AHEAD 16u

static void class_blocks(struct heap *heap, uint64_t time, struct classes_build *b)
{
	struct class_cell ahead[CLASS_AHEAD] = { 0 };
	unsigned at = 0;

	for (size_t i = 0; i < live_slots(&heap->live); i++) {
		const struct live_block *block = live_slot(&heap->live, i);

		if (!block->addr || (heap->which && !heap_is_chosen(heap, block->thread)))
			continue;
		struct heap_weight w = weights_of(&heap->weights, block->size, block->rate);
		classes_add(b, &ahead[at]);
		/* the trace, till all are there: its node would be one more thing to fetch */
		ahead[at] = (struct class_cell){
			.node = block->trace,
			.thread = class_thread(heap, block->thread),
			.size = (uint8_t)class_of_size(block->size),
			.age = (uint8_t)class_of_age(time > block->time ? time - block->time : 0),
			.bytes = w.bytes,
			.q10 = w.blocks_q10,
			.samples = 1,
		};
		classes_ahead(b, &ahead[at]);
		at = (at + 1) % CLASS_AHEAD;
	}
	for (unsigned i = 0; i < CLASS_AHEAD; i++)
		classes_add(b, &ahead[i]);
}

/* Of mappings no thread is known for sure; a filter by threads leaves them out. */
static void class_mappings(struct heap *heap, uint64_t time, struct classes_build *b)
{
	const struct ranges *ranges = &heap->ranges;

	if (heap->which || !ranges->nmappings)
		return;
	CLEANUP_FREE uint64_t *bytes = xcalloc(ranges->nmappings, sizeof(*bytes));
	ranges_bytes(ranges, bytes);
	for (size_t i = 0; i < ranges->nmappings; i++) {
		const struct range_mapping *m = &ranges->mappings[i];
		if (!m->id)
			continue;
		classes_add(b, &(struct class_cell){
			.node = m->trace,
			.thread = CLASS_NO_THREAD,
			.size = (uint8_t)class_of_size(bytes[i]),
			.age = (uint8_t)class_of_age(time > m->time ? time - m->time : 0),
			.bytes = bytes[i],
			.q10 = heap_weight_of_mapping(bytes[i]).blocks_q10,
			.samples = 1,
		});
	}
}

/* The traces' part of what is old: it stands in their records, so that all that is summed up over them has it. */
static void class_old(struct heap *heap)
{
	struct traces *shown = heap->which ? &heap->chosen : &heap->traces;
	const struct classes *classes = heap->classes;
	CLEANUP_FREE uint64_t *old = xcalloc(shown->n + 1, sizeof(*old));

	for (size_t i = 0; i < classes->n; i++) {
		const struct class_cell *cell = &classes->cells[i];
		if (cell->age >= CLASS_AGE_MINUTE && cell->node < shown->of_node_cap && shown->of_node[cell->node])
			old[shown->of_node[cell->node] - 1] += cell->bytes;
	}
	for (uint32_t i = 0; i < shown->n; i++)
		traces_old(shown, i, old[i]);
}

void heap_classify(struct heap *heap, uint64_t time, bool now)
{
	double begin = monotonic_seconds();
	bool time_for_it = !heap->classes || begin >= heap->classes_next;
	struct classes_build b;
	struct view rows = { 0 };	/* of threads alone, as the next view will have them */

	heap->series_due = now;
	heap->classes_fresh = now || (time_for_it && heap->live.count <= CLASSES_MAX_LIVE);
	if (!heap->classes_fresh)
		return;
	classes_build_init(&b);
	threads_rows(&heap->threads, &rows);
	class_threads(&rows, &b);
	free(rows.threads);
	class_blocks(heap, time, &b);
	class_mappings(heap, time, &b);
	classes_unref(heap->classes);
	heap->classes = classes_finish(&b, (double)time / 1e9, class_node, heap);
	classes_build_deinit(&b);
	class_old(heap);
	double took = monotonic_seconds() - begin;
	heap->classes->cost_ns = (uint64_t)(took * 1e9);
	heap->classes_next = begin + took * CLASSES_SHARE;
}

void heap_forget_classes(struct heap *heap)
{
	classes_unref(heap->classes);
	heap->classes = NULL;
	heap->classes_fresh = false;
}
