/* See parts.h. */
#include "report/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/internal.h"

#define NOT_THERE UINT32_MAX

struct adding {
	struct report *r;
	struct report_parts *to;
	struct report_part *threads;	/* by thread of the classes, and one more for nobody */
	size_t nthreads;
};

static void begin(struct adding *a, struct report *r, struct report_parts *ret)
{
	const struct classes *classes = r->view ? r->view->classes : NULL;

	memset(ret, 0, sizeof(*ret));
	ret->heaviest = SIZE_MAX;
	ret->known = classes;
	ret->fresh = classes && r->view->classes_fresh;
	*a = (struct adding){ .r = r, .to = ret, .nthreads = classes ? classes->nthreads : 0 };
	a->threads = xcalloc(a->nthreads + 1, sizeof(*a->threads));
}

static void part_add(struct report_part *to, const struct class_cell *cell)
{
	to->bytes += cell->bytes;
	to->q10 += cell->q10;
	to->samples += cell->samples;
}

static void add_cells(struct adding *a, const struct class_cell *cell, size_t n)
{
	struct report_parts *to = a->to;

	for (size_t i = 0; i < n; i++) {
		part_add(&to->total, &cell[i]);
		part_add(&to->sizes[cell[i].size], &cell[i]);
		part_add(&to->ages[cell[i].age], &cell[i]);
		part_add(&a->threads[cell[i].thread < a->nthreads ? cell[i].thread : a->nthreads], &cell[i]);
	}
}

static void add_trace(struct adding *a, uint32_t trace)
{
	const struct view *view = a->r->view;
	const struct view_trace *t = view_trace(view, trace);
	struct report_parts *to = a->to;
	size_t n = 0;

	to->ntraces++;
	if (to->heaviest == SIZE_MAX || trace_heavier(t, view_trace(view, to->heaviest)))
		to->heaviest = trace;
	if (!view->classes)
		return;
	const struct class_cell *cell = classes_of_node(view->classes, t->node, &n);
	add_cells(a, cell, n);
}

static bool larger(const struct report_part *a, const struct report_part *b)
{
	return a->bytes > b->bytes || (a->bytes == b->bytes && a->q10 > b->q10);
}

/* Put into the list by size; what falls out at its end counts as the rest. */
static void put_thread(struct report_parts *to, const struct report_thread_part *thread)
{
	size_t i = to->nthreads;

	while (i > 0 && larger(&thread->part, &to->threads[i - 1].part))
		i--;
	if (to->nthreads == REPORT_PART_THREADS) {
		const struct report_part *out = i == to->nthreads ? &thread->part : &to->threads[--to->nthreads].part;
		to->more++;
		to->rest.bytes += out->bytes;
		to->rest.q10 += out->q10;
		to->rest.samples += out->samples;
		if (i == REPORT_PART_THREADS)
			return;
	}
	memmove(&to->threads[i + 1], &to->threads[i], (to->nthreads - i) * sizeof(to->threads[0]));
	to->threads[i] = *thread;
	to->nthreads++;
}

static void finish(struct adding *a)
{
	for (size_t i = 0; i <= a->nthreads; i++) {
		struct report_thread_part part = { .nobody = i == a->nthreads, .part = a->threads[i] };
		if (!part.part.samples)
			continue;
		if (!part.nobody) {
			const struct class_thread *t = &a->r->view->classes->threads[i];
			memcpy(part.name, t->name, sizeof(part.name));
			part.tid = t->tid;
			part.merged = t->merged;
			part.ended = t->ended;
		}
		put_thread(a->to, &part);
	}
	free(a->threads);
}

static void add_site(struct adding *a, uint64_t site_id)
{
	struct report *r = a->r;
	int64_t func = funcs_by_id(&r->funcs, site_id);

	if (func < 0 || !r->funcs.items[func].site)
		return;
	for (uint32_t k = r->site_list[r->funcs.items[func].site - 1].first; k; k = r->trace_sites[k - 1].next)
		if (report_passes(r, view_trace(r->view, k - 1)->node))
			add_trace(a, k - 1);
}

void report_site_parts(struct report *r, uint64_t site_id, struct report_parts *ret)
{
	struct adding a;

	begin(&a, r, ret);
	if (r->view)
		add_site(&a, site_id);
	finish(&a);
}

/* ---- cells ---- */

static bool is_func(const struct report *r, const struct frame *frame, uint32_t i, uint64_t key)
{
	return r->funcs.items[frame->funcs[i]].id == key;
}

/*
 * By node: how much of the cell's path the way to it from the root goes along, and all of it: then the node's
 * trace is the cell's. A node comes after its parent.
 */
