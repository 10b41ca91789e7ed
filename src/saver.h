/*
 * Writing snapshots beside everything else: a thread of its own takes a view at once, waits for
 * its names, and writes the file. Any thread may ask.
 */
#ifndef HEAPTOP_SAVER_H
#define HEAPTOP_SAVER_H

#include "export/export.h"

struct collector;
struct moment;
struct names;
struct saver;
struct view;

/* Views come from `collector`, or always `view` if there is none (a snapshot is open). */
struct saver *saver_create(struct collector *collector, struct view *view, struct names *names,
			   const struct export_options *options);
/* Finishes what was asked for. Accepts NULL. */
void saver_destroy(struct saver *s);

/* Write a snapshot to `path` (copied) soon. */
void saver_request(struct saver *s, const char *path);
/* What is asked for from now on is written of that moment, which must be a whole one and outlive the saver's work. */
void saver_settle(struct saver *s, const struct moment *last);
/* Wait until what was asked for is written: for those who then write to the same file themselves. */
void saver_finish(struct saver *s);
/* One line on the last request ("saved x.pb.gz", or what went wrong); "" if there was none. The
 * caller frees. */
char *saver_status(struct saver *s);
/* Becomes readable when the status changed; read 8 bytes to reset. */
int saver_fd(const struct saver *s);

/*
 * Write now, on the caller's thread: the sum of all processes, or where they are several and the name has %p in it a
 * file for each. *ret_path (or NULL): the file's name after expansion, or how many they are.
 */
struct err *saver_write(struct saver *s, const char *path, char **ret_path);
/* The same of a view of the collector's that is no longer the newest. */
struct err *saver_write_view(struct saver *s, const char *path, struct view *view, char **ret_path);

#endif
