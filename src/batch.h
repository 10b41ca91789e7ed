/*
 * The report as text: a frame is header lines "# key: value", a line of column names, a row a
 * site (or what else rows are by); tab separated, no escapes, full names. Column names and keys are stable.
 */
#ifndef HEAPTOP_BATCH_H
#define HEAPTOP_BATCH_H

#include <stdio.h>

#include "report/groups.h"
#include "report/report.h"

struct process_list;

/*
 * Write the report's view, its rows by `group`; flushed. With `list` (or NULL) the view is the sum of these, and if they are several
 * each has its line. False if the reader has gone (EPIPE) or the disk is full.
 */
bool batch_frame(FILE *out, struct report *report, enum report_group group, enum report_value sort,
		 const struct process_list *list);

#endif
