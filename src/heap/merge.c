/*
 * The sum of several heaps; see merge.h. Each trace of the sum has exact integer sums (sums.h), to which
 * the differences between a member's views are applied chunk by chunk: chunks that two views share are
 * the same. A member's nodes are mapped to the sum's as they come up, a parent before its child.
 */
#include "heap/merge.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "heap/classes.h"
#include "heap/heap.h"
#include "heap/points.h"
#include "heap/series.h"
#include "heap/store.h"
#include "heap/sums.h"
#include "heap/touches.h"
#include "heap/tree.h"
#include "heap/view.h"

#define NODES_PER_TRACE HEAP_NODES_PER_TRACE

struct merge_member {
	struct merge_member *next;
	struct view *view;	/* newest, or NULL */
	uint32_t *nodes;	/* the sum's, by node of the member's tree; 0: not asked for yet */
	size_t nnodes;
};

struct merge {
	struct tree *tree;
	struct store *store;
	struct item {
		struct sums sums;
		uint32_t node;
		bool dirty;
	} *items;		/* traces of the sum */
	size_t nitems, items_cap;
	uint32_t *of_node;	/* trace by node, plus 1; 0: none */
	size_t of_node_cap;
	uint32_t max_traces;
	uint32_t nmerged;

	struct merge_member *members;
	struct sums total;	/* of all views' totals */
	struct trace_stats total_stats;	/* as last published */
	uint64_t lost_frees, merged_before;	/* of members that have left */
	struct tree_stats tree_before;
	struct classes_build left;	/* live blocks of members that have left */
	bool left_unknown;		/* there are such of which nothing is known */
	struct touch_table left_touches;	/* of such members */
	float peak_time;
	uint64_t seq;
	struct points points;
	struct series series;	/* by trace of the sum */
};

struct merge *merge_create(uint32_t max_traces)
{
	struct merge *m = xcalloc(1, sizeof(*m));

	m->tree = tree_create();
	m->store = store_create();
	m->max_traces = max_traces ? max_traces : HEAP_MAX_TRACES;
	classes_build_init(&m->left);
	return m;
}

static void member_free(struct merge_member *member)
{
	view_unref(member->view);
	free(member->nodes);
	free(member);
}

void merge_destroy(struct merge *m)
{
	if (!m)
		return;
	while (m->members) {
		struct merge_member *next = m->members->next;
		member_free(m->members);
		m->members = next;
	}
	store_destroy(m->store);
	tree_destroy(m->tree);
	free(m->items);
	free(m->of_node);
	classes_build_deinit(&m->left);
	touch_table_deinit(&m->left_touches);
	series_deinit(&m->series);
	free(m);
}

struct merge_member *merge_join(struct merge *m)
{
	struct merge_member *member = xcalloc(1, sizeof(*member));

	member->next = m->members;
	m->members = member;
	return member;
}

/* ---- nodes and traces ---- */

static uint32_t map_node(struct merge *m, struct merge_member *member, const struct tree *tree, uint32_t node)
{
	uint32_t stack[TREE_MAX_DEPTH + 1];
	size_t n = 0;

	while (node && !member->nodes[node] && n < TREE_MAX_DEPTH) {
		stack[n++] = node;
		node = tree_get(tree, node).parent;
	}
	uint32_t at = node ? member->nodes[node] : 0;
	while (n > 0) {
		at = tree_child(m->tree, at, tree_get(tree, stack[--n]).addr);
		member->nodes[stack[n]] = at;
	}
	return at;
}

static struct item *add_item(struct merge *m, uint32_t node)
{
	if (node >= m->of_node_cap) {
		size_t cap = m->of_node_cap ? m->of_node_cap * 2 : 1024;
		while (cap <= node)
			cap *= 2;
		m->of_node = xreallocarray(m->of_node, cap, sizeof(*m->of_node));
		memset(m->of_node + m->of_node_cap, 0, (cap - m->of_node_cap) * sizeof(*m->of_node));
		m->of_node_cap = cap;
	}
	if (m->of_node[node])
		return &m->items[m->of_node[node] - 1];
	VEC_GROW(m->items, m->nitems, m->items_cap);
	m->items[m->nitems] = (struct item){ .node = node, .dirty = true };
	m->of_node[node] = (uint32_t)++m->nitems;
	return &m->items[m->nitems - 1];
}

/* The sum's trace for a member's. */
static struct item *item_of(struct merge *m, struct merge_member *member, const struct view *view, uint32_t node)
{
	bool full = m->nitems + 1 >= m->max_traces ||
		    tree_count(m->tree) >= m->max_traces * (uint64_t)NODES_PER_TRACE;
	uint32_t mine = member->nodes[node];

	if (!mine && node && !full)
		mine = map_node(m, member, view->tree, node);
	if (mine < m->of_node_cap && m->of_node[mine])
		return &m->items[m->of_node[mine] - 1];
	if (!full && (mine || !node))
		return add_item(m, mine);
	/* it stays there: what is taken off later must come off the same */
	uint32_t rest = tree_child(m->tree, 0, frame_addr(0, FRAME_MERGED));
	m->nmerged++;
	member->nodes[node] = rest;
	return add_item(m, rest);
}

