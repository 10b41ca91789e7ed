/*
 * Maps and unmaps in all ways, each from a function of its own, and prints what each holds at the end
 * and has got in all:
 *
 *	NAME LIVE_BYTES LIVE_BLOCKS ALLOC_BYTES ALLOC_BLOCKS
 *
 * argv[1]: "threads" to have one, whose stack isn't the program's mapping; "race": some of them map and
 * unmap at the same time, so that one gets the addresses another has just given back.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define P 4096ul

static void check(int right, const char *what)
{
	if (!right) {
		perror(what);
		exit(1);
	}
}

static void tell(const char *name, unsigned long live, unsigned live_blocks, unsigned long bytes, unsigned blocks)
{
	printf("%s %lu %u %lu %u\n", name, live, live_blocks, bytes, blocks);
}

static char *anonymous(void *at, size_t bytes, int flags)
{
	char *ret = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	check(ret != MAP_FAILED, "mmap");
	return ret;
}

/* A wrapper's frame would be every site's: they call by a macro. */
#define ANONYMOUS(at, bytes, flags) \
	mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (flags), -1, 0)

static void site_plain(void)
{
	char *p = ANONYMOUS(NULL, 10 * P - 100, 0), *q = ANONYMOUS(NULL, P, 0);

	check(p != MAP_FAILED && q != MAP_FAILED, "mmap");
	check(!munmap(q, 1), "munmap");
	tell("site_plain", 10 * P, 1, 11 * P, 2);
}

static void site_partial(void)
{
	char *p = ANONYMOUS(NULL, 16 * P, 0);

	check(!munmap(p, 2 * P), "munmap");
	check(!munmap(p + 5 * P, 3 * P), "munmap");
	check(!munmap(p + 15 * P, P), "munmap");
	tell("site_partial", 10 * P, 1, 16 * P, 1);
}

/* In the middle of another's, and then a hole over the border of both. */
static void site_fixed(char *at)
{
	check(ANONYMOUS(at, 4 * P, MAP_FIXED) == at, "mmap");
	tell("site_fixed", 2 * P, 1, 4 * P, 1);
}

static void site_several(void)
{
	char *p = ANONYMOUS(NULL, 12 * P, 0);

	site_fixed(p + 4 * P);
	check(!munmap(p + 2 * P, 4 * P), "munmap");
	tell("site_several", 6 * P, 1, 12 * P, 1);
	/* several at once, all of them */
	char *q = ANONYMOUS(NULL, 6 * P, 0);
	check(ANONYMOUS(q + 2 * P, P, MAP_FIXED) == q + 2 * P, "mmap");
	check(!munmap(q, 6 * P), "munmap");
	tell("site_several", 0, 0, 7 * P, 2);
}

static void site_file(const char *path)
{
	FILE *f = fopen(path, "r");
	char *p = ANONYMOUS(NULL, 4 * P, 0);

	check(f != NULL, path);
	check(mmap(NULL, P, PROT_READ, MAP_PRIVATE, fileno(f), 0) != MAP_FAILED, "mmap");
	/* a file in its place: it is none any more */
	check(mmap(p + P, P, PROT_READ, MAP_PRIVATE | MAP_FIXED, fileno(f), 0) == p + P, "mmap");
	fclose(f);
	tell("site_file", 3 * P, 1, 4 * P, 1);
}

static void site_shared(void)
{
	check(mmap(NULL, 3 * P, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) != MAP_FAILED, "mmap");
	tell("site_shared", 3 * P, 1, 3 * P, 1);
}

/* Moves and changes sizes of the mappings that site_moves_from has made. */
static char *site_move(char *p, size_t from, size_t to)
{
	char *ret = mremap(p, from, to, MREMAP_MAYMOVE);

	check(ret != MAP_FAILED, "mremap");
	return ret;
}

