/*
 * The CPU's time stamp counter, the clock the agent's events carry, and its conversion to
 * seconds. ticks_now() is in a file named for the CPU. Constant rate and synchronised between
 * CPUs on everything current ("constant_tsc", "nonstop_tsc").
 */
#ifndef HEAPTOP_BASE_TICKS_H
#define HEAPTOP_BASE_TICKS_H

#include <stdint.h>

uint64_t ticks_now(void);

/* Two readings of both clocks give the rate; the longer the time between, the better. */
struct ticks_clock {
	uint64_t ticks0;
	uint64_t ns0;		/* CLOCK_MONOTONIC_RAW at ticks0 */
	double ns_per_tick;
};

/* Start the clock: measures for about 5 ms. */
void ticks_clock_init(struct ticks_clock *clock);
/* Measure again over all the time since the start. */
void ticks_clock_refine(struct ticks_clock *clock);

/* Nanoseconds from the start of the clock to `ticks`; 0 for anything before. */
static inline uint64_t ticks_to_ns(const struct ticks_clock *clock, uint64_t ticks)
{
	if (ticks <= clock->ticks0)
		return 0;
	return (uint64_t)((double)(ticks - clock->ticks0) * clock->ns_per_tick);
}

/* CLOCK_MONOTONIC in seconds: for timeouts and intervals of heaptop's own. */
double monotonic_seconds(void);
/* CPU time of the calling thread: what heaptop's own work costs. */
double thread_cpu_seconds(void);

#endif
