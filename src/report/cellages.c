/*
 * See cellages.h. A cell's key is made of those of the functions on the way to it (calltree.c), so the cells asked for,
 * and all outside of them, are found again by their keys on a walk along the stacks, which ends where no key is known.
 *
 * Top-down the bytes of an age below each node are kept beside the nodes' sums: one of those is all that a place of a cell
 * takes. Inverted each trace has its own, and every trace is walked outwards from its site.
 */
#include "report/cellages.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "heap/classes.h"
#include "report/held.h"
#include "report/internal.h"

typedef uint64_t age_bytes[CLASS_AGES];

struct cell_ages {
	age_bytes *items;	/* by node sum, or (inverted) by trace */
};

struct wanted {
	uint64_t key;		/* 0: an empty slot */
	uint32_t row;		/* + 1; 0: it is only on the way to others */
	bool outside;		/* there are others within */
};

struct looking {
	struct report *r;
	const struct cell_ages *ages;
	struct wanted *slots;
	size_t mask;
	age_bytes *rows;
};

void cell_ages_destroy(struct cell_ages *ages)
{
	if (!ages)
		return;
	free(ages->items);
	free(ages);
}

static void add(age_bytes to, const age_bytes from)
{
	for (unsigned k = 0; k < CLASS_AGES; k++)
		to[k] += from[k];
}

/* ---- of a view ---- */

static age_bytes *by_node_sum(const struct report *r)
{
	const struct classes *classes = r->view->classes;
	const struct node_sums *nodes = r->nodes;
	age_bytes *ret = xcalloc(nodes->n + 1, sizeof(*ret));

	for (size_t i = 0; i < classes->n; i++) {
		const struct class_cell *cell = &classes->cells[i];
		uint32_t sum = cell->node < nodes->nnodes ? nodes->of[cell->node] : 0;
		/* only traces that pass have been linked */
		if (sum && nodes->items[sum - 1].leaf == cell->node && nodes->items[sum - 1].own)
			ret[sum - 1][cell->age] += cell->bytes;
	}
	/* a sum's leaf has a larger id than those of the sums outside of it */
	for (size_t id = nodes->nnodes; id-- > 1;) {
		uint32_t sum = nodes->of[id];
		if (sum > 1 && nodes->items[sum - 1].leaf == id)
			add(ret[nodes->items[sum - 1].up], ret[sum - 1]);
	}
	return ret;
}

static age_bytes *by_trace(const struct report *r)
{
	const struct view *view = r->view;
	const struct classes *classes = view->classes;
	age_bytes *ret = xcalloc(view->ntraces + 1, sizeof(*ret));
	CLEANUP_FREE uint32_t *first = held_first_cells(view);

	for (size_t t = 0; t < view->ntraces; t++) {
		const struct view_trace *trace = view_trace(view, t);
		for (size_t i = trace ? first[trace->node] : 0; i && i <= classes->n; i++) {
			const struct class_cell *cell = &classes->cells[i - 1];
			if (cell->node != trace->node)
				break;
			ret[t][cell->age] += cell->bytes;
		}
	}
	return ret;
}

/* ---- the cells asked for ---- */

static struct wanted *slot_of(const struct looking *l, uint64_t key)
{
	size_t i = key & l->mask;

	while (l->slots[i].key && l->slots[i].key != key)
		i = (i + 1) & l->mask;
	return &l->slots[i];
}

static const struct wanted *find(const struct looking *l, uint64_t key)
{
	const struct wanted *w = slot_of(l, key);

	return w->key ? w : NULL;
}