static void nodes_room(struct merge_member *member, size_t n)
{
	if (n <= member->nnodes)
		return;
	size_t cap = member->nnodes * 3 / 2;
	if (cap < n)
		cap = n;
	member->nodes = xreallocarray(member->nodes, cap, sizeof(*member->nodes));
	memset(member->nodes + member->nnodes, 0, (cap - member->nnodes) * sizeof(*member->nodes));
	member->nnodes = cap;
}

/* ---- taking views over ---- */

static void apply_chunk(struct merge *m, struct merge_member *member, const struct view *view, size_t chunk,
			void (*fn)(struct sums *, const struct trace_stats *))
{
	for (size_t i = chunk * VIEW_CHUNK; i < (chunk + 1) * VIEW_CHUNK; i++) {
		const struct view_trace *t = view_trace(view, i);
		if (!t)
			continue;
		struct item *item = item_of(m, member, view, t->node);
		fn(&item->sums, &t->s);
		item->dirty = true;
	}
}

static size_t chunks_of(const struct view *view)
{
	return view ? (view->ntraces + VIEW_CHUNK - 1) / VIEW_CHUNK : 0;
}

void merge_take(struct merge *m, struct merge_member *member, struct view *view)
{
	struct view *old = member->view;
	bool same_tree = old && old->tree == view->tree;
	size_t before = chunks_of(old), now = chunks_of(view);

	for (size_t c = 0; c < before; c++)
		if (!same_tree || c >= now || old->chunks[c] != view->chunks[c])
			apply_chunk(m, member, old, c, sums_sub);
	if (!same_tree && member->nodes)
		memset(member->nodes, 0, member->nnodes * sizeof(*member->nodes));
	nodes_room(member, view->nnodes);
	for (size_t c = 0; c < now; c++)
		if (!same_tree || c >= before || old->chunks[c] != view->chunks[c])
			apply_chunk(m, member, view, c, sums_add);
	if (old)
		sums_sub(&m->total, &old->totals.s);
	sums_add(&m->total, &view->totals.s);
	member->view = view_ref(view);
	view_unref(old);
}

/* ---- what the live blocks are like ---- */

/* Threads of one name are one in the sum: they have ids in namespaces of their own. */
static void add_classes(struct classes_build *b, const struct class_thread *threads, size_t nthreads,
			const struct class_cell *cells, size_t n, const struct merge_member *member)
{
	CLEANUP_FREE uint16_t *thread = xcalloc(nthreads + 1, sizeof(*thread));

	for (size_t i = 0; i < nthreads; i++)
		thread[i] = classes_thread_by_name(b, &threads[i]);
	for (size_t i = 0; i < n; i++) {
		struct class_cell cell = cells[i];
		if (cell.thread != CLASS_NO_THREAD)
			cell.thread = thread[cell.thread];
		if (member)
			cell.node = cell.node < member->nnodes ? member->nodes[cell.node] : 0;
		classes_add(b, &cell);
	}
}

static void add_member_classes(struct classes_build *b, const struct merge_member *member)
{
	const struct classes *c = member->view->classes;

	add_classes(b, c->threads, c->nthreads, c->cells, c->n, member);
}

/* Where they are asked for, each member's view has some. */
static void publish_classes(const struct merge *m, struct view *view)
{
	struct classes_build b;
	bool known = !m->left_unknown, wanted = !m->members;

	view->classes_fresh = true;
	for (const struct merge_member *member = m->members; member; member = member->next) {
		if (!member->view)
			continue;
		wanted |= member->view->classes != NULL;
		known &= member->view->classes != NULL;
		view->classes_fresh &= member->view->classes_fresh;
	}
	if (!wanted || !known) {
		view->classes_fresh = false;
		return;
	}
	classes_build_init(&b);
	add_classes(&b, m->left.threads, m->left.nthreads, m->left.slots, m->left.nslots, NULL);
	for (const struct merge_member *member = m->members; member; member = member->next)
		if (member->view)
			add_member_classes(&b, member);
	view->classes = classes_finish(&b, view->time, NULL, NULL);
	classes_build_deinit(&b);
}

/* ---- who touched whose memory ---- */

static uint32_t node_in_sum(struct merge *m, struct merge_member *member, uint32_t node)
{
	if (node >= member->view->nnodes)
		return TOUCH_NOBODY;
	/* the owner of a block that has gone need have no trace any more */
	return member->nodes[node] || !node ? member->nodes[node] : item_of(m, member, member->view, node)->node;
}

static void add_touches(struct merge *m, struct merge_member *member, struct touch_table *to)
{
	const struct touches *t = member->view ? member->view->touches : NULL;

	for (size_t i = 0; t && i < t->n; i++)
		touch_table_add(to, node_in_sum(m, member, t->pairs[i].toucher),
				t->pairs[i].owner == TOUCH_NOBODY ? TOUCH_NOBODY : node_in_sum(m, member, t->pairs[i].owner),
				t->pairs[i].bytes);
}

