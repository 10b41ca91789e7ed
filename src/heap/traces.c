/* Statistics per trace; see traces.h. */
#include "heap/traces.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "heap/store.h"

#define WATCH_RATES 1		/* a rate isn't 0 or will not be at the next look */
#define WATCH_PEAKS 2		/* the next maximum changes a peak */

#define WINDOW_STEP 1000000000ull	/* a base is taken once a second */
#define WINDOW_MIN 1500000000ull	/* and used when it is older than this */
#define RATE_MIN 50000000ull		/* no rate is told from less than 50 ms */

void traces_init(struct traces *traces, uint32_t max)
{
	*traces = (struct traces){ .max = max, .store = store_create() };
}

void traces_deinit(struct traces *traces)
{
	free(traces->items);
	free(traces->of_node);
	free(traces->spare);
	free(traces->dirty);
	free(traces->watched);
	store_destroy(traces->store);
	series_deinit(&traces->series);
}

static inline void mark(struct traces *traces, uint32_t trace)
{
	traces->dirty[trace / VIEW_CHUNK] = 1;
}

static void settle(struct traces *traces, struct trace *trace)
{
	if (trace->peak_epoch == traces->epoch)
		return;
	trace->s.peak_bytes = trace->s.live_bytes;
	trace->s.peak_q10 = trace->s.live_q10;
	trace->peak_epoch = traces->epoch;
}

static uint32_t trace_add(struct traces *traces, uint32_t node)
{
	uint32_t i;

	if (traces->nspare) {
		i = traces->spare[--traces->nspare];
	} else {
		VEC_GROW(traces->items, traces->n, traces->cap);
		i = (uint32_t)traces->n++;
		if (i / VIEW_CHUNK >= traces->nchunks) {
			VEC_GROW(traces->dirty, traces->nchunks, traces->dirty_cap);
			VEC_GROW(traces->watched, traces->nchunks, traces->watched_cap);
			traces->watched[traces->nchunks++] = 0;
		}
	}
	mark(traces, i);
	/* it held nothing at the newest maximum */
	traces->items[i] = (struct trace){ .node = node, .peak_epoch = traces->epoch };
	traces->of_node[node] = i + 1;
	return i;
}

static void node_room(struct traces *traces, uint32_t node)
{
	if (node < traces->of_node_cap)
		return;
	size_t cap = traces->of_node_cap ? traces->of_node_cap * 2 : 1024;
	while (cap <= node)
		cap *= 2;
	traces->of_node = xreallocarray(traces->of_node, cap, sizeof(*traces->of_node));
	memset(traces->of_node + traces->of_node_cap, 0,
	       (cap - traces->of_node_cap) * sizeof(*traces->of_node));
	traces->of_node_cap = cap;
}

uint32_t traces_merged(struct traces *traces, uint32_t merged_node)
{
	if (traces->merged < UINT32_MAX)
		traces->merged++;
	if (!traces->merged_trace) {
		/* one more than `max`: it must always find room */
		node_room(traces, merged_node);
		uint32_t i = traces->of_node[merged_node];
		traces->merged_trace = i ? i : trace_add(traces, merged_node) + 1;
	}
	return traces->merged_trace - 1;
}

static void base_add(struct trace_base *dst, const struct trace_base *src)
{
	dst->alloc_bytes += src->alloc_bytes;
	dst->alloc_q10 += src->alloc_q10;
	dst->free_bytes += src->free_bytes;
	dst->free_q10 += src->free_q10;
}

struct idle {
	uint64_t touched;
	uint32_t trace;
};

static int compare_idle(const void *pa, const void *pb)
{
	const struct idle *a = pa, *b = pb;

	if (a->touched != b->touched)
		return a->touched < b->touched ? -1 : 1;
	return a->trace < b->trace ? -1 : a->trace > b->trace;
}

/*
 * Merge the longer idle half of the traces without live blocks: no live entry refers to them.
 * Costs a pass over all; so if it brought little, not again before many more stacks were given up.
 */
