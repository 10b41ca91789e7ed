/*
 * At each line: pairs of malloc and free for as long as a lease lasts and some more, in rounds of which the quickest
 * tells what a pair costs (tests/target/left.sh). Ends with 7 at the line "quit".
 *
 *	victim_left states	has three states of agents in it, which the kernel has merged; the first's heaptop was
 *				killed before it had said whose it is
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "wire/wire.h"

#define PAIRS 20000
#define SECONDS 2.5

static void *volatile keep;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void leave_states(void)
{
	size_t bytes = (WIRE_STATE_BYTES + 4095) & ~4095ul;
	char *at = mmap(NULL, 3 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED || madvise(at, 3 * bytes, MADV_WIPEONFORK)) {
		perror("victim_left");
		exit(99);
	}
	((struct wire_ctl *)(at + bytes))->magic = WIRE_CTL_MAGIC;
	((struct wire_ctl *)(at + 2 * bytes))->magic = WIRE_CTL_MAGIC;
	printf("states of %zu KiB\n", bytes >> 10);
}

int main(int argc, char **argv)
{
	char line[16];

	setvbuf(stdout, NULL, _IONBF, 0);
	setvbuf(stdin, NULL, _IONBF, 0);
	if (argc > 1 && !strcmp(argv[1], "states"))
		leave_states();
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
