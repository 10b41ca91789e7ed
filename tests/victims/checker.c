/*
 * A program that would notice being harmed: threads allocate, resize and free blocks of every
 * kind, fill each with a pattern made from its address and a seed, and check it before the
 * block is resized, handed to another thread or freed. One more thread sits in nanosleep,
 * poll and read and counts the calls that ended in EINTR.
 *
 *	checker [THREADS [SECONDS [REST [lively]]]]	default: 16 threads, until SIGTERM or SIGINT
 *
 * REST: microseconds that each thread rests after every hundred steps, so that other programs get
 * their share of the processors. With "lively" threads come and go besides, which take blocks over
 * and leave some behind, and signals fly: each thread gets some, on a stack of its own.
 * A block belongs to one thread at a time, which is checked too.
 * Prints "ready" once all threads work, at the end "ok N checks" and "eintr N", and leaves with 0.
 * A block that isn't as it was left: "CORRUPT ..." on stderr and abort().
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BLOCKS 64		/* a thread's own blocks */
#define EXCHANGE 128		/* places where blocks change hands */
#define SIGNAL_STACK (64u << 10)

struct block {
	unsigned char *p;
	size_t size;
	uint32_t seed;
	const void *owner;	/* the array of the thread that has it; NULL while it changes hands */
};

static atomic_bool stopping;
static long rest_us;
static bool lively;
static atomic_uint_fast64_t checks, interrupted;
static pthread_barrier_t started;
static pthread_mutex_t exchange_lock = PTHREAD_MUTEX_INITIALIZER;
static struct block exchange[EXCHANGE];
static int pipe_fds[2];

