/* The heap model: what events do to tree, live table and traces; see heap.h. */
#include "heap/heap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/ticks.h"
#include "heap/classes.h"
#include "heap/hits.h"
#include "heap/live.h"
#include "heap/points.h"
#include "heap/ranges.h"
#include "heap/threads.h"
#include "heap/touches.h"
#include "heap/traces.h"
#include "heap/tree.h"
#include "heap/view.h"
#include "heap/weight.h"
#include "unwind/unwind.h"
#include "wire/wire.h"

#define TEMP_NS 10000000ull		/* freed sooner than this: temporary */
#define TREND_SECONDS 5.0
#define TREND_STEP 0.2			/* seconds between the values kept for the trend */
#define TREND_VALUES 64

/* A realloc's free that may have to be undone. */
struct undo {
	uint64_t addr;		/* 0: none */
	struct live_block block;
	uint32_t node;		/* of its trace then */
	uint32_t serial;	/* of its thread's number */
	bool temp;
};

/* What a slot's last unmapping took away. More pieces than that are never one mapping to be moved. */
#define TAKEN_MAX 64u
struct taken {
	uint64_t start, end;		/* what was asked for */
	struct {
		struct range_part part;
		uint32_t node;		/* of its trace then */
		bool temp;
	} parts[TAKEN_MAX];
	uint32_t n;
};

struct heap {
	struct tree *tree;
	uint32_t max_nodes;
	uint32_t merged_node;
	struct traces traces;
	struct live live;
	struct threads threads;
	char *which;		/* the threads chosen, NULL: all */
	struct traces chosen;	/* what theirs hold; of no use otherwise */
	struct weights weights;
	struct tree_path paths[WIRE_SLOTS + 1];	/* of the thread's last stack; one for no thread at all */
	struct undo undo[WIRE_SLOTS];
	struct ranges ranges;
	struct resident *resident;
	struct hits hits;		/* page faults waiting for their blocks */
	struct touch_table touches, chosen_touches;	/* of all threads; of those chosen, since they were */
	struct taken *taken[WIRE_SLOTS];	/* NULL: it hasn't unmapped anything yet */
	uint64_t min_size;
	uint64_t now;			/* newest time seen */
	uint64_t lost_frees, untracked;
	uint64_t alloc_bytes;		/* estimated, since the start; so are these */
	uint64_t alloc_q10, free_q10;
	uint64_t seq;
	struct points points, chosen_points;	/* of all blocks; of those chosen, since they were */
	struct { double time; uint64_t live; } trend[TREND_VALUES];
	size_t ntrend;			/* values ever put; ring */
	struct classes *classes;	/* of the last pass, or NULL */
	bool classes_fresh;	/* they are of the view that comes next, */
	bool series_due;	/* which is for a file */
	double classes_next;		/* monotonic: not before this is the next pass */
};

struct heap *heap_create(const struct heap_config *config)
{
	struct heap *heap = xcalloc(1, sizeof(*heap));
	uint32_t max_traces = config && config->max_traces ? config->max_traces : HEAP_MAX_TRACES;
	uint32_t max_live = config && config->max_live ? config->max_live : HEAP_MAX_LIVE;
	const uint64_t merged = FRAME_MERGED;

	if (max_traces > UINT32_MAX / 32)
		max_traces = UINT32_MAX / 32;
	heap->tree = tree_create();
	heap->merged_node = tree_insert(heap->tree, NULL, 0, &merged, 1);
	heap->max_nodes = max_traces * HEAP_NODES_PER_TRACE;
	traces_init(&heap->traces, max_traces);
	live_init(&heap->live, max_live);
	threads_init(&heap->threads);
	weights_init(&heap->weights);
	ranges_init(&heap->ranges, HEAP_MAX_RANGES);
	heap->min_size = config ? config->min_size : 0;
	heap->resident = resident_create();
	return heap;
}

void heap_destroy(struct heap *heap)
{
	if (!heap)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(heap->paths); i++)
		tree_path_deinit(&heap->paths[i]);
	tree_destroy(heap->tree);
	traces_deinit(&heap->traces);
	if (heap->which)
		traces_deinit(&heap->chosen);
	free(heap->which);
	live_deinit(&heap->live);
	ranges_deinit(&heap->ranges);
	resident_destroy(heap->resident);
	hits_deinit(&heap->hits);
	touch_table_deinit(&heap->touches);
	touch_table_deinit(&heap->chosen_touches);
	for (size_t i = 0; i < WIRE_SLOTS; i++)
		free(heap->taken[i]);
	threads_deinit(&heap->threads);
	classes_unref(heap->classes);
	free(heap);
}

