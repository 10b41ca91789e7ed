/*
 * Which functions are allocators or wrappers around them: never a site if anything outside of
 * them is known. A table of well-known ones, and rules the user adds. One thread.
 */
#ifndef HEAPTOP_REPORT_WRAPPERS_H
#define HEAPTOP_REPORT_WRAPPERS_H

#include <stdbool.h>
#include <stddef.h>

struct err;
struct wrappers;

struct wrappers *wrappers_create(void);
void wrappers_destroy(struct wrappers *wrappers);
/* An extended regex over whole function names, arguments included. */
struct err *wrappers_add(struct wrappers *wrappers, const char *regex);
bool wrappers_match(const struct wrappers *wrappers, const char *function);

#endif