static void sweep(struct traces *traces, uint32_t merged_node)
{
	uint32_t into = traces_merged(traces, merged_node);
	struct idle *idle = xcalloc(traces->n, sizeof(*idle));
	size_t n = 0;

	for (uint32_t i = 0; i < traces->n; i++)
		if (i != into && !traces->items[i].s.live_samples)
			idle[n++] = (struct idle){ traces->items[i].touched, i };
	qsort(idle, n, sizeof(*idle), compare_idle);
	size_t give_up = (n + 1) / 2;
	struct trace *dst = &traces->items[into];
	mark(traces, into);
	settle(traces, dst);
	for (size_t k = 0; k < give_up; k++) {
		struct trace *src = &traces->items[idle[k].trace];
		settle(traces, src);
		trace_stats_add(&dst->s, &src->s);
		base_add(&dst->base[0], &src->base[0]);
		base_add(&dst->base[1], &src->base[1]);
		traces->of_node[src->node] = 0;
		series_move(&traces->series, idle[k].trace, into);
		VEC_GROW(traces->spare, traces->nspare, traces->spare_cap);
		traces->spare[traces->nspare++] = idle[k].trace;
		*src = (struct trace){ .node = TREE_NONE };
		mark(traces, idle[k].trace);
		if (traces->merged < UINT32_MAX)
			traces->merged++;
	}
	free(idle);
	traces->sweep_at = traces->merged > UINT32_MAX / 2 ? UINT32_MAX
		: traces->merged + traces->max / 16;
}

uint32_t traces_of_node(struct traces *traces, uint32_t node, uint32_t merged_node)
{
	node_room(traces, node);
	if (traces->of_node[node])
		return traces->of_node[node] - 1;
	if (traces->n >= traces->max && !traces->nspare) {
		if (traces->merged >= traces->sweep_at)
			sweep(traces, merged_node);
		if (!traces->nspare)
			return traces_merged(traces, merged_node);
	}
	return trace_add(traces, node);
}

static void live_grew(struct traces *traces, uint64_t time)
{
	if (traces->live_bytes <= traces->peak_bytes)
		return;
	traces->peak_bytes = traces->live_bytes;
	/* blocks of threads chosen just now are taken in in any order: all were there with the last of them */
	if (time > traces->peak_time)
		traces->peak_time = time;
	traces->epoch++;
}

void traces_alloc(struct traces *traces, uint32_t trace, const struct heap_weight *w, uint64_t time)
{
	struct trace *t = &traces->items[trace];

	mark(traces, trace);
	settle(traces, t);
	t->touched = time;
	t->s.alloc_bytes += w->bytes;
	t->s.alloc_q10 += w->blocks_q10;
	t->s.live_bytes += w->bytes;
	t->s.live_q10 += w->blocks_q10;
	t->s.live_var += w->variance;
	t->s.alloc_var += w->variance;
	t->s.samples++;
	t->s.live_samples++;
	traces->live_bytes += w->bytes;
	live_grew(traces, time);
}

void traces_free(struct traces *traces, uint32_t trace, const struct heap_weight *w, bool temp)
{
	struct trace *t = &traces->items[trace];

	mark(traces, trace);
	settle(traces, t);
	t->s.free_bytes += w->bytes;
	t->s.free_q10 += w->blocks_q10;
	t->s.live_bytes -= w->bytes;
	t->s.live_q10 -= w->blocks_q10;
	t->s.live_samples--;
	/* a sum of doubles doesn't come back to exactly 0 by itself */
	t->s.live_var -= w->variance;
	if (!t->s.live_samples || t->s.live_var < 0)
		t->s.live_var = 0;
	if (temp) {
		t->s.temp_bytes += w->bytes;
		t->s.temp_q10 += w->blocks_q10;
	}
	traces->live_bytes -= w->bytes;
}

