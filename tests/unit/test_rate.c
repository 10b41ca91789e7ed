/*
 * collect/rate: the auto rate against simulated programs: it reaches its budget, stays there, and
 * comes back; collect/control: what the overhead is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "collect/control.h"
#include "collect/rate.h"

#define STEP 0.1	/* seconds between updates */
#define BUDGET 0.01

/* How a program allocates at time t: calls a second, of blocks of so many bytes. */
struct load {
	double calls, size;
	double big_calls, big_size;	/* and some of these */
	double frees;		/* a second, of blocks allocated before */
	double cpu;		/* seconds of CPU time a second besides heaptop's */
};
typedef struct load (*load_fn)(double t);

/* A program under heaptop. */
struct plant {
	load_fn load;
	struct rate_control control;
	uint64_t seed;
	double time;
	double live;		/* sampled blocks alive */
	double stored;		/* their number per block alive: how densely they were sampled */
	double blocks;
	double alloc_cost, free_cost;	/* seconds an event */
	bool settling;
	/* what came out, since plant_mark */
	int changes;
	double cost, cpu, most;
	struct rate_sample last;
};

static double uniform(struct plant *p)
{
	/* splitmix64 (Steele, Lea, Flood 2014) */
	uint64_t x = p->seed += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return ((double)((x ^ x >> 31) >> 11) + 0.5) / 9007199254740992.0;
}

/* A Poisson number: Knuth's way for small means, else a normal one. */
static double poisson(struct plant *p, double mean)
{
	if (mean > 50) {
		double n = mean + sqrt(mean) * sqrt(-2 * log(uniform(p))) * cos(2 * M_PI * uniform(p));
		return n > 0 ? floor(n + 0.5) : 0;
	}
	double product = uniform(p), end = exp(-mean), n = 0;
	for (; product > end; n++)
		product *= uniform(p);
	return n;
}

static double chance(double size, uint64_t rate)
{
	return rate <= 1 ? 1 : -expm1(-size / (double)rate);
}

static void plant_init(struct plant *p, load_fn load)
{
	*p = (struct plant){ .load = load, .seed = 1, .alloc_cost = 90e-9, .free_cost = 40e-9 };
	rate_init(&p->control, BUDGET, 1);
}

static void plant_mark(struct plant *p)
{
	p->changes = 0;
	p->cost = p->cpu = p->most = 0;
}

static void plant_step(struct plant *p)
{
	struct load l = p->load(p->time);
	uint64_t rate = p->control.rate;
	double chance1 = chance(l.size, rate), chance2 = chance(l.big_size, rate);
	double n1 = rate <= 1 ? l.calls * STEP : poisson(p, l.calls * STEP * chance1);
	double n2 = rate <= 1 ? l.big_calls * STEP : poisson(p, l.big_calls * STEP * chance2);
	double frees = fmin(l.frees * STEP, p->blocks + (l.calls + l.big_calls) * STEP);
	struct rate_sample s = { .seconds = STEP, .allocs = n1 + n2 };

	s.alloc_calls = (n1 ? n1 / chance1 : 0) + (n2 ? n2 / chance2 : 0);
	s.alloc_bytes = (n1 ? n1 / chance1 * l.size : 0) + (n2 ? n2 / chance2 * l.big_size : 0);
	p->live += s.allocs;
	p->blocks += (l.calls + l.big_calls) * STEP;
	/* frees come of all blocks alike, however densely they were sampled */
	s.frees = p->blocks > 0 ? fmin(p->live, floor(p->live * frees / p->blocks + 0.5)) : 0;
	s.free_calls = frees;
	p->live -= s.frees;
	p->blocks -= frees;
	s.live_samples = p->live;
	s.recording = s.allocs * (p->alloc_cost - RATE_EVENT_NS * 1e-9)
		+ s.frees * (p->free_cost - RATE_EVENT_NS * 1e-9);
	double calls = (l.calls + l.big_calls) * STEP + frees;
	double cost = s.allocs * p->alloc_cost + s.frees * p->free_cost + calls * RATE_PASS_NS * 1e-9;
	s.cpu = l.cpu * STEP + cost;
	s.work = (s.allocs + s.frees) * 100e-9;
	p->cost += cost;
	p->cpu += s.cpu;
	p->most = fmax(p->most, cost / s.cpu);
	p->last = s;
	p->time += STEP;
	if (p->settling) {	/* as control.c does */
		p->settling = false;
		return;
	}
	if (rate_update(&p->control, &s) != rate) {
		p->changes++;
		p->settling = true;
	}
}

static void plant_run(struct plant *p, double seconds)
{
	for (double end = p->time + seconds - STEP / 2; p->time < end; )
		plant_step(p);
}