/* All cells and those outside of them. Each is put in once: a way outwards ends at one that is there already. */
static void want(struct looking *l, struct report_tree *tree, const struct report_cell *const *cells, size_t n)
{
	size_t most = n;

	for (size_t i = 0; i < n; i++)
		most += cells[i]->depth;
	for (l->mask = 15; l->mask < most * 2; )
		l->mask = l->mask * 2 + 1;
	l->slots = xcalloc(l->mask + 1, sizeof(*l->slots));
	for (size_t i = 0; i < n; i++) {
		if (cells[i]->gone)
			continue;
		struct wanted *w = slot_of(l, cells[i]->key);
		bool known = w->key;
		w->key = cells[i]->key;
		w->row = (uint32_t)i + 1;
		const struct report_cell *up = cells[i];
		while (!known && (up = report_tree_parent(tree, up))) {
			w = slot_of(l, up->key);
			known = w->key && w->outside;
			w->key = up->key;
			w->outside = true;
		}
	}
}

static void found(struct looking *l, const struct wanted *w, size_t item)
{
	if (w->row)
		add(l->rows[w->row - 1], l->ages->items[item]);
}

/* Frames below a node that belongs to the cell of this key, which others are within. */
static void look_below(struct looking *l, uint32_t node, uint64_t key)
{
	struct report *r = l->r;

	for (uint32_t c = r->nodes->first[node]; c; c = r->nodes->next[c]) {
		if (!node_sums_of(r->nodes, c))
			continue;
		if (report_left_out(r, c)) {
			look_below(l, c, key);
			continue;
		}
		const struct frame *frame = report_node_frame(r, c);
		const struct wanted *w = NULL;
		uint64_t at = key;
		for (uint32_t i = frame->nfuncs; i-- > 0;) {
			at = funcs_mix(at, r->funcs.items[frame->funcs[i]].id);
			w = find(l, at);
			if (!w)
				break;
			found(l, w, r->nodes->of[c] - 1);
			if (!w->outside)
				break;
		}
		if (w && w->outside)
			look_below(l, c, at);
	}
}

/* From a trace's site outwards. */
static void look_outwards(struct looking *l, uint32_t trace, uint64_t key)
{
	struct report *r = l->r;
	const struct trace_site *site = &r->trace_sites[trace];
	uint32_t node = site->node, i = site->i, func = site->func;

	if (report_left_out(r, node)) {
		if (!report_step_out(r, &node, &i))
			return;
		func = report_node_frame(r, node)->funcs[i];
	}
	for (;;) {
		key = funcs_mix(key, r->funcs.items[func].id);
		const struct wanted *w = find(l, key);
		if (!w)
			return;
		found(l, w, trace);
		if (!w->outside || !report_step_out(r, &node, &i))
			return;
		func = report_node_frame(r, node)->funcs[i];
	}
}

void report_cells_held(struct report_tree *tree, const struct report_cell *const *cells, size_t n, struct report_held *ret)
{
	bool inverted;
	struct report *r = report_tree_report(tree, &inverted);
	struct cell_ages **ages = report_tree_ages(tree);
	const uint64_t root_key = report_tree_root(tree)->key;

	memset(ret, 0, n * sizeof(*ret));
	if (!n || !r->view || !r->view->classes)
		return;
	if (!*ages) {
		*ages = xcalloc(1, sizeof(**ages));
		(*ages)->items = inverted ? by_trace(r) : by_node_sum(r);
	}
	struct looking l = { .r = r, .ages = *ages, .rows = xcalloc(n, sizeof(*l.rows)) };
	want(&l, tree, cells, n);
	const struct wanted *root = find(&l, root_key);
	if (!inverted && root) {
		found(&l, root, 0);
		if (root->outside)
			look_below(&l, 0, root_key);
	}
	for (uint32_t k = 0; inverted && root && k < r->view->ntraces; k++) {
		const struct view_trace *t = view_trace(r->view, k);
		if (!t || !report_passes(r, t->node))
			continue;
		found(&l, root, k);
		/* the trace without frames is in the root alone */
		if (root->outside && t->node)
			look_outwards(&l, k, root_key);
	}
	for (size_t i = 0; i < n; i++) {
		uint64_t bytes = 0;
		for (unsigned k = 0; k < CLASS_AGES; k++)
			bytes += l.rows[i][k];
		if (bytes)
			ret[i] = (struct report_held){ .known = true, .age = held_median_age(l.rows[i], bytes) };
	}
	free(l.slots);
	free(l.rows);
}
