/*
 * At each line: pairs of malloc and free for as long as a lease lasts and some more, in rounds of which the quickest
 * tells what a pair costs (tests/target/left.sh). Ends with 7 at the line "quit".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAIRS 20000
#define SECONDS 2.5

static void *volatile keep;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

int main(void)
{
	char line[16];

	setvbuf(stdout, NULL, _IONBF, 0);
	setvbuf(stdin, NULL, _IONBF, 0);
	puts("ready");
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "quit\n")) {
		double least = 1e18, end = now() + SECONDS * 1e9;

		for (double began; (began = now()) < end;) {
			for (int i = 0; i < PAIRS; i++) {
				keep = malloc(64);
				free(keep);
			}
			double took = (now() - began) / PAIRS;
			least = took < least ? took : least;
		}
		printf("pair %.1f\n", least);
	}
	return 7;
}
