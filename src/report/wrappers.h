/*
 * Which functions are allocators or wrappers around them: never a site if anything outside of
 * them is known. A table of well-known ones, and rules of the user's that add to it and take from it. Rules are added by
 * one thread before others look; then any thread.
 */
#ifndef HEAPTOP_REPORT_WRAPPERS_H
#define HEAPTOP_REPORT_WRAPPERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct err;
struct wrappers;

struct wrappers *wrappers_create(void);
void wrappers_destroy(struct wrappers *wrappers);
/*
 * An extended regex over whole function names, arguments included, that any part of them may match; "!REGEX": these
 * are none, whatever the table says. Of rules that match the last one counts. ERR_BAD_INPUT says what is wrong.
 */
struct err *wrappers_add(struct wrappers *wrappers, const char *rule);
/* NULL: the table alone. */
bool wrappers_match(const struct wrappers *wrappers, const char *function);
/* The table, a rule a line: names without arguments, '*' for any text. */
void wrappers_print(FILE *out);

#endif
