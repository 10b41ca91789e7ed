/*
 * The report as text: a frame is header lines "# key: value", a line of column names, a row a
 * site; tab separated, no escapes, full names. Column names and keys are stable.
 */
#ifndef HEAPTOP_BATCH_H
#define HEAPTOP_BATCH_H

#include <stdio.h>

#include "report/report.h"

/* Write the report's view; flushed. False if the reader has gone (EPIPE) or the disk is full. */
bool batch_frame(FILE *out, struct report *report, enum report_value sort);

#endif
