/*
 * How many events a second one core takes from the rings and models: the reader of the rings, the
 * merge by time, the trace tree, the live table, the statistics. The records are as the agent writes
 * them: a third of the allocations come from another stack than the one before, and tell two or
 * three new frames. Blocks are freed in random order and their addresses used again. Only the
 * consumer's CPU time counts.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/ticks.h"
#include "collect/frames.h"
#include "collect/intake.h"
#include "elf/modules.h"
#include "heap/heap.h"
#include "heap/view.h"
#include "probe/ring.h"
#include "line.h"
#include "wire/wire.h"

#define RING_BYTES (1u << 20)
#define NONCE 0x1122334455667788ull
#define MAX_RINGS 4
#define DEPTH 24
#define ROUNDS 5

static uint64_t random_state = 88172645463325252ull;

static uint32_t below(uint32_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)((random_state >> 32) * n >> 32);
}

struct thread {
	uint64_t head;
	uint32_t path[DEPTH];	/* branch taken at each depth, outermost first */
	uint8_t seq;
	bool told;		/* it has sent a stack */
	uint64_t *live;		/* addresses, 0: none */
	uint32_t nlive;
};

static uint8_t data[MAX_RINGS][RING_BYTES] __attribute__((aligned(64)));
static struct thread threads[MAX_RINGS];
static uint64_t tsc;

static void *reserve(unsigned i, enum wire_kind kind, uint64_t size, uint64_t flags)
{
	struct thread *t = &threads[i];
	uint64_t off = t->head % RING_BYTES;

	if (size > RING_BYTES - off) {
		*(uint64_t *)(data[i] + off) = (uint64_t)wire_tag(t->head, NONCE) << 32 | (RING_BYTES - off) | WIRE_PAD;
		t->head += RING_BYTES - off;
		off = 0;
	}
	struct wire_head *h = (struct wire_head *)(data[i] + off);
	h->word = (uint64_t)wire_tag(t->head, NONCE) << 32 | flags << WIRE_FLAGS_SHIFT |
		  (uint64_t)kind << WIRE_KIND_SHIFT | size;
	h->tsc = tsc += 40 + below(40);
	t->head += size;
	return h;
}

/* A return address that depends on all further out, as in a program. */
static uint64_t pc_of(const struct thread *t, unsigned depth)
{
	uint64_t h = depth;

	for (unsigned i = 0; i <= depth; i++)
		h = h * 31 + t->path[i];
	return 0x400000 + (h * 0x9e3779b97f4a7c15ull >> 44) * 16;
}

static void put_alloc(unsigned i, uint64_t addr)
{
	struct thread *t = &threads[i];
	unsigned from = DEPTH;		/* frames further out are as before */

	if (!t->told) {
		from = 0;
	} else if (below(3) == 0) {
		from = DEPTH - 2 - below(2);
		for (unsigned d = from; d < DEPTH; d++)
			t->path[d] = below(6);
	}
	struct wire_alloc *a = reserve(i, WIRE_ALLOC, sizeof(*a) + (DEPTH - from) * 8, WIRE_F_WALKED);
	a->h.addr_slot = addr << 16 | i;
	a->size = 16 + 16 * below(20);
	a->stack = (uint32_t)++t->seq << 24 | from << WIRE_STACK_BITS | (DEPTH - from);
	uint64_t *frame = (uint64_t *)(a + 1);
	for (unsigned d = DEPTH; d-- > from;)
		*frame++ = pc_of(t, d);
	t->told = true;
}

/* Fill the rings about half, as a step of the collector finds them when it is busy. */
static uint64_t produce(unsigned nthreads)
{
	uint64_t n = 0;

	for (bool room = true; room; n += 2) {
		unsigned i = below(nthreads);
		struct thread *t = &threads[i];
		uint32_t k = below(t->nlive);
		uint64_t addr = t->live[k];

		if (addr) {
			struct wire_head *h = reserve(i, WIRE_FREE, sizeof(*h), 0);
			h->addr_slot = addr << 16 | i;
		} else {
			addr = t->live[k] = 0x7f0000000000ull + ((uint64_t)i << 32) + (uint64_t)k * 48 + 16;
			n--;
		}
		put_alloc(i, addr);
		room = t->head % (RING_BYTES / 2) < RING_BYTES / 2 - 512;
	}
	return n;
}