static uint32_t next_random(uint32_t *state)
{
	/* xorshift32 (Marsaglia 2003) */
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

static void on_signal(int sig)
{
	(void)sig;
	stopping = true;
}

static unsigned char pattern(const void *p, uint32_t seed, size_t i)
{
	uint64_t x = ((uint64_t)(uintptr_t)p >> 4) * 0x9e3779b97f4a7c15ull + seed + i * 0x85ebca6bu;

	return (unsigned char)(x >> 24 ^ x >> 7);
}

static void fill(struct block *b)
{
	for (size_t i = 0; i < b->size; i++)
		b->p[i] = pattern(b->p, b->seed, i);
}

/* The first `size` bytes at `p`, which were filled when they lay at b->p. */
static void verify(const struct block *b, const unsigned char *p, size_t size, const char *when)
{
	for (size_t i = 0; i < size; i++) {
		if (p[i] == pattern(b->p, b->seed, i))
			continue;
		fprintf(stderr, "CORRUPT %s: block %p of %zu bytes differs at %zu: %02x, not %02x\n",
			when, (const void *)b->p, b->size, i, p[i], pattern(b->p, b->seed, i));
		abort();
	}
	checks++;
}

static size_t pick_size(uint32_t *random)
{
	uint32_t r = next_random(random);

	/* mostly small, some that are mapped on their own */
	if (r % 512 == 0)
		return 130000 + r % 100000;
	if (r % 16 == 0)
		return 1024 + r % 8192;
	return r % 300;
}

static void make(struct block *b, const void *owner, uint32_t *random)
{
	size_t size = pick_size(random), align = (size_t)16 << next_random(random) % 5;
	void *p = NULL;

	switch (next_random(random) % 6) {
	case 0: case 1: case 2:
		p = malloc(size);
		break;
	case 3:
		p = calloc(size / 8 + 1, 8);
		for (size_t i = 0; p && i < size; i++) {
			if (!((unsigned char *)p)[i])
				continue;
			fprintf(stderr, "CORRUPT calloc: byte %zu of %zu isn't 0\n", i, size);
			abort();
		}
		break;
	case 4:
		p = aligned_alloc(align, (size + align - 1) / align * align);
		break;
	case 5:
		if (posix_memalign(&p, align, size))
			p = NULL;
		break;
	}
	if (!p && size) {
		fputs("checker: out of memory\n", stderr);
		exit(1);
	}
	if (size >= 16 && (uintptr_t)p % 16) {	/* below, 8 will do for some libraries */
		fprintf(stderr, "CORRUPT alignment: %p\n", p);
		abort();
	}
	*b = (struct block){ p, size, next_random(random), owner };
	fill(b);
}

static void check_owner(const struct block *b, const void *owner)
{
	if (b->owner == owner)
		return;
	fprintf(stderr, "CORRUPT owner: block %p is of %p, not %p\n", (const void *)b->p, b->owner, owner);
	abort();
}

static void resize(struct block *b, uint32_t *random)
{
	size_t size = pick_size(random) + 1;	/* to 0 would free */
	size_t both = size < b->size ? size : b->size;

	verify(b, b->p, b->size, "before realloc");
	unsigned char *p = realloc(b->p, size);
	if (!p) {
		fputs("checker: out of memory\n", stderr);
		exit(1);
	}
	verify(b, p, both, "after realloc");
	*b = (struct block){ p, size, next_random(random), b->owner };
	fill(b);
}

static void drop(struct block *b)
{
	verify(b, b->p, b->size, "before free");
	free(b->p);
	*b = (struct block){ 0 };
}

static void swap(struct block *b, uint32_t *random)
{
	struct block *place = &exchange[next_random(random) % EXCHANGE];

	pthread_mutex_lock(&exchange_lock);
	struct block other = *place;
	const void *owner = b->owner;
	b->owner = NULL;
	*place = *b;
	pthread_mutex_unlock(&exchange_lock);
	*b = other;
	if (!b->p)
		return;
	verify(b, b->p, b->size, "after exchange");
	check_owner(b, NULL);
	b->owner = owner;
}

static void note(long rc)
{
	if (rc < 0 && errno == EINTR)
		interrupted++;
}

static void steps(struct block *blocks, unsigned n, uint32_t random)
{
	for (unsigned step = 1; !stopping && (!n || step <= n); step++) {
		if (rest_us && step % 100 == 0) {
			long rc = nanosleep(&(struct timespec){ .tv_nsec = rest_us * 1000 }, NULL);
			if (!lively)	/* else it may have been one of our signals */
				note(rc);
		}
		struct block *b = &blocks[next_random(&random) % BLOCKS];
		if (!b->p) {
			make(b, blocks, &random);
			continue;
		}
		check_owner(b, blocks);
		switch (next_random(&random) % 4) {
		case 0:
			resize(b, &random);
			break;
		case 1:
			swap(b, &random);
			break;
		default:
			drop(b);
		}
	}
	for (size_t i = 0; i < BLOCKS; i++)
		if (blocks[i].p)
			drop(&blocks[i]);
}

static void *work(void *arg)
{
	struct block blocks[BLOCKS] = { 0 };
	stack_t stack = { .ss_sp = malloc(SIGNAL_STACK), .ss_size = SIGNAL_STACK }, none = { .ss_flags = SS_DISABLE };

	sigaltstack(&stack, NULL);
	pthread_barrier_wait(&started);
	steps(blocks, 0, 2463534242u + (uint32_t)(uintptr_t)arg * 7919u);
	sigaltstack(&none, NULL);
	free(stack.ss_sp);
	return NULL;
}

/* ---- lively ---- */

static atomic_uint_fast64_t signals_handled, short_lives;

static void on_usr1(int sig)
{
	(void)sig;
	signals_handled++;
}

static void *short_life(void *arg)
{
	struct block blocks[BLOCKS] = { 0 };

	steps(blocks, 150, (uint32_t)(uintptr_t)arg);
	short_lives++;
	return NULL;
}

struct crowd {
	pthread_t *threads;
	unsigned long n;
};

/* Lets threads come and go, and sends signals to those that stay. */
static void *stir(void *arg)
{
	struct crowd *crowd = arg;
	uint32_t random = 362436069u;

	pthread_barrier_wait(&started);
	while (!stopping) {
		pthread_t th[3];
		int n = 0;
		while (n < 3 && !pthread_create(&th[n], NULL, short_life, (void *)(uintptr_t)next_random(&random)))
			n++;
		for (int i = 0; i < 4; i++)
			pthread_kill(crowd->threads[next_random(&random) % crowd->n], SIGUSR1);
		while (n)
			pthread_join(th[--n], NULL);
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	}
	return NULL;
}

/* The signals that end the program go to the main thread only, so nothing may interrupt here. */
static void *sit(void *unused)
{
	char c;

	(void)unused;
	pthread_barrier_wait(&started);
	while (!stopping) {
		struct timespec t = { .tv_nsec = 30000000 };
		struct pollfd pfd = { .fd = pipe_fds[0], .events = POLLIN };
		note(nanosleep(&t, NULL));
		note(poll(&pfd, 1, 200));
		note(read(pipe_fds[0], &c, 1));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned long nthreads = argc > 1 ? strtoul(argv[1], NULL, 10) : 16;
	double seconds = argc > 2 ? strtod(argv[2], NULL) : 0;
	struct sigaction action = { .sa_handler = on_signal };
	struct timespec from, now;
	pthread_t sitter, stirrer;
	sigset_t set, old;

	rest_us = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
	lively = argc > 4 && strcmp(argv[4], "lively") == 0;
	if (argc > 5 || nthreads < 1 || nthreads > 1000 || seconds < 0 || rest_us < 0 ||
	    rest_us >= 1000000) {
		fprintf(stderr, "usage: checker [THREADS [SECONDS [REST [lively]]]]\n");
		return 2;
	}
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	action.sa_handler = on_usr1;
	action.sa_flags = SA_ONSTACK | SA_RESTART;
	sigaction(SIGUSR1, &action, NULL);
	sigfillset(&set);
	sigdelset(&set, SIGABRT);
	sigdelset(&set, SIGSEGV);
	pthread_sigmask(SIG_BLOCK, &set, &old);
	sigdelset(&set, SIGUSR1);
	pthread_t *threads = calloc(nthreads, sizeof(*threads));
	if (!threads || pipe(pipe_fds)) {
		perror("checker");
		return 1;
	}
	pthread_barrier_init(&started, NULL, (unsigned)nthreads + 2 + lively);
	pthread_sigmask(SIG_SETMASK, &set, NULL);
	for (unsigned long i = 0; i < nthreads; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i))
			return 1;
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_SETMASK, &set, NULL);
	struct crowd crowd = { threads, nthreads };
	if (lively && pthread_create(&stirrer, NULL, stir, &crowd))
		return 1;
	if (pthread_create(&sitter, NULL, sit, NULL))
		return 1;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_barrier_wait(&started);
	puts("ready");
	fflush(stdout);

	clock_gettime(CLOCK_MONOTONIC, &from);
	while (!stopping) {
		/* a byte now and then for the thread that reads; it blocks in between */
		struct timespec t = { .tv_nsec = 100000000 };
		nanosleep(&t, NULL);
		(void)!write(pipe_fds[1], "x", 1);
		clock_gettime(CLOCK_MONOTONIC, &now);
		double up = (double)(now.tv_sec - from.tv_sec) + (double)(now.tv_nsec - from.tv_nsec) / 1e9;
		if (seconds > 0 && up >= seconds)
			stopping = true;
	}
	if (lively)
		pthread_join(stirrer, NULL);	/* it sends signals to these: */
	for (unsigned long i = 0; i < nthreads; i++)
		pthread_join(threads[i], NULL);
	(void)!write(pipe_fds[1], "x", 1);
	pthread_join(sitter, NULL);
	for (size_t i = 0; i < EXCHANGE; i++)
		if (exchange[i].p)
			drop(&exchange[i]);
	free(threads);
	if (lively)
		printf("lively %" PRIu64 " threads, %" PRIu64 " signals\n", (uint64_t)short_lives,
		       (uint64_t)signals_handled);
	printf("ok %" PRIu64 " checks\neintr %" PRIu64 "\n", (uint64_t)checks, (uint64_t)interrupted);
	return 0;
}
