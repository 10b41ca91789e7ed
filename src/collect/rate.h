/*
 * The `auto` rate: every call while that is cheap, else the sampling interval that holds the
 * overhead budget and the bound on sampled live blocks. Pure arithmetic, no process.
 */
#ifndef HEAPTOP_COLLECT_RATE_H
#define HEAPTOP_COLLECT_RATE_H

#include <stdbool.h>
#include <stdint.h>

struct rate_control {
	double budget;		/* fraction of the target's CPU time */
	uint64_t rate;		/* mean bytes between samples now */
	double calm;		/* seconds the cost has been far below the budget */
	uint64_t live;		/* live samples last time */
};

/* What was measured over the last interval. */
struct rate_sample {
	double seconds;		/* wall time of the interval */
	double overhead;	/* fraction of the target's CPU time spent recording allocations:
				 * frees of blocks sampled before cost what they cost at any rate */
	double alloc_bps;	/* estimated bytes allocated a second */
	double events_ps;	/* events handled a second */
	double collector_load;	/* fraction of one core heaptop itself used */
	uint64_t live_samples;
};

#define RATE_MAX (8ull << 20)		/* never rarer than one sample in 8 MiB */
#define RATE_LIVE_SAMPLES 20000u	/* sampled live blocks aimed at, at most */
#define RATE_COLLECTOR_LOAD 0.25	/* of one core, heaptop's own part aimed at, at most */

/*
 * Can an overhead be told from `cpu` seconds of CPU time in `seconds`? The kernel counts it in
 * hundredths, so of a program that mostly sleeps a longer interval must be measured.
 */
bool rate_ready(double seconds, double cpu);

/* Returns the rate to use from now on (also kept in the control). */
uint64_t rate_update(struct rate_control *control, const struct rate_sample *sample);

#endif
