/*
 * The auto rate.
 *
 * What a rate can change. Three things cost the target time: recording allocations, recording
 * frees, and letting calls pass. Only the first goes by the rate of now; a free is recorded because
 * its block was sampled once, at whatever rate. So each allocation is charged with its free at once: n
 * events a second cost n * (alloc + free), whenever the frees come. A program that frees everything at
 * its end then doesn't drive the rate up, which would help nobody. Calls let pass cost the same at
 * any rate: they count, and what is left of the budget is what recording may cost; where they alone use
 * it up, recording gets a small share all the same, since a rate ever higher would gain nothing.
 *
 * A program that sleeps most of the time, and wakes up to allocate a little, has cold caches: each event
 * costs a microsecond. It has time for that. So it counts as one that uses a quarter of a core.
 *
 * Up. The charge over what it may be, as a mean that fades over some seconds, is the excess. Beyond
 * UP, the rate goes up by as much, at once. A burst is thus held against the time around it, and no
 * program pays more than MEAN_SECONDS' worth of budget in advance. Where two intervals in a row are
 * over it by more than the mean is, that is what it allocates now, and the rate goes up by the less of
 * them. From every call (R = 1): blocks of m bytes are sampled with p = 1 - exp(-m / R), so
 * R = m / -ln(1 - p), m being the mean size and 1 / p the excess.
 *
 * Down. At the end of a window of `hold` seconds, as far as a bound allows of what a lower rate would
 * cost: R / k samples no more than k times the blocks (1 - exp(-s / R) is concave in 1 / R), and no
 * more than all calls. Both are estimates from n samples, so n + 2 sqrt(n) + 3 is taken for n: with
 * no sample seen a window still says something. Coming from far, this takes two or three steps.
 *
 * Not to and fro. Rates are powers of two, which leave UP / DOWN / 2 between the two thresholds. A
 * program that comes and goes makes the rate come down and go up again; each time that happens,
 * the window doubles, until it covers quiet and busy times and sees their mean.
 *
 * The agent raises the rate by itself when a ring fills up before heaptop looks, by far more than is needed
 * mostly. That is looked at sooner, unless it happens again and again.
 */
#include "collect/rate.h"

#include <math.h>

#define MEAN_SECONDS 2.0
#define UP 1.1			/* excess from which the rate goes up, */
#define DOWN 0.9		/* and that it may have after coming down */
#define LEFT_OVER 0.25		/* of the budget: what recording may always cost */
#define BUSY 0.25		/* of a core: what a program is taken to use at least */
#define HOLD_MIN 1.0		/* seconds */
#define HOLD_AGENT 0.3		/* after the agent has raised the rate */
#define HOLD_MAX 30.0
#define HOLD_LONG 16.0	/* windows: coming down and going up again within them was to and fro; so long
			 * without a change, and the next is half as long */
#define FREE_SHARE 0.5		/* what recording a free costs, of recording an allocation */
#define EVENT_SECONDS 200e-9	/* an allocation and its free, before it was measured; */
#define EVENT_WEIGHT 100.0	/* as much as that many events say */
#define SMALLEST 16.0		/* bytes: the least that calls not seen are taken to ask for */
#define LIVE_SECONDS 10.0	/* samples of so long may all stay alive */
#define LIVE_CREEP 30.0	/* samples a second that may always come: 1e6 in 9 hours */
#define LIVE_STEP 1.02		/* growth beyond the bound after which the rate doubles again */

void rate_init(struct rate_control *c, double budget, uint64_t rate)
{
	*c = (struct rate_control){
		.budget = budget > 0 ? budget : 0, .rate = rate, .event = EVENT_SECONDS, .hold = HOLD_MIN,
		.since_down = HOLD_LONG * HOLD_MAX + 1,
	};
}

/* Seconds spent recording, what the agent doesn't measure included. */
static double recording(const struct rate_sample *s)
{
	return s->recording + (s->allocs + s->frees) * RATE_EVENT_NS * 1e-9;
}

