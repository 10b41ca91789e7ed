/*
 * The auto rate. The number of samples a second is about alloc_bps / R (once R is well above
 * the block size), and the cost of each is about constant, so to divide the cost by f
 * the rate must become R' = alloc_bps / (samples_ps / f). Steps upward are taken at once,
 * downward only slowly and by halves, so that the rate doesn't swing.
 */
#include "collect/rate.h"

#define CALM_SECONDS 5.0
#define READY_CPU 0.02		/* seconds of CPU time wanted, */
#define READY_SECONDS 5.0	/* and the time after which less will do */
#define EXACT_BELOW 64u		/* an R this small saves nothing over every call */

static double excess(struct rate_control *control, const struct rate_sample *s)
{
	double worst = control->budget > 0 ? s->overhead / control->budget : 0;
	double load = s->collector_load / RATE_COLLECTOR_LOAD;
	double live = (double)s->live_samples / RATE_LIVE_SAMPLES;
	/* a higher R can't make samples go away that are live already: it only stops growth */
	bool growing = s->live_samples > control->live + control->live / 64;

	control->live = s->live_samples;
	if (load > worst)
		worst = load;
	if (live > 1 && !growing)
		live = 1;
	return live > worst ? live : worst;
}

bool rate_ready(double seconds, double cpu)
{
	return cpu > READY_CPU || seconds >= READY_SECONDS;
}

uint64_t rate_update(struct rate_control *control, const struct rate_sample *s)
{
	double f = excess(control, s);

	if (f > 1) {
		control->calm = 0;
		double want = control->rate;
		if (control->rate <= 1 && s->events_ps > 0)
			want = s->alloc_bps / s->events_ps;
		want *= f < 1.5 ? 1.5 : f > 1024 ? 1024 : f;
		if (want < EXACT_BELOW)
			want = EXACT_BELOW;
		control->rate = want > RATE_MAX ? RATE_MAX : (uint64_t)want;
		return control->rate;
	}
	/* halving R about doubles the cost: only with room to spare, for a while; the more room, the
	 * sooner and the further */
	control->calm = f < 0.25 ? control->calm + s->seconds : 0;
	if (control->calm >= (f < 0.02 ? CALM_SECONDS / 5 : CALM_SECONDS) && control->rate > 1) {
		control->calm = 0;
		control->rate /= f < 0.02 ? 8 : 2;
		if (control->rate <= EXACT_BELOW)
			control->rate = 1;
	}
	return control->rate;
}