uint64_t heap_live_samples(const struct heap *heap)
{
	return heap->live.count;
}

uint64_t heap_alloc_bytes(const struct heap *heap)
{
	return heap->alloc_bytes;
}

uint64_t heap_alloc_calls(const struct heap *heap)
{
	return heap->alloc_q10 >> 10;
}

uint64_t heap_free_calls(const struct heap *heap)
{
	return heap->free_q10 >> 10;
}

/*
 * The chosen threads' record of a trace; `held`: it is one that holds that much. The two sets of traces are
 * merged at different times, so that what was added to a record of its own may be in that of the merged by
 * now, or the other way round. False: neither has it.
 */
static bool chosen_trace(struct heap *heap, uint32_t trace, uint64_t held, uint32_t *ret)
{
	struct traces *chosen = &heap->chosen;
	uint32_t of_node = traces_of_node(chosen, heap->traces.items[trace].node, heap->merged_node);

	for (int other = 0; other < 2; other++) {
		*ret = other ? traces_merged(chosen, heap->merged_node) : of_node;
		if (!held || chosen->items[*ret].s.live_bytes >= held)
			return true;
	}
	return false;
}

static inline bool is_chosen(const struct heap *heap, uint16_t thread)
{
	return heap->which && heap->threads.items[thread].chosen;
}

static void chosen_alloc(struct heap *heap, const struct live_block *block, const struct heap_weight *w)
{
	uint32_t trace;

	if (chosen_trace(heap, block->trace, 0, &trace))
		traces_alloc(&heap->chosen, trace, w, block->time);
}

static void chosen_free(struct heap *heap, const struct live_block *block, const struct heap_weight *w, bool temp)
{
	uint32_t trace;

	if (chosen_trace(heap, block->trace, w->bytes, &trace))
		traces_free(&heap->chosen, trace, w, temp);
}

/* End a tracked block. Returns whether it counts as temporary. */
static bool block_end(struct heap *heap, const struct live_block *block, uint64_t time, bool lost)
{
	struct heap_weight w = weights_of(&heap->weights, block->size, block->rate);
	bool temp = !lost && time >= block->time && time - block->time < TEMP_NS;

	traces_free(&heap->traces, block->trace, &w, temp);
	threads_free(&heap->threads, block->thread, &w);
	if (is_chosen(heap, block->thread))
		chosen_free(heap, block, &w, temp);
	if (heap->hits.n)
		hits_take(&heap->hits, &(struct hit_block){ block->addr, block->size, block->time, time,
							     heap->traces.items[block->trace].node });
	heap->free_q10 += w.blocks_q10;
	return temp;
}

static uint32_t node_of(struct heap *heap, struct tree_path *path, size_t keep, const uint64_t *addrs, size_t n)
{
	if (tree_count(heap->tree) < heap->max_nodes)
		return tree_insert(heap->tree, path, keep, addrs, n);
	return tree_find(heap->tree, path, keep, addrs, n);
}

static inline size_t path_of(uint32_t slot)
{
	return slot < WIRE_SLOTS ? slot : WIRE_SLOTS;
}

/* The node of a stack, TREE_NONE if there may be no more; with a pseudo frame outside if it isn't complete. */
static uint32_t node_of_stack(struct heap *heap, const struct heap_stack *stack, uint32_t slot)
{
	struct tree_path *path = &heap->paths[path_of(slot)];
	size_t n = stack->n, keep = stack->keep;
	int why = stack->why;

	if (keep + n > TREE_MAX_DEPTH - 1) {
		n = TREE_MAX_DEPTH - 1;
		keep = 0;
		why = UNWIND_END_DEPTH;
	}
	if (why < 0 || why >= UNWIND_END_COUNT)
		why = UNWIND_END_BAD;
	if (why != UNWIND_END_ROOT) {
		/* the pseudo frame first, and the known ones within it */
		const uint64_t end = frame_addr(0, 1 + (uint64_t)why);
		node_of(heap, path, 0, &end, 1);
		keep = 1;
	}
	return node_of(heap, path, keep, stack->addrs, n);
}

void heap_ahead(const struct heap *heap, uint64_t addr)
{
	live_ahead(&heap->live, addr);
}

