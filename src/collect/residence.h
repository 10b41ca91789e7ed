/*
 * Keeping up with what is resident: passes over the page maps for the heap's blocks (heap/resident.h), and what RSS
 * is made of besides (target/rss.h). The target is neither stopped nor slowed but by the lock of its memory map,
 * which is held for reading, some 100 us at a time. So that this is held to a share of the time, passes become rarer as they
 * become longer; and where nothing has happened none is made. The collector thread.
 */
#ifndef HEAPTOP_COLLECT_RESIDENCE_H
#define HEAPTOP_COLLECT_RESIDENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "heap/view.h"
#include "target/pagemap.h"

struct heap;
struct probe;
struct target;

#define RESIDENCE_SHARE 0.005	/* of a core, at most, that passes take; */
#define RESIDENCE_RSS_SHARE 0.002	/* and what RSS is made of */

struct residence {
	struct view_memory memory;	/* as last known */
	/* the rest is residence.c's own */
	struct pagemap map;		/* of the pass there is */
	bool passing, failed;
	double began, spent;		/* the pass: monotonic, and CPU seconds so far */
	double next, next_rss;		/* monotonic seconds */
	double took, took_rss;		/* CPU seconds, the last ones */
	double interval, interval_rss;	/* and how long until the next */
	uint64_t events, rss;		/* when the last pass began */
	bool off;			/* nobody wants to know */
	bool attached, known;		/* to a running process; what was there then is known */
};

/* attached: the process has a past. */
void residence_init(struct residence *r, bool attached);
void residence_deinit(struct residence *r);
/* Go on looking, or no more: what was found last stays, the share of the time is 0 then. A pass there is is given up. */
void residence_want(struct residence *r, bool want);

/* Who is looked at. `probe`: placed, or NULL. */
struct residence_of {
	struct target *target;
	struct heap *heap;
	struct probe *probe;
	uint64_t events, rss;	/* handled so far, and as last measured: has anything happened? */
};
/* A slice of 2 ms at most, if one is due. */
void residence_step(struct residence *r, const struct residence_of *of, double now);
/* All at once, for 0.2 s at most: the target is held on its way out. */
void residence_finish(struct residence *r, const struct residence_of *of, double now);

#endif
