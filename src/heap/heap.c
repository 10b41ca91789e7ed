/* The heap model: what events do to tree, live table and traces; see heap.h. */
#include "heap/heap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/text.h"
#include "heap/model.h"
#include "heap/view.h"
#include "unwind/unwind.h"

#define TREND_SECONDS 5.0
#define TREND_STEP 0.2			/* seconds between the values kept for the trend */

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
	if (heap_is_chosen(heap, block->thread))
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

uint32_t heap_node_of_stack(struct heap *heap, const struct heap_stack *stack, uint32_t slot)
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

void heap_alloc(struct heap *heap, uint64_t addr, uint64_t size, uint64_t rate, uint64_t time,
		uint32_t slot, const struct heap_stack *stack)
{
	/* whatever becomes of the block: the thread's next stack may build on this one */
	uint32_t node = heap_node_of_stack(heap, stack, slot);

	heap_see(heap, time, slot);
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
		.trace = heap_trace_of(heap, node),
		.rate = weights_rate(&heap->weights, rate),
		.thread = threads_of_slot(&heap->threads, &heap->live, slot),
	};
	struct heap_weight w = weights_of(&heap->weights, size, block.rate);
	live_put(&heap->live, &block);
	traces_alloc(&heap->traces, block.trace, &w, time);
	threads_alloc(&heap->threads, block.thread, &w);
	if (heap_is_chosen(heap, block.thread))
		chosen_alloc(heap, &block, &w);
	heap->alloc_bytes += w.bytes;
	heap->alloc_q10 += w.blocks_q10;
}

void heap_free(struct heap *heap, uint64_t addr, uint64_t time, uint32_t slot, bool by_realloc)
{
	heap_see(heap, time, slot);
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
	if (heap_is_chosen(heap, block->thread) && chosen_trace(heap, block->trace, 0, &trace) &&
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
	uint32_t trace = heap_trace_of(heap, heap_node_of_stack(heap, stack, WIRE_SLOTS));
	uint32_t node = heap->traces.items[trace].node, owner = heap->hits.items[fault->hit].owner, chosen;

	traces_fault(&heap->traces, trace, fault);
	touch_table_add(&heap->touches, node, owner, fault->bytes);
	if (!heap->which || !fault->chosen || !chosen_trace(heap, trace, 0, &chosen))
		return;
	traces_fault(&heap->chosen, chosen, fault);
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

/* ---- threads ---- */

/* What the thread's blocks that live are, or (0) all chosen threads'. */
static void take_in_blocks(struct heap *heap, uint16_t number)
{
	for (size_t i = 0; i < live_slots(&heap->live); i++) {
		const struct live_block *block = live_slot(&heap->live, i);

		if (!block->addr || (number ? block->thread != number : !heap_is_chosen(heap, block->thread)))
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
	return heap_is_chosen(ctx, thread);
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

/* Bytes a second over the last two seconds, also where these were the last. */
static float threads_rate(const struct view *view, bool chosen)
{
	float ret = 0;

	for (size_t i = 0; i < view->nthreads; i++)
		if (!chosen || view->threads[i].chosen)
			ret += view->threads[i].s.alloc_bps;
	return ret;
}

/* It is over: what they did in their last seconds they do no longer. */
static void threads_still(struct view *view)
{
	for (size_t i = 0; i < view->nthreads; i++) {
		struct trace_stats *s = &view->threads[i].s;
		s->alloc_bps = s->alloc_cps = s->free_bps = s->free_cps = 0;
		s->over_bytes = s->live_bytes;
	}
}

struct view *heap_publish(struct heap *heap, const struct view_info *info, uint64_t time)
{
	struct view *view = view_create();
	bool over = view_state_over(info->state);
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
	traces_publish(shown, time, over, view);
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
	view->totals.trend_bps = over ? 0 : trend(heap, view->time, shown->live_bytes);
	struct view_point point = {
		.time = (float)view->time,
		.live_bytes = shown->live_bytes,
		.rss = info->rss,
		/* the graph goes on being of what was */
		.alloc_bps = over ? threads_rate(view, heap->which) : view->totals.s.alloc_bps,
	};
	if (heap->which) {
		/* all threads' go on meanwhile */
		points_add(&heap->chosen_points, &point);
		point.live_bytes = heap->traces.live_bytes;
		point.alloc_bps = threads_rate(view, false);
	}
	if (over)
		threads_still(view);
	points_add(&heap->points, &point);
	points_publish(heap->which ? &heap->chosen_points : &heap->points, view);
	return view;
}