size_t heap_last_stack(const struct heap *heap, uint32_t slot, uint64_t *ret, size_t max)
{
	const struct tree_path *path = &heap->paths[path_of(slot)];
	size_t n = 0;

	for (uint32_t i = path->n; i-- > 0 && n < max; ) {
		if (path->ids[i] == TREE_NONE)
			continue;
		uint64_t addr = tree_get(heap->tree, path->ids[i]).addr;
		if (frame_module(addr) || frame_vaddr(addr) > FRAME_PSEUDO_MAX)
			ret[n++] = addr;
	}
	return n;
}

static void see(struct heap *heap, uint64_t time, uint32_t slot)
{
	if (time > heap->now)
		heap->now = time;
	if (slot < WIRE_SLOTS)
		heap->undo[slot].addr = 0;
}

static uint32_t trace_of(struct heap *heap, uint32_t node)
{
	if (node == TREE_NONE)
		return traces_merged(&heap->traces, heap->merged_node);
	return traces_of_node(&heap->traces, node, heap->merged_node);
}

void heap_alloc(struct heap *heap, uint64_t addr, uint64_t size, uint64_t rate, uint64_t time,
		uint32_t slot, const struct heap_stack *stack)
{
	/* whatever becomes of the block: the thread's next stack may build on this one */
	uint32_t node = node_of_stack(heap, stack, slot);

	see(heap, time, slot);
	if (!addr)
		return;
	struct live_block *old = live_find(&heap->live, addr);
	if (old) {
		heap->lost_frees++;
		block_end(heap, old, time, true);
		live_remove(&heap->live, old);
	}
	if (size < heap->min_size)
		return;
	if (heap->live.count >= heap->live.max) {
		/* its free would not be noticed: leave it out of every sum */
		heap->untracked++;
		return;
	}
	struct live_block block = {
		.addr = addr,
		.size = size,
		.time = time,
		.trace = trace_of(heap, node),
		.rate = weights_rate(&heap->weights, rate),
		.thread = threads_of_slot(&heap->threads, &heap->live, slot),
	};
	struct heap_weight w = weights_of(&heap->weights, size, block.rate);
	live_put(&heap->live, &block);
	traces_alloc(&heap->traces, block.trace, &w, time);
	threads_alloc(&heap->threads, block.thread, &w);
	if (is_chosen(heap, block.thread))
		chosen_alloc(heap, &block, &w);
	heap->alloc_bytes += w.bytes;
	heap->alloc_q10 += w.blocks_q10;
}

void heap_free(struct heap *heap, uint64_t addr, uint64_t time, uint32_t slot, bool by_realloc)
{
	see(heap, time, slot);
	struct live_block *block = live_find(&heap->live, addr);
	if (!block)
		return;
	bool temp = block_end(heap, block, time, false);
	if (by_realloc && slot < WIRE_SLOTS)
		heap->undo[slot] = (struct undo){
			.addr = addr,
			.block = *block,
			.node = heap->traces.items[block->trace].node,
			.serial = heap->threads.items[block->thread].serial,
			.temp = temp,
		};
	live_remove(&heap->live, block);
}

void heap_unfree(struct heap *heap, uint64_t addr, uint32_t slot)
{
	if (slot >= WIRE_SLOTS || !addr || heap->undo[slot].addr != addr)
		return;
	struct undo *undo = &heap->undo[slot];
	undo->addr = 0;
	struct live_block *block = &undo->block;
	if (live_find(&heap->live, addr) || heap->live.count >= heap->live.max)
		return;
	/* nothing held its trace: it may have been merged, and its record been given away since */
	if (heap->traces.of_node[undo->node] != block->trace + 1)
		block->trace = traces_merged(&heap->traces, heap->merged_node);
	struct heap_weight w = weights_of(&heap->weights, block->size, block->rate);
	if (heap->traces.items[block->trace].s.free_bytes < w.bytes)
		return;
	/* nor its thread's number */
	if (heap->threads.items[block->thread].serial != undo->serial)
		block->thread = 0;
	live_put(&heap->live, block);
	threads_unfree(&heap->threads, block->thread, &w);
	traces_unfree(&heap->traces, block->trace, &w, undo->temp, heap->now);
	uint32_t trace;
	if (is_chosen(heap, block->thread) && chosen_trace(heap, block->trace, 0, &trace) &&
	    heap->chosen.items[trace].s.free_bytes >= w.bytes)
		traces_unfree(&heap->chosen, trace, &w, undo->temp, heap->now);
	heap->free_q10 -= w.blocks_q10;
}