static double overhead(const struct plant *p)
{
	return p->cost / p->cpu;
}

#define assert_between(x, lo, hi) do { \
		double v_ = (x); \
		if (!(v_ >= (lo) && v_ <= (hi))) \
			fail_msg("%s = %g isn't in [%g, %g]", #x, v_, (double)(lo), (double)(hi)); \
	} while (0)

/* ---- programs that do the same all the time ---- */

static double steady_calls, steady_size, steady_cpu = 1, steady_freed = 1;

static struct load steady(double t)
{
	(void)t;
	return (struct load){ .calls = steady_calls, .size = steady_size, .cpu = steady_cpu,
			      .frees = steady_calls * steady_freed };
}

/* Settled within seconds, at the budget or at a bound of R, and then it stays. */
static void settles(void)
{
	struct plant p;

	plant_init(&p, steady);
	plant_run(&p, 15);
	assert_true(p.changes <= 8);
	plant_mark(&p);
	plant_run(&p, 60);
	assert_true(p.changes <= 2);
	double cpu = p.cpu / 60;	/* a second */
	double exact = steady_calls / cpu * (p.alloc_cost + steady_freed * p.free_cost);
	double pass = steady_calls / cpu * (1 + steady_freed) * RATE_PASS_NS * 1e-9;
	if (p.control.rate <= 1)
		assert_between(overhead(&p), 0, 1.2 * BUDGET);
	else if (p.control.rate <= RATE_MIN)
		assert_between(overhead(&p), 0, 1.2 * BUDGET);
	else if (p.control.rate == RATE_MAX)
		assert_true(overhead(&p) > 0.3 * BUDGET);
	else if (pass > BUDGET * 3 / 4)	/* nothing holds it: recording has its quarter */
		assert_between(overhead(&p) - pass, 0.3 * BUDGET / 4, 1.2 * BUDGET / 4);
	else
		assert_between(overhead(&p), 0.3 * BUDGET, 1.2 * BUDGET);
	/* exact if that is affordable; the margin is that of coming down from above */
	if (exact + pass < 0.6 * BUDGET)
		assert_int_equal(p.control.rate, 1);
	if (exact + pass > 1.2 * BUDGET)
		assert_true(p.control.rate > 1);
}

static void steady_programs(void **state)
{
	static const double calls[] = { 1e2, 1e4, 3e4, 5e4, 1e5, 3e5, 1e6, 2e6, 5e6, 1e7, 2e7 };
	static const double sizes[] = { 16, 48, 400, 5000, 1e6 };

	(void)state;
	for (int kept = 0; kept < 2; kept++) {
		/* all freed soon, or 5% never (until the bound on live samples ends it) */
		steady_freed = kept ? 0.95 : 1;
		for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
			for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
				steady_calls = calls[i];
				steady_size = sizes[k];
				settles();
			}
	}
	steady_freed = 1;
}

/* It is the share of its own CPU time that counts; but one that mostly sleeps has time to spare. */
static void sleeper(void **state)
{
	struct plant p;

	(void)state;
	steady_cpu = 0.4;
	steady_size = 100;
	steady_calls = 1e5;
	settles();
	steady_cpu = 0.01;
	steady_calls = 1000;
	plant_init(&p, steady);
	p.alloc_cost = p.free_cost = 1e-6;
	plant_run(&p, 60);
	assert_int_equal(p.control.rate, 1);
	assert_true(overhead(&p) > 3 * BUDGET);
	steady_calls = 10000;
	plant_run(&p, 60);
	assert_true(p.control.rate > 1);
	steady_cpu = 1;
}

static struct load mixed(double t)
{
	(void)t;
	return (struct load){ .calls = 1e7, .size = 16, .big_calls = 1000, .big_size = 1 << 20, .cpu = 8,
			      .frees = 1e7 };
}

/* Few big blocks are most of the bytes, many small ones most of the events. */
static void mixed_sizes(void **state)
{
	struct plant p;

	(void)state;
	plant_init(&p, mixed);
	plant_run(&p, 15);
	plant_mark(&p);
	plant_run(&p, 30);
	assert_between(overhead(&p), 0.3 * BUDGET, 1.2 * BUDGET);
	assert_true(p.changes <= 1);
}

/* ---- programs that change ---- */

static struct load ramp(double t)
{
	/* up to 5 M calls a second within a minute, and down again */
	double f = t < 60 ? t / 60 : t < 120 ? 2 - t / 60 : 0;

	return (struct load){ .calls = 5e6 * f, .size = 100, .frees = 5e6 * f, .cpu = 1 };
}

