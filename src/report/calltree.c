/*
 * The merged call tree, both directions, made cell by cell as it is looked at; see report.h.
 *
 * Top-down a cell is a set of (tree node, function of its frame): those that the same path of functions
 * leads to. What a node holds with everything below it is kept from view to view (nodesums.h). Sets of
 * one cell never nest, so a cell's total is the plain sum over its nodes.
 *
 * Inverted a cell is a set of traces with a position on each: the same path of functions leads
 * from their sites out to there. Its total is the sum over those traces; the first level are the sites.
 *
 * Frames may be left out (report_set_user_only). Top-down a node's frame is passed over on the way to its
 * children, and the own trace of such a node counts for the cell it was reached from. Inverted it is a step
 * more outwards; the first level then are the first frames shown.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/cellages.h"
#include "report/internal.h"

#define WARM_TRACES 2000		/* linked in one go: two to five ms */
#define WARM_TRIES 3

struct place {
	uint32_t node;
	uint32_t i;		/* function of the node's frame */
	uint32_t trace;		/* inverted only */
};

struct cell {
	struct report_cell pub;		/* first: callers hold pointers to it */
	struct cell *parent;
	const struct site *site;	/* inverted, first level: whose traces are its places */
	struct place *places;		/* owned until the children are made */
	size_t nplaces, places_cap;
	const struct cell *base;	/* the same path in the base's tree, NULL: isn't there */
	bool expanded;
	size_t nchildren;
	size_t ntouchers;		/* of them: that only touched memory */
	struct cell **children;		/* in the arena */
	const struct report_cell **sorted[REPORT_VALUES];	/* in the arena, made when asked for */
	struct cell *next;		/* all cells of the tree, to free their places */
};

struct report_tree {
	struct report *r;
	bool inverted;
	struct arena arena;
	struct cell *root, *all;
	struct report_tree *base;	/* of the base's report, NULL: none */
	struct cell_ages *ages;		/* NULL: nobody has asked */
};

static void expand(struct report_tree *tree, struct cell *cell);

/* Exact sums of a cell in the making (sums.h). */
struct making_sums {
	struct sums total, self;
};

static struct cell *cell_add(struct report_tree *tree, struct cell *parent)
{
	struct cell *cell = arena_take(&tree->arena, sizeof(*cell));

	cell->parent = parent;
	cell->pub.depth = parent ? parent->pub.depth + 1 : 0;
	cell->next = tree->all;
	tree->all = cell;
	return cell;
}

static void place_add(struct cell *cell, struct place place)
{
	VEC_GROW(cell->places, cell->nplaces, cell->places_cap);
	cell->places[cell->nplaces++] = place;
}

/* ---- top-down ---- */

static const struct trace_stats *trace_stats_of(void *ctx, uint32_t trace)
{
	return &view_trace(ctx, trace)->s;
}

/* Link at most n more of the view's traces; true: all of them are, and lie in r->nodes, not counted yet. */
static bool link_some(struct report *r, size_t n)
{
	const struct view *view = r->view;

	if (!r->linking.sums) {
		r->linking.sums = node_sums_create(view->tree, view->ntraces);
		node_sums_room(r->linking.sums, view->nnodes);
		r->linking.next = 0;
	}
	for (; n && r->linking.next < view->ntraces; n--) {
		size_t i = r->linking.next++;
		const struct view_trace *trace = view_trace(view, i);
		if (trace && report_passes(r, trace->node))
			node_sums_link(r->linking.sums, trace->node, (uint32_t)i);
	}
	if (r->linking.next < view->ntraces)
		return false;
	r->nodes = r->linking.sums;
	r->linking.sums = NULL;
	r->linking.given_up = 0;
	node_sums_order(r->nodes);
	r->nodes->stale = true;
	return true;
}

static uint32_t own_of(const struct report *r, uint32_t node)
{
	const struct node_sum *at = node_sums_of(r->nodes, node);

	return at && at->leaf == node ? at->own : 0;
}

/* What is below a node without a frame that is shown between counts for it; true: there are such frames, too. */
static bool pass_over(struct report *r, uint32_t node, struct sums *self)
{
	bool shown = false;

	for (uint32_t c = r->nodes->first[node]; c; c = r->nodes->next[c]) {
		if (!node_sums_of(r->nodes, c))
			continue;
		if (!report_left_out(r, c)) {
			shown = true;
			continue;
		}
		uint32_t own = own_of(r, c);
		if (own)
			sums_add(self, &view_trace(r->view, own - 1)->s);
		shown |= pass_over(r, c, self);
	}
	return shown;
}

