/*
 * A snapshot as JSON, for programs: one object with the header's figures, the graph, threads, all sites and all stacks with
 * figures of their own, by the names that batch output has for them (heaptop(1)). Each element of an array is
 * a line. Valid UTF-8 and valid JSON whatever the names are. Any thread.
 */
#ifndef HEAPTOP_EXPORT_JSON_H
#define HEAPTOP_EXPORT_JSON_H

#include <stdio.h>

#include "report/report.h"

struct err;
struct err *json_write(FILE *out, struct report *report, enum report_value value);

#endif
