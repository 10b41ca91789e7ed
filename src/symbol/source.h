/*
 * Source files that debug information names: where they are on this machine, and their text in lines. The names
 * are the target's, so is what lies there: sizes are bounded, nothing but regular files is read, and what comes
 * out is safe for a terminal. Reading may wait for a disk: never on a screen's thread.
 */
#ifndef HEAPTOP_SYMBOL_SOURCE_H
#define HEAPTOP_SYMBOL_SOURCE_H

#include <stddef.h>

struct err;

/* Where files are found that were built elsewhere: what begins with FROM, in whole components, is looked for
 * below TO. An empty FROM stands before every relative path. Zeroed is empty; read-only once threads use it. */
struct source_paths {
	struct source_map {
		char *from, *to;
	} *list;
	size_t n, cap;
};
/* "FROM=TO"; a later one counts more. ERR_BAD_INPUT if it is neither. */
struct err *source_paths_add(struct source_paths *paths, const char *text);
void source_paths_deinit(struct source_paths *paths);
/*
 * Where to look for `file`, which if it is relative was compiled in `dir` (NULL: unknown). A relative path that is
 * mapped itself comes first, then the whole one. The caller frees.
 */
char *source_paths_apply(const struct source_paths *paths, const char *file, const char *dir);

#define SOURCE_MAX_BYTES (16u << 20)	/* of a file */
#define SOURCE_MAX_LINES 500000u
#define SOURCE_MAX_LINE 1000u		/* bytes of a line, tabs expanded; the rest is cut off */

struct source_text {
	char *path;		/* that was looked for */
	char *error;		/* why there is no text, and what to do; NULL: there is */
	char **lines;		/* sanitised, tabs to columns of 8; in one block */
	size_t n;
};

/* Never NULL. */
struct source_text *source_read(const struct source_paths *paths, const char *file, const char *dir);
void source_destroy(struct source_text *source);	/* accepts NULL */

#endif
