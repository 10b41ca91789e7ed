/*
 * A program whose child outlives it and goes on writing into all the rings that heaptop has placed in the program: they
 * are memory that both share. When SIGUSR1 comes it forks that child, prints "child PID" and ends with 7 as soon as the
 * child has filled them once. Prints "ready" before; the child ends after two minutes at the latest.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <x86intrin.h>

#include "wire/wire.h"

/* Our own island, or NULL. */
static const struct wire_island *find_island(void)
{
	const struct wire_island *found = NULL;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512], prot[8];
	unsigned long from, to, inode;

	while (maps && !found && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %7s %*s %*s %lu", &from, &to, prot, &inode) != 4 || inode ||
		    strncmp(prot, "r-xp", 4) || strchr(line, '['))
			continue;
		const struct wire_island *is = (const struct wire_island *)from;
		if (is->magic == WIRE_ISLAND_MAGIC)
			found = is;
	}
	if (maps)
		fclose(maps);
	return found;
}

/* An allocation, always of the same block: the reader has some work with it, and needs no memory for it. */
struct record {
	struct wire_alloc alloc;
	uint64_t frame;
};
#define RECORD (((uint64_t)WIRE_F_WALKED << WIRE_FLAGS_SHIFT) | ((uint64_t)WIRE_ALLOC << WIRE_KIND_SHIFT))

/* A record that is committed; `bytes` of it, nothing but the first word if it is padding. */
static void put(const struct wire_island *is, struct wire_ring *ring, uint64_t at, uint64_t bytes, uint64_t what)
{
	struct record *r = (struct record *)((uint8_t *)(ring + 1) + at % is->ring_bytes);

	if (!(what & WIRE_PAD)) {
		r->alloc.h.tsc = __rdtsc();
		r->alloc.h.addr_slot = 0x1000ull << 16;
		r->alloc.size = 16;
		r->alloc.stack = 1;
		r->frame = (uint64_t)put;
	}
	r->alloc.h.word = (uint64_t)wire_tag(at, is->nonce) << 32 | what | bytes;
	__atomic_store_n(&ring->head, at + bytes, __ATOMIC_RELEASE);
}

__attribute__((noreturn))
static void write_on(const struct wire_island *is, int begun)
{
	const uint64_t bytes = sizeof(struct record);

	alarm(120);
	/* on a busy machine, too, nothing to read must not be found by luck; where it may */
	setpriority(PRIO_PROCESS, 0, -20);
	for (uint64_t i = 0;;) {
		struct wire_ring *ring = (struct wire_ring *)(is->rings + i % is->nrings * is->ring_stride);
		uint64_t at = ring->head, left = is->ring_bytes - at % is->ring_bytes;

		if (at + 2 * bytes - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) > is->ring_bytes) {
			/* full; no nap, in which the reader would find nothing */
			if (++i == is->nrings && write(begun, "!", 1) != 1)
				_exit(1);
		} else if (left < bytes) {
			put(is, ring, at, left, WIRE_PAD);
		} else {
			put(is, ring, at, bytes, RECORD);
		}
	}
}

int main(void)
{
	sigset_t set;
	int sig, fds[2];
	char c;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	free(malloc(100));
	puts("ready");
	fflush(stdout);
	sigwait(&set, &sig);
	const struct wire_island *is = find_island();
	if (!is || pipe(fds))
		return 1;
	pid_t pid = fork();
	if (!pid)
		write_on(is, fds[1]);
	close(fds[1]);
	printf("child %d\n", (int)pid);
	fflush(stdout);
	return pid < 0 || read(fds[0], &c, 1) != 1 ? 1 : 7;
}
