/*
 * How old what a row holds is and how many threads it is of: parts.h in two figures, of all rows of a list at once.
 * Linear in the view's traces and cells. Inside of a report only.
 */
#ifndef HEAPTOP_REPORT_HELD_H
#define HEAPTOP_REPORT_HELD_H

#include <stddef.h>
#include <stdint.h>

struct report;
struct report_site;

/*
 * Fill in `held` of n rows. of_trace: by the view's traces the row that each counts in + 1, 0: in none. Rows are left
 * as they are where the view doesn't know what its live blocks are like.
 */
void held_fill(const struct report *r, struct report_site *rows, size_t n, const uint32_t *of_trace);

#endif
