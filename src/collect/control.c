/* The auto rate's loop; see control.h. */
#include "collect/control.h"

#include <math.h>

#include "base/err.h"
#include "probe/probe.h"

#define SHOWN_SECONDS 1.0	/* the overhead shown is one of about so long, */
#define FIRST_SECONDS 0.25	/* but the first of less, and a short program's of its life */

void control_init(struct control *c, double budget, uint64_t rate, bool on)
{
	*c = (struct control){ .on = on, .rate = rate, .settling = true };
	rate_init(&c->decide, budget, rate);
}

static double since(uint64_t from, uint64_t to)
{
	return to > from ? (double)(to - from) : 0;
}

struct rate_sample control_sample(const struct control_counts *from, const struct control_counts *to,
				  double ns_per_tick)
{
	double allocs = since(from->allocs, to->allocs), events = since(from->events, to->events);

	return (struct rate_sample){
		.seconds = to->time - from->time,
		.cpu = to->cpu - from->cpu,
		.recording = since(from->cycles, to->cycles) * ns_per_tick * 1e-9,
		.work = to->work - from->work,
		.allocs = allocs,
		.frees = events > allocs ? events - allocs : 0,
		.alloc_calls = since(from->alloc_calls, to->alloc_calls),
		/* a realloc that failed takes one back */
		.free_calls = since(from->free_calls, to->free_calls),
		.alloc_bytes = since(from->alloc_bytes, to->alloc_bytes),
		.live_samples = (double)to->live_samples,
		.faults = since(from->faults, to->faults),
		.fault_samples = since(from->fault_samples, to->fault_samples),
		.scan_share = to->scan_share,
	};
}

void control_measure(struct control *c, const struct control_counts *now, double ns_per_tick, bool last)
{
	if (c->shown.time > 0) {
		struct rate_sample s = control_sample(&c->shown, now, ns_per_tick);
		bool first = c->overhead <= 0;
		bool enough = s.seconds >= (first ? FIRST_SECONDS : SHOWN_SECONDS) || (first && last);
		if (!enough || s.cpu <= 0)
			return;
		/* part of it is estimated, and threads that are preempted count too long: never more than all */
		c->overhead = (float)fmin(rate_overhead(&s), 1);
	}
	c->shown = *now;
}

void control_decide(struct control *c, const struct control_counts *now, double ns_per_tick,
		    uint64_t agent_rate, struct probe *probe, struct target *target)
{
	if (!c->on) {
		/* a thread may have raised it just when it was told not to */
		if (agent_rate && agent_rate != c->rate && c->rate)
			err_free(probe->ops->set_rate(probe, target, c->rate));
		return;
	}
	/* The agent goes no further than 1M, but the word lies where the program can write to it. */
	if (agent_rate > RATE_MAX && agent_rate != c->rate) {
		err_free(probe->ops->set_rate(probe, target, c->rate));
		agent_rate = c->rate;
	}
	if (agent_rate && agent_rate != c->rate) {
		rate_follow(&c->decide, agent_rate);
		c->rate = agent_rate;
		c->settling = true;
	}
	if (!c->settling) {
		struct rate_sample s = control_sample(&c->before, now, ns_per_tick);
		uint64_t rate = rate_update(&c->decide, &s);
		if (rate != c->rate) {
			struct err *err = probe->ops->set_rate(probe, target, rate);
			if (!err)
				c->rate = rate;
			err_free(err);
			c->settling = true;
			return;
		}
	}
	c->settling = false;
	c->before = *now;
}

void control_set(struct control *c, uint64_t rate, struct probe *probe, struct target *target)
{
	c->on = !rate;
	c->settling = true;
	if (!rate)
		return;
	struct err *err = probe->ops->set_rate(probe, target, rate);
	if (!err) {
		c->rate = rate;
		rate_follow(&c->decide, rate);
	}
	err_free(err);
}