/* ---- page faults ---- */

void heap_hit(struct heap *heap, uint64_t addr, uint64_t time)
{
	hits_add(&heap->hits, addr, time);
}

void heap_find_hits(struct heap *heap)
{
	hits_take_live(&heap->hits, &heap->live, &heap->ranges, &heap->traces);
}

void heap_drop_hits(struct heap *heap, size_t n)
{
	hits_drop(&heap->hits, n);
}

void heap_fault(struct heap *heap, const struct heap_fault *fault, const struct heap_stack *stack)
{
	_Static_assert(TOUCH_NOBODY == TREE_NONE, "an owner that wasn't found is nobody");
	/* of no slot: a thread's next stack is told by its difference to its last allocation's */
	uint32_t trace = trace_of(heap, node_of_stack(heap, stack, WIRE_SLOTS));
	uint32_t node = heap->traces.items[trace].node, owner = heap->hits.items[fault->hit].owner, chosen;

	traces_fault(&heap->traces, trace, fault->bytes, fault->time);
	touch_table_add(&heap->touches, node, owner, fault->bytes);
	if (!heap->which || !fault->chosen || !chosen_trace(heap, trace, 0, &chosen))
		return;
	traces_fault(&heap->chosen, chosen, fault->bytes, fault->time);
	touch_table_add(&heap->chosen_touches, heap->chosen.items[chosen].node, owner, fault->bytes);
}

bool heap_has_choice(const struct heap *heap)
{
	return heap->which;
}

bool heap_chooses(const struct heap *heap, uint32_t tid, const char *name)
{
	struct thread toucher = { .tid = tid };

	if (!heap->which)
		return false;
	for (size_t i = 1; i < heap->threads.n; i++) {
		const struct thread *t = &heap->threads.items[i];
		if (t->used && !t->ended && !t->merged && t->tid == tid)
			return t->chosen;
	}
	snprintf(toucher.name, sizeof(toucher.name), "%.15s", name);
	text_sanitize(toucher.name);
	return threads_match(&toucher, heap->which);
}

/* ---- mappings ---- */

/* Bytes as they are, and a block or none: mappings aren't sampled. */
static struct heap_weight weight_of(uint64_t bytes)
{
	return (struct heap_weight){ .bytes = bytes, .blocks_q10 = 1024 };
}

static struct taken *forget_taken(struct heap *heap, uint32_t slot)
{
	if (slot < WIRE_SLOTS && heap->taken[slot])
		heap->taken[slot]->n = 0;
	return slot < WIRE_SLOTS ? heap->taken[slot] : NULL;
}

/* A part goes. Returns whether it ends its mapping, as a temporary one. */
static bool part_end(struct heap *heap, const struct range_part *part, uint64_t time)
{
	const struct range_mapping *m = &part->mapping;
	uint64_t bytes = part->end - part->start;

	hits_take(&heap->hits, &(struct hit_block){ part->start, bytes, m->time, time, heap->traces.items[m->trace].node });
	if (m->pieces) {
		traces_trim(&heap->traces, m->trace, bytes);
		return false;
	}
	struct heap_weight w = weight_of(bytes);
	bool temp = time >= m->time && time - m->time < TEMP_NS;
	traces_free(&heap->traces, m->trace, &w, temp);
	heap->free_q10 += w.blocks_q10;
	return temp;
}

/* Make room: what is there is replaced. False: a range that can't be, or the table is full. */
static bool clear_range(struct heap *heap, uint64_t start, uint64_t bytes, uint64_t time)
{
	struct range_part part;

	if (!bytes || start > UINT64_MAX - bytes)
		return false;
	while (ranges_cut(&heap->ranges, start, start + bytes, &part))
		part_end(heap, &part, time);
	return true;
}

