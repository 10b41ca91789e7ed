/* report/judge.h: each rule with figures that just meet it and that just don't, and its sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/judge.h"
#include "report/parts.h"

#define N 10

static const uint64_t rising[N] = { 1000000, 1100000, 1200000, 1300000, 1400000, 1500000, 1600000, 1700000, 1800000, 1900000 };
static const uint64_t falling[N] = { 1900000, 1800000, 1700000, 1600000, 1500000, 1400000, 1300000, 1200000, 1100000, 1000000 };
static const uint64_t flat[N] = { 5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000 };
static const uint64_t noisy[N] = { 1000000, 1900000, 1100000, 1800000, 900000, 1700000, 1000000, 1900000, 1200000, 1800000 };

/* Live bytes of so many blocks, of each of these ages. */
static void age(struct report_parts *parts, unsigned age_class, uint64_t bytes)
{
	parts->known = parts->fresh = true;
	parts->ages[age_class].bytes += bytes;
	parts->ages[age_class].samples++;
	parts->total.bytes += bytes;
	parts->total.samples++;
}

static void expect(const struct judge_facts *f, enum verdict verdict, const char *text)
{
	char buf[JUDGE_TEXT];

	assert_int_equal(judge(f, buf), verdict);
	assert_string_equal(buf, text);
}

static void test_growing(void **state)
{
	(void)state;
	assert_true(judge_growing(rising, N, 0));
	assert_false(judge_growing(falling, N, 0));
	assert_false(judge_growing(flat, N, 0));
	assert_false(judge_growing(noisy, N, 0));
	assert_false(judge_growing(rising, 3, 0));
	/* two standard errors */
	assert_true(judge_growing(rising, N, 449999));
	assert_false(judge_growing(rising, N, 450000));
	/* 2% and 4 KiB */
	uint64_t slow[N], small[N];
	for (uint64_t i = 0; i < N; i++) {
		slow[i] = 1000000 + i * 2220;
		small[i] = i * 455;
	}
	assert_false(judge_growing(slow, N, 0));
	slow[N - 1] += 30;
	assert_true(judge_growing(slow, N, 0));
	assert_false(judge_growing(small, N, 0));
	small[N - 1] += 2;
	assert_true(judge_growing(small, N, 0));
}

static void test_leak(void **state)
{
	(void)state;
	struct report_parts parts = { 0 };
	struct trace_stats s = { .alloc_bytes = 4000000, .alloc_q10 = 40 << 10, .free_bytes = 2100000, .free_q10 = 1 << 10,
				 .live_bytes = 1900000, .live_q10 = 39 << 10, .samples = 40, .live_samples = 39 };
	struct judge_facts f = { .s = &s, .trend = rising, .ntrend = N, .seconds = 9, .state = VIEW_RUNNING };

	expect(&f, VERDICT_GROWING, "growing 97.7K/s, but 53% of what it allocated freed: may be a cache or a queue that fills");
	age(&parts, CLASS_AGE_MINUTE, 490);
	age(&parts, 2, 510);
	f.parts = &parts;
	expect(&f, VERDICT_GROWING, "growing 97.7K/s, but 53% of what it allocated freed: may be a cache or a queue that fills");
	age(&parts, CLASS_AGE_HOUR, 220);
	expect(&f, VERDICT_LEAK, "growing 97.7K/s, 58% older than 1 min: looks like a leak");
	f.parts = NULL;
	s.free_bytes = 390000;
	expect(&f, VERDICT_LEAK, "growing 97.7K/s, 10% of what it allocated freed: looks like a leak");
	s.free_bytes = 30000;
	expect(&f, VERDICT_LEAK, "growing 97.7K/s, 1% of what it allocated freed: looks like a leak");
	s.free_bytes = 0;
	expect(&f, VERDICT_LEAK, "growing 97.7K/s, nothing of it ever freed: looks like a leak");
	/* what doesn't run doesn't grow */
	f.state = VIEW_EXITED;
	expect(&f, VERDICT_LEFT, "1.8M still held when the program ended");
	f.state = VIEW_SNAPSHOT;
	expect(&f, VERDICT_HELD, "nothing of it ever freed");
	f.parts = &parts;
	expect(&f, VERDICT_HELD, "58% older than 1 min, nothing of it ever freed");
}

