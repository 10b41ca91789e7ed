/*
 * Two threads that allocate without a pause, until a call of theirs has taken half a second: it has waited
 * (tests/target/waits.sh). Then each prints how long, ms, how often it slept meanwhile, by the kernel's count of
 * voluntary switches, and what of the processors it took, ms:
 *
 *	waited 1830 naps 1700 cpu 12
 *
 * Prints "ready" at first, and leaves with 7.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static double now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec * 1e-6;
}

static long switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

static void *work(void *arg)
{
	for (;;) {
		double began = now(CLOCK_MONOTONIC), cpu = now(CLOCK_THREAD_CPUTIME_ID);
		long before = switches();
		char *p = malloc(100);

		p[0] = 1;
		free(p);
		double took = now(CLOCK_MONOTONIC) - began;
		if (took < 500)
			continue;
		printf("waited %.0f naps %ld cpu %.0f\n", took, switches() - before, now(CLOCK_THREAD_CPUTIME_ID) - cpu);
		return arg;
	}
}

int main(void)
{
	pthread_t th[2];

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	for (int i = 0; i < 2; i++)
		if (pthread_create(&th[i], NULL, work, NULL))
			return 1;
	for (int i = 0; i < 2; i++)
		pthread_join(th[i], NULL);
	return 7;
}