/* A piece at [start, end), the first of its mapping or a further one. */
static void add_piece(struct heap *heap, uint32_t *mapping, uint64_t start, uint64_t end, uint32_t node,
		      uint64_t time, uint32_t slot)
{
	struct heap_weight w = weight_of(end - start);

	if (!ranges_room(&heap->ranges)) {
		heap->untracked++;
		return;
	}
	if (*mapping == UINT32_MAX) {
		const struct range_mapping new = { .time = time, .trace = trace_of(heap, node), .slot = slot };
		*mapping = ranges_begin(&heap->ranges, &new);
		traces_alloc(&heap->traces, new.trace, &w, time);
		heap->alloc_q10 += w.blocks_q10;
	} else {
		traces_grow(&heap->traces, heap->ranges.mappings[*mapping].trace, w.bytes, time);
	}
	heap->alloc_bytes += w.bytes;
	ranges_add(&heap->ranges, *mapping, start, end);
}

void heap_map(struct heap *heap, uint64_t addr, uint64_t bytes, uint64_t time, uint32_t slot,
	      const struct heap_stack *stack)
{
	uint32_t node = node_of_stack(heap, stack, slot), mapping = UINT32_MAX;

	see(heap, time, slot);
	forget_taken(heap, slot);
	if (clear_range(heap, addr, bytes, time) && bytes >= heap->min_size)
		add_piece(heap, &mapping, addr, addr + bytes, node, time, slot);
}

void heap_unmap(struct heap *heap, uint64_t addr, uint64_t bytes, uint64_t time, uint32_t slot)
{
	struct range_part part;

	see(heap, time, slot);
	struct taken *taken = forget_taken(heap, slot);
	if (!bytes || addr > UINT64_MAX - bytes)
		return;
	while (ranges_cut(&heap->ranges, addr, addr + bytes, &part)) {
		uint32_t node = heap->traces.items[part.mapping.trace].node;
		bool temp = part_end(heap, &part, time);

		if (slot >= WIRE_SLOTS)
			continue;
		if (!taken)
			taken = heap->taken[slot] = xcalloc(1, sizeof(*taken));
		taken->start = addr;
		taken->end = addr + bytes;
		if (taken->n < TAKEN_MAX) {
			taken->parts[taken->n].part = part;
			taken->parts[taken->n].node = node;
			taken->parts[taken->n++].temp = temp;
		}
	}
}

/*
 * The known parts at the distances they had from the start, as far as the new length goes; and if it is
 * longer, and the end of the old was known, what is new.
 */
void heap_move(struct heap *heap, uint64_t addr, uint64_t bytes, uint64_t time, uint32_t slot,
	       const struct heap_stack *stack)
{
	uint32_t node = node_of_stack(heap, stack, slot), mapping = UINT32_MAX;
	struct taken *taken = slot < WIRE_SLOTS ? heap->taken[slot] : NULL;

	see(heap, time, slot);
	if (!clear_range(heap, addr, bytes, time) || !taken)
		return;
	for (uint32_t i = 0; i < taken->n; i++) {
		const struct range_part *part = &taken->parts[i].part;
		uint64_t from = part->start - taken->start, to = part->end - taken->start;

		if (part->end >= taken->end || to > bytes)
			to = bytes;
		if (from < to)
			add_piece(heap, &mapping, addr + from, addr + to, node, time, slot);
	}
	taken->n = 0;
}

/* What has taken the place meanwhile stays. Backwards: a mapping was ended by its last part. */
void heap_ununmap(struct heap *heap, uint32_t slot)
{
	struct taken *taken = slot < WIRE_SLOTS ? heap->taken[slot] : NULL;

	for (uint32_t i = taken ? taken->n : 0; i-- > 0;) {
		const struct range_part *part = &taken->parts[i].part;
		uint64_t bytes = part->end - part->start, id = part->mapping.id;
		struct heap_weight w = weight_of(bytes);
		uint32_t index = part->index, trace = part->mapping.trace;

		if (!ranges_room(&heap->ranges) || !ranges_free(&heap->ranges, part->start, part->end))
			continue;
		if (ranges_is(&heap->ranges, index, id)) {
			trace = heap->ranges.mappings[index].trace;
			traces_untrim(&heap->traces, trace, bytes, heap->now);
		} else if (part->mapping.pieces) {
			continue;	/* the rest of it has gone since */
		} else {
			/* nothing held its trace: it may have been merged, and its record been given away since */
			if (heap->traces.of_node[taken->parts[i].node] != trace + 1)
				trace = traces_merged(&heap->traces, heap->merged_node);
			if (heap->traces.items[trace].s.free_bytes < bytes)
				continue;
			struct range_mapping again = part->mapping;
			again.trace = trace;
			index = ranges_begin(&heap->ranges, &again);
			traces_unfree(&heap->traces, trace, &w, taken->parts[i].temp, heap->now);
			heap->free_q10 -= w.blocks_q10;
			for (uint32_t k = 0; k < i; k++)
				if (taken->parts[k].part.index == part->index &&
				    taken->parts[k].part.mapping.id == id) {
					taken->parts[k].part.index = index;
					taken->parts[k].part.mapping.id = heap->ranges.mappings[index].id;
				}
		}
		ranges_add(&heap->ranges, index, part->start, part->end);
	}
	forget_taken(heap, slot);
}

