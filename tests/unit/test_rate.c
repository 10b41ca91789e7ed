/* collect/rate: the auto rate reaches its budget, stays there, and comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/rate.h"

/* A program that allocates `bps` bytes a second in blocks of `block` bytes; each recorded event
 * costs it `cost` seconds of its one CPU. */
static struct rate_sample program(uint64_t rate, double bps, double block, double cost)
{
	double per_second = bps / (rate > block ? (double)rate : block);

	return (struct rate_sample){
		.seconds = 0.1, .overhead = per_second * cost, .alloc_bps = bps,
		.events_ps = per_second,
	};
}

/* A program that uses 3% of a CPU is measured, too, after a while; so is one that uses hardly any. */
static void sleeper_is_measured(void **state)
{
	double since = 0;

	(void)state;
	assert_true(rate_ready(0.1, 0.1));
	assert_false(rate_ready(0.1, 0.01));
	while (since < 10 && !rate_ready(since, 0.03 * since))
		since += 0.1;
	assert_true(since < 1);
	assert_true(rate_ready(10, 0.01));
}

static void quiet_stays_exact(void **state)
{
	struct rate_control c = { .budget = 0.01, .rate = 1 };

	(void)state;
	for (int i = 0; i < 100; i++) {
		struct rate_sample s = program(c.rate, 1e5, 100, 1e-6);
		assert_int_equal(rate_update(&c, &s), 1);
	}
}

static void loud_is_held(void **state)
{
	struct rate_control c = { .budget = 0.01, .rate = 1 };
	int steps = 0;

	(void)state;
	while (program(c.rate, 1e9, 100, 1e-6).overhead > c.budget) {
		struct rate_sample s = program(c.rate, 1e9, 100, 1e-6);
		rate_update(&c, &s);
		assert_true(++steps < 5);
	}
	uint64_t settled = c.rate;
	assert_true(settled > 1000 && settled < 1000000);
	for (int i = 0; i < 1000; i++) {
		struct rate_sample s = program(c.rate, 1e9, 100, 1e-6);
		rate_update(&c, &s);
		/* within a factor of four of the budget, never over it by more than a step */
		assert_true(c.rate >= settled / 4 && c.rate <= settled * 4);
	}
}

static void comes_back(void **state)
{
	struct rate_control c = { .budget = 0.01, .rate = 1 << 20 };

	(void)state;
	for (int i = 0; i < 20 * 50 * 10; i++) {
		struct rate_sample s = program(c.rate, 1e4, 100, 1e-6);
		rate_update(&c, &s);
	}
	assert_int_equal(c.rate, 1);
}

static void live_samples_bound(void **state)
{
	struct rate_control c = { .budget = 0.01, .rate = 1 };

	(void)state;
	/* growing beyond the bound: rarer; the same number again: no further */
	struct rate_sample s = { .seconds = 0.1, .alloc_bps = 1e7, .events_ps = 1e5,
				 .live_samples = 10 * RATE_LIVE_SAMPLES };
	uint64_t rate = rate_update(&c, &s);
	assert_true(rate > 1);
	for (int i = 0; i < 100; i++)
		assert_true(rate_update(&c, &s) <= rate);
	s.live_samples = UINT64_MAX / 2;
	for (int i = 0; i < 100; i++)
		assert_true(rate_update(&c, &s) <= RATE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sleeper_is_measured),
		cmocka_unit_test(quiet_stays_exact),
		cmocka_unit_test(loud_is_held),
		cmocka_unit_test(comes_back),
		cmocka_unit_test(live_samples_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
