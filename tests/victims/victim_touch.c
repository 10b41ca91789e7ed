/*
 * Memory asked for by one function and touched first by another, on a thread of its own; blocks that have gone a
 * moment after they were touched; and one that grows. All by writing a byte a page.
 *
 *	victim_touch ROUNDS [wait FILE [END]]
 *
 * site_pool asks for 16 MiB, which the thread "toucher" touches by touch_pool. ROUNDS times site_brief asks for 1 MiB,
 * touch_brief, on the first thread, touches it, and it is freed, which gives its pages back. site_table grows to 8 MiB by
 * realloc and is touched as it grows by fill_table.  wait: before all that until FILE is there, and at the end for END.
 * Prints "name bytes" lines: what each of the three touched.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
#define PAGE 4096u
#define POOL (16u << 20)
#define BRIEF (1u << 20)
#define TABLE (8u << 20)

static volatile char *pool;

static NOINLINE char *site_pool(void)
{
	return malloc(POOL);
}

static NOINLINE char *site_brief(void)
{
	return malloc(BRIEF);
}

static NOINLINE char *site_table(char *old, size_t bytes)
{
	return realloc(old, bytes);
}

static NOINLINE void touch_pool(void)
{
	for (size_t i = 0; i < POOL; i += PAGE)
		pool[i] = 1;
}

static NOINLINE void touch_brief(volatile char *at)
{
	for (size_t i = 0; i < BRIEF; i += PAGE)
		at[i] = 1;
}

static NOINLINE void fill_table(volatile char *at, size_t from, size_t to)
{
	for (size_t i = from; i < to; i += PAGE)
		at[i] = 1;
}

static void *toucher(void *unused)
{
	prctl(PR_SET_NAME, "toucher");
	/* its name is looked up when its faults are counted, in a moment */
	touch_pool();
	usleep(400000);
	return unused;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 50;
	bool waits = argc > 3 && !strcmp(argv[2], "wait");
	const char *file = waits ? argv[3] : NULL, *end = waits && argc > 4 ? argv[4] : NULL;
	pthread_t thread;
	char *table = NULL;

	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	/* what is freed goes back, in all rounds: the bound would rise with the first */
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	while (file && access(file, F_OK))
		usleep(20000);
	pool = site_pool();
	pthread_create(&thread, NULL, toucher, NULL);
	pthread_join(thread, NULL);
	for (unsigned i = 0; i < rounds; i++) {
		char *at = site_brief();
		touch_brief(at);
		free(at);
	}
	for (size_t bytes = 0; bytes < TABLE; bytes += TABLE / 8) {
		table = site_table(table, bytes + TABLE / 8);
		fill_table(table, bytes, bytes + TABLE / 8);
	}
	printf("pool %u\nbrief %llu\ntable %u\n", POOL, (unsigned long long)rounds * BRIEF, TABLE);
	fflush(stdout);
	while (end && access(end, F_OK))
		usleep(20000);
	return table[0] + pool[0] == 0;
}