/* ---- threads ---- */

/* What the thread's blocks that live are, or (0) all chosen threads'. */
static void take_in_blocks(struct heap *heap, uint16_t number)
{
	for (size_t i = 0; i < heap->live.nslots; i++) {
		const struct live_block *block = &heap->live.blocks[i];

		if (!block->addr || (number ? block->thread != number : !is_chosen(heap, block->thread)))
			continue;
		struct heap_weight w = weights_of(&heap->weights, block->size, block->rate);
		chosen_alloc(heap, block, &w);
	}
}

/* It is new or has another name: is it one of those chosen? Once it is, it stays. */
static void consider(struct heap *heap, uint16_t number)
{
	struct thread *t = &heap->threads.items[number];

	if (!heap->which || !number || t->chosen || !threads_match(t, heap->which))
		return;
	t->chosen = true;
	if (t->live_samples)
		take_in_blocks(heap, number);
}

void heap_choose_threads(struct heap *heap, const char *which)
{
	if (heap->which)
		traces_deinit(&heap->chosen);
	free(heap->which);
	heap->which = which ? xstrdup(which) : NULL;
	/* what was is of other blocks */
	heap->chosen_points = (struct points){ 0 };
	touch_table_deinit(&heap->chosen_touches);
	heap->ntrend = 0;
	for (size_t i = 1; i < heap->threads.n; i++) {
		struct thread *t = &heap->threads.items[i];
		t->chosen = which && threads_match(t->into ? &heap->threads.items[t->into] : t, which);
	}
	if (!which)
		return;
	traces_init(&heap->chosen, heap->traces.max);
	take_in_blocks(heap, 0);
}

void heap_thread(struct heap *heap, uint32_t slot, uint32_t tid, const char *name, uint64_t time)
{
	consider(heap, threads_begin(&heap->threads, &heap->live, slot, tid, name, time));
}

void heap_threads_present(struct heap *heap, const uint32_t *tids, size_t n)
{
	threads_present(&heap->threads, tids, n, heap->now);
}

uint16_t heap_thread_next(struct heap *heap, uint32_t *ret_tid)
{
	return threads_next(&heap->threads, ret_tid);
}

void heap_thread_name(struct heap *heap, uint16_t number, const char *name)
{
	threads_name(&heap->threads, number, name);
	consider(heap, number);
}

/* ---- resident bytes ---- */

static bool thread_is_chosen(void *ctx, uint16_t thread)
{
	return is_chosen(ctx, thread);
}

void heap_resident_begin(struct heap *heap)
{
	const struct resident_source source = {
		.live = &heap->live,
		.ranges = &heap->ranges,
		.weights = &heap->weights,
		.traces = &heap->traces,
		.chosen = heap->which ? thread_is_chosen : NULL,
		.ctx = heap,
	};

	resident_begin(heap->resident, &source);
}

/* Several traces may have one record among the chosen threads'. */
static void apply_chosen(struct heap *heap, const struct resident_sum *sums, size_t n)
{
	size_t cap = heap->chosen.n + n;
	CLEANUP_FREE struct resident_sum *of = xcalloc(cap + 1, sizeof(*of));

	for (size_t i = 0; i < n && i < heap->traces.n; i++) {
		uint32_t trace;
		if ((!sums[i].chosen_bytes && !sums[i].chosen_swapped) || heap->traces.items[i].node != sums[i].node ||
		    !chosen_trace(heap, (uint32_t)i, 0, &trace) || trace >= cap)
			continue;
		of[trace].bytes += sums[i].chosen_bytes;
		of[trace].swapped += sums[i].chosen_swapped;
	}
	for (uint32_t i = 0; i < heap->chosen.n && i < cap; i++)
		traces_resident(&heap->chosen, i, of[i].bytes, of[i].swapped);
}

