/* Sums by node; see nodesums.h. */
#include "report/nodesums.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "heap/tree.h"

struct node_sums *node_sums_create(const struct tree *tree, size_t ntraces)
{
	struct node_sums *sums = xcalloc(1, sizeof(*sums));

	sums->tree = tree;
	node_sums_room(sums, 1);
	/* at most two a trace, and the root's; memory that isn't used isn't there */
	sums->cap = 2 * ntraces + 1;
	sums->items = xreallocarray(NULL, sums->cap, sizeof(*sums->items));
	sums->items[sums->n++] = (struct node_sum){ 0 };
	sums->of[0] = 1;
	return sums;
}

void node_sums_destroy(struct node_sums *sums)
{
	if (!sums)
		return;
	free(sums->items);
	free(sums->of);
	free(sums->first);
	free(sums->next);
	free(sums);
}

static void zero_grow(uint32_t **array, size_t old, size_t n)
{
	*array = xreallocarray(*array, n, sizeof(**array));
	memset(*array + old, 0, (n - old) * sizeof(**array));
}

void node_sums_room(struct node_sums *sums, uint32_t nnodes)
{
	size_t old = sums->nnodes;

	if (nnodes <= old)
		return;
	size_t n = old + old / 4;
	if (n < nnodes)
		n = nnodes;
	zero_grow(&sums->of, old, n);
	zero_grow(&sums->first, old, n);
	zero_grow(&sums->next, old, n);
	sums->nnodes = n;
}

/* Let the chain end at `node`, which lies within it: what is outside of it gets a sum of its own. */
static void cut(struct node_sums *sums, uint32_t node)
{
	uint32_t inner = sums->of[node] - 1;

	if (sums->items[inner].leaf == node)
		return;
	VEC_GROW(sums->items, sums->n, sums->cap);
	uint32_t outer = (uint32_t)sums->n++;
	sums->items[outer] = sums->items[inner];
	sums->items[outer].leaf = node;
	sums->items[outer].own = 0;
	sums->items[inner].up = outer;
	for (; sums->of[node] == inner + 1; node = tree_get(sums->tree, node).parent)
		sums->of[node] = outer + 1;
}

void node_sums_link(struct node_sums *sums, uint32_t node, uint32_t trace)
{
	uint32_t at = node;

	if (!sums->of[node]) {
		VEC_GROW(sums->items, sums->n, sums->cap);
		uint32_t new = (uint32_t)sums->n++;
		sums->items[new] = (struct node_sum){ .leaf = node };
		while (!sums->of[at]) {
			uint32_t parent = tree_get(sums->tree, at).parent;
			sums->of[at] = new + 1;
			sums->next[at] = sums->first[parent];
			sums->first[parent] = at;
			at = parent;
		}
		cut(sums, at);
		sums->items[new].up = sums->of[at] - 1;
	} else {
		cut(sums, node);
	}
	sums->items[sums->of[node] - 1].own = trace + 1;
}

/* Which of two functions gives its id to a name they get in common shouldn't hang on chance. */
void node_sums_order(struct node_sums *sums)
{
	memset(sums->first, 0, sums->nnodes * sizeof(*sums->first));
	for (size_t id = sums->nnodes; id-- > 1; ) {
		if (!sums->of[id])
			continue;
		uint32_t parent = tree_get(sums->tree, (uint32_t)id).parent;
		sums->next[id] = sums->first[parent];
		sums->first[parent] = (uint32_t)id;
	}
}

void node_sums_count(struct node_sums *sums,
		     const struct trace_stats *(*own)(void *ctx, uint32_t trace), void *ctx)
{
	for (size_t i = 0; i < sums->n; i++) {
		struct node_sum *sum = &sums->items[i];
		sum->sum = (struct sums){ 0 };
		sum->ntraces = sum->own != 0;
		if (sum->own)
			sums_add(&sum->sum, own(ctx, sum->own - 1));
	}
	/* a sum's leaf has a larger id than those of the sums outside of it */
	for (size_t id = sums->nnodes; id-- > 1; ) {
		const struct node_sum *sum = sums->of[id] ? &sums->items[sums->of[id] - 1] : NULL;
		if (!sum || sum->leaf != id || !sum->ntraces)
			continue;
		struct node_sum *up = &sums->items[sum->up];
		sums_merge(&up->sum, &sum->sum);
		up->ntraces += sum->ntraces;
	}
	sums->stale = false;
}

void node_sums_change(struct node_sums *sums, uint32_t node, const struct sums *diff, int ntraces)
{
	uint32_t at = sums->of[node] - 1;

	if (ntraces < 0)
		sums->items[at].own = 0;
	while (!sums->stale) {
		struct node_sum *sum = &sums->items[at];
		sums_merge(&sum->sum, diff);
		sum->ntraces += (uint32_t)ntraces;
		if (!at)
			return;
		at = sum->up;
	}
}
