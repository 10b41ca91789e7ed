/*
 * What each node of the trace tree holds with everything below it, kept from view to view: a trace that
 * changed costs one addition for each sum on its way outwards.
 *
 * Most nodes have one child and no trace of their own, and so hold just what their child
 * holds. Such a chain shares one sum with the node at its inner end, the sum's *leaf*: a node that has
 * a trace of its own or more than one child. So there are at most twice as many sums as traces,
 * of 224 bytes, and 12 bytes a node. A chain is cut where a later trace ends or branches off.
 *
 * Only the structure is known here; which traces are counted is the caller's. One thread: the
 * report's.
 */
#ifndef HEAPTOP_REPORT_NODESUMS_H
#define HEAPTOP_REPORT_NODESUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap/sums.h"

struct tree;

struct node_sum {
	struct sums sum;
	uint32_t leaf;		/* innermost node of the chain */
	uint32_t up;		/* the sum outside of it; the root's own: itself */
	uint32_t own;		/* index + 1 of the leaf's own trace, 0: none */
	uint32_t ntraces;	/* counted in it */
};

struct node_sums {
	const struct tree *tree;	/* borrowed */
	bool stale;		/* only the structure is kept: count before the sums are read */
	struct node_sum *items;
	size_t n, cap;
	/* by node, for ids below nnodes: */
	size_t nnodes;
	uint32_t *of;		/* index + 1 of its sum, 0: never held anything */
	uint32_t *first, *next;	/* children that have a sum; ids, 0 ends */
};

/* For about that many traces: more cost more memory moves. */
struct node_sums *node_sums_create(const struct tree *tree, size_t ntraces);
void node_sums_destroy(struct node_sums *sums);	/* accepts NULL */
/* Nodes below `nnodes` may be named from now on. */
void node_sums_room(struct node_sums *sums, uint32_t nnodes);

/* Make trace `trace` the own one of `node`, without counting it yet. */
void node_sums_link(struct node_sums *sums, uint32_t node, uint32_t trace);
/*
 * Count all that is linked, from nothing: `own` gives each linked trace's statistics. Takes each sum
 * once, so where much changed it is quicker than every change's whole way.
 */
void node_sums_count(struct node_sums *sums,
		     const struct trace_stats *(*own)(void *ctx, uint32_t trace), void *ctx);

/* Bring children into the order of their ids: for a structure just linked. */
void node_sums_order(struct node_sums *sums);

/* The own trace of a linked node changed by `diff`; came (ntraces 1), went (-1) or stayed (0). */
void node_sums_change(struct node_sums *sums, uint32_t node, const struct sums *diff, int ntraces);

/* The sum of a node below nnodes; NULL if nothing is counted there. */
static inline const struct node_sum *node_sums_of(const struct node_sums *sums, uint32_t node)
{
	const struct node_sum *sum = sums->of[node] ? &sums->items[sums->of[node] - 1] : NULL;

	return sum && sum->ntraces ? sum : NULL;
}

#endif
