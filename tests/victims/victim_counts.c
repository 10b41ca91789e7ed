/*
 * A fixed number of calls of each allocator function, each with a size that nothing else uses,
 * so that a probe's counts can be compared. Also from a constructor and an exit handler, from a
 * second thread, and from a forked child (which must not be counted).
 */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile keep;

#define TIMES(n, call) for (int i = 0; i < (n); i++) { call; }

static __attribute__((constructor)) void early(void)
{
	TIMES(3, keep = malloc(70001); free(keep));
}

static void late(void)
{
	TIMES(5, keep = malloc(70002));
}

static void *thread(void *arg)
{
	(void)arg;
	TIMES(1000, keep = malloc(1003); free(keep));
	return NULL;
}

int main(void)
{
	pthread_t t;
	void *p = NULL;

	atexit(late);
	TIMES(100, keep = malloc(1001); free(keep));
	TIMES(50, keep = malloc(1005));			/* leaked */
	TIMES(70, keep = calloc(7, 143); free(keep));	/* 1001 + 70 */
	TIMES(20, keep = realloc(NULL, 2001); keep = realloc(keep, 20002); keep = realloc(keep, 302);
	      free(keep));
	TIMES(10, keep = reallocarray(NULL, 3, 1111); free(keep));
	TIMES(30, keep = memalign(64, 1201); free(keep));
	TIMES(31, keep = aligned_alloc(64, 1280); free(keep));
	TIMES(32, if (posix_memalign(&p, 128, 1302)) return 1; free(p));
	TIMES(8, keep = valloc(1405); free(keep));
	TIMES(9, keep = pvalloc(1409));	/* leaked: jemalloc has none, and must not get the C library's */
	TIMES(4, keep = malloc(PTRDIFF_MAX));		/* fails */
	keep = malloc(1501);
	TIMES(6, if (realloc(keep, PTRDIFF_MAX)) return 1);	/* fails, the block stays */
	free(keep);
	pthread_create(&t, NULL, thread, NULL);
	pthread_join(t, NULL);
	pid_t pid = fork();
	if (!pid) {
		TIMES(1000, keep = malloc(1601); free(keep));
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	return 7;
}
