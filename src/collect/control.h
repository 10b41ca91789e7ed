/*
 * The auto rate's loop: measure, decide, tell the probe; and the overhead that is shown. rate.h has
 * the arithmetic of the decision. On the collector thread, a few times a second.
 */
#ifndef HEAPTOP_COLLECT_CONTROL_H
#define HEAPTOP_COLLECT_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "collect/rate.h"

struct probe;
struct target;

/* Counters as they are at one moment, all since the start. */
struct control_counts {
	double time;		/* monotonic seconds */
	double cpu;		/* seconds of CPU time the target has used */
	double work;		/* seconds heaptop worked on events */
	uint64_t cycles;	/* TSC ticks the agent spent recording */
	uint64_t events, allocs;	/* handled; allocs of them allocations */
	uint64_t alloc_calls, free_calls, alloc_bytes;	/* the model's estimates */
	uint64_t live_samples;
	uint64_t faults, fault_samples;	/* page faults while they are counted; of them sampled */
	double scan_share;	/* now: of the time, that looking at its page maps takes */
};

struct control {
	bool on;		/* the rate is heaptop's to choose */
	uint64_t rate;		/* now, chosen or given; <= 1: every call */
	float overhead;		/* measured, over about a second: fraction of the target's CPU time */
	/* the rest is control.c's own */
	struct rate_control decide;
	struct control_counts before;	/* at the last decision */
	struct control_counts shown;	/* when the overhead was last computed; time 0: never */
	bool settling;		/* what comes was partly drawn with another rate: don't judge by it */
};

/* Also after an exec: nothing of what was measured before counts. */
void control_init(struct control *c, double budget, uint64_t rate, bool on);

/* The difference of two moments, as rate.h wants it. */
struct rate_sample control_sample(const struct control_counts *from, const struct control_counts *to,
				  double ns_per_tick);

/* The overhead since it was last computed, if that is a second ago; the first time sooner, and also
 * if this is the `last` look. */
void control_measure(struct control *c, const struct control_counts *now, double ns_per_tick, bool last);

/*
 * Take over what rate the agent has (it may have raised it by itself), and if the rate is
 * heaptop's to choose, choose it and tell the probe. A target that is gone is no error here.
 */
void control_decide(struct control *c, const struct control_counts *now, double ns_per_tick,
		    uint64_t agent_rate, struct probe *probe, struct target *target);

/* A rate given by hand, 0: auto from here on. */
void control_set(struct control *c, uint64_t rate, struct probe *probe, struct target *target);

#endif