void traces_unfree(struct traces *traces, uint32_t trace, const struct heap_weight *w, bool temp,
		   uint64_t time)
{
	struct trace *t = &traces->items[trace];

	mark(traces, trace);
	settle(traces, t);
	t->s.free_bytes -= w->bytes;
	t->s.free_q10 -= w->blocks_q10;
	t->s.live_bytes += w->bytes;
	t->s.live_q10 += w->blocks_q10;
	t->s.live_samples++;
	t->s.live_var += w->variance;
	if (temp) {
		t->s.temp_bytes -= w->bytes;
		t->s.temp_q10 -= w->blocks_q10;
	}
	traces->live_bytes += w->bytes;
	live_grew(traces, time);
}

void traces_grow(struct traces *traces, uint32_t trace, uint64_t bytes, uint64_t time)
{
	struct trace *t = &traces->items[trace];

	mark(traces, trace);
	settle(traces, t);
	t->touched = time;
	t->s.alloc_bytes += bytes;
	t->s.live_bytes += bytes;
	traces->live_bytes += bytes;
	live_grew(traces, time);
}

void traces_trim(struct traces *traces, uint32_t trace, uint64_t bytes)
{
	struct trace *t = &traces->items[trace];

	mark(traces, trace);
	settle(traces, t);
	t->s.free_bytes += bytes;
	t->s.live_bytes -= bytes;
	traces->live_bytes -= bytes;
}

void traces_untrim(struct traces *traces, uint32_t trace, uint64_t bytes, uint64_t time)
{
	struct trace *t = &traces->items[trace];

	mark(traces, trace);
	settle(traces, t);
	t->s.free_bytes -= bytes;
	t->s.live_bytes += bytes;
	traces->live_bytes += bytes;
	live_grew(traces, time);
}

/* Blocks may have gone since it was looked. */
static void bound_parts(struct trace_stats *s)
{
	if (s->res_bytes > s->live_bytes)
		s->res_bytes = s->live_bytes;
	if (s->swap_bytes > s->live_bytes - s->res_bytes)
		s->swap_bytes = s->live_bytes - s->res_bytes;
	if (s->old_bytes > s->live_bytes)
		s->old_bytes = s->live_bytes;
}

void traces_resident(struct traces *traces, uint32_t trace, uint64_t bytes, uint64_t swapped)
{
	struct trace *t = &traces->items[trace];

	if (t->s.res_bytes == bytes && t->s.swap_bytes == swapped)
		return;
	t->s.res_bytes = bytes;
	t->s.swap_bytes = swapped;
	bound_parts(&t->s);
	mark(traces, trace);
}

void traces_old(struct traces *traces, uint32_t trace, uint64_t bytes)
{
	struct trace *t = &traces->items[trace];

	if (t->s.old_bytes == bytes)
		return;
	t->s.old_bytes = bytes;
	bound_parts(&t->s);
	mark(traces, trace);
}

void traces_fault(struct traces *traces, uint32_t trace, const struct heap_fault *fault)
{
	struct trace *t = &traces->items[trace];

	mark(traces, trace);
	t->touched = fault->time;
	t->s.fault_bytes += fault->bytes;
	t->s.fault_var += fault->variance;
}

/* The window that rates are told from, and whether a new base is to be taken. */
struct window {
	int from;
	double per_second;	/* 1 / its length; 0: too short, or of no meaning any more */
	bool rotate;
	bool over;		/* nothing happens here any more */
};

/*
 * Rates: two bases are kept, a second or more apart. The window goes back to the newer one if
 * that is old enough (slow refresh), else to the older one: 1.5 to 2.5 s at the usual refresh rates.
 */
static struct window window_at(const struct traces *traces, uint64_t time, bool over)
{
	uint64_t since1 = time > traces->base_time[1] ? time - traces->base_time[1] : 0;
	int from = since1 >= WINDOW_MIN;
	uint64_t dt = time > traces->base_time[from] ? time - traces->base_time[from] : 0;

	return (struct window){
		.from = from,
		.per_second = dt >= RATE_MIN && !over ? 1e9 / (double)dt : 0,
		.rotate = since1 >= WINDOW_STEP,
		.over = over,
	};
}

