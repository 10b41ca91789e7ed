/*
 * --dump: when the file of -o is written. At the end, as without --dump; every so many seconds; of the moment with most
 * live bytes. Driven by the loops of screen.c and headless.c, on their thread.
 */
#ifndef HEAPTOP_DUMP_H
#define HEAPTOP_DUMP_H

#include <stdbool.h>

#include "dump_times.h"

struct collector;
struct err;
struct saver;

struct dumper;

/* `path`: -o's file, borrowed; NULL: nothing is ever due. */
struct dumper *dumper_create(const struct dump_times *times, const char *path, struct collector *c, struct saver *saver);
void dumper_destroy(struct dumper *d);	/* accepts NULL */
/* Becomes readable when a time has come; -1: there is none to come. */
int dumper_fd(const struct dumper *d);
/*
 * Views may have been published, or the time has come: true if the file is to be written now, which is the caller's to
 * do, in its own way.
 */
bool dumper_due(struct dumper *d);
/*
 * At the end: the file of the peak, beside -o's: leak.pb.gz, leak-peak.pb.gz. *ret_path: its name, NULL if there is no
 * such file; the caller frees.
 */
struct err *dumper_finish(struct dumper *d, char **ret_path);

#endif
