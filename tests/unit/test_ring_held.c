/*
 * The ring reader with much to hand over: a round is bounded and the next goes on with the rest, what is too
 * early is kept over many rounds, and all of it comes once and in order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "probe/ring.h"

#define BYTES (4u << 20)
#define NONCE 0x123456789abcdef0ull
#define RINGS 2
#define MANY 100000u	/* events of a ring, more than a round hands over */
#define NO_TIME 1u	/* ns of all rounds: nothing is given up */

static struct ring_reader *reader;
static uint8_t *data[RINGS];
static uint64_t head[RINGS], last_tsc, nhanded, nwrong;

static int setup(void **unused)
{
	const struct ring_reader_config config = { RINGS, BYTES, NONCE };

	(void)unused;
	reader = ring_reader_create(&config);
	for (unsigned i = 0; i < RINGS; i++)
		data[i] = xcalloc(1, BYTES);
	memset(head, 0, sizeof(head));
	last_tsc = nhanded = nwrong = 0;
	return 0;
}

static int teardown(void **unused)
{
	(void)unused;
	ring_reader_destroy(reader);
	for (unsigned i = 0; i < RINGS; i++)
		free(data[i]);
	return 0;
}

/* A free at `tsc` whose address says so, too. */
static struct wire_head *put(unsigned i, uint64_t tsc, uint64_t flags)
{
	struct wire_head *h = (struct wire_head *)(data[i] + head[i]);

	assert_true(head[i] + sizeof(*h) <= BYTES);
	h->tsc = tsc;
	h->addr_slot = tsc << 16;
	h->word = (uint64_t)wire_tag(head[i], NONCE) << 32 | (uint64_t)WIRE_FREE << WIRE_KIND_SHIFT | sizeof(*h) | flags;
	head[i] += sizeof(*h);
	return h;
}

static void on_event(void *ctx, const struct probe_event *e)
{
	(void)ctx;
	nwrong += e->kind != WIRE_FREE || e->addr != e->tsc || e->tsc <= last_tsc;
	last_tsc = e->tsc;
	nhanded++;
}

static size_t round_at(uint64_t tsc, bool last)
{
	ring_reader_begin(reader, tsc, NO_TIME, last);
	for (unsigned i = 0; i < RINGS; i++)
		ring_reader_read(reader, i, head[i], data[i]);
	return ring_reader_finish(reader, tsc + 10, on_event, NULL);
}

static void expect_all(uint64_t n)
{
	assert_int_equal(nhanded, n);
	assert_int_equal(nwrong, 0);
	assert_int_equal(ring_reader_bad(reader), 0);
	assert_int_equal(ring_reader_abandoned(reader), 0);
}

static void put_many(uint64_t from)
{
	for (uint64_t k = 0; k < MANY; k++) {
		put(0, from + 2 * k, 0);
		put(1, from + 2 * k + 1, 0);
	}
}

static void test_rounds(void **unused)
{
	unsigned rounds = 0;
	size_t most = 0;

	(void)unused;
	put_many(1);
	do {
		size_t n = round_at(10 * MANY, false);
		most = n > most ? n : most;
		rounds++;
		/* what comes while it is behind waits for its turn */
		if (rounds == 2)
			put(0, 11 * MANY, 0);
	} while (ring_reader_behind(reader));
	assert_true(rounds > 2);
	assert_true(most < MANY);
	expect_all(2 * MANY);
	assert_int_equal(round_at(12 * MANY, false), 1);
	expect_all(2 * MANY + 1);
}

static void test_last_takes_all(void **unused)
{
	(void)unused;
	put_many(1);
	round_at(10 * MANY, false);
	assert_true(ring_reader_behind(reader));
	put(1, 11 * MANY, 0);
	round_at(12 * MANY, true);
	assert_false(ring_reader_behind(reader));
	expect_all(2 * MANY + 1);
}

/* A thread that was preempted within its record: the other ring's events wait for it. */
static void test_kept(void **unused)
{
	(void)unused;
	put(0, 1, 0);
	struct wire_head *busy = put(0, 1000, WIRE_BUSY);
	put(0, 1001, 0);
	for (uint64_t k = 0; k < MANY; k++)
		put(1, 2000 + k, 0);
	for (int i = 0; i < 5; i++)
		round_at(10 * MANY, false);
	assert_true(nhanded <= 1);
	busy->word &= ~(uint64_t)WIRE_BUSY;
	do
		round_at(11 * MANY, false);
	while (ring_reader_behind(reader));
	expect_all(MANY + 3);
}

/* One that can't be: later than now. It isn't kept for ever. */
static void test_lies_are_dropped(void **unused)
{
	(void)unused;
	put(0, 5, 0);
	put(0, 1000000, 0);
	for (int i = 0; i < 3; i++)
		round_at(10 + (uint64_t)i, false);
	assert_int_equal(nhanded, 1);
	assert_int_equal(ring_reader_bad(reader), 1);
	round_at(2000000, false);
	assert_int_equal(nhanded, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_rounds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_last_takes_all, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lies_are_dropped, setup, teardown),
	};

	return cmocka_run_group_tests_name("ring_held", tests, NULL, NULL);
}
