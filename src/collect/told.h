/*
 * When it is time to look at /proc again: as often as ever for a moment after the kernel has told of something
 * (target/sideband.h), else rarely; and as often as ever where the kernel tells nothing. The collector thread.
 */
#ifndef HEAPTOP_COLLECT_TOLD_H
#define HEAPTOP_COLLECT_TOLD_H

#include <stdbool.h>
#include <sys/types.h>

#include "target/sideband.h"

struct told {
	struct sideband *sideband;	/* or NULL */
	double code, exec, threads;	/* when the last was told of, monotonic seconds */
};

/* For processes the second probe watches; others are polled. What isn't permitted is said in the log. Closed by told_deinit. */
void told_init(struct told *t);
void told_deinit(struct told *t);

/* Take in what there is of `pid`. */
void told_step(struct told *t, pid_t pid, double now);

/* Look again, `since` seconds after the last time? interval: how often without being told. */
bool told_due(const struct told *t, enum sideband_news what, double now, double since, double interval);

#endif
