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
	const struct ring_reader_config config = { RINGS, BYTES, NONCE };

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

static void *reserve(unsigned i, enum wire_kind kind, uint64_t size, uint64_t bits)
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
	h->word = (uint64_t)wire_tag(head[i], NONCE) << 32 | (uint64_t)kind << WIRE_KIND_SHIFT | size | bits;
	head[i] += size;
	return h;
}

static struct wire_head *put_free(unsigned i, uint64_t tsc, uint64_t addr)
{
	struct wire_head *f = reserve(i, WIRE_FREE, sizeof(*f), 0);

	f->tsc = tsc;
	f->addr_slot = addr << 16;
	return f;
}

/* With nframes frames and a copy of `stack` bytes. */
static struct wire_copy *put_copied(unsigned i, uint64_t tsc, uint32_t nframes, uint32_t stack)
{
	struct wire_copy *c;
	struct wire_alloc *a = reserve(i, WIRE_ALLOC, sizeof(*a) + nframes * 8 + sizeof(*c) + stack, 0);

	a->h.tsc = tsc;
	a->stack = nframes;
	c = (struct wire_copy *)((uint64_t *)(a + 1) + nframes);
	c->bytes = stack;
	return c;
}

static struct wire_alloc *put_walked(unsigned i, uint64_t tsc, uint32_t keep, uint32_t nframes, uint64_t room)
{
	struct wire_alloc *a = reserve(i, WIRE_ALLOC, sizeof(*a) + room * 8,
				       (uint64_t)WIRE_F_WALKED << WIRE_FLAGS_SHIFT);

	a->h.tsc = tsc;
	a->h.addr_slot = tsc << 16;
	a->stack = keep << WIRE_STACK_BITS | nframes;
	return a;
}

static struct probe_event last;