static double passing(const struct rate_sample *s)
{
	return (s->alloc_calls + s->free_calls) * RATE_PASS_NS * 1e-9;
}

double rate_overhead(const struct rate_sample *s)
{
	double faults = (s->faults * RATE_FAULT_NS + s->fault_samples * RATE_FAULT_SAMPLE_NS) * 1e-9;

	return s->cpu > 0 ? (recording(s) + passing(s) + faults) / s->cpu + s->scan_share : 0;
}

/* Of a cost for all events, what the allocations are charged with: themselves and their frees. */
static double charge(const struct rate_sample *s, double cost)
{
	double units = s->allocs + s->frees * FREE_SHARE;

	return units > 0 ? cost * s->allocs * (1 + FREE_SHARE) / units : 0;
}

/* What recording costs over what it may cost; the same of heaptop's own work if that is more. */
static double excess(const struct rate_control *c, double cost, double pass, double cpu, double work,
		     double seconds)
{
	double load = seconds > 0 ? work / seconds / RATE_COLLECTOR_LOAD : 0;

	if (cpu < seconds * BUSY)
		cpu = seconds * BUSY;
	if (cpu <= 0 || c->budget <= 0)
		return load;
	double allowed = c->budget - pass / cpu;
	if (allowed < c->budget * LEFT_OVER)
		allowed = c->budget * LEFT_OVER;
	double own = cost / cpu / allowed;
	return own > load ? own : load;
}

static void window_add(struct rate_sample *sum, const struct rate_sample *s)
{
	sum->seconds += s->seconds;
	sum->cpu += s->cpu;
	sum->recording += s->recording;
	sum->work += s->work;
	sum->allocs += s->allocs;
	sum->frees += s->frees;
	sum->alloc_calls += s->alloc_calls;
	sum->free_calls += s->free_calls;
	sum->alloc_bytes += s->alloc_bytes;
	sum->live_samples = s->live_samples;
}

static void window_begin(struct rate_control *c)
{
	c->window = (struct rate_sample){ 0 };
}

static uint64_t power_of_two(double rate)
{
	uint64_t ret = RATE_MIN;

	while ((double)ret < rate && ret < RATE_MAX)
		ret *= 2;
	return ret;
}

/* The rate goes up. Has it come down just before? */
static void note_up(struct rate_control *c)
{
	if (c->since_down > HOLD_LONG * c->hold)
		return;
	c->hold = c->hold < HOLD_MAX / 2 ? c->hold * 2 : HOLD_MAX;
	c->since_down = HOLD_LONG * HOLD_MAX + 1;	/* this one is dealt with */
}

/* A new rate; `ratio`: events to be expected at it, per event so far. */
static void change(struct rate_control *c, uint64_t rate, double ratio)
{
	c->rate = rate;
	c->mean.cost *= ratio;
	c->mean.work *= ratio;
	c->before *= ratio;
	c->since_change = 0;
	c->by_agent = false;
	window_begin(c);
}

void rate_follow(struct rate_control *c, uint64_t rate)
{
	double from = (double)(c->rate > 1 ? c->rate : RATE_MIN);

	if (rate > RATE_MAX)
		rate = RATE_MAX;
	if (rate > c->rate)
		note_up(c);
	change(c, rate, (double)rate > from ? from / (double)rate : 1);
	c->by_agent = c->hold <= HOLD_MIN;
}

static void go_up(struct rate_control *c, double f, const struct rate_sample *s)
{
	double size = s->alloc_calls > 0 ? s->alloc_bytes / s->alloc_calls : RATE_MIN;
	double want = (double)c->rate * f;

	/* an f of 1 would be an R of 0; 1.5: two blocks of three are sampled */
	if (c->rate <= 1)
		want = size / -log1p(-1 / (f > 1.5 ? f : 1.5));
	uint64_t rate = power_of_two(want > (double)c->rate ? want : (double)c->rate + 1);
	if (rate == c->rate)
		return;		/* RATE_MAX */
	note_up(c);
	change(c, rate, c->rate <= 1 ? -expm1(-size / (double)rate) : (double)c->rate / (double)rate);
}