static void down_fill(struct report_tree *tree, struct cell *cell, struct making_sums *sums,
		      const struct place *place)
{
	const struct node_sum *at = node_sums_of(tree->r->nodes, place->node);
	uint32_t own = own_of(tree->r, place->node);

	sums_merge(&sums->total, &at->sum);
	if (place->i == 0 && own)
		sums_add(&sums->self, &view_trace(tree->r->view, own - 1)->s);
	if (place->i == 0 && tree->r->user_only)
		cell->pub.has_children |= pass_over(tree->r, place->node, &sums->self);
	else if (place->i > 0 || at->ntraces > (own ? 1 : 0))
		cell->pub.has_children = true;
}

/* ---- inverted ---- */

/* The next function outwards; false at the end of the stack. */
static bool step_out(struct report *r, uint32_t *node, uint32_t *i)
{
	const struct frame *frame = report_node_frame(r, *node);

	if (*i + 1 < frame->nfuncs) {
		(*i)++;
		return true;
	}
	uint32_t parent = tree_get(r->view->tree, *node).parent;
	if (!parent)
		return false;
	*node = parent;
	*i = 0;
	return true;
}

bool report_step_out(struct report *r, uint32_t *node, uint32_t *i)
{
	do
		if (!step_out(r, node, i))
			return false;
	while (report_left_out(r, *node));
	return true;
}

static bool place_out(struct report *r, struct place *place)
{
	return report_step_out(r, &place->node, &place->i);
}

static void up_fill(struct report_tree *tree, struct cell *cell, struct making_sums *sums,
		    const struct place *place)
{
	const struct trace_stats *s = &view_trace(tree->r->view, place->trace)->s;
	struct place out = *place;

	sums_add(&sums->total, s);
	if (place_out(tree->r, &out))
		cell->pub.has_children = true;
	else
		sums_add(&sums->self, s);
}

/* Does the trace count in the inverted tree? One without frames only in its root. */
static bool up_counts(const struct report *r, uint32_t trace)
{
	uint32_t node = view_trace(r->view, trace)->node;

	return node && report_passes(r, node);
}

/* The first level: one cell for each site, without a look at its traces. */
static void expand_sites(struct report_tree *tree, struct cell *root)
{
	struct report *r = tree->r;

	sites_rows(r);
	root->children = arena_take(&tree->arena, (r->nsite_list + 1) * sizeof(*root->children));
	for (size_t i = 0; i < r->nsite_list; i++) {
		const struct site *site = &r->site_list[i];
		const struct func *func = &r->funcs.items[site->func];
		struct sums total = site->sum, self = { 0 };
		uint32_t n = site->npass, ends = site->nends;
		if (r->root_trace && r->trace_sites[r->root_trace - 1].func == site->func
		    && report_passes(r, 0)) {
			sums_sub(&total, &view_trace(r->view, r->root_trace - 1)->s);
			n--;
			ends--;
		}
		if (!n)
			continue;
		for (uint32_t k = ends ? site->first : 0; k; k = r->trace_sites[k - 1].next)
			if (r->trace_sites[k - 1].ends && up_counts(r, k - 1))
				sums_add(&self, &view_trace(r->view, k - 1)->s);
		struct cell *cell = root->children[root->nchildren++] = cell_add(tree, root);
		cell->site = site;
		cell->pub.key = funcs_mix(root->pub.key, func->id);
		cell->pub.func_key = func->id;
		cell->pub.function = func->function;
		cell->pub.module = func->module;
		cell->pub.unknown = func->unknown;
		cell->pub.pseudo = func->pseudo;
		cell->pub.inlined = site->inlined;
		cell->pub.file = site->file;
		cell->pub.line = site->line;
		cell->pub.has_children = n > ends;
		cell->pub.total = sums_get(&total);
		cell->pub.self = sums_get(&self);
	}
}

/* ---- both ---- */

struct making {
	struct cell **cells;
	struct making_sums *sums;
	uint32_t *funcs;	/* their functions, to clear of_func again */
	size_t n, cap, funcs_cap, sums_cap;
};

/* Count a place under its function among the children in the making. */
static void child_put(struct report_tree *tree, struct cell *parent, struct making *making,
		      struct place place)
{
	struct report *r = tree->r;
	const struct frame *frame = report_node_frame(r, place.node);
	uint32_t k = frame->funcs[place.i];

