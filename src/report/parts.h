/*
 * What a row's live blocks are like: their sizes, ages and threads (heap/classes.h), summed over the traces that the
 * row stands for and the filter lets through. In a fresh view the sums are the row's live bytes and blocks.
 */
#ifndef HEAPTOP_REPORT_PARTS_H
#define HEAPTOP_REPORT_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap/classes.h"
#include "report/groups.h"
#include "report/report.h"

struct report_part {
	uint64_t bytes, q10;
	uint64_t samples;	/* blocks it is known from */
};

struct report_thread_part {
	char name[VIEW_THREAD_NAME];	/* sanitised; "": not known */
	uint32_t tid;			/* 0: not known, or several */
	uint32_t merged;		/* not 0: so many threads of that name */
	bool ended;
	bool nobody;			/* mappings, and threads that couldn't be told apart */
	struct report_part part;
};

#define REPORT_PART_THREADS 16
struct report_parts {
	size_t ntraces;		/* the row stands for */
	size_t heaviest;	/* the trace (index in the view) with most live bytes; SIZE_MAX: there is none */
	bool known;		/* the rest holds: somebody has looked at the live blocks */
	bool fresh;		/* of this view; else of an earlier one */
	struct report_part total, sizes[CLASS_SIZES], ages[CLASS_AGES];
	struct report_thread_part threads[REPORT_PART_THREADS];	/* most bytes first */
	size_t nthreads;
	size_t more;		/* threads beyond these, */
	struct report_part rest;	/* and theirs */
};

/* Of a site. Costs its traces. */
void report_site_parts(struct report *r, uint64_t site_id, struct report_parts *ret);
/* Of a cell. Top-down costs the nodes of the trace tree, inverted the traces of the cell's site. */
void report_cell_parts(struct report_tree *tree, const struct report_cell *cell, struct report_parts *ret);

/*
 * Of a row that report_rows gave of the view as it is now. By function and module costs all traces, by thread their
 * cells. What a thread has is known by its live blocks alone: nothing of it without them, not even the heaviest trace;
 * and as the rows of threads are, it is of whole threads, whatever the filter. Not known of others than those that are chosen (-T).
 */
void report_row_parts(struct report *r, enum report_group group, const struct report_site *row, struct report_parts *ret);

#define REPORT_LABEL 40
/* "16-31", "2K-4K", "128-256K": the sizes in bytes of the classes from `first` to `last`; never more than 8 columns. */
void report_size_label(unsigned first, unsigned last, char buf[REPORT_LABEL]);
/* "<10 ms"; of the last class "1 h", which it is at least. */
const char *report_age_label(unsigned age_class);

/* Part of the bytes in the age classes from `first` on, 0 to 1. */
double report_parts_older(const struct report_parts *parts, unsigned first);

#endif
