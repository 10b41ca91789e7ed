/* The parts of RSS: they always add up, whatever was measured when; and what is said of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include <string.h>

#include "report/rss.h"

#define MIB (1ull << 20)

static uint64_t sum(const struct rss *rss)
{
	uint64_t n = 0;

	for (int i = 0; i < RSS_PARTS; i++)
		n += rss->part[i];
	return n;
}

static void test_parts(void **state)
{
	(void)state;
	struct view view = {
		.info.memory = {
			.anon = 100 * MIB, .file = 20 * MIB, .shmem = 10 * MIB, .stacks = 2 * MIB, .data = 3 * MIB,
			.agent_anon = 1 * MIB, .agent_shmem = 4 * MIB, .tracked_anon = 60 * MIB,
			.tracked_file = 8 * MIB, .tracked_var = 4e12,
		},
		.totals.s = { .live_bytes = 200 * MIB, .res_bytes = 68 * MIB, .swap_bytes = 12 * MIB },
	};
	struct rss rss;

	rss_split(&view, &rss);
	assert_int_equal(rss.total, 130 * MIB);
	assert_int_equal(sum(&rss), rss.total);
	assert_int_equal(rss.part[RSS_STACKS], 2 * MIB);
	assert_int_equal(rss.part[RSS_DATA], 3 * MIB);
	assert_int_equal(rss.part[RSS_AGENT], 5 * MIB);
	/* of 8 shared ones 6 are the system's shared memory that isn't ours, the other 2 count as files */
	assert_int_equal(rss.part[RSS_TRACKED], 68 * MIB);
	assert_int_equal(rss.part[RSS_SHARED], 0);
	assert_int_equal(rss.part[RSS_FILES], 18 * MIB);
	assert_int_equal(rss.part[RSS_OLDER], 0);
	assert_int_equal(rss.part[RSS_SLACK], 34 * MIB);
	assert_true(rss.error == 2e6);
	assert_int_equal(rss.untouched, 120 * MIB);
	/* what was there at the attach, as long as there is room for it */
	view.info.memory.older = 30 * MIB;
	rss_split(&view, &rss);
	assert_int_equal(rss.part[RSS_OLDER], 30 * MIB);
	assert_int_equal(rss.part[RSS_SLACK], 4 * MIB);
	view.info.memory.older = 50 * MIB;
	rss_split(&view, &rss);
	assert_int_equal(rss.part[RSS_OLDER], 34 * MIB);
	assert_int_equal(rss.part[RSS_SLACK], 0);
	assert_int_equal(sum(&rss), rss.total);
}

/* Looked at one after the other, and partly estimated: more may be claimed than there is. */
static void test_always_add_up(void **state)
{
	(void)state;
	static const uint64_t values[] = { 0, 1, 4096, 77 * MIB, 5000 * MIB, 1ull << 60, UINT64_MAX };
	uint64_t random = 3;

	for (int round = 0; round < 20000; round++) {
		struct view view = { 0 };
		struct view_memory *m = &view.info.memory;
		uint64_t *const all[] = {
			&m->anon, &m->file, &m->shmem, &m->stacks, &m->data, &m->agent_anon, &m->agent_shmem,
			&m->older, &m->tracked_anon, &m->tracked_file, &view.totals.s.live_bytes,
			&view.totals.s.res_bytes, &view.totals.s.swap_bytes,
		};
		struct rss rss;
		char text[200];
		for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
			random = random * 6364136223846793005ull + 1442695040888963407ull;
			*all[i] = values[(random >> 40) % 7];
		}
		rss_split(&view, &rss);
		assert_int_equal(sum(&rss), rss.total);
		if (m->anon < 1ull << 60 && m->file < 1ull << 60 && m->shmem < 1ull << 60)
			assert_int_equal(rss.total, m->anon + m->file + m->shmem);
		assert_true(rss.untouched <= rss.live);
		rss_judge(&rss, round % 2, text, sizeof(text));
	}
}

static bool says(const struct rss *rss, bool attached, const char *what)
{
	char text[200];

	if (!rss_judge(rss, attached, text, sizeof(text)))
		return !what;
	assert_true(strlen(text) < sizeof(text) - 1);
	return what && strstr(text, what);
}

static void test_judge(void **state)
{
	(void)state;
	struct rss rss = { 0 };

	assert_true(says(&rss, true, NULL));
	rss = (struct rss){ .total = 100 * MIB, .part = { [RSS_TRACKED] = 90 * MIB, [RSS_FILES] = 10 * MIB }, .live = 90 * MIB };
	assert_true(says(&rss, true, NULL));
	rss.part[RSS_OLDER] = 60 * MIB;
	rss.part[RSS_TRACKED] = 30 * MIB;
	assert_true(says(&rss, true, "60% of RSS may be older than the attach"));
	rss = (struct rss){ .total = 100 * MIB, .part = { [RSS_TRACKED] = 100 * MIB }, .live = 1000 * MIB, .untouched = 900 * MIB };
	assert_true(says(&rss, false, "900.0M of 1000.0M live bytes was never touched"));
	rss.swapped = 200 * MIB;
	assert_true(says(&rss, false, "200.0M of live blocks is swapped out"));
	rss = (struct rss){ .total = 100 * MIB, .part = { [RSS_TRACKED] = 10 * MIB, [RSS_SLACK] = 90 * MIB }, .live = 10 * MIB };
	assert_true(says(&rss, false, "90% of RSS is heap without live blocks"));
	rss = (struct rss){ .total = 100 * MIB, .part = { [RSS_TRACKED] = 70 * MIB, [RSS_SLACK] = 30 * MIB }, .live = 70 * MIB };
	assert_true(says(&rss, false, "30% of RSS is the allocator's"));
	rss = (struct rss){ .total = 10 * MIB, .part = { [RSS_TRACKED] = 6 * MIB, [RSS_AGENT] = 4 * MIB }, .live = 6 * MIB };
	assert_true(says(&rss, false, "4.0M of RSS is heaptop's own"));
	rss = (struct rss){ .total = 10 * MIB, .part = { [RSS_TRACKED] = 1 * MIB, [RSS_FILES] = 9 * MIB }, .live = 1 * MIB };
	assert_true(says(&rss, false, "90% of RSS is files"));
}

static void test_names(void **state)
{
	(void)state;
	for (enum rss_part part = 0; part < RSS_PARTS; part++) {
		assert_non_null(rss_part_name(part));
		assert_true(strlen(rss_part_title(part)) <= 40);
	}
	assert_null(rss_part_name(RSS_PARTS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_always_add_up),
		cmocka_unit_test(test_judge),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
