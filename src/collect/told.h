/*
 * When it is time to look at /proc again: as often as ever for a moment after the kernel has told of something
 * (target/sideband.h), else rarely; and as often as ever where the kernel tells nothing. The collector thread.
 */
#ifndef HEAPTOP_COLLECT_TOLD_H
#define HEAPTOP_COLLECT_TOLD_H

#include <stdbool.h>
#include <sys/types.h>

#include "target/sideband.h"

struct told {	/* zero: polled */
	struct sideband *sideband;	/* of all sessions, or NULL */
	pid_t pid;			/* whose, once it is watched */
	double code, exec, threads;	/* when the last was told of, monotonic seconds */
};

/* For processes the second probe watches; others are polled. NULL: it isn't permitted, which is said in the log. */
struct sideband *told_open(void);
/* From now on `pid` is told of, before its mappings are read for the first time; as often as one likes. Until told_deinit. */
void told_watch(struct told *t, pid_t pid);
void told_deinit(struct told *t);

/* Take in what there is. */
void told_step(struct told *t, double now);

/* Look again, `since` seconds after the last time? interval: how often without being told. */
bool told_due(const struct told *t, enum sideband_news what, double now, double since, double interval);

#endif