static void site_moves_from(const char *path)
{
	char *p = ANONYMOUS(NULL, 4 * P, 0), *q = ANONYMOUS(NULL, 8 * P, 0), *room = anonymous(NULL, 20 * P, 0);
	FILE *f = fopen(path, "r");
	void *file = mmap(NULL, P, PROT_READ, MAP_PRIVATE, fileno(f), 0);

	p = site_move(p, 4 * P, 40 * P);
	p = site_move(p, 40 * P, 5 * P);
	/* one with a hole can't be moved as a whole: in two */
	check(!munmap(q + 2 * P, P), "munmap");
	q = site_move(q, 2 * P, 3 * P);
	/* a file's: not counted after it has moved, either */
	check(mremap(file, P, 2 * P, MREMAP_MAYMOVE) != MAP_FAILED, "mremap");
	/* what fails changes nothing: there is no room to grow without moving, and nothing behind the end */
	check(!munmap(room + 10 * P, P), "munmap");
	check(mremap(room, 10 * P, 12 * P, 0) == MAP_FAILED, "mremap that fails");
	check(mremap(room, 30 * P, 31 * P, MREMAP_MAYMOVE) == MAP_FAILED, "another");
	check(munmap(room + 1, P) == -1, "munmap of no page");
	check(munmap(room, 0) == -1, "munmap of nothing");
	/* over another's */
	check(mremap(p, P, P, MREMAP_MAYMOVE | MREMAP_FIXED, room + 3 * P) == room + 3 * P, "mremap");
	fclose(f);
	tell("site_move", (4 + 3) * P, 2, (40 + 5 + 3) * P, 3);
	tell("site_moves_from", (5 + 1) * P, 2, (4 + 8 + 1) * P, 3);
	tell("anonymous", 18 * P, 1, 20 * P, 1);
}

static void site_break(void)
{
	char *p = sbrk(10000);

	check(p != (void *)-1, "sbrk");
	check(sbrk(0) == p + 10000, "sbrk(0)");
	check(sbrk(-4000) == p + 10000, "sbrk(-4000)");
	check(!brk(p + 7000), "brk");
	check(!brk(p + 6500), "brk");
	tell("site_break", 6500, 2, 11000, 2);
}

/* What malloc maps is malloc's. */
static void site_malloc(void)
{
	for (int i = 0; i < 20; i++) {
		char *p = malloc(1 << 20);
		check(p != NULL, "malloc");
		p[0] = 1;
		if (i)
			free(p);
	}
	tell("site_malloc", 1 << 20, 1, 20 << 20, 20);
}

static void *nothing(void *arg)
{
	return arg;
}

#define RACERS 4
#define ROUNDS 3000u
#define KEPT 10

static void *site_race(void *arg)
{
	uint32_t x = (uint32_t)(uintptr_t)arg * 2654435761u + 1;
	char *kept[KEPT] = { NULL };

	for (unsigned i = 0; i < ROUNDS; i++) {
		char **p = &kept[i % KEPT];

		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		if (*p && x & 1)
			check(!munmap(*p + 2 * P, 2 * P) && !munmap(*p, 2 * P), "munmap");
		else if (*p)
			check(!munmap(*p, 4 * P), "munmap");
		*p = ANONYMOUS(NULL, 4 * P, 0);
		check(*p != MAP_FAILED, "mmap");
	}
	return NULL;
}

static void race(void)
{
	pthread_t threads[RACERS];

	for (uintptr_t i = 0; i < RACERS; i++)
		check(!pthread_create(&threads[i], NULL, site_race, (void *)i), "pthread_create");
	for (int i = 0; i < RACERS; i++)
		pthread_join(threads[i], NULL);
	tell("site_race", RACERS * KEPT * 4 * P, RACERS * KEPT, RACERS * ROUNDS * 4 * P, RACERS * ROUNDS);
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc > 1 && !strcmp(argv[1], "race")) {
		race();
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "threads"))
		check(!pthread_create(&thread, NULL, nothing, NULL) && !pthread_join(thread, NULL), "thread");
	site_plain();
	site_partial();
	site_several();
	site_file(argv[0]);
	site_shared();
	site_moves_from(argv[0]);
	site_break();
	site_malloc();
	return 0;
}
