/*
 * Reading a snapshot beside the screen: a thread of its own reads the file, so that a large one doesn't keep the
 * screen, or the key that leaves it, waiting.
 */
#ifndef HEAPTOP_LOADER_H
#define HEAPTOP_LOADER_H

#include <stdbool.h>

struct err;
struct loader;
struct names;
struct view;

/* Begin to read `path` (copied); its names go into `names`, which must outlive the loader. */
struct loader *loader_create(const char *path, struct names *names);
/*
 * False: it was still reading. It can't be interrupted, so it goes on until the process ends, and `names` must not be
 * destroyed. Accepts NULL.
 */
bool loader_destroy(struct loader *l);

/* Readable once the file has been read or found bad; read 8 bytes to reset. */
int loader_fd(const struct loader *l);
/* Has it? Doesn't wait. */
bool loader_done(const struct loader *l);
/* Once it has: the view, caller's reference, or what is wrong with the file. The first call has it. */
struct err *loader_take(struct loader *l, struct view **ret);

#endif
