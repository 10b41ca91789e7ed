/*
 * Threads that allocate, move and free blocks, each filled with a pattern of its own that is
 * checked whenever the block is touched. Ends by itself after argv[1] seconds (default 10) or on
 * SIGTERM, prints "ok" or dies with abort. argv[2]: threads (default 16), argv[3]: us of rest
 * between rounds.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BLOCKS 256

static atomic_int stop;
static atomic_ulong rounds;
static unsigned rest;

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

struct block {
	unsigned char *p;
	size_t size;
	unsigned char fill;
};

static void check(const struct block *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (b->p[i] != b->fill)
			abort();
}

static void *work(void *arg)
{
	struct block blocks[BLOCKS] = { 0 };
	uint32_t x = (uint32_t)(uintptr_t)arg * 2654435761u + 1;

	while (!stop) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		struct block *b = &blocks[x % BLOCKS];
		size_t size = 1 + (x >> 8) % ((x >> 28) ? 300 : 20000);

		if (!b->p) {
			void *p = NULL;
			switch (x >> 20 & 3) {
			case 0:
				p = calloc(1, size);
				for (size_t i = 0; i < size; i++)
					if (((unsigned char *)p)[i])
						abort();
				break;
			case 1:
				if (posix_memalign(&p, 64, size) || (uintptr_t)p % 64)
					abort();
				break;
			default:
				p = malloc(size);
			}
			b->p = p;
			b->size = size;
			b->fill = (unsigned char)x;
			memset(b->p, b->fill, size);
		} else if (x >> 20 & 1) {
			check(b, b->size);
			free(b->p);
			b->p = NULL;
		} else {
			size_t kept = b->size < size ? b->size : size;
			b->p = realloc(b->p, size);
			check(b, kept);
			b->size = size;
			memset(b->p, b->fill, size);
		}
		if (!(++rounds & 63) && rest)
			usleep(rest);
	}
	for (size_t i = 0; i < BLOCKS; i++)
		free(blocks[i].p);
	return NULL;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 10;
	int n = argc > 2 ? atoi(argv[2]) : 16;
	pthread_t t[256];

	rest = argc > 3 ? (unsigned)atoi(argv[3]) : 0;
	n = n < 1 ? 1 : n > 256 ? 256 : n;
	signal(SIGTERM, on_term);
	for (int i = 0; i < n; i++)
		if (pthread_create(&t[i], NULL, work, (void *)(intptr_t)i))
			return 2;
	printf("ready\n");
	fflush(stdout);
	for (double s = 0; s < seconds && !stop; s += 0.05)
		usleep(50000);
	stop = 1;
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	printf("ok %lu\n", (unsigned long)rounds);
	return 0;
}