static void on_event(void *ctx, const struct probe_event *e)
{
	(void)ctx;
	if (e->kind == WIRE_ALLOC) {
		volatile uint64_t sum = 0;

		for (uint32_t i = 0; i < e->nframes; i++)	/* for the sanitizers to see */
			sum += e->frames[i];
		if (!(e->flags & WIRE_F_WALKED)) {
			sum += e->regs->ip;
			for (uint32_t i = 0; i < e->stack_bytes; i++)
				sum += e->stack[i];
		}
		assert_true(e->nframes + e->keep <= WIRE_MAX_FRAMES && e->stack_bytes <= WIRE_MAX_STACK);
	}
	assert_true(e->slot < WIRE_SLOTS);
	last = *e;
	if (ngot < 4096)
		got[ngot++] = e->tsc;
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
	put_copied(0, 5, 0, 64);
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

/* An unmapping has a length; a record too short for it is none. */
static void test_range(void **unused)
{
	(void)unused;
	struct wire_range *r = reserve(0, WIRE_UNMAP, sizeof(*r), 0);

	r->h.tsc = 5;
	r->h.addr_slot = 0x7000ull << 16 | 3;
	r->bytes = 0x2000;
	assert_int_equal(round_at(10, 0, false), 1);
	assert_int_equal(last.kind, WIRE_UNMAP);
	assert_int_equal(last.addr, 0x7000);
	assert_int_equal(last.slot, 3);
	assert_int_equal(last.size, 0x2000);
	struct wire_head *h = reserve(0, WIRE_UNMAP, sizeof(*h), 0);
	h->tsc = 15;
	h->addr_slot = 3;
	assert_int_equal(round_at(20, 0, false), 0);
	assert_int_equal(ring_reader_bad(reader), 1);
}

static void test_wrap(void **unused)
{
	(void)unused;
	uint64_t n = 0;

	for (int t = 1; t < 2000; t++) {
		put_copied(t & 1, (uint64_t)t, (uint32_t)t % 7, 8 * ((uint32_t)t % 60));
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
	struct wire_head *f = reserve(0, WIRE_FREE, sizeof(*f), WIRE_BUSY);
	put_free(0, 15, 1);		/* hidden behind the busy one */
	put_free(1, 9, 1);
	put_free(1, 16, 1);		/* might depend on what is hidden */
	assert_int_equal(round_at(20, SECOND, false), 1);
	expect(1, 9);
	f->tsc = 14;
	f->word &= ~(uint64_t)WIRE_BUSY;
	round_at(30, SECOND, false);
	expect(3, 14, 15, 16);
	assert_int_equal(ring_reader_abandoned(reader), 0);
}

/* A thread that was preempted in the middle of a record holds nobody up. */
static void test_busy_last(void **unused)
{
	(void)unused;
	round_at(10, 0, false);
	struct wire_head *f = reserve(0, WIRE_FREE, sizeof(*f), WIRE_BUSY);
	put_free(1, 16, 1);
	put_free(1, 25, 1);
	assert_int_equal(round_at(20, SECOND, false), 1);
	expect(1, 16);
	put_free(1, 26, 1);
	assert_int_equal(round_at(30, SECOND, false), 2);
	f->tsc = 14;
	f->word &= ~(uint64_t)WIRE_BUSY;
	assert_int_equal(round_at(40, SECOND, false), 1);
	expect(1, 14);
	assert_int_equal(ring_reader_abandoned(reader) + ring_reader_bad(reader), 0);
}

static void test_abandoned(void **unused)
{
	(void)unused;
	reserve(0, WIRE_ALLOC, 64, WIRE_BUSY);
	put_free(0, 15, 1);
	assert_int_equal(round_at(20, SECOND, false), 0);
	assert_int_equal(round_at(21, 2 * SECOND - 1, false), 0);
	assert_int_equal(round_at(22, 2 * SECOND, false), 1);
	assert_int_equal(ring_reader_abandoned(reader), 1);
	/* Reserved, but not even its first word is there: go on at the next that is. */
	struct wire_head *f = reserve(1, WIRE_FREE, sizeof(*f), 0);
	f->word = 0;
	put_free(1, 25, 1);
	assert_int_equal(round_at(30, 3 * SECOND, false), 0);
	assert_int_equal(round_at(31, 5 * SECOND, false), 1);
	expect(1, 25);
	assert_int_equal(ring_reader_abandoned(reader), 2);
	reserve(0, WIRE_ALLOC, 64, WIRE_BUSY);
	put_free(0, 35, 1);
	assert_int_equal(round_at(32, 5 * SECOND, true), 1);	/* at the end nothing is waited for */
}

/* Many behind one another don't take a second each. */
static void test_abandoned_many(void **unused)
{
	(void)unused;
	for (uint64_t i = 0; i < 3; i++) {
		reserve(0, WIRE_ALLOC, 64, WIRE_BUSY);
		put_free(0, 10 + i, 1);
	}
	assert_int_equal(round_at(20, SECOND, false), 0);
	reserve(0, WIRE_ALLOC, 64, WIRE_BUSY);	/* younger: waited for */
	put_free(0, 21, 1);
	assert_int_equal(round_at(30, 2 * SECOND, false), 3);
	assert_int_equal(ring_reader_abandoned(reader), 3);
	expect(3, 10, 11, 12);
	assert_int_equal(round_at(40, 3 * SECOND, false), 1);
	assert_int_equal(ring_reader_abandoned(reader), 4);
}

static void set_kind(struct wire_head *h, uint64_t kind)
{
	h->word = (h->word & ~(15ull << WIRE_KIND_SHIFT)) | kind << WIRE_KIND_SHIFT;
}

static void set_flags(struct wire_alloc *a, uint64_t flags)
{
	a->h.word = (a->h.word & ~(255ull << WIRE_FLAGS_SHIFT)) | flags << WIRE_FLAGS_SHIFT;
}

/* Stacks walked in the target, as differences; sizes and rates; events that were taken back. */
static void test_walked(void **unused)
{
	(void)unused;
	put_walked(0, 1, 0, 1, 1);
	put_walked(0, 2, 0, 3, 3);
	set_kind(put_free(0, 3, 1), WIRE_VOID);
	put_walked(0, 4, 7, 0, 0);
	struct wire_alloc *a = put_walked(0, 5, 3, 2, 4);
	uint64_t *more = (uint64_t *)(a + 1);
	set_flags(a, WIRE_F_WALKED | WIRE_F_LARGE | WIRE_F_RATE);
	a->stack |= 77u << 24;
	a->h.addr_slot |= WIRE_SLOTS - 1;
	more[0] = 1ull << 40;
	more[1] = 4096;
	more[2] = 0xaa;
	more[3] = 0xbb;
	assert_int_equal(round_at(20, 0, false), 4);
	expect(4, 1, 2, 4, 5);
	assert_true(last.size == 1ull << 40 && last.rate == 4096 && last.seq == 77 && last.keep == 3);
	assert_true(last.nframes == 2 && last.slot == WIRE_SLOTS - 1 && last.addr == 5);
	assert_int_equal(ring_reader_bad(reader), 0);
	put_walked(0, 21, 0, 0, 1);			/* no frame at all */
	put_walked(0, 21, 0, 4, 3);
	put_walked(0, 21, 0, WIRE_STACK_MAX, 3);
	put_walked(0, 21, WIRE_MAX_FRAMES, 1, 1);	/* too deep */
	set_flags(put_walked(0, 21, 0, 1, 1), WIRE_F_WALKED | WIRE_F_RATE);
	set_flags(put_walked(0, 21, 0, 1, 2), WIRE_F_WALKED | WIRE_F_RATE | WIRE_F_LARGE);
	set_flags(put_walked(0, 21, 0, 1, 3), 0);	/* no room for registers */
	set_flags(put_walked(0, 21, 1, 1, 40), 0);	/* a copy differs from nothing */
	assert_int_equal(round_at(30, 0, false), 0);
	assert_int_equal(ring_reader_bad(reader), 8);
}

static void test_hostile(void **unused)
{
	(void)unused;
	uint64_t bad = 0;

	put_copied(0, 1, 0, 64)->bytes = 72;
	put_copied(0, 1, 0, 64)->bytes = 63;
	put_copied(0, 1, 0, 64)->bytes = ~0ull;
	put_copied(0, 1, 0, 64)->bytes = 1ull << 32;
	put_walked(0, 1, 0, 1, 1)->h.addr_slot = WIRE_SLOTS;
	set_kind(put_free(0, 1, 1), 7);
	set_kind(put_free(0, 1, 1), 0);
	set_kind(put_free(0, 1, 1), WIRE_ALLOC);
	put_free(0, 31, 1);			/* from the future */
	put_free(0, 2, 1);
	put_free(0, 3, 1);
	assert_int_equal(round_at(20, 0, false), 2);
	expect(2, 2, 3);
	bad = ring_reader_bad(reader);
	assert_int_equal(bad, 9);

/* A size beyond the head, of nothing, or across the end: the rest is lost. */
	struct wire_head *f = put_free(0, 4, 1);
	f->word += 1024;
	assert_int_equal(round_at(21, 0, false), 0);
	f = put_free(0, 4, 1);
	f->word -= sizeof(*f);
	assert_int_equal(round_at(22, 0, false), 0);
	reserve(0, WIRE_FREE, 8, 0);		/* too short for anything */
	put_free(0, 4, 1);
	assert_int_equal(round_at(22, 0, false), 0);
	assert_int_equal(ring_reader_bad(reader), bad + 3);
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
	assert_int_equal(ring_reader_bad(reader), bad + 7);
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
				word = (uint64_t)wire_tag(pos, NONCE) << 32 | (x >> 13 & 0xfff) << WIRE_KIND_SHIFT |
					((x >> 40) & (x & 1 ? 0xfff : 0xff));
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
		T(test_order), T(test_range), T(test_wrap), T(test_busy), T(test_busy_last), T(test_abandoned),
		T(test_abandoned_many),
		T(test_walked), T(test_hostile), T(test_random),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
