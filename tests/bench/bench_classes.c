/*
 * What a pass over the live blocks costs (heap/classes.h), against taking an event in: the collector does nothing
 * else meanwhile, and rings of 2 MiB with some 65,000 events are what it has to have done before they are full.
 *
 *	bench_classes
 *
 * Blocks live in 1,000 traces or in 100,000, all sizes, 8 threads; medians of turns.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/ticks.h"
#include "heap/classes.h"
#include "heap/heap.h"
#include "heap/view.h"
#include "line.h"
#include "tests/lib/whole.h"

#define ROUNDS 7
#define TARGET 1.0	/* a pass is never slower, a block, than the event that brought the block */

static uint64_t random_state = 88172645463325252ull;

static uint32_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 32);
}

static int compare(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return a < b ? -1 : a > b;
}

static int measure(uint32_t blocks, uint32_t traces)
{
	struct heap *heap = heap_create(NULL);
	const struct view_info info = { .command = (char *)"bench" };
	double took[ROUNDS], begin = monotonic_seconds();
	size_t cells = 0;

	for (uint32_t t = 0; t < 8; t++)
		heap_thread(heap, t, t + 1, "worker\0\0\0\0\0\0\0\0\0", 0);
	for (uint32_t i = 0; i < blocks; i++) {
		uint32_t leaf = random_next() % traces;
		uint64_t addrs[3] = { frame_addr(1, 0x100000 + leaf), frame_addr(1, 0x1000 + leaf % 100), frame_addr(1, 1) };
		heap_alloc_whole(heap, 0x10000 + (uint64_t)i * 64, 16u << leaf % 6, 1, (uint64_t)i * 5000, leaf % 8,
				 addrs, 3, 0);
	}
	double each = (monotonic_seconds() - begin) / blocks;
	for (int round = 0; round < ROUNDS; round++) {
		heap_classify(heap, (uint64_t)blocks * 5000, true);
		struct view *view = heap_publish(heap, &info, (uint64_t)blocks * 5000);
		took[round] = (double)view->classes->cost_ns / 1e9;
		cells = view->classes->n;
		view_unref(view);
	}
	qsort(took, ROUNDS, sizeof(took[0]), compare);
	double pass = took[ROUNDS / 2];
	char name[64], what[96];
	snprintf(name, sizeof(name), "classes.%u.%u", blocks, traces);
	snprintf(what, sizeof(what), "a pass over %u live blocks of %u traces, %zu cells", blocks, traces, cells);
	heap_destroy(heap);
	return bench_line(name, what, "<= 1.0 of the events that brought them", pass / blocks <= TARGET * each,
			  "%.1f ms, %.0f ns a block, %.2f of the events", pass * 1e3, pass / blocks * 1e9,
			  pass / blocks / each);
}

int main(void)
{
	const char *quick = getenv("HEAPTOP_QUICK");
	int missed = 0;

	missed |= measure(100000, 1000);
	if (quick && *quick)
		return missed;
	missed |= measure(1000000, 1000);
	missed |= measure(1000000, 100000);
	return missed;
}
