/* See touched.h. */
#include "report/touched.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "heap/touches.h"
#include "report/internal.h"

#define NOBODY UINT32_MAX

/* Sums by pair of functions, or of one and NOBODY. */
struct sum {
	uint32_t toucher, owner;
	uint64_t bytes;
};

static int by_funcs(const void *pa, const void *pb)
{
	const struct sum *a = pa, *b = pb;

	if (a->toucher != b->toucher)
		return a->toucher < b->toucher ? -1 : 1;
	return a->owner < b->owner ? -1 : a->owner > b->owner;
}

static int by_bytes(const void *pa, const void *pb)
{
	const struct sum *a = pa, *b = pb;

	return a->bytes != b->bytes ? (a->bytes > b->bytes ? -1 : 1) : by_funcs(pa, pb);
}

/* Those of the same functions in one, most bytes first. Returns how many are left. */
static size_t add_up(struct sum *sums, size_t n)
{
	size_t to = 0;

	if (!n)
		return 0;
	qsort(sums, n, sizeof(*sums), by_funcs);
	for (size_t i = 1; i < n; i++) {
		if (by_funcs(&sums[i], &sums[to]))
			sums[++to] = sums[i];
		else
			sums[to].bytes += sums[i].bytes;
	}
	qsort(sums, to + 1, sizeof(*sums), by_bytes);
	return to + 1;
}

/* A file may name any node. */
static bool is_node(const struct report *r, uint32_t node)
{
	return node < r->view->nnodes;
}

static uint32_t site_func(struct report *r, uint32_t node)
{
	return is_node(r, node) ? report_find_site(r, node).func : NOBODY;
}

static const char *name_of(const struct report *r, uint32_t func)
{
	return func == NOBODY ? REPORT_TOUCHED_NOBODY : r->funcs.items[func].function;
}

struct report_touch *report_touches(struct report *r, size_t *ret_n)
{
	const struct touches *t = r->view ? r->view->touches : NULL;
	size_t n = 0;

	*ret_n = 0;
	if (!t)
		return NULL;
	CLEANUP_FREE struct sum *sums = xcalloc(t->n + 1, sizeof(*sums));
	for (size_t i = 0; i < t->n; i++) {
		const struct touch_pair *p = &t->pairs[i];
		if (is_node(r, p->toucher) && report_passes(r, p->toucher))
			sums[n++] = (struct sum){ site_func(r, p->toucher), site_func(r, p->owner), p->bytes };
	}
	n = add_up(sums, n);
	struct report_touch *ret = xcalloc(n + 1, sizeof(*ret));
	for (size_t i = 0; i < n; i++)
		ret[i] = (struct report_touch){ name_of(r, sums[i].toucher), name_of(r, sums[i].owner), sums[i].bytes };
	*ret_n = n;
	return ret;
}

/* ---- of a row ---- */

static void put_list(const struct report *r, struct sum *sums, size_t n, struct report_touched_list *to)
{
	uint64_t nobody = 0;

	n = add_up(sums, n);
	for (size_t i = 0; i < n; i++) {
		/* one of the two is the same in all of them */
		uint32_t func = sums[i].owner;
		to->bytes += sums[i].bytes;
		if (func == NOBODY) {
			nobody = sums[i].bytes;
		} else if (to->n == REPORT_TOUCHED_MAX - 1) {
			to->more++;
			to->rest += sums[i].bytes;
		} else {
			to->items[to->n].function = name_of(r, func);
			to->items[to->n].known = true;
			to->items[to->n++].bytes = sums[i].bytes;
		}
	}
	if (nobody) {
		to->items[to->n].function = REPORT_TOUCHED_NOBODY;
		to->items[to->n++].bytes = nobody;
	}
}

/* `in`: does the stack that ends there belong to the row? */
static void take_pairs(struct report *r, const bool *in, struct report_touched *ret)
{
	const struct touches *t = r->view->touches;
	CLEANUP_FREE struct sum *owners = xcalloc(t->n + 1, sizeof(*owners));
	CLEANUP_FREE struct sum *touchers = xcalloc(t->n + 1, sizeof(*touchers));
	size_t nowners = 0, ntouchers = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct touch_pair *p = &t->pairs[i];
		if (!is_node(r, p->toucher))
			continue;
		if (in[p->toucher] && report_passes(r, p->toucher))
			owners[nowners++] = (struct sum){ 0, site_func(r, p->owner), p->bytes };
		if (is_node(r, p->owner) && in[p->owner] && report_passes(r, p->owner))
			touchers[ntouchers++] = (struct sum){ 0, site_func(r, p->toucher), p->bytes };
	}
	put_list(r, owners, nowners, &ret->owners);
	put_list(r, touchers, ntouchers, &ret->touchers);
}

void report_site_touched(struct report *r, uint64_t site_id, struct report_touched *ret)
{
	int64_t func = funcs_by_id(&r->funcs, site_id);

	memset(ret, 0, sizeof(*ret));
	if (!r->view || !r->view->touches || func < 0)
		return;
	CLEANUP_FREE bool *in = xcalloc(r->view->nnodes + 1, sizeof(*in));
	const struct touches *t = r->view->touches;
	for (size_t i = 0; i < t->n; i++) {
		const uint32_t nodes[] = { t->pairs[i].toucher, t->pairs[i].owner };
		for (size_t k = 0; k < ARRAY_SIZE(nodes); k++)
			if (is_node(r, nodes[k]))
				in[nodes[k]] = site_func(r, nodes[k]) == (uint32_t)func;
	}
	take_pairs(r, in, ret);
}

void report_cell_touched(struct report_tree *tree, const struct report_cell *cell, struct report_touched *ret)
{
	bool inverted;
	struct report *r = report_tree_report(tree, &inverted);

	memset(ret, 0, sizeof(*ret));
	if (!r->view || !r->view->touches || cell->gone)
		return;
	CLEANUP_FREE bool *in = report_cell_nodes(tree, cell);
	take_pairs(r, in, ret);
}
