/*
 * How old what a row holds is and how many threads it is of: parts.h in two figures, of all rows of a list at once.
 * Linear in the view's traces and cells. Inside of a report only.
 */
#ifndef HEAPTOP_REPORT_HELD_H
#define HEAPTOP_REPORT_HELD_H

#include <stddef.h>
#include <stdint.h>

#include "heap/classes.h"

struct report;
struct report_site;

/* By node of a view with classes: its first cell, plus 1; 0: it has none. Cells are in the order of nodes. The caller frees. */
uint32_t *held_first_cells(const struct view *view);
/* The oldest class that half of the bytes, or more, are in or above. */
uint8_t held_median_age(const uint64_t ages[CLASS_AGES], uint64_t bytes);

/*
 * Fill in `held` of n rows. of_trace: by the view's traces the row that each counts in + 1, 0: in none. Rows are left
 * as they are where the view doesn't know what its live blocks are like.
 */
void held_fill(const struct report *r, struct report_site *rows, size_t n, const uint32_t *of_trace);

#endif