	/* resolving may have added functions */
	if (r->funcs.n > r->nof_func) {
		size_t n = r->funcs.n * 2;
		r->of_func = xreallocarray(r->of_func, n, sizeof(*r->of_func));
		memset(r->of_func + r->nof_func, 0, (n - r->nof_func) * sizeof(*r->of_func));
		r->nof_func = n;
	}
	const struct func *func = &r->funcs.items[k];
	const char *file = frame_file(frame, place.i);
	uint32_t line = frame_line(frame, place.i);
	struct cell *cell;
	if (!r->of_func[k]) {
		cell = cell_add(tree, parent);
		VEC_GROW(making->funcs, making->n, making->funcs_cap);
		VEC_GROW(making->cells, making->n, making->cap);
		VEC_GROW(making->sums, making->n, making->sums_cap);
		making->funcs[making->n] = k;
		making->sums[making->n] = (struct making_sums){ 0 };
		making->cells[making->n++] = cell;
		r->of_func[k] = (uint32_t)making->n;
		cell->pub.key = funcs_mix(parent->pub.key, func->id);
		cell->pub.func_key = func->id;
		cell->pub.function = func->function;
		cell->pub.module = func->module;
		cell->pub.unknown = func->unknown;
		cell->pub.pseudo = func->pseudo;
		cell->pub.inlined = frame_inlined(frame, place.i);
		cell->pub.file = file;
		cell->pub.line = line;
	} else {
		cell = making->cells[r->of_func[k] - 1];
		/* as with files and lines: what is said of the cell holds for all its places */
		cell->pub.inlined = cell->pub.inlined && frame_inlined(frame, place.i);
		if (cell->pub.file != file
		    && (!cell->pub.file || !file || strcmp(cell->pub.file, file))) {
			cell->pub.file = NULL;
			cell->pub.line = 0;
		} else if (cell->pub.line != line) {
			cell->pub.line = 0;
		}
	}
	place_add(cell, place);
	struct making_sums *sums = &making->sums[r->of_func[k] - 1];
	if (tree->inverted)
		up_fill(tree, cell, sums, &place);
	else
		down_fill(tree, cell, sums, &place);
}

static void put_frame_of(struct report_tree *tree, struct cell *parent, struct making *making,
			 uint32_t node)
{
	const struct frame *frame = report_node_frame(tree->r, node);

	child_put(tree, parent, making, (struct place){ .node = node, .i = frame->nfuncs - 1 });
}

static void put_frames_below(struct report_tree *tree, struct cell *parent, struct making *making, uint32_t node)
{
	struct report *r = tree->r;

	for (uint32_t c = r->nodes->first[node]; c; c = r->nodes->next[c]) {
		if (!node_sums_of(r->nodes, c))
			continue;
		if (report_left_out(r, c))
			put_frames_below(tree, parent, making, c);
		else
			put_frame_of(tree, parent, making, c);
	}
}

/* Inverted: each trace at its first frame that is shown, from the site on; without any it is the root's own. */
static void put_first_shown(struct report_tree *tree, struct cell *root, struct making *making)
{
	struct report *r = tree->r;
	struct sums self = { 0 };

	for (size_t k = 0; k < r->view->ntraces; k++) {
		if (!view_trace(r->view, k) || !up_counts(r, (uint32_t)k))
			continue;
		const struct trace_site *at = &r->trace_sites[k];
		struct place place = { at->node, at->i, (uint32_t)k };
		if (!report_left_out(r, place.node) || place_out(r, &place))
			child_put(tree, root, making, place);
		else
			sums_add(&self, &view_trace(r->view, k)->s);
	}
	root->pub.self = sums_get(&self);
}

/* ---- against the base ---- */

struct same {
	uint64_t what;
	uint32_t i;
};

static int by_what(const void *pa, const void *pb)
{
	const struct same *a = pa, *b = pb;

	return a->what < b->what ? -1 : a->what > b->what;
}

static struct same *sorted_by_what(struct cell *const *cells, size_t n)
{
	struct same *list = xcalloc(n + 1, sizeof(*list));

	for (size_t i = 0; i < n; i++)
		list[i] = (struct same){ funcs_what(cells[i]->pub.function, cells[i]->pub.module), (uint32_t)i };
	qsort(list, n, sizeof(*list), by_what);
	return list;
}

