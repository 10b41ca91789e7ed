/* Conversion of ticks to time; see ticks.h. */
#include "base/ticks.h"

#include <time.h>

static uint64_t raw_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Both clocks at one instant: of some tries the one with the shortest way between. */
static void read_both(uint64_t *ticks, uint64_t *ns)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 5; i++) {
		uint64_t before = ticks_now();
		uint64_t t = raw_ns();
		uint64_t after = ticks_now();
		if (after - before < best) {
			best = after - before;
			*ticks = before + (after - before) / 2;
			*ns = t;
		}
	}
}

void ticks_clock_init(struct ticks_clock *clock)
{
	read_both(&clock->ticks0, &clock->ns0);
	nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	clock->ns_per_tick = 1;
	ticks_clock_refine(clock);
}

void ticks_clock_refine(struct ticks_clock *clock)
{
	uint64_t ticks = 0, ns = 0;

	read_both(&ticks, &ns);
	if (ticks > clock->ticks0 && ns > clock->ns0)
		clock->ns_per_tick = (double)(ns - clock->ns0) / (double)(ticks - clock->ticks0);
}

double monotonic_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

double thread_cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}
