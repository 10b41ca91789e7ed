/* See held.h. */
#include "report/held.h"

#include <string.h>

#include "base/mem.h"
#include "report/internal.h"

uint32_t *held_first_cells(const struct view *view)
{
	const struct classes *classes = view->classes;
	uint32_t *first = xcalloc((size_t)view->nnodes + 1, sizeof(*first));

	for (size_t i = classes->n; i-- > 0;)
		if (classes->cells[i].node < view->nnodes && i < UINT32_MAX)
			first[classes->cells[i].node] = (uint32_t)i + 1;
	return first;
}

uint8_t held_median_age(const uint64_t ages[CLASS_AGES], uint64_t bytes)
{
	uint64_t older = 0;
	unsigned k = CLASS_AGES;

	while (k-- > 1) {
		older += ages[k];
		if (older >= bytes - bytes / 2)
			return (uint8_t)k;
	}
	return 0;
}

struct counting {
	const struct classes *classes;
	const uint32_t *first;
	uint32_t *seen;			/* by thread: row + 1 that it was counted in last */
	uint64_t ages[CLASS_AGES], bytes;
	uint32_t threads;
	bool any;
};

static void count_thread(struct counting *c, uint16_t thread, uint32_t row)
{
	if (thread >= c->classes->nthreads || c->seen[thread] == row + 1)
		return;
	c->seen[thread] = row + 1;
	c->threads += c->classes->threads[thread].merged ? c->classes->threads[thread].merged : 1;
}

static void count_node(struct counting *c, uint32_t node, uint32_t row)
{
	const struct classes *classes = c->classes;

	for (size_t i = c->first[node]; i && i <= classes->n && classes->cells[i - 1].node == node; i++) {
		const struct class_cell *cell = &classes->cells[i - 1];
		c->ages[cell->age] += cell->bytes;
		c->bytes += cell->bytes;
		c->any = true;
		count_thread(c, cell->thread, row);
	}
}

void held_fill(const struct report *r, struct report_site *rows, size_t n, const uint32_t *of_trace)
{
	const struct view *view = r->view;

	if (!view || !view->classes)
		return;
	/* traces of a row after one another: those of one row may lie anywhere */
	CLEANUP_FREE uint32_t *head = xcalloc(n + 1, sizeof(*head));
	CLEANUP_FREE uint32_t *next = xcalloc(view->ntraces + 1, sizeof(*next));
	CLEANUP_FREE uint32_t *first = held_first_cells(view);
	CLEANUP_FREE uint32_t *seen = xcalloc((size_t)view->classes->nthreads + 1, sizeof(*seen));

	for (size_t i = 0; i < view->ntraces; i++) {
		if (!of_trace[i])
			continue;
		next[i] = head[of_trace[i] - 1];
		head[of_trace[i] - 1] = (uint32_t)i + 1;
	}
	for (size_t row = 0; row < n; row++) {
		struct counting c = { .classes = view->classes, .first = first, .seen = seen };
		for (uint32_t k = head[row]; k; k = next[k - 1])
			count_node(&c, view_trace(view, k - 1)->node, (uint32_t)row);
		if (c.any)
			rows[row].held = (struct report_held){
				.known = true, .age = held_median_age(c.ages, c.bytes), .threads = c.threads,
			};
	}
}