/* Until there is a trend the rates tell. */
static void test_rates(void **state)
{
	(void)state;
	struct trace_stats s = { .alloc_bytes = 9000, .alloc_q10 = 9 << 10, .live_bytes = 9000, .live_q10 = 9 << 10,
				 .samples = 9, .alloc_bps = 4096, .alloc_cps = 1, .free_bps = 2047 };
	struct judge_facts f = { .s = &s, .trend = rising, .ntrend = 3, .seconds = 2 };

	expect(&f, VERDICT_LEAK, "growing 2.0K/s, nothing of it ever freed: looks like a leak");
	s.free_bps = 2048;
	expect(&f, VERDICT_TURNOVER, "turns over: allocates 4.0K/s, frees 2.0K/s");
	s.alloc_bps = 1023;
	s.free_bps = 0;
	expect(&f, VERDICT_TURNOVER, "turns over: allocates 1023/s, frees 0/s");
	s.alloc_bps = 4096;
	f.trend = flat;
	f.ntrend = N;
	expect(&f, VERDICT_TURNOVER, "turns over: allocates 4.0K/s, frees 0/s");
}

static void test_few(void **state)
{
	(void)state;
	struct trace_stats s = { .alloc_bytes = 1900000, .alloc_q10 = 9 << 10, .live_bytes = 1900000, .live_q10 = 9 << 10,
				 .samples = 9, .live_samples = 9, .live_var = 5 };
	struct judge_facts f = { .s = &s, .trend = rising, .ntrend = N, .seconds = 9 };

	assert_true(judge_unsure(&s));
	expect(&f, VERDICT_FEW, "9 samples only: too few to judge by");
	s.samples = 1;
	expect(&f, VERDICT_FEW, "1 sample only: too few to judge by");
	s.samples = 10;
	assert_false(judge_unsure(&s));
	s.samples = 9;
	s.live_var = 0;
	assert_false(judge_unsure(&s));		/* exact */
	assert_int_equal(judge(&f, (char[JUDGE_TEXT]){ 0 }), VERDICT_LEAK);
}

static void test_churn(void **state)
{
	(void)state;
	struct trace_stats s = { .alloc_bytes = 1000, .alloc_q10 = 1000 << 10, .free_bytes = 990, .free_q10 = 990 << 10,
				 .live_bytes = 10, .live_q10 = 10 << 10, .temp_q10 = 901 << 10, .samples = 1000,
				 .alloc_bps = 44 << 20, .free_bps = 44 << 20, .alloc_cps = 9 };
	struct judge_facts f = { .s = &s, .trend = flat, .ntrend = N, .seconds = 9 };

	assert_true(judge_temporary(&s));
	expect(&f, VERDICT_CHURN, "90% of its blocks freed within 10 ms, 44.0M/s: churn");
	s.temp_q10 = 900 << 10;
	assert_false(judge_temporary(&s));
	expect(&f, VERDICT_TURNOVER, "turns over: allocates 44.0M/s, frees 44.0M/s");
	s = (struct trace_stats){ .alloc_q10 = 9 << 10, .temp_q10 = 9 << 10 };
	assert_false(judge_temporary(&s));	/* nine blocks are no habit */
	expect(&f, VERDICT_NOTHING, "all of it has been freed");
	s.alloc_q10 = s.temp_q10 = 0;
	expect(&f, VERDICT_NOTHING, "nothing allocated here");
	s.fault_bytes = 3 << 20;
	expect(&f, VERDICT_NOTHING, "was the first to touch 3.0M of memory, allocates none itself");
	s.fault_bytes = 0;
}

static void test_steady(void **state)
{
	(void)state;
	struct report_parts parts = { 0 };
	struct trace_stats s = { .alloc_bytes = 5000, .alloc_q10 = 5 << 10, .live_bytes = 5000, .live_q10 = 5 << 10, .samples = 5 };
	struct judge_facts f = { .s = &s, .trend = flat, .ntrend = N, .seconds = 9, .parts = &parts };

	expect(&f, VERDICT_STEADY, "steady: nothing allocated just now");
	age(&parts, 4, 5000);
	expect(&f, VERDICT_STEADY, "steady: nothing new for 1 s");
	s.alloc_cps = 1;	/* over a window that is longer than that */
	expect(&f, VERDICT_STEADY, "steady: nothing new for 1 s");
	parts.fresh = false;
	expect(&f, VERDICT_TURNOVER, "turns over: allocates 0/s, frees 0/s");
	parts = (struct report_parts){ 0 };
	age(&parts, CLASS_AGE_HOUR, 5000);
	expect(&f, VERDICT_STEADY, "steady: nothing new for 1 h");
	f.trend = falling;
	expect(&f, VERDICT_SHRINKING, "shrinking 97.7K/s");
	f.trend = NULL;
	f.ntrend = 0;
	expect(&f, VERDICT_STEADY, "steady: nothing new for 1 h");
	f.state = VIEW_SNAPSHOT;
	parts = (struct report_parts){ 0 };
	age(&parts, 0, 85);
	age(&parts, 1, 10);
	age(&parts, 5, 5);
	expect(&f, VERDICT_HELD, "95% younger than 10 ms, nothing of it ever freed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_growing),
		cmocka_unit_test(test_leak),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_few),
		cmocka_unit_test(test_churn),
		cmocka_unit_test(test_steady),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