bool heap_resident_step(struct heap *heap, resident_runs_fn runs, void *ctx, double seconds, int *ret_errnum)
{
	static const struct resident_sum nothing;
	size_t n;

	if (!resident_step(heap->resident, &heap->weights, runs, ctx, seconds, ret_errnum))
		return false;
	if (*ret_errnum)
		return true;
	const struct resident_sum *sums = resident_sums(heap->resident, &n);
	for (uint32_t i = 0; i < heap->traces.n; i++) {
		const struct resident_sum *sum = i < n && sums[i].node == heap->traces.items[i].node ? &sums[i] : &nothing;
		traces_resident(&heap->traces, i, sum->bytes, sum->swapped);
	}
	if (heap->which)
		apply_chosen(heap, sums, n);
	return true;
}

const struct resident_totals *heap_resident_totals(const struct heap *heap)
{
	return resident_totals(heap->resident);
}

/* ---- publishing ---- */

/* Growth a second since the newest value that is at least TREND_SECONDS old, or the oldest. */
static float trend(struct heap *heap, double seconds, uint64_t live)
{
	size_t kept = heap->ntrend < TREND_VALUES ? heap->ntrend : TREND_VALUES;
	float ret = 0;

	for (size_t k = 1; k <= kept; k++) {
		size_t i = (heap->ntrend - k) % TREND_VALUES;
		double dt = seconds - heap->trend[i].time;
		if (dt < 0.5 && k < kept)
			continue;
		if (dt >= 0.5)
			ret = (float)(((double)live - (double)heap->trend[i].live) / dt);
		if (dt >= TREND_SECONDS)
			break;
	}
	if (!kept || seconds >= heap->trend[(heap->ntrend - 1) % TREND_VALUES].time + TREND_STEP) {
		heap->trend[heap->ntrend % TREND_VALUES].time = seconds;
		heap->trend[heap->ntrend % TREND_VALUES].live = live;
		heap->ntrend++;
	}
	return ret;
}

struct view *heap_publish(struct heap *heap, const struct view_info *info, uint64_t time)
{
	struct view *view = view_create();
	struct timespec wall;

	if (time > heap->now)
		heap->now = time;
	clock_gettime(CLOCK_REALTIME, &wall);
	view->seq = ++heap->seq;
	view->time = (double)time / 1e9;
	view->wall_ns = (int64_t)wall.tv_sec * 1000000000 + wall.tv_nsec;
	view_info_copy(&view->info, info);
	view->info.untracked += heap->untracked;
	view->tree = tree_ref(heap->tree);
	view->nnodes = tree_count(heap->tree);
	struct traces *shown = heap->which ? &heap->chosen : &heap->traces;
	view->info.thread = heap->which ? xstrdup(heap->which) : NULL;
	traces_publish(shown, time, view);
	threads_publish(&heap->threads, time, heap->series_due, view);
	view->classes = classes_ref(heap->classes);
	view->classes_fresh = heap->classes_fresh;
	heap->classes_fresh = false;
	view->series = heap->series_due ? series_publish(&shown->series, shown->n) : NULL;
	heap->series_due = false;
	view->touches = touch_table_list(heap->which ? &heap->chosen_touches : &heap->touches);
	view->totals.lost_frees = heap->lost_frees;
	view->totals.peak_time = (float)((double)shown->peak_time / 1e9);
	view->totals.tree = tree_stats(heap->tree);
	view->totals.merged = shown->merged;
	view->totals.trend_bps = trend(heap, view->time, shown->live_bytes);
	struct view_point point = {
		.time = (float)view->time,
		.live_bytes = shown->live_bytes,
		.rss = info->rss,
		.alloc_bps = view->totals.s.alloc_bps,
	};
	if (heap->which) {
		/* all threads' go on meanwhile */
		points_add(&heap->chosen_points, &point);
		point.live_bytes = heap->traces.live_bytes;
		point.alloc_bps = 0;
		for (size_t i = 0; i < view->nthreads; i++)
			point.alloc_bps += view->threads[i].s.alloc_bps;
	}
	points_add(&heap->points, &point);
	points_publish(heap->which ? &heap->chosen_points : &heap->points, view);
	return view;
}

/* ---- what the live blocks are like ---- */

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

	for (size_t i = 0; i < heap->live.nslots; i++) {
		const struct live_block *block = &heap->live.blocks[i];

		if (!block->addr || (heap->which && !is_chosen(heap, block->thread)))
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
			.q10 = weight_of(bytes[i]).blocks_q10,
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
