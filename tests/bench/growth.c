/*
 * A program of a given size, to see how heaptop grows with it:
 *
 *	growth [-n TRACES] [-l BLOCKS] [-t THREADS] [-k CALLS] [-q] [-o FILE]
 *
 *	-n	allocate from that many different stacks, CALLS blocks each, and free them at once. All
 *		stacks are of the same depth: ten calls, each from one of four places, as two bits of the
 *		number say, make a million
 *	-l	hold that many blocks of 16 bytes at once, from 64 stacks; then free them all
 *	-t	that many threads at once, CALLS pairs each
 *	-q	then be quiet: a few hundred allocations a second until killed
 *
 * Written to FILE when the work is done: "seconds S", its wall time; a profiler's start and end don't count.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { LEVELS = 10 };

static long calls = 4;
static pthread_barrier_t all_there;

/* Called at the innermost of a path. */
typedef void act_fn(void *ctx);

/* Each level leaves by one of four calls: four return addresses, so four paths. */
static __attribute__((noinline)) void path(uint32_t number, int level, act_fn *act, void *ctx)
{
	if (!level) {
		act(ctx);
	} else {
		switch (number & 3) {
		case 0: path(number >> 2, level - 1, act, ctx); __asm__ volatile("# 0"); break;
		case 1: path(number >> 2, level - 1, act, ctx); __asm__ volatile("# 1"); break;
		case 2: path(number >> 2, level - 1, act, ctx); __asm__ volatile("# 2"); break;
		default: path(number >> 2, level - 1, act, ctx); __asm__ volatile("# 3");
		}
	}
	__asm__ volatile("" ::: "memory");
}

static void pairs(void *ctx)
{
	(void)ctx;
	for (long k = 0; k < calls; k++) {
		void *p = malloc(48);
		__asm__ volatile("" :: "r"(p) : "memory");
		free(p);
	}
}

static void hold(void *ctx)
{
	*(void **)ctx = malloc(16);
}

static void *thread(void *arg)
{
	pthread_barrier_wait(&all_there);
	path((uint32_t)(uintptr_t)arg & 63, LEVELS, pairs, NULL);
	/* nobody leaves before all have allocated: that many slots are in use at once */
	pthread_barrier_wait(&all_there);
	return NULL;
}

/* An array that is no block of the heap: its size must not be part of what grows. */
static void *array(size_t bytes)
{
	void *ret = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (ret == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return ret;
}

static void do_traces(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		path(i, LEVELS, pairs, NULL);
}

static void do_blocks(size_t n)
{
	void **blocks = array(n * sizeof(*blocks));

	for (size_t i = 0; i < n; i++)
		path((uint32_t)i & 63, LEVELS, hold, &blocks[i]);
	for (size_t i = 0; i < n; i++)
		free(blocks[i]);
	munmap(blocks, n * sizeof(*blocks));
}

static void do_threads(uint32_t n)
{
	pthread_t *threads = array(n * sizeof(*threads));
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 128 << 10);
	pthread_barrier_init(&all_there, NULL, n);
	for (uint32_t i = 0; i < n; i++) {
		if (pthread_create(&threads[i], &attr, thread, (void *)(uintptr_t)i)) {
			fprintf(stderr, "no thread %u\n", i);
			exit(1);
		}
	}
	for (uint32_t i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

static void be_quiet(void)
{
	for (;;) {
		path(7, LEVELS, pairs, NULL);
		usleep(10000);
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	uint32_t traces = 0, threads = 0;
	size_t blocks = 0;
	bool quiet = false;
	FILE *out = stdout;
	int opt;

	while ((opt = getopt(argc, argv, "n:l:t:k:qo:")) != -1) {
		switch (opt) {
		case 'n': traces = (uint32_t)atol(optarg); break;
		case 'l': blocks = (size_t)atol(optarg); break;
		case 't': threads = (uint32_t)atol(optarg); break;
		case 'k': calls = atol(optarg); break;
		case 'q': quiet = true; break;
		case 'o': out = fopen(optarg, "we"); break;
		default: return 2;
		}
	}
	if (!out || traces > 1u << 2 * LEVELS)
		return 2;
	double begin = now();
	if (traces)
		do_traces(traces);
	if (blocks)
		do_blocks(blocks);
	if (threads)
		do_threads(threads);
	fprintf(out, "seconds %.6f\n", now() - begin);
	fflush(out);
	if (quiet)
		be_quiet();
	return 0;
}
