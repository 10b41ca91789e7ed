/*
 * All paths of functions in a report's top-down tree, from the outermost to each, for formats that write whole stacks.
 * Recursive programs have deep trees: no recursion of ours. Any thread.
 */
#ifndef HEAPTOP_EXPORT_PATHS_H
#define HEAPTOP_EXPORT_PATHS_H

#include <stdbool.h>
#include <stddef.h>

#include "report/report.h"

/*
 * A path: the thread's start first, path[n - 1] is the cell that it leads to. Every path comes after the one it goes on
 * from, those from one place by value, largest first. False: nothing below it is wanted.
 */
typedef bool (*paths_visit)(void *ctx, const struct report_cell *const *path, size_t n);
void paths_walk(struct report *report, enum report_value value, paths_visit visit, void *ctx);

#endif
