/*
 * A program of phases, quiet and stormy, that says at the end of each what is true, and waits there:
 *
 *	phases FOLDER [STORM_SECONDS]
 *
 * At each checkpoint N (0, 1, ...) it writes FOLDER/truth.N and goes on once there is a file
 * FOLDER/go.N. What happens before
 *
 *	0	nothing
 *	1	quiet: 300 blocks a second, kept: so few that even the most an event is said to take, 25 us, leaves a
 *		budget of 5 % unspent
 *	2	storm: blocks come and go as fast as can be, the last ones are freed at its end; one in 64
 *		is another, kept. Meanwhile every second block of phase 1 is freed
 *	3	quiet: some more blocks, kept
 *	4	storm again
 *	5	everything is freed, as fast as can be
 *
 * The truth, for each site so far and their sum:
 *
 *	site NAME allocs N alloc_bytes N live_blocks N live_bytes N
 *	total allocs N alloc_bytes N live_blocks N live_bytes N
 *
 * Nothing else is on the heap: no stdio; books and tables are static or mapped.
 * Built with -fno-builtin -fno-optimize-sibling-calls: the calls must be there, and on the stack.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SITE __attribute__((noinline, noclone, no_icf))
#define QUIET_BLOCKS 1000u
#define MAX_KEPT (4u << 20)
#define CHURNING 1000u		/* blocks that live at a time in a storm */

enum site { QUIET_KEEP, STORM_CHURN, STORM_KEEP, QUIET_AGAIN, SECOND_CHURN, SECOND_KEEP, NSITES };

static const char *const names[NSITES] = {
	[QUIET_KEEP] = "site_quiet_keep",
	[STORM_CHURN] = "site_storm_churn",
	[STORM_KEEP] = "site_storm_keep",
	[QUIET_AGAIN] = "site_quiet_again",
	[SECOND_CHURN] = "site_second_churn",
	[SECOND_KEEP] = "site_second_keep",
};

struct block {
	void *p;
	uint32_t size;
	enum site site;
};

static struct {
	uint64_t allocs, alloc_bytes, frees, freed_bytes;
} books[NSITES];
static struct block *kept;
static size_t nkept;
static const char *folder;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static SITE void *site_quiet_keep(size_t size) { return malloc(size); }
static SITE void *site_storm_churn(size_t size) { return malloc(size); }
static SITE void *site_storm_keep(size_t size) { return malloc(size); }
static SITE void *site_quiet_again(size_t size) { return malloc(size); }
static SITE void *site_second_churn(size_t size) { return malloc(size); }
static SITE void *site_second_keep(size_t size) { return malloc(size); }

static void *(*const calls[NSITES])(size_t) = {
	[QUIET_KEEP] = site_quiet_keep,
	[STORM_CHURN] = site_storm_churn,
	[STORM_KEEP] = site_storm_keep,
	[QUIET_AGAIN] = site_quiet_again,
	[SECOND_CHURN] = site_second_churn,
	[SECOND_KEEP] = site_second_keep,
};

static struct block take(enum site site, uint32_t size)
{
	struct block b = { calls[site](size), size, site };

	if (!b.p)
		die("phases: malloc");
	books[site].allocs++;
	books[site].alloc_bytes += size;
	return b;
}

static void release(struct block *b)
{
	free(b->p);
	b->p = NULL;
	books[b->site].frees++;
	books[b->site].freed_bytes += b->size;
}

static void keep(struct block b)
{
	if (nkept == MAX_KEPT)
		die("phases: too many blocks");
	kept[nkept++] = b;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void rest(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

/* ---- checkpoints ---- */

static void tell(int fd, const char *kind, const char *name, const uint64_t v[4])
{
	char line[256];
	int n = snprintf(line, sizeof(line), "%s%s%s allocs %ju alloc_bytes %ju live_blocks %ju live_bytes %ju\n",
			 kind, *name ? " " : "", name, (uintmax_t)v[0], (uintmax_t)v[1], (uintmax_t)v[2],
			 (uintmax_t)v[3]);

	if (write(fd, line, (size_t)n) != n)
		die("phases: write");
}

static void checkpoint(int number)
{
	char path[512], done[512];
	struct stat st;
	uint64_t total[4] = { 0 };

	snprintf(path, sizeof(path), "%s/truth", folder);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (fd < 0)
		die(path);
	for (int i = 0; i < NSITES; i++) {
		uint64_t v[4] = { books[i].allocs, books[i].alloc_bytes, books[i].allocs - books[i].frees,
				  books[i].alloc_bytes - books[i].freed_bytes };
		for (int k = 0; k < 4; k++)
			total[k] += v[k];
		if (v[0])
			tell(fd, "site", names[i], v);
	}
	tell(fd, "total", "", total);
	close(fd);
	/* all of it or nothing */
	snprintf(done, sizeof(done), "%s/truth.%d", folder, number);
	if (rename(path, done))
		die(done);
	snprintf(path, sizeof(path), "%s/go.%d", folder, number);
	while (stat(path, &st))
		rest(10);
}

/* ---- phases ---- */

static void quiet(enum site site)
{
	for (uint32_t i = 0; i < QUIET_BLOCKS; i++) {
		keep(take(site, 50 + i % 300));
		rest(3);
	}
}

static void storm(enum site churn, enum site keeping, double seconds, size_t release_below)
{
	static struct block live[CHURNING];
	double end = now() + seconds;

	for (uint32_t i = 0; i % 1024 || now() < end; i++) {
		struct block *b = &live[i % CHURNING];
		if (b->p)
			release(b);
		*b = take(churn, 16 + i % 211);
		if (i % 64 == 0)
			keep(take(keeping, 24 + i / 64 % 173));
		/* spread over the storm's beginning: some before and some after the rate has changed */
		if (i % 64 == 0 && i / 64 < release_below && i / 64 % 2 == 0)
			release(&kept[i / 64]);
	}
	for (size_t i = 0; i < CHURNING; i++)
		if (live[i].p)
			release(&live[i]);
}

int main(int argc, char **argv)
{
	double seconds = argc > 2 ? atof(argv[2]) : 3;

	if (argc < 2 || seconds <= 0) {
		dprintf(STDERR_FILENO, "usage: phases FOLDER [STORM_SECONDS]\n");
		return 2;
	}
	folder = argv[1];
	kept = mmap(NULL, MAX_KEPT * sizeof(*kept), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (kept == MAP_FAILED)
		die("phases: mmap");
	checkpoint(0);
	quiet(QUIET_KEEP);
	checkpoint(1);
	storm(STORM_CHURN, STORM_KEEP, seconds, QUIET_BLOCKS);
	checkpoint(2);
	quiet(QUIET_AGAIN);
	checkpoint(3);
	storm(SECOND_CHURN, SECOND_KEEP, seconds, 0);
	checkpoint(4);
	for (size_t i = 0; i < nkept; i++)
		if (kept[i].p)
			release(&kept[i]);
	checkpoint(5);
	return 0;
}