static void ramping(void **state)
{
	struct plant p;

	(void)state;
	plant_init(&p, ramp);
	/* every doubling of the load is one change */
	plant_run(&p, 60);
	assert_true(p.changes <= 14);
	assert_between(overhead(&p), 0.3 * BUDGET, 1.2 * BUDGET);
	plant_run(&p, 60);
	assert_between(p.most, 0, 3 * BUDGET);
	plant_mark(&p);
	plant_run(&p, 10);
	assert_int_equal(p.control.rate, 1);
	assert_true(p.changes <= 4);
}

static double burst_period, burst_length;

static struct load bursts(double t)
{
	bool on = fmod(t, burst_period) < burst_length;

	return (struct load){ .calls = on ? 3e6 : 1e3, .size = 100, .frees = on ? 3e6 : 1e3, .cpu = 1 };
}

static void bursty(void **state)
{
	static const double shapes[][2] = {
		{ 0.5, 0.1 }, { 1, 0.3 }, { 2, 1 }, { 5, 1 }, { 10, 2 }, { 40, 20 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct plant p;
		plant_init(&p, bursts);
		burst_period = shapes[i][0];
		burst_length = shapes[i][1];
		plant_run(&p, 120);
		assert_true(p.changes <= 30);
		plant_mark(&p);
		plant_run(&p, 600);
		/* a minute may see two, one down and one up again, or three for a big step */
		assert_true(p.changes <= 60);
		/* short ones are averaged; during long ones the budget must hold too, so less is used */
		assert_between(overhead(&p), (burst_period <= 2 ? 0.3 : 0.05) * BUDGET, 1.2 * BUDGET);
	}
}

static struct load storm_then_quiet(double t)
{
	double calls = t < 20 ? 1e7 : 1e3;

	return (struct load){ .calls = calls, .size = 100, .frees = calls, .cpu = 1 };
}

static struct load storm_then_silence(double t)
{
	return t < 20 ? storm_then_quiet(t) : (struct load){ .cpu = 0 };
}

static void comes_back(void **state)
{
	static const load_fn loads[] = { storm_then_quiet, storm_then_silence };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct plant p;
		plant_init(&p, loads[i]);
		/* at once in a storm */
		plant_run(&p, 1);
		assert_true(p.control.rate >= 1024 && p.changes <= 4);
		plant_run(&p, 19);
		assert_true(p.control.rate > 1);
		plant_mark(&p);
		plant_run(&p, 10);
		assert_int_equal(p.control.rate, 1);
		assert_true(p.changes <= 4);
	}
}

/* No sample seen for a while isn't no allocation: at a high rate it takes more to be sure. */
static void silence_at_a_high_rate(void **state)
{
	struct plant p;

	(void)state;
	steady_calls = 6e5;
	steady_size = 16;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		plant_init(&p, steady);
		p.seed = seed;
		rate_follow(&p.control, RATE_MAX);
		plant_run(&p, 20);
		assert_true(p.changes <= 4);
		assert_between(p.most, 0, 1.5 * BUDGET);
	}
}

static struct load grow_then_free(double t)
{
	if (t < 30)
		return (struct load){ .calls = 3e4, .size = 100, .cpu = 1 };
	return (struct load){ .calls = 1e2, .size = 100, .frees = t < 32 ? 7e5 : 1e2, .cpu = 1 };
}

/* Freeing what was recorded costs what it costs: the rate doesn't run away from it. */
static void storm_of_frees(void **state)
{
	struct plant p;

	(void)state;
	plant_init(&p, grow_then_free);
	plant_run(&p, 30);
	assert_int_equal(p.control.rate, 1);
	plant_mark(&p);
	plant_run(&p, 2);
	assert_true(overhead(&p) > 1.5 * BUDGET);	/* told, though */
	plant_run(&p, 30);
	assert_int_equal(p.changes, 0);
}

static struct load leak(double t)
{
	(void)t;
	return (struct load){ .calls = 2e6, .size = 100, .cpu = 20 };
}

static void live_samples_bound(void **state)
{
	struct plant p;

	(void)state;
	plant_init(&p, leak);
	plant_run(&p, 3600);
	assert_between(p.live, 0.9 * RATE_LIVE_SAMPLES, 2 * RATE_LIVE_SAMPLES);

	/* that many, none more: no further */
	struct rate_control c;
	rate_init(&c, BUDGET, 1);
	struct rate_sample s = { .seconds = 0.1, .cpu = 0.1, .allocs = 1e3, .alloc_calls = 1e3,
				 .alloc_bytes = 1e6, .live_samples = 10.0 * RATE_LIVE_SAMPLES };
	uint64_t rate = rate_update(&c, &s);
	assert_true(rate > 1);
	for (int i = 0; i < 100; i++)
		assert_true(rate_update(&c, &s) <= rate);
	s.live_samples = 1e300;
	for (int i = 0; i < 100; i++)
		assert_true(rate_update(&c, &s) <= RATE_MAX);
}