static double cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool missed(void *ctx, const uint64_t *pcs, size_t n)
{
	(void)ctx;
	(void)pcs;
	(void)n;
	return false;
}

static void teach(void *ctx, const uint64_t *pcs, size_t n)
{
	(void)ctx;
	(void)pcs;
	(void)n;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Millions of events a second; *ret_heap_bytes: of the tree, a node. */
static double run(uint32_t live, unsigned nthreads, uint64_t wanted)
{
	const struct ring_reader_config config = { MAX_RINGS, RING_BYTES, NONCE };
	struct ring_reader *reader = ring_reader_create(&config);
	struct modules *mods = modules_create(), *shared = modules_create();
	struct ticks_clock clock = { .ns_per_tick = 0.4 };
	struct intake *in = xcalloc(1, sizeof(*in));
	double rates[ROUNDS];

	*in = (struct intake){
		.heap = heap_create(NULL), .frames = frames_create(mods, shared), .clock = &clock,
		.missed = missed, .teach = teach,
	};
	memset(threads, 0, sizeof(threads));
	for (unsigned i = 0; i < nthreads; i++) {
		threads[i].nlive = live / nthreads;
		threads[i].live = xcalloc(threads[i].nlive, sizeof(uint64_t));
	}
	/* fill up, then the rounds that count */
	for (int round = -1; round < ROUNDS; round++) {
		uint64_t n = 0, handed = 0, least = round < 0 ? live * 8ull : wanted;
		double spent = 0;

		while (n < least) {
			n += produce(nthreads);
			double t = cpu();
			do {
				ring_reader_begin(reader, tsc + 1, 0, false);
				for (unsigned i = 0; i < MAX_RINGS; i++)
					ring_reader_read(reader, i, threads[i].head, data[i]);
				handed += ring_reader_finish(reader, tsc + 2, intake_event, in);
				intake_flush(in);
			} while (ring_reader_behind(reader));
			spent += cpu() - t;
		}
		if (handed != n || ring_reader_bad(reader) || in->ends[UNWIND_END_LOST]) {
			fprintf(stderr, "bench_collect: %lu events of %lu came through\n", (unsigned long)handed,
				(unsigned long)n);
			exit(1);
		}
		if (round >= 0)
			rates[round] = (double)n / spent / 1e6;
	}
	const struct view_info info = { 0 };
	struct view *view = heap_publish(in->heap, &info, ticks_to_ns(&clock, tsc));
	printf("# %u live blocks, %u thread%s: %lu traces, %u nodes, last-lookup and path hits %.1f %%\n", live,
	       nthreads, nthreads > 1 ? "s" : "", (unsigned long)view->ntraces, view->nnodes,
	       100.0 * (double)view->totals.tree.last_hits / (double)view->totals.tree.steps);
	view_unref(view);
	for (unsigned i = 0; i < nthreads; i++)
		free(threads[i].live);
	frames_destroy(in->frames);
	heap_destroy(in->heap);
	free(in);
	modules_destroy(shared);
	modules_destroy(mods);
	ring_reader_destroy(reader);
	qsort(rates, ROUNDS, sizeof(rates[0]), compare);
	return rates[ROUNDS / 2];
}

int main(void)
{
	static const struct {
		uint32_t live;
		unsigned threads;
		double target;
	} ways[] = { { 1000, 1, 8 }, { 1000, 4, 8 }, { 200000, 1, 4 }, { 200000, 4, 4 } };
	uint64_t wanted = getenv("HEAPTOP_QUICK") ? 200000 : 4000000;
	int ret = 0;

	for (size_t k = 0; k < ARRAY_SIZE(ways); k++) {
		double rate = run(ways[k].live, ways[k].threads, wanted);
		char name[64], target[64];

		snprintf(name, sizeof(name), "collector.%uk.%u", ways[k].live / 1000, ways[k].threads);
		snprintf(target, sizeof(target), ">= %.0f M", ways[k].target);
		ret |= bench_line(name, "bench_collect: rings to model", target, rate >= ways[k].target,
				  "%.1f M events/s of one core, %u live blocks, %u thread%s", rate, ways[k].live,
				  ways[k].threads, ways[k].threads > 1 ? "s" : "");
	}
	return ret;
}