static bool base_is(const struct trace_base *base, const struct trace_stats *s)
{
	return base->alloc_bytes == s->alloc_bytes && base->alloc_q10 == s->alloc_q10
		&& base->free_bytes == s->free_bytes && base->free_q10 == s->free_q10;
}

/* Bring a trace's peak and rates up to date. Returns what it must be watched for. */
static uint8_t update(struct traces *traces, struct trace *t, const struct window *window)
{
	const struct trace_base *base = &t->base[window->from];
	struct trace_stats *s = &t->s;
	double per_second = window->per_second;
	uint8_t ret = 0;

	settle(traces, t);
	bound_parts(s);
	/* an undone free may lie before the base: then the difference is below 0 */
	int64_t freed = (int64_t)(s->free_bytes - base->free_bytes);
	int64_t frees = (int64_t)(s->free_q10 - base->free_q10);
	s->alloc_bps = (float)((double)(s->alloc_bytes - base->alloc_bytes) * per_second);
	s->alloc_cps = (float)((double)(s->alloc_q10 - base->alloc_q10) / 1024 * per_second);
	s->free_bps = freed > 0 ? (float)((double)freed * per_second) : 0;
	s->free_cps = frees > 0 ? (float)((double)frees / 1024 * per_second) : 0;
	s->over_bytes = window->over ? s->live_bytes : 0;
	if (!base_is(&t->base[0], s) || !base_is(&t->base[1], s))
		ret |= WATCH_RATES;
	if (s->peak_bytes != s->live_bytes || s->peak_q10 != s->live_q10)
		ret |= WATCH_PEAKS;
	if (window->rotate) {
		t->base[0] = t->base[1];
		t->base[1] = (struct trace_base){ s->alloc_bytes, s->alloc_q10,
						  s->free_bytes, s->free_q10 };
	}
	return ret;
}

static void publish_chunk(struct traces *traces, size_t chunk, const struct window *window)
{
	const struct view_chunk *old = store_chunk(traces->store, chunk);
	struct view_trace *out = store_replace(traces->store, chunk);
	uint8_t watched = 0;

	for (size_t k = 0; k < VIEW_CHUNK; k++) {
		size_t i = chunk * VIEW_CHUNK + k;
		const struct view_trace *was = old ? &old->traces[k] : NULL;
		if (i >= traces->n || traces->items[i].node == TREE_NONE) {
			out[k] = (struct view_trace){ .node = TREE_NONE };
		} else {
			struct trace *t = &traces->items[i];
			watched |= update(traces, t, window);
			out[k].node = t->node;
			out[k].s = t->s;
		}
		if (was && was->node == out[k].node && !memcmp(&was->s, &out[k].s, sizeof(was->s)))
			continue;
		if (was && was->node != TREE_NONE)
			sums_sub(&traces->total, &was->s);
		if (out[k].node != TREE_NONE)
			sums_add(&traces->total, &out[k].s);
	}
	traces->dirty[chunk] = 0;
	traces->watched[chunk] = watched;
}

void traces_publish(struct traces *traces, uint64_t time, bool over, struct view *view)
{
	struct window window = window_at(traces, time, over);
	bool all = over && !traces->published_over;
	uint8_t watch = WATCH_RATES;

	if (traces->epoch != traces->published_epoch)
		watch |= WATCH_PEAKS;
	traces->published_epoch = traces->epoch;
	traces->published_over = over;
	for (size_t chunk = 0; chunk < traces->nchunks; chunk++)
		if (all || traces->dirty[chunk] || traces->watched[chunk] & watch)
			publish_chunk(traces, chunk, &window);
	if (window.rotate) {
		traces->base_time[0] = traces->base_time[1];
		traces->base_time[1] = time;
	}
	store_publish(traces->store, view, traces->n);
	view->totals.s = sums_get(&traces->total);
	if (!series_due(&traces->series, view->time))
		return;
	uint64_t *live = series_step(&traces->series, view->time, traces->n);
	for (size_t i = 0; i < traces->n; i++)
		live[i] = traces->items[i].s.live_bytes;
}
