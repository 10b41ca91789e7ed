/*
 * The `auto` rate: every call while that is cheap, else the sampling interval that holds the
 * overhead budget and the bound on sampled live blocks. Pure arithmetic, no process; the way the
 * decisions are made is at the top of rate.c.
 */
#ifndef HEAPTOP_COLLECT_RATE_H
#define HEAPTOP_COLLECT_RATE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What a call costs the target besides the time it spends recording, which it measures itself: the
 * jump, its countdown or its look into the free filter, for each call (2 to 2.4 ns a malloc and its
 * free in the tightest loop); and for each event the way in and out of the agent, of which the
 * clock readings are most.
 */
#define RATE_PASS_NS 1.2
#define RATE_EVENT_NS 30.0

/*
 * What page faults cost it beside their own cost while they are sampled: each for being counted and looked at by the program
 * that chooses (half of it where perf_event does), a sample for the registers and the stack the kernel copies (make bench
 * BENCH=faults). And a look at its page maps holds the lock
 * of its memory map for reading: a thread that maps memory then waits, which is no larger a share of its time than the looks
 * are of all time.
 */
#define RATE_FAULT_NS 500.0
#define RATE_FAULT_SAMPLE_NS 6000.0

#define RATE_MAX (8ull << 20)		/* never rarer than one sample in 8 MiB */
#define RATE_MIN 64u			/* an R smaller than this saves nothing over every call */
/* Sampled live blocks aimed at, at most. Each takes about 90 bytes here, with its share of a table
 * that is on average half full, and a tag in the target: 90 MB at the bound. */
#define RATE_LIVE_SAMPLES 1000000u
#define RATE_COLLECTOR_LOAD 0.25	/* of one core, heaptop's part in events aimed at, at most */

/* What was measured over an interval in which the rate was the same. */
struct rate_sample {
	double seconds;		/* wall time */
	double cpu;		/* seconds of CPU time the target used */
	double recording;	/* of them spent recording, as the agent measured it */
	double work;		/* seconds heaptop itself worked on events */
	double allocs, frees;	/* events, by kind */
	double alloc_calls, free_calls;	/* calls they stand for, estimated */
	double alloc_bytes;	/* and bytes */
	double live_samples;	/* sampled blocks alive, at the interval's end */
	double faults, fault_samples;	/* page faults counted, of them sampled */
	double scan_share;	/* of the time, that looking at its page maps takes */
};

struct rate_control {
	double budget;		/* fraction of the target's CPU time */
	uint64_t rate;		/* mean bytes between samples now; <= 1: every call */
	/* the rest is rate.c's own */
	struct {
		double cost, pass, cpu, work, seconds;
	} mean;			/* of the last seconds, older ones fading: see MEAN_SECONDS */
	struct rate_sample window;	/* summed up since the rate last changed, or was last looked at */
	double before;		/* excess of the interval before */
	double live_step;	/* live samples at which the rate goes up for their sake; 0: the bound */
	double event;		/* seconds an allocation costs to record, its free included */
	double hold;		/* seconds a window takes before the rate may come down */
	double since_down, since_change;	/* seconds */
	bool by_agent;		/* the rate is one the agent has chosen */
};

void rate_init(struct rate_control *control, double budget, uint64_t rate);

/* The fraction of its CPU time that heaptop costs the target: calls let pass, page faults sampled and page maps looked
 * at included, which no rate changes and none is chosen for. 0: no CPU time. */
double rate_overhead(const struct rate_sample *sample);

/* Returns the rate to use from now on (also kept in the control). */
uint64_t rate_update(struct rate_control *control, const struct rate_sample *sample);

/* The rate is another by somebody else's doing: the agent's, the user's. */
void rate_follow(struct rate_control *control, uint64_t rate);

#endif
