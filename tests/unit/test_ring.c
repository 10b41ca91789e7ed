/*
 * The ring reader: order, wrapping, busy and abandoned records, and what a hostile target can
 * put into a ring.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "probe/ring.h"

#define BYTES 4096u
#define NONCE 0xfeedface12345678ull
#define RINGS 2
#define SECOND 1000000000ull

static struct ring_reader *reader;
static uint8_t data[RINGS][BYTES] __attribute__((aligned(8)));
static uint64_t head[RINGS];
static uint64_t got[4096], ngot;

static int setup(void **unused)
{
	(void)unused;
	const struct ring_reader_config config = { RINGS, BYTES, NONCE, 4 };

	reader = ring_reader_create(&config);
	memset(data, 0xaa, sizeof(data));
	memset(head, 0, sizeof(head));
	return 0;
}

static int teardown(void **unused)
{
	(void)unused;
	ring_reader_destroy(reader);
	return 0;
}

static void *reserve(unsigned i, uint64_t size, uint64_t flags)
{
	uint64_t off = head[i] % BYTES;

	if (size > BYTES - off) {
		uint64_t word = (uint64_t)wire_tag(head[i], NONCE) << 32 | (BYTES - off) | WIRE_PAD;
		memcpy(data[i] + off, &word, 8);
		head[i] += BYTES - off;
		off = 0;
	}
	struct wire_head *h = (struct wire_head *)(data[i] + off);
	memset(h, 0, size);
	h->word = (uint64_t)wire_tag(head[i], NONCE) << 32 | size | flags;
	head[i] += size;
	return h;
}

static struct wire_free *put_free(unsigned i, uint64_t tsc, uint64_t addr)
{
	struct wire_free *f = reserve(i, sizeof(*f), 0);

	f->h.tsc = tsc;
	f->h.kind = WIRE_FREE;
	f->addr = addr;
	return f;
}

static struct wire_alloc *put_alloc(unsigned i, uint64_t tsc, uint32_t stack)
{
	struct wire_alloc *a = reserve(i, sizeof(*a) + stack, 0);

	a->h.tsc = tsc;
	a->h.kind = WIRE_ALLOC;
	a->addr = tsc;
	a->stack_bytes = stack;
	return a;
}

static void on_event(void *ctx, const struct wire_head *h)
{
	(void)ctx;
	if (h->kind == WIRE_ALLOC) {
		const struct wire_alloc *a = (const struct wire_alloc *)h;
		volatile uint8_t sum = 0;

		for (uint32_t i = 0; i < a->stack_bytes; i++)	/* for the sanitizers to see */
			sum += ((const uint8_t *)(a + 1) + a->nframes * 8)[i];
		assert_true(a->nframes <= WIRE_MAX_FRAMES && a->stack_bytes <= WIRE_MAX_STACK);
	}
	assert_true(h->slot < WIRE_SLOTS);
	if (ngot < 4096)
		got[ngot++] = h->tsc;
}

/* A round at TSC `tsc`. */
static size_t round_at(uint64_t tsc, uint64_t ns, bool last)
{
	ngot = 0;
	ring_reader_begin(reader, tsc, ns, last);
	for (unsigned i = 0; i < RINGS; i++)
		assert_true(ring_reader_read(reader, i, head[i], data[i]) <= head[i] || head[i] & 7);
	return ring_reader_finish(reader, tsc + 10, on_event, NULL);
}

