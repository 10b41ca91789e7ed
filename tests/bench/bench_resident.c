/*
 * What is in memory: a whole pass over the live samples, at 10,000 and 100,000 of them, both ways of asking the kernel;
 * the blocks are real ones of this process, of mixed sizes, each a sample of the ten that are allocated beside it, every
 * second page of the large ones touched. CPU time of the thread, medians.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/ticks.h"
#include "heap/heap.h"
#include "line.h"
#include "target/pagemap.h"
#include "unwind/unwind.h"

#define RUNS 9
#define BESIDE 10u

static int runs(void *ctx, uint64_t start, uint64_t end, struct page_run *ret, size_t max, size_t *ret_n,
		uint64_t *ret_next)
{
	return pagemap_runs(ctx, start, end, ret, max, ret_n, ret_next);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Mostly small, some of pages, as programs have them. */
static size_t size_of(uint32_t i)
{
	uint32_t x = i * 2654435761u >> 8;

	return x % 50 ? 16 + x % 500 : 4096 + x % 60000;
}

static void fill(struct heap *heap, uint32_t samples)
{
	for (uint32_t i = 0; i < samples * BESIDE; i++) {
		size_t size = size_of(i);
		char *at = malloc(size);
		uint64_t pc = 0x1000 + i / BESIDE % 1000 * 16;
		const struct heap_stack stack = { .addrs = &pc, .n = 1, .why = UNWIND_END_ROOT };
		for (size_t k = 0; k < size; k += 8192)
			at[k] = 1;
		if (i % BESIDE == 0)
			heap_alloc(heap, (uintptr_t)at, size, 4096, i, 0, &stack);
	}
}

/* Microseconds of a pass; *ret_longest: of its longest slice. */
static double pass(struct heap *heap, enum pagemap_way way, double *ret_longest)
{
	struct pagemap map;
	int errnum;
	double began = thread_cpu_seconds();

	*ret_longest = 0;
	if (pagemap_open(&map, getpid(), getpid(), way))
		return -1;
	heap_resident_begin(heap);
	double slice = began;
	for (bool over = false; !over; slice = thread_cpu_seconds()) {
		over = heap_resident_step(heap, runs, &map, 0.002, &errnum);
		double took = thread_cpu_seconds() - slice;
		if (took > *ret_longest)
			*ret_longest = took;
	}
	pagemap_close(&map);
	return (slice - began) * 1e6;
}

int main(void)
{
	static const uint32_t counts[] = { 10000, 100000 };
	/* once a second within half a percent of a core up to 5 ms; beyond, more rarely */
	static const char *const targets[] = { "<= 5000 us", "<= 100000 us" };
	static const double bounds[] = { 5000, 100000 };
	int missed = 0;

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		struct heap *heap = heap_create(NULL);
		fill(heap, counts[i]);
		for (int way = PAGEMAP_BEST; way <= PAGEMAP_READ; way++) {
			double us[RUNS], longest[RUNS];
			char name[40], what[80];
			for (int r = 0; r < RUNS; r++)
				us[r] = pass(heap, way, &longest[r]);
			qsort(us, RUNS, sizeof(us[0]), by_value);
			qsort(longest, RUNS, sizeof(longest[0]), by_value);
			const struct resident_totals *t = heap_resident_totals(heap);
			snprintf(name, sizeof(name), "resident-%uk-%s", counts[i] / 1000, way ? "read" : "scan");
			snprintf(what, sizeof(what), "a pass over %u live samples, by %s", counts[i],
				 way ? "pagemap entries" : "PAGEMAP_SCAN");
			missed |= bench_line(name, what, targets[i], us[RUNS / 2] > 0 && us[RUNS / 2] <= bounds[i],
					     "%.0f us, %.0f ns a sample, longest slice %.0f us, %.1f MB found",
					     us[RUNS / 2], us[RUNS / 2] * 1e3 / counts[i], longest[RUNS / 2] * 1e6,
					     (double)(t->anon + t->file) / 1e6);
		}
		heap_destroy(heap);
	}
	return missed;
}