static struct cell *gone_cell(struct report_tree *tree, struct cell *parent, const struct cell *was,
			      uint64_t what)
{
	struct cell *cell = cell_add(tree, parent);
	uint32_t depth = cell->pub.depth;

	cell->pub = was->pub;
	cell->pub.depth = depth;
	cell->pub.key = funcs_mix(parent->pub.key, what);
	cell->pub.func_key = what;
	cell->pub.total = cell->pub.self = (struct trace_stats){ 0 };
	cell->pub.delta = -(int64_t)was->pub.total.live_bytes;
	cell->pub.gone = true;
	cell->base = was;
	return cell;
}

/* The children, made a moment ago, find theirs among those of the base's cell; those only it has come behind. */
static void base_children(struct report_tree *tree, struct cell *cell)
{
	if (!tree->base)
		return;
	struct cell *was = (struct cell *)cell->base;
	if (was)
		expand(tree->base, was);
	size_t n = cell->nchildren, m = was ? was->nchildren : 0, out = n, k = 0;
	struct same *now = sorted_by_what(cell->children, n);
	struct same *then = sorted_by_what(was ? was->children : NULL, m);
	struct cell **all = arena_take(&tree->arena, (n + m + 1) * sizeof(*all));

	for (size_t i = 0; i < n; i++) {
		struct cell *child = all[now[i].i] = cell->children[now[i].i];
		for (; k < m && then[k].what < now[i].what; k++)
			if (was->children[then[k].i]->pub.total.live_bytes)
				all[out++] = gone_cell(tree, cell, was->children[then[k].i], then[k].what);
		if (k < m && then[k].what == now[i].what)
			child->base = was->children[then[k++].i];
		child->pub.delta = (int64_t)(child->pub.total.live_bytes
					     - (child->base ? child->base->pub.total.live_bytes : 0));
		child->pub.has_children = child->pub.has_children
			|| (child->base && child->base->pub.has_children && child->base->pub.total.live_bytes);
	}
	for (; k < m; k++)
		if (was->children[then[k].i]->pub.total.live_bytes)
			all[out++] = gone_cell(tree, cell, was->children[then[k].i], then[k].what);
	cell->children = all;
	cell->nchildren = out;
	free(now);
	free(then);
}

static void expand(struct report_tree *tree, struct cell *cell)
{
	struct report *r = tree->r;
	struct making making = { 0 };

	if (cell->expanded)
		return;
	cell->expanded = true;
	if (tree->inverted && !cell->parent && r->user_only) {
		put_first_shown(tree, cell, &making);
	} else if (tree->inverted && !cell->parent) {
		expand_sites(tree, cell);
		base_children(tree, cell);
		return;
	}
	for (uint32_t k = cell->site ? cell->site->first : 0; k; k = r->trace_sites[k - 1].next) {
		const struct trace_site *at = &r->trace_sites[k - 1];
		struct place place = { at->node, at->i, k - 1 };
		if (up_counts(r, k - 1) && place_out(r, &place))
			child_put(tree, cell, &making, place);
	}
	for (size_t k = 0; k < cell->nplaces; k++) {
		struct place place = cell->places[k];
		if (tree->inverted) {
			if (place_out(r, &place))
				child_put(tree, cell, &making, place);
		} else if (place.i > 0) {
			place.i--;
			child_put(tree, cell, &making, place);
		} else {
			put_frames_below(tree, cell, &making, place.node);
		}
	}
	for (size_t k = 0; k < making.n; k++) {
		r->of_func[making.funcs[k]] = 0;
		making.cells[k]->pub.total = sums_get(&making.sums[k].total);
		making.cells[k]->pub.self = sums_get(&making.sums[k].self);
	}
	cell->nchildren = making.n;
	cell->children = arena_take(&tree->arena, making.n * sizeof(*cell->children));
	if (making.n)
		memcpy(cell->children, making.cells, making.n * sizeof(*cell->children));
	free(making.cells);
	free(making.sums);
	free(making.funcs);
	base_children(tree, cell);
	free(cell->places);
	cell->places = NULL;
	cell->nplaces = cell->places_cap = 0;
}

bool report_warm(struct report *r)
{
	if (r->base.report && report_warm(r->base.report))
		return true;
	if (!r->view)
		return false;
	r->nodes_idle = 0;
	if (!r->nodes) {
		/* one view came after the other before it was done: then the first look has to wait */
		if (r->linking.given_up >= WARM_TRIES)
			return false;
		link_some(r, WARM_TRACES);
		return true;
	}
	/* what changes all the time is counted only once somebody looks */
	if (r->nodes->stale && !r->counted) {
		node_sums_count(r->nodes, trace_stats_of, r->view);
		r->counted = true;
	}
	return false;
}

