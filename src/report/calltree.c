/*
 * The merged call tree, both directions, made cell by cell as it is looked at; see report.h.
 *
 * Top-down a cell is a set of (tree node, function of its frame): those that the same path of functions
 * leads to. What a node holds with everything below it is summed once, by one pass from the
 * last node to the first (children have larger ids). Sets of one cell never nest, so a cell's total
 * is the plain sum over its nodes.
 *
 * Inverted a cell is a set of traces with a position on each: the same path of functions leads
 * from their sites out to there. Its total is the sum over those traces.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/internal.h"

struct place {
	uint32_t node;
	uint32_t i;		/* function of the node's frame */
	uint32_t trace;		/* inverted only */
};

struct cell {
	struct report_cell pub;		/* first: callers hold pointers to it */
	struct cell *parent;
	struct place *places;		/* owned until the children are made */
	size_t nplaces, places_cap;
	bool expanded;
	size_t nchildren;
	struct cell **children;		/* in the arena */
	const struct report_cell **sorted[REPORT_VALUES];	/* in the arena, made when asked for */
	struct cell *next;		/* all cells of the tree, to free their places */
};

struct report_tree {
	struct report *r;
	bool inverted;
	struct arena arena;
	struct cell *root, *all;
	/* top-down, by node */
	struct trace_stats *below;	/* with everything below it */
	uint32_t *ntraces;		/* passing traces in it and below */
	uint32_t *own;			/* its own trace's index + 1, if that passes */
	uint32_t *first, *next;		/* child lists, ids; 0 ends */
	uint32_t *of_func;		/* child in the making by function: index + 1 */
	size_t nof_func;
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

static void sum_nodes(struct report_tree *tree)
{
	const struct report *r = tree->r;
	const struct view *view = r->view;
	uint32_t n = view->nnodes;

	tree->below = xcalloc(n, sizeof(*tree->below));
	tree->ntraces = xcalloc(n, sizeof(*tree->ntraces));
	tree->own = xcalloc(n, sizeof(*tree->own));
	tree->first = xcalloc(n, sizeof(*tree->first));
	tree->next = xcalloc(n, sizeof(*tree->next));
	for (size_t i = 0; i < view->ntraces; i++) {
		const struct view_trace *trace = view_trace(view, i);
		if (!trace || !report_passes(r, i))
			continue;
		uint32_t node = trace->node;
		trace_stats_add(&tree->below[node], &trace->s);
		tree->ntraces[node]++;
		tree->own[node] = (uint32_t)i + 1;
	}
	for (uint32_t id = n; id-- > 1; ) {
		if (!tree->ntraces[id])
			continue;
		uint32_t parent = tree_get(view->tree, id).parent;
		trace_stats_add(&tree->below[parent], &tree->below[id]);
		tree->ntraces[parent] += tree->ntraces[id];
		tree->next[id] = tree->first[parent];
		tree->first[parent] = id;
	}
}

static void down_fill(struct report_tree *tree, struct cell *cell, const struct place *place)
{
	uint32_t node = place->node, own = tree->own[node];

	trace_stats_add(&cell->pub.total, &tree->below[node]);
	if (place->i == 0 && own)
		trace_stats_add(&cell->pub.self, &view_trace(tree->r->view, own - 1)->s);
	if (place->i > 0 || tree->first[node])
		cell->pub.has_children = true;
}

/* ---- inverted ---- */

/* The next function outwards; false at the end of the stack. */
static bool step_out(struct report *r, struct place *place)
{
	const struct frame *frame = report_node_frame(r, place->node);

	if (place->i + 1 < frame->nfuncs) {
		place->i++;
		return true;
	}
	uint32_t parent = tree_get(r->view->tree, place->node).parent;
	if (!parent)
		return false;
	place->node = parent;
	place->i = 0;
	return true;
}

static void up_fill(struct report_tree *tree, struct cell *cell, const struct place *place)
{
	const struct trace_stats *s = &view_trace(tree->r->view, place->trace)->s;
	struct place out = *place;

	trace_stats_add(&cell->pub.total, s);
	if (step_out(tree->r, &out))
		cell->pub.has_children = true;
	else
		trace_stats_add(&cell->pub.self, s);
}

/* ---- both ---- */

struct making {
	struct cell **cells;
	uint32_t *funcs;	/* their functions, to clear of_func again */
	size_t n, cap, funcs_cap;
};

/* Count a place under its function among the children in the making. */
static void child_put(struct report_tree *tree, struct cell *parent, struct making *making,
		      struct place place)
{
	struct report *r = tree->r;
	const struct frame *frame = report_node_frame(r, place.node);
	uint32_t k = frame->funcs[place.i];

