/*
 * Who touched whose memory (heap/touches.h), by sites: of the whole view, and of a row: whose blocks its stacks
 * have touched, and who has touched the blocks that it asked for. Only traces that the filter lets through count, on
 * either side: the row's own.
 */
#ifndef HEAPTOP_REPORT_TOUCHED_H
#define HEAPTOP_REPORT_TOUCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/report.h"

#define REPORT_TOUCHED_NOBODY "no known block"	/* not sampled, freed too long ago, or no heap memory */

/* Valid until the next report_set_view. */
struct report_touch {
	const char *toucher, *owner;	/* functions; owner: or REPORT_TOUCHED_NOBODY */
	uint64_t bytes;
};
/* All pairs of sites, most bytes first; the caller frees. NULL and 0: nothing is known. */
struct report_touch *report_touches(struct report *r, size_t *ret_n);

#define REPORT_TOUCHED_MAX 12u
struct report_touched_list {
	struct {
		const char *function;	/* a site; or REPORT_TOUCHED_NOBODY */
		bool known;		/* it is a site */
		uint64_t bytes;
	} items[REPORT_TOUCHED_MAX];	/* most bytes first, nobody's last */
	size_t n;
	size_t more;			/* beyond these, */
	uint64_t rest;			/* and theirs */
	uint64_t bytes;			/* all */
};
struct report_touched {
	struct report_touched_list owners;	/* whose blocks the row has touched: sums up to its fault_bytes */
	struct report_touched_list touchers;	/* who has touched the row's blocks */
};
/* As report_site_parts and report_cell_parts; both cost the nodes of the trace tree where anything is known. */
void report_site_touched(struct report *r, uint64_t site_id, struct report_touched *ret);
void report_cell_touched(struct report_tree *tree, const struct report_cell *cell, struct report_touched *ret);

#endif