struct report_tree *report_tree(struct report *r, bool inverted)
{
	struct report_tree *tree = r->trees[inverted];

	if (!inverted)
		r->nodes_idle = 0;
	if (tree || !r->view)
		return tree;
	tree = xcalloc(1, sizeof(*tree));
	tree->r = r;
	tree->inverted = inverted;
	struct cell *root = tree->root = cell_add(tree, NULL);
	root->pub.key = inverted ? 2 : 1;
	root->pub.function = "all";
	root->pub.module = "";
	root->pub.total = report_total(r);
	uint32_t own = r->root_trace && report_passes(r, 0) ? r->root_trace : 0;
	root->pub.has_children = r->npass > (own ? 1 : 0);
	if (r->base.report && (tree->base = report_tree(r->base.report, inverted))) {
		root->base = tree->base->root;
		root->pub.delta = (int64_t)(root->pub.total.live_bytes - root->base->pub.total.live_bytes);
		root->pub.has_children = root->pub.has_children || root->base->pub.has_children;
	}
	if (!inverted) {
		if (!r->nodes)
			link_some(r, SIZE_MAX);
		if (r->nodes->stale)
			node_sums_count(r->nodes, trace_stats_of, r->view);
		place_add(root, (struct place){ 0 });
		struct sums self = { 0 };
		if (own)
			sums_add(&self, &view_trace(r->view, own - 1)->s);
		if (r->user_only)
			root->pub.has_children = pass_over(r, 0, &self) || (tree->base && root->base->pub.has_children);
		root->pub.self = sums_get(&self);
	}
	r->trees[inverted] = tree;
	if (inverted && r->user_only) {
		/* whether anything is shown of them, only their stacks say */
		expand(tree, root);
		root->pub.has_children = root->nchildren > 0;
	}
	return tree;
}

void report_tree_destroy(struct report_tree *tree)
{
	if (!tree)
		return;
	for (struct cell *cell = tree->all; cell; cell = cell->next)
		free(cell->places);
	cell_ages_destroy(tree->ages);
	arena_free(&tree->arena);
	free(tree);
}

const struct report_cell *report_tree_root(struct report_tree *t)
{
	return &t->root->pub;
}

static int compare_cells(const void *pa, const void *pb, void *arg)
{
	const struct report_cell *a = *(const struct report_cell *const *)pa;
	const struct report_cell *b = *(const struct report_cell *const *)pb;
	enum report_value value = *(enum report_value *)arg;
	double va = fabs(report_cell_value(a, value)), vb = fabs(report_cell_value(b, value));

	if (va != vb)
		return va > vb ? -1 : 1;
	return a->key < b->key ? -1 : a->key > b->key;
}

const struct report_cell *const *report_tree_children(struct report_tree *t,
						      const struct report_cell *pub,
						      enum report_value value, size_t *ret_n)
{
	struct cell *cell = (struct cell *)pub;

	expand(t, cell);
	*ret_n = cell->nchildren;
	if (!cell->sorted[value]) {
		const struct report_cell **list =
			arena_take(&t->arena, cell->nchildren * sizeof(*list) + 1);
		size_t n = 0;
		cell->ntouchers = 0;
		for (size_t i = 0; i < cell->nchildren; i++) {
			bool toucher = stats_only_touched(&cell->children[i]->pub.total);
			cell->ntouchers += toucher;
			if (!toucher || value == REPORT_FAULT_BYTES)
				list[n++] = &cell->children[i]->pub;
		}
		if (n)
			qsort_r(list, n, sizeof(*list), compare_cells, &value);
		cell->sorted[value] = list;
	}
	if (value != REPORT_FAULT_BYTES)
		*ret_n -= cell->ntouchers;
	return cell->sorted[value];
}

const struct report_cell *report_tree_parent(struct report_tree *t, const struct report_cell *pub)
{
	const struct cell *cell = (const struct cell *)pub;

	(void)t;
	return cell->parent ? &cell->parent->pub : NULL;
}

struct report *report_tree_report(const struct report_tree *tree, bool *ret_inverted)
{
	*ret_inverted = tree->inverted;
	return tree->r;
}

struct cell_ages **report_tree_ages(struct report_tree *tree)
{
	return &tree->ages;
}