static uint32_t *ways_along(struct report *r, const uint64_t *path, uint32_t depth)
{
	const struct view *view = r->view;
	uint32_t *along = xmalloc((view->nnodes + 1) * sizeof(*along));

	along[0] = 0;
	for (uint32_t node = 1; node < view->nnodes; node++) {
		uint32_t at = along[tree_get(view->tree, node).parent];
		if (at < depth) {
			const struct frame *frame = report_node_frame(r, node);
			for (uint32_t i = frame->nfuncs; i-- > 0 && at < depth;)
				at = is_func(r, frame, i, path[at]) ? at + 1 : NOT_THERE;
		}
		along[node] = at;
	}
	return along;
}

static void add_below(struct adding *a, const uint64_t *path, uint32_t depth)
{
	struct report *r = a->r;
	const struct view *view = r->view;
	CLEANUP_FREE uint32_t *along = ways_along(r, path, depth);

	for (size_t i = 0; i < view->ntraces; i++) {
		const struct view_trace *t = view_trace(view, i);
		if (t && along[t->node] != NOT_THERE && along[t->node] >= depth && report_passes(r, t->node))
			add_trace(a, (uint32_t)i);
	}
}

/* Does the way out of a trace's site begin with the path? path[0] is the site. */
static bool leads_out(struct report *r, const struct trace_site *site, const uint64_t *path, uint32_t depth)
{
	uint32_t node = site->node, i = site->i, at = 0;

	for (;;) {
		const struct frame *frame = report_node_frame(r, node);
		for (; i < frame->nfuncs; i++) {
			if (!is_func(r, frame, i, path[at]))
				return false;
			if (++at == depth)
				return true;
		}
		node = tree_get(r->view->tree, node).parent;
		if (!node)
			return false;
		i = 0;
	}
}

static void add_outwards(struct adding *a, const uint64_t *path, uint32_t depth)
{
	struct report *r = a->r;
	int64_t func = funcs_by_id(&r->funcs, path[0]);

	if (func < 0 || !r->funcs.items[func].site)
		return;
	for (uint32_t k = r->site_list[r->funcs.items[func].site - 1].first; k; k = r->trace_sites[k - 1].next) {
		uint32_t node = view_trace(r->view, k - 1)->node;
		if (node && report_passes(r, node) && leads_out(r, &r->trace_sites[k - 1], path, depth))
			add_trace(a, k - 1);
	}
}

/* Its functions, from the root outwards, or from the site. */
static uint64_t *path_of(struct report_tree *tree, const struct report_cell *cell)
{
	uint64_t *path = xcalloc(cell->depth + 1, sizeof(*path));

	for (const struct report_cell *c = cell; c && c->depth; c = report_tree_parent(tree, c))
		path[c->depth - 1] = c->func_key;
	return path;
}

bool *report_cell_nodes(struct report_tree *tree, const struct report_cell *cell)
{
	bool inverted;
	struct report *r = report_tree_report(tree, &inverted);
	uint32_t depth = cell->depth, n = r->view->nnodes;
	CLEANUP_FREE uint64_t *path = path_of(tree, cell);
	CLEANUP_FREE uint32_t *along = inverted && depth ? NULL : ways_along(r, path, depth);
	bool *ret = xcalloc(n + 1, sizeof(*ret));

	for (uint32_t node = 0; node < n; node++) {
		if (along) {
			ret[node] = along[node] != NOT_THERE && along[node] >= depth;
		} else if (node) {
			struct trace_site site = report_find_site(r, node);
			ret[node] = leads_out(r, &site, path, depth);
		}
	}
	return ret;
}

void report_cell_parts(struct report_tree *tree, const struct report_cell *cell, struct report_parts *ret)
{
	bool inverted;
	struct adding a;
	uint32_t depth = cell->depth;
	CLEANUP_FREE uint64_t *path = path_of(tree, cell);

	begin(&a, report_tree_report(tree, &inverted), ret);
	if (a.r->view && !cell->gone) {
		if (inverted && depth)
			add_outwards(&a, path, depth);
		else
			add_below(&a, path, depth);
	}
	finish(&a);
}

/* ---- rows of other groups ---- */

static bool in_row(struct report *r, uint32_t trace, enum report_group group, const struct report_site *row)
{
	if (group == REPORT_BY_FUNCTION) {
		const struct frame *frame = report_node_frame(r, view_trace(r->view, trace)->node);
		return r->funcs.items[frame->funcs[0]].id == row->id;
	}
	/* the one name of its site's frame, as modules_rows has it */
	const struct frame *frame = report_node_frame(r, r->trace_sites[trace].node);
	return !strcmp(r->funcs.items[frame->funcs[0]].module, row->module);
}