static void expect(size_t n, ...)
{
	va_list ap;

	assert_int_equal(ngot, n);
	va_start(ap, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(got[i], va_arg(ap, int));
	va_end(ap);
}

static void test_order(void **unused)
{
	(void)unused;
	put_alloc(0, 5, 64);
	put_free(0, 9, 1);
	put_free(1, 7, 1);
	put_free(1, 6, 1);		/* out of order within a ring */
	put_free(0, 12, 1);
	assert_int_equal(round_at(10, 0, false), 4);
	expect(4, 5, 6, 7, 9);
	put_free(1, 11, 1);
	assert_int_equal(round_at(20, 0, false), 2);
	expect(2, 11, 12);
	assert_int_equal(round_at(30, 0, false), 0);
	assert_int_equal(ring_reader_bad(reader), 0);
}

static void test_wrap(void **unused)
{
	(void)unused;
	uint64_t n = 0;

	for (int t = 1; t < 2000; t++) {
		put_alloc(t & 1, (uint64_t)t, 8 * ((uint32_t)t % 60));
		n += round_at((uint64_t)t, 0, false);
		assert_int_equal(ring_reader_tail(reader, t & 1), head[t & 1]);
	}
	assert_int_equal(n, 1999);
	assert_int_equal(ring_reader_bad(reader), 0);
}

static void test_busy(void **unused)
{
	(void)unused;
	round_at(10, 0, false);
	struct wire_free *f = reserve(0, sizeof(*f), WIRE_BUSY);
	put_free(0, 15, 1);		/* hidden behind the busy one */
	put_free(1, 9, 1);
	put_free(1, 16, 1);		/* might depend on what is hidden */
	assert_int_equal(round_at(20, SECOND, false), 1);
	expect(1, 9);
	f->h.tsc = 14;
	f->h.kind = WIRE_FREE;
	f->h.word &= ~(uint64_t)WIRE_BUSY;
	round_at(30, SECOND, false);
	expect(3, 14, 15, 16);
	assert_int_equal(ring_reader_abandoned(reader), 0);
}

static void test_abandoned(void **unused)
{
	(void)unused;
	reserve(0, 64, WIRE_BUSY);
	put_free(0, 15, 1);
	assert_int_equal(round_at(20, SECOND, false), 0);
	assert_int_equal(round_at(21, 2 * SECOND - 1, false), 0);
	assert_int_equal(round_at(22, 2 * SECOND, false), 1);
	assert_int_equal(ring_reader_abandoned(reader), 1);
	/* Reserved, but not even its first word is there: go on at the next that is. */
	struct wire_free *f = reserve(1, sizeof(*f), 0);
	f->h.word = 0;
	put_free(1, 25, 1);
	assert_int_equal(round_at(30, 3 * SECOND, false), 0);
	assert_int_equal(round_at(31, 5 * SECOND, false), 1);
	expect(1, 25);
	assert_int_equal(ring_reader_abandoned(reader), 2);
	reserve(0, 64, WIRE_BUSY);
	put_free(0, 35, 1);
	assert_int_equal(round_at(32, 5 * SECOND, true), 1);	/* at the end nothing is waited for */
}

/* Many behind one another don't take a second each. */
static void test_abandoned_many(void **unused)
{
	(void)unused;
	for (uint64_t i = 0; i < 3; i++) {
		reserve(0, 64, WIRE_BUSY);
		put_free(0, 10 + i, 1);
	}
	assert_int_equal(round_at(20, SECOND, false), 0);
	reserve(0, 64, WIRE_BUSY);	/* younger: waited for */
	put_free(0, 21, 1);
	assert_int_equal(round_at(30, 2 * SECOND, false), 3);
	assert_int_equal(ring_reader_abandoned(reader), 3);
	expect(3, 10, 11, 12);
	assert_int_equal(round_at(40, 3 * SECOND, false), 1);
	assert_int_equal(ring_reader_abandoned(reader), 4);
}

static struct wire_alloc *put_walked(unsigned i, uint64_t tsc, uint16_t nframes, uint64_t room)
{
	struct wire_alloc *a = reserve(i, offsetof(struct wire_alloc, regs) + room * 8, 0);

	a->h.tsc = tsc;
	a->h.kind = WIRE_ALLOC;
	a->h.flags = WIRE_F_WALKED;
	a->addr = tsc;
	a->nframes = nframes;
	return a;
}

/* Stacks walked in the target; events that were taken back. */
static void test_walked(void **unused)
{
	(void)unused;
	put_walked(0, 1, 1, 1);
	put_walked(0, 2, 3, 3);
	put_free(0, 3, 1)->h.kind = WIRE_VOID;
	put_free(0, 4, 1);
	assert_int_equal(round_at(20, 0, false), 3);
	expect(3, 1, 2, 4);
	assert_int_equal(ring_reader_bad(reader), 0);
	put_walked(0, 21, 0, 1);
	put_walked(0, 21, 4, 3);
	put_walked(0, 21, 0xffff, 3);
	put_walked(0, 21, WIRE_MAX_FRAMES + 1, WIRE_MAX_FRAMES + 1);
	put_walked(0, 21, 1, 3)->stack_bytes = 8;
	put_walked(0, 21, 1, 1)->hook = 4;
	put_walked(0, 21, 1, 3)->h.flags = 0;	/* no room for registers */
	assert_int_equal(round_at(30, 0, false), 0);
	assert_int_equal(ring_reader_bad(reader), 7);
}

static void test_hostile(void **unused)
{
	(void)unused;
	uint64_t bad = 0;
	struct wire_alloc *a = put_alloc(0, 1, 64);

	a->stack_bytes = 65;
	put_alloc(0, 1, 64)->stack_bytes = ~0u;
	put_alloc(0, 1, 64)->nframes = 9;
	put_alloc(0, 1, 64)->nframes = 0xffff;
	put_alloc(0, 1, 64)->hook = 4;
	put_alloc(0, 1, 64)->h.slot = WIRE_SLOTS;
	put_free(0, 1, 1)->h.kind = 77;
	put_free(0, 1, 1)->h.kind = WIRE_ALLOC;
	put_free(0, 31, 1);			/* from the future */
	put_free(0, 2, 1);
	((struct wire_head *)reserve(0, 8, 0))->word |= 0;	/* too short for anything */
	put_free(0, 3, 1);
	assert_int_equal(round_at(20, 0, false), 2);
	expect(2, 2, 3);
	bad = ring_reader_bad(reader);
	assert_int_equal(bad, 10);

	/* A size beyond the head, of nothing, or across the end: the rest is lost. */
	struct wire_free *f = put_free(0, 4, 1);
	f->h.word += 1024;
	assert_int_equal(round_at(21, 0, false), 0);
	f = put_free(0, 4, 1);
	f->h.word -= sizeof(*f);
	assert_int_equal(round_at(22, 0, false), 0);
	assert_int_equal(ring_reader_bad(reader), bad + 2);
	/* Heads that jump, go back, are odd. */
	uint64_t keep = head[0];
	head[0] += BYTES * 3;
	round_at(23, 0, false);
	head[0] = keep;
	round_at(24, 0, false);
	head[0] = keep + 3;
	round_at(25, 0, false);
	head[0] = ~0ull;
	round_at(26, 0, false);
	assert_int_equal(ring_reader_bad(reader), bad + 6);
}

/* Random bytes with right tags: nothing happens but counting. */
static void test_random(void **unused)
{
	(void)unused;
	uint64_t x = 88172645463325252ull;

	for (unsigned n = 0; n < 20000; n++) {
		for (unsigned i = 0; i < RINGS; i++) {
			for (unsigned k = 0; k < 40; k++) {
				uint64_t pos = head[i] + (x >> 20) % 2048 / 8 * 8;
				uint64_t word;

				x ^= x << 13;
				x ^= x >> 7;
				x ^= x << 17;
				word = (uint64_t)wire_tag(pos, NONCE) << 32 | ((x >> 40) & (x & 1 ? 0xfff : 0xff));
				memcpy(data[i] + pos % BYTES / 8 * 8, k % 3 ? &word : &x, 8);
			}
			head[i] += x % 512 * (x >> 60 ? 8 : 1);
		}
		round_at(n * 10, n * 100000000ull, n % 50 == 0);
		for (unsigned i = 0; i < RINGS; i++)
			head[i] = ring_reader_tail(reader, i);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_order), T(test_wrap), T(test_busy), T(test_abandoned), T(test_abandoned_many),
		T(test_walked), T(test_hostile), T(test_random),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
