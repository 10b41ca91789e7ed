/*
 * What the kernel tells of processes without being asked, by perf_event's side-band: that one has mapped code (MMAP2), has
 * executed another program (COMM of an exec), or that a thread of it has begun or ended (FORK, EXIT). So /proc needn't be
 * read again and again to find that nothing has changed. That something was unmapped is told by nobody.
 *
 * One event a processor, of all processes, each with a small ring: that sees every thread of a process whenever it began,
 * but takes CAP_PERFMON. So one is enough for all that are watched. What is about others is passed over. Records that were
 * lost may have been about anything. Nothing is placed anywhere; closing it leaves nothing. The collector thread.
 */
#ifndef HEAPTOP_TARGET_SIDEBAND_H
#define HEAPTOP_TARGET_SIDEBAND_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct perf_ring;
struct sideband;

enum sideband_news {	/* bits */
	SIDEBAND_CODE = 1,	/* code was mapped, or a mapping made executable */
	SIDEBAND_EXEC = 2,
	SIDEBAND_THREADS = 4,
	SIDEBAND_ALL = 7,
};

/* News from now on. ERR_DENIED: it takes CAP_PERFMON, or perf_event_paranoid below 1; or as err_errno. */
struct err *sideband_open(struct sideband **ret);
void sideband_close(struct sideband *s);	/* accepts NULL */

/* News of this process are for somebody from now on; no news so far. And no more. One that is watched already, or isn't: nothing. */
void sideband_watch(struct sideband *s, pid_t pid);
void sideband_unwatch(struct sideband *s, pid_t pid);
/* News of a process that is watched, since the last time; a handful of reads from memory where there are none. */
unsigned sideband_take(struct sideband *s, pid_t pid);

/* Inside, for its test: what the records from *tail to head tell of these, ascending by pid, is added to their news. */
struct sideband_watched {
	pid_t pid;
	unsigned news;
};
void sideband_parse(const struct perf_ring *ring, uint64_t *tail, uint64_t head, struct sideband_watched *list, size_t n);

#endif
