/*
 * Folded stacks: a line for each path of functions with a value of its own, "outer;…;inner value", as
 * flame graph tools read them. Names are full; ';' in them becomes ','. Any thread.
 */
#ifndef HEAPTOP_EXPORT_FOLDED_H
#define HEAPTOP_EXPORT_FOLDED_H

#include <stdio.h>

#include "report/report.h"

struct err;
struct err *folded_write(FILE *out, struct report *report, enum report_value value);

#endif