/* What is the most that n events seen may have been by chance? (Two standard deviations.) */
static double at_most(double n)
{
	return n + 2 * sqrt(n) + 3;
}

/* May the rate be this low? By what the window has seen. */
static bool affordable(const struct rate_control *c, uint64_t rate)
{
	const struct rate_sample *w = &c->window;
	double n = w->allocs, events = at_most(n) * (double)c->rate;

	if (rate > 1)
		events /= (double)rate;
	/* all calls: each sample stands for so many; and those of which there was no sample */
	double calls = w->alloc_calls * (n > 0 ? 1 + 2 / sqrt(n) : 1) + 3 * (double)c->rate / SMALLEST;
	if (events > calls)
		events = calls;

	double work = n > 0 ? charge(w, w->work) / n : 0;
	double f = excess(c, events * c->event, passing(w), w->cpu, events * work, w->seconds);
	double room = (RATE_LIVE_SAMPLES - w->live_samples) / LIVE_SECONDS;
	if (room < LIVE_CREEP)
		room = LIVE_CREEP;
	return f <= DOWN && events / w->seconds <= room;
}

static void come_down(struct rate_control *c)
{
	uint64_t rate = c->rate;

	if (affordable(c, 1))
		rate = 1;
	for (uint64_t r = power_of_two((double)c->rate / 2); rate > 1 && r < rate && affordable(c, r); r /= 2) {
		rate = r;
		if (r == RATE_MIN)
			break;
	}
	if (rate != c->rate) {
		/* how much more comes is known only afterwards: no guess goes into the mean */
		change(c, rate, 1);
		c->since_down = 0;
	}
}

static void window_end(struct rate_control *c)
{
	if (c->rate > 1)
		come_down(c);
	if (c->since_change > HOLD_LONG * c->hold) {
		c->hold = c->hold / 2 > HOLD_MIN ? c->hold / 2 : HOLD_MIN;
		c->since_change = 0;
	}
	window_begin(c);
}

/* Beyond the bound on live samples, and more than at the last step for its sake? A higher rate
 * can't make samples go away that are there: it only stops growth. */
static bool too_many(struct rate_control *c, double live)
{
	if (live < RATE_LIVE_SAMPLES / 2.0)
		c->live_step = 0;
	if (live <= RATE_LIVE_SAMPLES || live <= c->live_step)
		return false;
	c->live_step = live * LIVE_STEP;
	return true;
}

uint64_t rate_update(struct rate_control *c, const struct rate_sample *s)
{
	if (s->seconds <= 0)
		return c->rate;
	double cost = charge(s, recording(s)), pass = passing(s), work = charge(s, s->work);
	double fade = exp(-s->seconds / MEAN_SECONDS);

	c->mean.cost = c->mean.cost * fade + cost;
	c->mean.pass = c->mean.pass * fade + pass;
	c->mean.cpu = c->mean.cpu * fade + s->cpu;
	c->mean.work = c->mean.work * fade + work;
	c->mean.seconds = c->mean.seconds * fade + s->seconds;
	/* few events say little */
	if (s->allocs > 0)
		c->event += (cost / s->allocs - c->event) * s->allocs / (s->allocs + EVENT_WEIGHT);
	c->since_down += s->seconds;
	c->since_change += s->seconds;
	window_add(&c->window, s);

	double now = excess(c, cost, pass, s->cpu, work, s->seconds);
	double f = excess(c, c->mean.cost, c->mean.pass, c->mean.cpu, c->mean.work, c->mean.seconds);
	double both = now < c->before ? now : c->before;
	c->before = now;
	if (f > UP)
		go_up(c, both > f ? both : f, s);
	else if (too_many(c, s->live_samples))
		go_up(c, 2, s);
	else if (c->window.seconds >= (c->by_agent ? HOLD_AGENT : c->hold))
		window_end(c);
	return c->rate;
}
