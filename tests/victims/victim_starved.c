/*
 * Works at each line (tests/target/starved.sh): once, and then for three seconds, longer than a
 * lease lasts, and ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void *volatile keep;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void wait_line(void)
{
	char c;

	while (read(0, &c, 1) == 1 && c != '\n')
		;
}

/* Some blocks stay, and go in the next round. */
static void work(int blocks)
{
	static void *kept[100];

	for (int i = 0; i < blocks; i++) {
		free(kept[i % 100]);
		keep = kept[i % 100] = malloc(200);
	}
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	puts("ready");
	wait_line();
	work(1000);
	puts("worked 1");
	wait_line();
	for (double end = now() + 3; now() < end;) {
		work(1000);
		usleep(2000);
	}
	puts("worked 2");
	return 7;
}
