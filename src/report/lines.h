/*
 * What the lines of one source file hold: the traces that pass the filter, added up by line, for annotated source.
 * A trace counts once at each line of the file that one of its frames (or of the functions inlined there) is
 * at, however often. One thread: the report's.
 */
#ifndef HEAPTOP_REPORT_LINES_H
#define HEAPTOP_REPORT_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "report/report.h"

struct report_line {
	uint32_t line;			/* from 1 on */
	struct trace_stats total;	/* of the traces that pass through it */
	struct trace_stats self;	/* of those whose site is there: over all files they add up to report_total,
					 * but for sites without a known line */
};

/*
 * The lines of `file`, a path as report_site and report_frame have it, by number. malloc'ed, the caller frees; NULL and
 * *ret_n 0: no frame is known to be in it. Costs a pass over the nodes and traces of the view.
 */
struct report_line *report_lines(struct report *r, const char *file, size_t *ret_n);

/* The folder that a relative `file` is relative to, by the first frame that is in it; NULL: not known. Lives as long as
 * the names. */
const char *report_source_dir(struct report *r, const char *file);

#endif
