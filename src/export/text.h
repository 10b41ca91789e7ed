/*
 * A snapshot for reading: header, totals, the largest sites, the call tree of what matters. Any thread.
 */
#ifndef HEAPTOP_EXPORT_TEXT_H
#define HEAPTOP_EXPORT_TEXT_H

#include <stdio.h>

#include "report/report.h"

struct err;
struct err *text_write(FILE *out, struct report *report, enum report_value value);

#endif