static void add_group(struct adding *a, enum report_group group, const struct report_site *row)
{
	struct report *r = a->r;

	for (size_t i = 0; i < r->view->ntraces; i++) {
		const struct view_trace *t = view_trace(r->view, i);
		if (t && report_passes(r, t->node) && in_row(r, (uint32_t)i, group, row))
			add_trace(a, (uint32_t)i);
	}
}

/* Only the threads that are the row's: the one of its id; of a sum, or where no id is known, those of its name. */
static bool is_thread(const struct class_thread *t, const struct report_site *row)
{
	if (row->more->tid || t->tid)
		return t->tid == row->more->tid && !strcmp(t->name, row->function);
	return !t->merged == !row->more->merged && !strcmp(t->name, row->function);
}

static void add_thread(struct adding *a, const struct report_site *row)
{
	const struct view *view = a->r->view;
	CLEANUP_FREE bool *only = xcalloc(a->nthreads + 1, sizeof(*only));
	uint64_t most = 0;

	/* while some threads are chosen, the others' blocks aren't in the view */
	if (view->info.thread && !row->more->chosen)
		a->to->known = a->to->fresh = false;
	if (!a->to->known)
		return;
	for (size_t i = 0; i < a->nthreads; i++)
		only[i] = is_thread(&view->classes->threads[i], row);
	for (size_t i = 0; i < view->ntraces; i++) {
		const struct view_trace *t = view_trace(view, i);
		size_t n = 0, had = a->to->total.samples;
		uint64_t bytes = a->to->total.bytes;
		const struct class_cell *cell = t ? classes_of_node(view->classes, t->node, &n) : NULL;
		for (size_t k = 0; k < n; k++)
			if (cell[k].thread < a->nthreads && only[cell[k].thread])
				add_cells(a, &cell[k], 1);
		if (a->to->total.samples == had)
			continue;
		a->to->ntraces++;
		bytes = a->to->total.bytes - bytes;
		if (a->to->heaviest == SIZE_MAX || bytes > most) {
			a->to->heaviest = i;
			most = bytes;
		}
	}
}

void report_row_parts(struct report *r, enum report_group group, const struct report_site *row, struct report_parts *ret)
{
	struct adding a;

	if (group == REPORT_BY_SITE) {
		report_site_parts(r, row->id, ret);
		return;
	}
	begin(&a, r, ret);
	if (r->view && !row->gone) {
		if (group == REPORT_BY_THREAD)
			add_thread(&a, row);
		else if (group != REPORT_BY_STACK)
			add_group(&a, group, row);
		else if (view_trace(r->view, row->more->trace))
			add_trace(&a, (uint32_t)row->more->trace);
	}
	finish(&a);
}

/* ---- labels ---- */

static void size_bound(char buf[16], uint64_t bytes)
{
	static const char units[] = "KMGTPE";
	int u = -1;

	while (bytes >= 1024) {
		bytes >>= 10;
		u++;
	}
	if (u < 0)
		snprintf(buf, 16, "%u", (unsigned)bytes);
	else
		snprintf(buf, 16, "%u%c", (unsigned)bytes, units[u]);
}

void report_size_label(unsigned first, unsigned last, char buf[REPORT_LABEL])
{
	uint64_t begin = class_size_from(first), end = class_size_from(last + 1);
	char from[16], to[16];

	size_bound(from, begin);
	size_bound(to, end < 1024 ? end - 1 : end);
	if (end < 2 || (end < 1024 && begin == end - 1))
		snprintf(buf, REPORT_LABEL, "%s", from);
	else
		snprintf(buf, REPORT_LABEL, "%s-%s", from, to);
	/* of two long ones in the same unit the first needn't say it */
	size_t n = strlen(from);
	if (strlen(buf) > 8 && from[n - 1] == to[strlen(to) - 1])
		snprintf(buf, REPORT_LABEL, "%.*s-%s", (int)n - 1, from, to);
}

const char *report_age_label(unsigned age_class)
{
	static const char *const labels[CLASS_AGES] = {
		"<1 ms", "<10 ms", "<100 ms", "<1 s", "<10 s", "<1 min", "<10 min", "<1 h", "1 h",
	};

	return age_class < CLASS_AGES ? labels[age_class] : "";
}

double report_parts_older(const struct report_parts *parts, unsigned first)
{
	uint64_t bytes = 0;

	for (unsigned i = first; i < CLASS_AGES; i++)
		bytes += parts->ages[i].bytes;
	return parts->total.bytes ? (double)bytes / (double)parts->total.bytes : 0;
}
