/*
 * The same numbers by other things than sites: rows by innermost function, by whole stack, by module,
 * by thread. Each is a report_site, so that lists and batch show them like sites; what only such rows
 * have is in `more`. But for threads they count exactly the traces that sites count: their sums are
 * report_total. Threads have their own sums (view.h), which no filter of stacks reaches.
 *
 * Rows are made anew at each call, in a pass over the traces; with sites it is report_sites.
 */
#ifndef HEAPTOP_REPORT_GROUPS_H
#define HEAPTOP_REPORT_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/report.h"

enum report_group {
	REPORT_BY_SITE,
	REPORT_BY_FUNCTION,	/* the innermost one, allocation wrappers too */
	REPORT_BY_STACK,
	REPORT_BY_MODULE,	/* that of the site */
	REPORT_BY_THREAD,
	REPORT_GROUPS
};
/* Name for the command line ("site", "function", "stack", "module", "thread"); NULL, -1 if unknown. */
const char *report_group_name(enum report_group group);
int report_group_parse(const char *name);

/* What is known of a module's names, by its frames so far. */
enum report_symbols {
	REPORT_SYMBOLS_PENDING,	/* none has been looked up yet */
	REPORT_SYMBOLS_NONE,	/* no symbol for any */
	REPORT_SYMBOLS_NAMES,	/* function names, no source lines */
	REPORT_SYMBOLS_LINES,
};

struct report_more {
	size_t trace;			/* the heaviest one (as report_site_trace); SIZE_MAX: none known */
	/* modules */
	struct trace_stats total;	/* traces with any frame in it; report_site.s: those with their site in it */
	uint32_t nsites;
	uint32_t module_id;		/* for module_get; 0: none */
	enum report_symbols symbols;
	/* threads, as in view_thread */
	uint32_t tid, merged;
	bool ended, chosen;
};

/*
 * Rows sorted as report_sites does. ids are stable from view to view. Of a thread `function` is its name
 * ("": not known), of a module its file's name ("": code that belongs to no file); of a stack the site's.
 * Valid until the next report_rows, report_sites or report_set_view.
 */
const struct report_site *report_rows(struct report *r, enum report_group group, enum report_value value,
				      bool reverse, size_t *ret_n);
/* What percents are of: the sum of the rows' values; of delta without signs. */
double report_rows_whole(const struct report_site *rows, size_t n, enum report_value value);

#endif
