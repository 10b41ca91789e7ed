/*
 * Lines of source files, read by a thread of their own: asking never waits, and never opens a file. What debug
 * info says is a path is foreign: only regular files are read, none larger than SOURCE_MAX_FILE, and lines are fit for
 * a terminal: sanitised, tabs made blanks, cut at SOURCE_MAX_LINE bytes.
 *
 * Files are read once and kept, SOURCE_MAX_FILES of them. Any thread.
 */
#ifndef HEAPTOP_SYMBOL_SOURCE_H
#define HEAPTOP_SYMBOL_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOURCE_MAX_FILE (4u << 20)
#define SOURCE_MAX_LINE 400u
#define SOURCE_MAX_FILES 64u

struct source {
	char *path;		/* as asked for */
	char *why;		/* why there are no lines, or NULL */
	char **lines;
	size_t n;
};

struct sources;

struct sources *sources_create(void);
void sources_destroy(struct sources *s);	/* accepts NULL */
/* Immutable once it is there, valid as long as `s`. NULL: not yet; it has been asked for. */
const struct source *sources_get(struct sources *s, const char *path);
/* Something asked for isn't there yet. */
bool sources_pending(struct sources *s);

#endif