	/* resolving may have added functions */
	if (r->funcs.n > tree->nof_func) {
		size_t n = r->funcs.n * 2;
		tree->of_func = xreallocarray(tree->of_func, n, sizeof(*tree->of_func));
		memset(tree->of_func + tree->nof_func, 0,
		       (n - tree->nof_func) * sizeof(*tree->of_func));
		tree->nof_func = n;
	}
	const struct func *func = &r->funcs.items[k];
	const char *file = frame_file(frame, place.i);
	uint32_t line = frame_line(frame, place.i);
	struct cell *cell;
	if (!tree->of_func[k]) {
		cell = cell_add(tree, parent);
		VEC_GROW(making->funcs, making->n, making->funcs_cap);
		VEC_GROW(making->cells, making->n, making->cap);
		making->funcs[making->n] = k;
		making->cells[making->n++] = cell;
		tree->of_func[k] = (uint32_t)making->n;
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
		cell = making->cells[tree->of_func[k] - 1];
		if (cell->pub.file != file
		    && (!cell->pub.file || !file || strcmp(cell->pub.file, file))) {
			cell->pub.file = NULL;
			cell->pub.line = 0;
		} else if (cell->pub.line != line) {
			cell->pub.line = 0;
		}
	}
	place_add(cell, place);
	if (tree->inverted)
		up_fill(tree, cell, &place);
	else
		down_fill(tree, cell, &place);
}

static void put_frame_of(struct report_tree *tree, struct cell *parent, struct making *making,
			 uint32_t node)
{
	const struct frame *frame = report_node_frame(tree->r, node);

	child_put(tree, parent, making, (struct place){ .node = node, .i = frame->nfuncs - 1 });
}

static void expand(struct report_tree *tree, struct cell *cell)
{
	struct report *r = tree->r;
	struct making making = { 0 };

	if (cell->expanded)
		return;
	cell->expanded = true;
	if (tree->inverted && !cell->parent) {
		for (size_t i = 0; i < r->view->ntraces; i++) {
			const struct view_trace *trace = view_trace(r->view, i);
			if (!trace || !trace->node || !report_passes(r, i))
				continue;
			const struct trace_site *site = &r->trace_sites[i];
			child_put(tree, cell, &making,
				  (struct place){ site->node, site->i, (uint32_t)i });
		}
	}
	for (size_t k = 0; k < cell->nplaces; k++) {
		struct place place = cell->places[k];
		if (tree->inverted) {
			if (step_out(r, &place))
				child_put(tree, cell, &making, place);
		} else if (place.i > 0) {
			place.i--;
			child_put(tree, cell, &making, place);
		} else {
			for (uint32_t c = tree->first[place.node]; c; c = tree->next[c])
				put_frame_of(tree, cell, &making, c);
		}
	}
	for (size_t k = 0; k < making.n; k++)
		tree->of_func[making.funcs[k]] = 0;
	cell->nchildren = making.n;
	cell->children = arena_take(&tree->arena, making.n * sizeof(*cell->children));
	if (making.n)
		memcpy(cell->children, making.cells, making.n * sizeof(*cell->children));
	free(making.cells);
	free(making.funcs);
	free(cell->places);
	cell->places = NULL;
	cell->nplaces = cell->places_cap = 0;
}

struct report_tree *report_tree(struct report *r, bool inverted)
{
	struct report_tree *tree = r->trees[inverted];

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
	if (!inverted) {
		sum_nodes(tree);
		place_add(root, (struct place){ 0 });
		root->pub.has_children = tree->first[0] != 0;
		if (tree->own[0])
			root->pub.self = view_trace(r->view, tree->own[0] - 1)->s;
	} else {
		for (size_t i = 0; i < r->view->ntraces; i++)
			if (view_trace(r->view, i) && view_trace(r->view, i)->node
			    && report_passes(r, i))
				root->pub.has_children = true;
	}
	r->trees[inverted] = tree;
	return tree;
}

void report_tree_destroy(struct report_tree *tree)
{
	if (!tree)
		return;
	for (struct cell *cell = tree->all; cell; cell = cell->next)
		free(cell->places);
	arena_free(&tree->arena);
	free(tree->below);
	free(tree->ntraces);
	free(tree->own);
	free(tree->first);
	free(tree->next);
	free(tree->of_func);
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
	double va = report_value_of(&a->total, value), vb = report_value_of(&b->total, value);

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
		for (size_t i = 0; i < cell->nchildren; i++)
			list[i] = &cell->children[i]->pub;
		if (cell->nchildren)
			qsort_r(list, cell->nchildren, sizeof(*list), compare_cells, &value);
		cell->sorted[value] = list;
	}
	return cell->sorted[value];
}

const struct report_cell *report_tree_parent(struct report_tree *t, const struct report_cell *pub)
{
	const struct cell *cell = (const struct cell *)pub;

	(void)t;
	return cell->parent ? &cell->parent->pub : NULL;
}
