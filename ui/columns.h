/*
 * The numbers in front of a name, in lists and Tree: which columns fit a width, in what order they
 * go when it is narrow, and how each is drawn. Pure.
 */
#ifndef HEAPTOP_UI_COLUMNS_H
#define HEAPTOP_UI_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/groups.h"
#include "report/report.h"
#include "ui/canvas.h"

enum column_id {
	COLUMN_VALUE,		/* what is sorted by, if it has no column of its own */
	COLUMN_TID,
	COLUMN_LIVE, COLUMN_RES, COLUMN_SELF, COLUMN_ERROR, COLUMN_PERCENT, COLUMN_TOTAL, COLUMN_DELTA, COLUMN_RATE,
	COLUMN_BLOCKS, COLUMN_AVERAGE, COLUMN_PEAK, COLUMN_ALLOC_BYTES, COLUMN_FREED, COLUMN_ALLOCS, COLUMN_TEMP,
	COLUMN_AGE, COLUMN_THREADS, COLUMN_SITES, COLUMN_TREND,
	COLUMN_IDS
};

/* Whose columns. */
enum columns_set { COLUMNS_SITES, COLUMNS_TREE, COLUMNS_THREADS, COLUMNS_MODULES };

struct columns {
	struct {
		enum column_id id;
		int x, width;
	} list[COLUMN_IDS];
	size_t n;
	int name_x;		/* where the names begin */
	uint32_t hidden;	/* 1 << id: not wanted; set before columns_layout, */
	bool held;		/* as this: it can be known how old live blocks are and whose */
};

/* What one row's numbers come from. */
struct column_row {
	const struct trace_stats *s, *self;	/* self: Tree's, else NULL */
	const struct report_more *more;		/* Threads', Modules'; else NULL */
	double delta;				/* live bytes less those of the base */
	const uint64_t *trend;			/* or NULL */
	size_t ntrend;
	struct report_held held;
};

/* The columns for `cols` columns, sorted by `value`. sampled: numbers are estimates.
 * base: there is one to compare with. res: what is in memory is known. */
void columns_layout(struct columns *l, int cols, enum report_value value, enum columns_set set,
		    bool sampled, bool base, bool res);
void columns_heading(const struct columns *l, struct canvas *c, int y, int x, int cols,
		     enum report_value value, bool reverse, const char *name_title);
/* `whole`: what percents are of. */
void columns_draw(const struct columns *l, struct canvas *c, int y, int x, style_t style,
		  enum report_value value, const struct column_row *row, double whole);
/* Which a list of names wants ("percent,blocks"): the others' bits go to *ret_hidden. ERR_BAD_INPUT lists the names. */
struct err;
struct err *columns_parse(const char *list, uint32_t *ret_hidden);
/* The list for columns_parse; the caller frees. */
char *columns_list(uint32_t hidden);
/* Name in settings, and one line on what it is; NULL: the column is always there. */
const char *columns_name(enum column_id id);
const char *columns_help(enum column_id id);
/* The report value a column sorts by; -1: none. */
int columns_value(enum column_id id);
/* Is it shown? */
bool columns_has(const struct columns *l, enum column_id id);
/* Column at screen column x - left edge, -1: none. */
int columns_at(const struct columns *l, int x);

#endif