/* heaptop's own work on the events is bounded too, whatever the target has time for. */
static void collector_load(void **state)
{
	struct plant p;

	(void)state;
	steady_calls = 3e6;
	steady_size = 100;
	plant_init(&p, steady);
	p.control.budget = 10;
	plant_run(&p, 10);
	assert_between(p.last.work / STEP, 0.3 * RATE_COLLECTOR_LOAD, 1.2 * RATE_COLLECTOR_LOAD);
}

/* The agent has raised the rate by itself: that is where it goes on from, and comes down from soon. */
static void follows(void **state)
{
	struct plant p;

	(void)state;
	steady_calls = 1e3;
	steady_size = 100;
	plant_init(&p, steady);
	rate_follow(&p.control, 4096);
	assert_int_equal(p.control.rate, 4096);
	plant_run(&p, 0.7);
	assert_int_equal(p.control.rate, 1);
	rate_follow(&p.control, UINT64_MAX);
	assert_int_equal(p.control.rate, RATE_MAX);
}

/* ---- the overhead ---- */

static void overhead_counts_all(void **state)
{
	struct control_counts a = { .time = 1, .cpu = 1 }, b = { .time = 2, .cpu = 2 };
	struct rate_sample s;

	(void)state;
	/* 50 M calls a second of which hardly any is sampled: 60 ms a second */
	b.alloc_calls = b.free_calls = 25000000;
	b.events = 2000;
	b.allocs = 1000;
	b.cycles = 1000000;
	s = control_sample(&a, &b, 0.5);
	assert_between(rate_overhead(&s), 0.06 + 0.0005 + 2000 * 30e-9 - 1e-9,
		       0.06 + 0.0005 + 2000 * 30e-9 + 1e-9);
	/* of half a second of CPU time it is twice that */
	b.cpu = 1.5;
	s = control_sample(&a, &b, 0.5);
	assert_between(rate_overhead(&s), 0.1211, 0.1212);
	b.cpu = 1;
	s = control_sample(&a, &b, 0.5);
	assert_true(rate_overhead(&s) == 0);
	/* counters from the target may be anything */
	a.cycles = UINT64_MAX;
	b.cpu = 2;
	s = control_sample(&a, &b, 0.5);
	assert_between(rate_overhead(&s), 0.06, 0.061);
}

static void overhead_is_of_a_second(void **state)
{
	struct control c;
	struct control_counts now = { .time = 10, .cpu = 1 };

	(void)state;
	control_init(&c, BUDGET, 1, true);
	control_measure(&c, &now, 1, false);
	now.time = 10.2;
	now.cpu = 1.2;
	now.cycles = 10000000;
	control_measure(&c, &now, 1, false);
	assert_true(c.overhead == 0);
	/* the first comes soon */
	now.time = 10.3;
	now.cpu = 1.3;
	now.cycles = 30000000;
	control_measure(&c, &now, 1, false);
	assert_between((double)c.overhead, 0.0999, 0.1001);
	now.time = 11.2;
	now.cpu = 2.2;
	control_measure(&c, &now, 1, false);
	assert_between((double)c.overhead, 0.0999, 0.1001);
	now.time = 11.3;
	now.cpu = 2.3;
	now.cycles = 80000000;
	control_measure(&c, &now, 1, false);
	assert_between((double)c.overhead, 0.0499, 0.0501);
	/* asleep: what was measured last stands */
	now.time = 20;
	control_measure(&c, &now, 1, false);
	assert_between((double)c.overhead, 0.0499, 0.0501);
}

/* A program that ends before a second is over has an overhead too. */
static void overhead_of_a_short_life(void **state)
{
	struct control c;
	struct control_counts now = { .time = 10, .cpu = 0 };

	(void)state;
	control_init(&c, BUDGET, 1, true);
	control_measure(&c, &now, 1, false);
	now.time = 10.2;
	now.cpu = 0.2;
	now.cycles = 20000000;
	control_measure(&c, &now, 1, true);
	assert_between((double)c.overhead, 0.0999, 0.1001);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steady_programs),
		cmocka_unit_test(sleeper),
		cmocka_unit_test(mixed_sizes),
		cmocka_unit_test(ramping),
		cmocka_unit_test(bursty),
		cmocka_unit_test(comes_back),
		cmocka_unit_test(silence_at_a_high_rate),
		cmocka_unit_test(storm_of_frees),
		cmocka_unit_test(live_samples_bound),
		cmocka_unit_test(collector_load),
		cmocka_unit_test(follows),
		cmocka_unit_test(overhead_counts_all),
		cmocka_unit_test(overhead_is_of_a_second),
		cmocka_unit_test(overhead_of_a_short_life),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
