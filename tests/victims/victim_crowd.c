/*
 * Many threads and many mappings: what stopping a process and writing to it costs depends on both.
 *
 *	victim_crowd THREADS MAPPINGS [busy]
 *
 * Each thread allocates and frees, resting 20 ms in between, or with "busy" not at all. The mappings are
 * single pages of alternating protection, so that none can be merged with its neighbour. Prints
 * "ready", and leaves with 0 at SIGTERM.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static bool busy;
static pthread_barrier_t started;

static void *work(void *arg)
{
	size_t size = 16 + (size_t)arg % 500;

	free(malloc(size));
	pthread_barrier_wait(&started);
	for (;;) {
		for (int i = 0; i < 100; i++) {
			char *p = malloc(size);
			p[0] = 1;
			free(p);
		}
		if (!busy)
			nanosleep(&(struct timespec){ 0, 20000000 }, NULL);
	}
	return NULL;
}

static int split_pages(long n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *m = mmap(NULL, (size_t)n * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (m == MAP_FAILED)
		return -1;
	for (long i = 0; i < n; i += 2)
		if (mprotect(m + (size_t)i * page, page, PROT_READ | PROT_WRITE))
			return -1;
	return 0;
}

int main(int argc, char **argv)
{
	long threads = argc > 1 ? atol(argv[1]) : 0, mappings = argc > 2 ? atol(argv[2]) : 0;
	pthread_attr_t attr;
	sigset_t term;
	int sig;

	busy = argc > 3 && strcmp(argv[3], "busy") == 0;
	if (threads < 1 || mappings < 0) {
		fprintf(stderr, "usage: victim_crowd THREADS MAPPINGS [busy]\n");
		return 2;
	}
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	pthread_barrier_init(&started, NULL, (unsigned)threads + 1);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 128 << 10);
	for (long i = 0; i < threads; i++) {
		pthread_t th;
		if (pthread_create(&th, &attr, work, (void *)i)) {
			perror("victim_crowd: pthread_create");
			return 1;
		}
	}
	if (mappings && split_pages(mappings)) {
		perror("victim_crowd: mmap");
		return 1;
	}
	pthread_barrier_wait(&started);
	puts("ready");
	fflush(stdout);
	sigwait(&term, &sig);
	return 0;
}
