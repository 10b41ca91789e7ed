/*
 * Source files that a screen shows lines of: read once by the session's worker, and kept. Belongs to the screen's
 * thread.
 */
#ifndef HEAPTOP_UI_EXCERPTS_H
#define HEAPTOP_UI_EXCERPTS_H

#include <stdbool.h>

struct excerpts;
struct source_paths;
struct source_text;
struct worker;

#define EXCERPTS_MAX 64u	/* files kept; one more is told to be too many */

struct excerpts *excerpts_create(void);
/* Before or after the worker. Accepts NULL. */
void excerpts_destroy(struct excerpts *e);
/* `file` as debug information has it, `paths` outlive the worker (source_read). NULL: not there yet, it has been asked for.
 * Valid as long as `e`. */
const struct source_text *excerpts_get(struct excerpts *e, struct worker *worker, const struct source_paths *paths,
				       const char *file, const char *dir);
/* It was asked for before. */
bool excerpts_has(const struct excerpts *e, const char *file);
/* Something asked for isn't there yet. */
bool excerpts_pending(const struct excerpts *e);

#endif
