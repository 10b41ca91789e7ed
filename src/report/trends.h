/*
 * Live bytes of modules and threads at the last views about a second apart, as sites have theirs. Rows of those are
 * made anew for each look; this remembers what they held. Inside of a report only.
 */
#ifndef HEAPTOP_REPORT_TRENDS_H
#define HEAPTOP_REPORT_TRENDS_H

#include <stddef.h>
#include <stdint.h>

#include "report/report.h"

struct trend {
	uint64_t id;			/* of the row */
	uint64_t values[REPORT_TREND];	/* oldest first */
	uint32_t n;
	uint64_t now;			/* being summed up */
};

struct trends {
	struct trend *items;		/* by id */
	size_t n, cap;
};

/*
 * A second's values: `now` has one sum for each row, once each, in any order (it is sorted). Rows that aren't among
 * them are forgotten.
 */
void trends_put(struct trends *trends, struct trend *now, size_t n);
/* Copy the row's values to its trend; none: there are none yet. */
void trends_get(const struct trends *trends, struct report_site *row);
void trends_deinit(struct trends *trends);

/*
 * A file's view has no views before it, but may say what its traces held (heap/series.h). The rows' trends of that; of_trace
 * as in held.h. Rows are left as they are where the view doesn't say, or goes on.
 */
struct report;
void trends_of_file(const struct report *r, struct report_site *rows, size_t n, const uint32_t *of_trace);
/* The same of the view's threads, rows as there. */
void trends_of_file_threads(const struct report *r, struct report_site *rows, size_t n);
/* Would trends_of_file? */
bool trends_in_file(const struct report *r);

#endif