static void publish_touches(struct merge *m, struct view *view)
{
	struct touch_table table = { 0 };
	struct touches *left = touch_table_list(&m->left_touches);

	for (size_t i = 0; left && i < left->n; i++)
		touch_table_add(&table, left->pairs[i].toucher, left->pairs[i].owner, left->pairs[i].bytes);
	touches_unref(left);
	for (struct merge_member *member = m->members; member; member = member->next)
		add_touches(m, member, &table);
	view->touches = touch_table_list(&table);
	touch_table_deinit(&table);
}

void merge_leave(struct merge *m, struct merge_member *member)
{
	struct merge_member **at = &m->members;

	while (*at != member)
		at = &(*at)->next;
	*at = member->next;
	if (member->view) {
		const struct view_totals *t = &member->view->totals;
		add_touches(m, member, &m->left_touches);
		m->lost_frees += t->lost_frees;
		m->merged_before += t->merged;
		m->tree_before.steps += t->tree.steps;
		m->tree_before.last_hits += t->tree.last_hits;
		m->tree_before.hash_hits += t->tree.hash_hits;
		if (member->view->classes && member->view->classes_fresh)
			add_member_classes(&m->left, member);
		else
			m->left_unknown = m->left_unknown || t->s.live_samples;
	}
	member_free(member);
}

/* ---- publishing ---- */

static void write_chunks(struct merge *m)
{
	for (size_t at = 0; at < m->nitems; at += VIEW_CHUNK) {
		bool dirty = false;
		for (size_t i = at; i < at + VIEW_CHUNK && i < m->nitems; i++)
			dirty |= m->items[i].dirty;
		if (!dirty)
			continue;
		struct view_trace *to = store_replace(m->store, at / VIEW_CHUNK);
		for (size_t i = 0; i < VIEW_CHUNK; i++) {
			if (at + i >= m->nitems) {
				to[i] = (struct view_trace){ .node = TREE_NONE };
				continue;
			}
			struct item *item = &m->items[at + i];
			to[i] = (struct view_trace){ .node = item->node, .s = sums_get(&item->sums) };
			item->dirty = false;
		}
	}
}

static void add_members(struct merge *m, struct view_totals *to)
{
	for (const struct merge_member *member = m->members; member; member = member->next) {
		if (!member->view)
			continue;
		const struct view_totals *t = &member->view->totals;
		to->lost_frees += t->lost_frees;
		to->merged += t->merged;
		to->trend_bps += t->trend_bps;
		to->tree.steps += t->tree.steps;
		to->tree.last_hits += t->tree.last_hits;
		to->tree.hash_hits += t->tree.hash_hits;
	}
}

/* Members' steps are at times of their own: the sum has its own steps. */
static void publish_series(struct merge *m, struct view *view)
{
	const size_t live = offsetof(struct trace_stats, live_bytes) / sizeof(uint64_t);
	bool due = false;

	if (series_due(&m->series, view->time)) {
		uint64_t *held = series_step(&m->series, view->time, m->nitems);
		for (size_t i = 0; i < m->nitems; i++)
			held[i] = m->items[i].sums.counts[live];
	}
	for (const struct merge_member *member = m->members; member; member = member->next)
		due |= member->view && member->view->series;
	view->series = due || !m->members ? series_publish(&m->series, m->nitems) : NULL;
}

struct view *merge_publish(struct merge *m, const struct view_info *info, double time)
{
	struct view *view = view_create();
	struct timespec wall;

	clock_gettime(CLOCK_REALTIME, &wall);
	publish_touches(m, view);	/* may add nodes and traces */
	write_chunks(m);
	view->seq = ++m->seq;
	view->time = time;
	view->wall_ns = (int64_t)wall.tv_sec * 1000000000 + wall.tv_nsec;
	view_info_copy(&view->info, info);
	view->tree = tree_ref(m->tree);
	view->nnodes = tree_count(m->tree);
	store_publish(m->store, view, m->nitems);
	uint64_t peak = m->total_stats.peak_bytes;
	view->totals.s = m->total_stats = sums_get(&m->total);
	if (view->totals.s.peak_bytes != peak)
		m->peak_time = (float)time;
	view->totals.peak_time = m->peak_time;
	view->totals.lost_frees = m->lost_frees;
	view->totals.merged = (uint32_t)m->merged_before + m->nmerged;
	view->totals.tree = tree_stats(m->tree);
	view->totals.tree.steps = m->tree_before.steps;
	view->totals.tree.last_hits = m->tree_before.last_hits;
	view->totals.tree.hash_hits = m->tree_before.hash_hits;
	add_members(m, &view->totals);
	publish_classes(m, view);
	publish_series(m, view);
	points_add(&m->points, &(struct view_point){
		.time = (float)time,
		.live_bytes = view->totals.s.live_bytes,
		.rss = view->info.rss,
		.alloc_bps = view->totals.s.alloc_bps,
	});
	points_publish(&m->points, view);
	return view;
}
