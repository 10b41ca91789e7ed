/*
 * What a malloc+free pair costs, as the program itself sees it: for a profiler's start and end must not
 * count, only what it adds to each call.
 *
 *	pairs [-t THREADS] [-d FRAMES] [-b tight|ring|door] [-n PAIRS] [-r ROUNDS] [-w ROUNDS] [-o FILE]
 *
 * Each thread calls down until FRAMES functions are on its stack, clone and start of the thread
 * included, and then does -r times PAIRS pairs, after -w times as many that aren't timed: a profiler
 * that comes to a halt while it reads symbols makes the first of them wait. The bodies:
 *
 *	tight	malloc(64) and free, nothing else
 *	ring	an allocation-bound program: sizes from 16 to 1,039 bytes, small ones oftener, from four
 *		functions in turn; each block is written to and lives until 64 later ones are there
 *	door	no pair at all but a getppid: what coming into the kernel and back costs on this machine now
 *
 * Written at the end, on one line: "mean_ns M median_ns D best_ns B whole_ns W cpu_ns C pairs N": ns of wall
 * time a pair in all timed rounds, in the median one, in the best one, in all with those before; CPU time in
 * all timed rounds; each averaged over the threads; and all pairs there were.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MAX_THREADS = 64, RING = 64 };

struct job {
	pthread_t thread;
	double *round_ns;	/* a pair, each round */
	double mean_ns, whole_ns, cpu_ns;
};

static struct {
	int threads, frames, rounds, warm_rounds;
	long pairs;
	void (*body)(long pairs);
	pthread_barrier_t start;
} options = { .threads = 1, .frames = 10, .rounds = 100, .warm_rounds = 1, .pairs = 100000 };

/* One frame each that can't be merged into its caller, nor into the others. */
#define TAKER(name)                                             \
	static __attribute__((noinline)) void *name(size_t size) \
	{                                                       \
		char *ret = malloc(size);                       \
		ret[0] = #name[0];                              \
		return ret;                                     \
	}
TAKER(apples)
TAKER(bread)
TAKER(cheese)
TAKER(dates)

static void tight(long pairs)
{
	for (long k = 0; k < pairs; k++) {
		void *p = malloc(64);
		__asm__ volatile("" :: "r"(p) : "memory");
		free(p);
	}
}

static void ring(long pairs)
{
	void *blocks[RING] = { NULL };
	uint32_t random = 2463534242u;

	for (long k = 0; k < pairs; k++) {
		random ^= random << 13;
		random ^= random >> 17;
		random ^= random << 5;
		/* one of 8 size classes, each half as often as the one below: 16+15 bytes are the commonest */
		int bits = 4 + __builtin_ctz(random | 64);
		size_t size = 16 + (random >> 16) % (1u << bits);
		void **slot = &blocks[k % RING];
		free(*slot);
		switch (random >> 8 & 3) {
		case 0: *slot = apples(size); break;
		case 1: *slot = bread(size); break;
		case 2: *slot = cheese(size); break;
		default: *slot = dates(size); break;
		}
	}
	for (int i = 0; i < RING; i++)
		free(blocks[i]);
}

static void door(long pairs)
{
	for (long k = 0; k < pairs; k++)
		syscall(SYS_getppid);
}

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static __attribute__((noinline)) int rounds(struct job *job)
{
	double start = now(CLOCK_MONOTONIC);

	for (int i = 0; i < options.warm_rounds; i++)
		options.body(options.pairs);
	double begin = now(CLOCK_MONOTONIC), last = begin, cpu = now(CLOCK_THREAD_CPUTIME_ID);
	for (int i = 0; i < options.rounds; i++) {
		options.body(options.pairs);
		double t = now(CLOCK_MONOTONIC);
		job->round_ns[i] = (t - last) / (double)options.pairs;
		last = t;
	}
	job->cpu_ns = (now(CLOCK_THREAD_CPUTIME_ID) - cpu) / ((double)options.pairs * options.rounds);
	job->mean_ns = (last - begin) / ((double)options.pairs * options.rounds);
	job->whole_ns = (last - start)
		/ ((double)options.pairs * (options.warm_rounds + options.rounds));
	return 0;
}

static __attribute__((noinline)) int descend(struct job *job, int frames)
{
	int ret = frames > 0 ? descend(job, frames - 1) : rounds(job);

	__asm__ volatile("" : "+r"(ret));	/* no tail call */
	return ret;
}

/* Besides `frames` times descend: clone, start of the thread, this, rounds, body; one taker in ring. */
static void *thread(void *arg)
{
	int others = options.body == ring ? 6 : 5;

	pthread_barrier_wait(&options.start);
	descend(arg, options.frames - others - 1);
	return NULL;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	struct job jobs[MAX_THREADS];
	FILE *out = stdout;
	int opt;

	options.body = tight;
	while ((opt = getopt(argc, argv, "t:d:b:n:r:w:o:")) != -1) {
		switch (opt) {
		case 't': options.threads = atoi(optarg); break;
		case 'd': options.frames = atoi(optarg); break;
		case 'b': options.body = !strcmp(optarg, "ring") ? ring :
				!strcmp(optarg, "door") ? door : tight; break;
		case 'n': options.pairs = atol(optarg); break;
		case 'r': options.rounds = atoi(optarg); break;
		case 'w': options.warm_rounds = atoi(optarg); break;
		case 'o': out = fopen(optarg, "we"); break;
		default: return 2;
		}
	}
	if (!out || options.threads < 1 || options.threads > MAX_THREADS || options.rounds < 1
	    || options.pairs < 1 || options.frames < 7)
		return 2;
	pthread_barrier_init(&options.start, NULL, (unsigned)options.threads);
	for (int i = 0; i < options.threads; i++) {
		jobs[i].round_ns = calloc((size_t)options.rounds, sizeof(double));
		if (!jobs[i].round_ns || pthread_create(&jobs[i].thread, NULL, thread, &jobs[i]))
			return 1;
	}
	double mean = 0, median = 0, best = 0, whole = 0, cpu = 0;
	for (int i = 0; i < options.threads; i++) {
		pthread_join(jobs[i].thread, NULL);
		qsort(jobs[i].round_ns, (size_t)options.rounds, sizeof(double), compare);
		mean += jobs[i].mean_ns / options.threads;
		whole += jobs[i].whole_ns / options.threads;
		cpu += jobs[i].cpu_ns / options.threads;
		median += jobs[i].round_ns[options.rounds / 2] / options.threads;
		best += jobs[i].round_ns[0] / options.threads;
		free(jobs[i].round_ns);
	}
	fprintf(out, "mean_ns %.3f median_ns %.3f best_ns %.3f whole_ns %.3f cpu_ns %.3f pairs %ld\n", mean, median, best,
		whole, cpu, options.pairs * (options.warm_rounds + options.rounds) * options.threads);
	return fclose(out) ? 1 : 0;
}
