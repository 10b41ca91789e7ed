/*
 * A program that knows exactly what it allocates, and says so at its end. Every site_* function
 * calls one allocator function from one place; the victim keeps its own books under a lock, at
 * the same places where heaptop sees the call: a free before the allocator runs, an allocation
 * after it returned, a realloc as both.
 *
 *	known [SCALE [RATE [FILE]]]
 *
 * SCALE multiplies the rounds (20: more than 200,000 allocations). With RATE, the mean number of
 * bytes between samples, the table also has the standard errors an unbiased sampler of that rate
 * must show (0: without). The table goes to FILE or to standard output.
 *
 *	site NAME allocs N alloc_bytes N frees N live_blocks N live_bytes N peak_bytes N
 *	se NAME alloc_blocks X alloc_bytes X live_blocks X live_bytes X
 *	total allocs N alloc_bytes N frees N live_blocks N live_bytes N peak_bytes N
 *
 * Bytes are those asked for; live is at the end; peak_bytes is what the site held when the whole
 * program first held its maximum. Two threads work at the same time, yet the figures never
 * vary: barriers divide the run into phases, while memory grows towards the peak nothing is
 * freed, and the last blocks before the peak are one thread's alone.
 *
 * Standard errors: a block of s bytes is sampled with p = 1 - exp(-s/RATE) and then counts as
 * 1/p blocks, so each block adds (1-p)/p to the variance of the number of blocks and s^2 (1-p)/p
 * to that of the bytes; blocks are sampled independently of each other. With RATE the threads rest
 * now and then, some four samples a millisecond, so that a sampler needn't drop any.
 *
 * Built with -fno-builtin -fno-optimize-sibling-calls: the calls must be there, and on the stack.
 */
#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* a function of its own each, though several do the same */
#define SITE __attribute__((noinline, noclone, no_icf))

enum site {
	LEAK_LIST, LEAK_STRINGS, LEAK_WORKER, LEAK_LATE, CACHE_FILL, CHURN_SMALL, CHURN_BIG,
	GROW_VECTOR, GROW_MATRIX, SHRINK_BLOCK, ALIGNED_POOL, POSIX_POOL, OLD_POOL, PAGE_POOL,
	PPAGE_POOL, PASS_ON, COPY_NAME, ZERO_SIZE, PEAK_SPIKE, NSITES
};

static const char *const site_names[NSITES] = {
	[LEAK_LIST] = "site_leak_list",
	[LEAK_STRINGS] = "site_leak_strings",
	[LEAK_WORKER] = "site_leak_worker",
	[LEAK_LATE] = "site_leak_late",
	[CACHE_FILL] = "site_cache_fill",
	[CHURN_SMALL] = "site_churn_small",
	[CHURN_BIG] = "site_churn_big",
	[GROW_VECTOR] = "site_grow_vector",
	[GROW_MATRIX] = "site_grow_matrix",
	[SHRINK_BLOCK] = "site_shrink_block",
	[ALIGNED_POOL] = "site_aligned_pool",
	[POSIX_POOL] = "site_posix_pool",
	[OLD_POOL] = "site_old_pool",
	[PAGE_POOL] = "site_page_pool",
	[PPAGE_POOL] = "site_ppage_pool",
	[PASS_ON] = "site_pass_on",
	[COPY_NAME] = "site_copy_name",
	[ZERO_SIZE] = "site_zero_size",
	[PEAK_SPIKE] = "site_peak_spike",
};

struct count {
	uint64_t allocs, alloc_bytes, frees, freed_bytes, peak_bytes;
	double var_alloc_blocks, var_alloc_bytes, var_live_blocks, var_live_bytes;
};

struct block {
	void *p;
	size_t size;
	enum site site;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static struct count counts[NSITES];
static uint64_t total_live, total_peak;
static double rate;		/* 0: no standard errors */
static size_t scale = 1;

/* ---- the books ---- */

static double odds(size_t size)
{
	double q = exp(-(double)size / rate);

	return q < 1 ? q / (1 - q) : 0;
}

static void rest(size_t size)
{
	static __thread double samples;

	samples += fmin((double)size / rate, 1);
	if (samples < 4)
		return;
	samples = 0;
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

static struct block book_alloc(enum site site, void *p, size_t size)
{
	struct count *c = &counts[site];

	if (!p) {
		fprintf(stderr, "known: no memory at %s\n", site_names[site]);
		exit(1);
	}
	pthread_mutex_lock(&lock);
	c->allocs++;
	c->alloc_bytes += size;
	if (rate > 0) {
		double v = odds(size), s = (double)size;
		c->var_alloc_blocks += v;
		c->var_alloc_bytes += v * s * s;
		c->var_live_blocks += v;
		c->var_live_bytes += v * s * s;
	}
	total_live += size;
	if (total_live > total_peak) {
		total_peak = total_live;
		for (int i = 0; i < NSITES; i++)
			counts[i].peak_bytes = counts[i].alloc_bytes - counts[i].freed_bytes;
	}
	pthread_mutex_unlock(&lock);
	if (rate > 0)
		rest(size);
	return (struct block){ p, size, site };
}

static void book_free(const struct block *b)
{
	struct count *c = &counts[b->site];

	pthread_mutex_lock(&lock);
	c->frees++;
	c->freed_bytes += b->size;
	if (rate > 0) {
		double v = odds(b->size), s = (double)b->size;
		c->var_live_blocks -= v;
		c->var_live_bytes -= v * s * s;
	}
	total_live -= b->size;
	pthread_mutex_unlock(&lock);
}

static void release(struct block *b)
{
	book_free(b);
	free(b->p);
	b->p = NULL;
}

/* The table of a phase's blocks: mapped, so that it isn't itself on the heap. */
static struct block *table(size_t n)
{
	struct block *t = mmap(NULL, n * sizeof(*t), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (t == MAP_FAILED) {
		perror("known: mmap");
		exit(1);
	}
	return t;
}

/* ---- the sites: one call each ---- */

static SITE void *site_leak_list(size_t size) { return malloc(size); }
static SITE void *site_leak_strings(size_t size) { return malloc(size); }
static SITE void *site_leak_worker(size_t size) { return malloc(size); }
static SITE void *site_leak_late(size_t size) { return malloc(size); }
static SITE void *site_cache_fill(size_t n, size_t size) { return calloc(n, size); }
static SITE void *site_churn_small(size_t size) { return malloc(size); }
static SITE void *site_churn_big(size_t size) { return malloc(size); }
static SITE void *site_grow_vector(void *old, size_t size) { return realloc(old, size); }
static SITE void *site_grow_matrix(void *old, size_t n, size_t size)
{
	return reallocarray(old, n, size);
}
static SITE void *site_shrink_block(void *old, size_t size) { return realloc(old, size); }
static SITE void *site_aligned_pool(size_t size) { return aligned_alloc(64, size); }
static SITE void *site_posix_pool(size_t size)
{
	void *p = NULL;
	int rc = posix_memalign(&p, 4096, size);

	return rc ? NULL : p;
}
static SITE void *site_old_pool(size_t size) { return memalign(32, size); }
static SITE void *site_page_pool(size_t size) { return valloc(size); }
static SITE void *site_ppage_pool(size_t size) { return pvalloc(size); }
static SITE void *site_pass_on(size_t size) { return malloc(size); }
static SITE char *site_copy_name(const char *name) { return strdup(name); }
static SITE void *site_zero_size(void) { return malloc(0); }
static SITE void *site_peak_spike(size_t size) { return malloc(size); }

/* ---- what the phases are made of ---- */

/* Many short-lived blocks of 16..255 bytes. */
static void churn_small(size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t size = 16 + i * 7 % 240;
		struct block b = book_alloc(CHURN_SMALL, site_churn_small(size), size);
		release(&b);
	}
}

/* Blocks of 1..64 KiB that live for eight rounds. */
static void churn_big(size_t n)
{
	struct block queue[8] = { 0 };

	for (size_t i = 0; i < n; i++) {
		size_t size = 1024 + i * 4919 % (63 * 1024);
		struct block *b = &queue[i % 8];
		if (b->p)
			release(b);
		*b = book_alloc(CHURN_BIG, site_churn_big(size), size);
	}
	for (size_t i = 0; i < 8; i++)
		if (queue[i].p)
			release(&queue[i]);
}

/* A realloc is a free and an allocation; one that fails is neither. */
static struct block change(struct block b, enum site site, size_t size)
{
	if (b.p)
		book_free(&b);
	switch (site) {
	case GROW_VECTOR:
		return book_alloc(site, site_grow_vector(b.p, size), size);
	case GROW_MATRIX:
		return book_alloc(site, site_grow_matrix(b.p, size / 16, 16), size);
	default:
		return book_alloc(site, site_shrink_block(b.p, size), size);
	}
}

/*
 * Chains that begin with realloc(NULL) and double from 64 bytes to 64 KiB; a block taken in
 * between keeps some of them from growing in place. Odd ones end by realloc to nothing, which
 * frees (glibc).
 */
static void grow_chains(size_t n, enum site site)
{
	for (size_t i = 0; i < n; i++) {
		struct block b = { 0 };
		for (size_t size = 64; size <= 65536; size *= 2) {
			b = change(b, site, size);
			if (size % 3 == 1) {
				size_t wall = 24;
				struct block w = book_alloc(CHURN_SMALL, site_churn_small(wall), wall);
				b = change(b, site, size + 16);
				release(&w);
			}
		}
		if (i % 2) {
			book_free(&b);
			void *p = realloc(b.p, 0);
			if (p) {	/* a library that returns an empty block instead */
				fprintf(stderr, "known: realloc(p, 0) isn't NULL\n");
				exit(1);
			}
		} else {
			release(&b);
		}
	}
}

static void shrink_chains(size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t size = 2048 + i % 5 * 512;
		struct block b = book_alloc(CHURN_BIG, site_churn_big(size), size);
		b = change(b, SHRINK_BLOCK, 128);
		release(&b);
	}
}

static void copy_names(size_t n)
{
	char name[64];

	memset(name, 'n', sizeof(name));
	for (size_t i = 0; i < n; i++) {
		size_t len = 20 + i % 40;
		name[len] = '\0';
		(void)book_alloc(COPY_NAME, site_copy_name(name), len + 1);
		name[len] = 'n';
	}
}

/* ---- two threads, five phases ---- */

static struct block *passed;		/* allocated by main, freed by the worker */
static size_t npassed;

static void *worker(void *unused)
{
	(void)unused;
	/* 1: come and go, far below the peak */
	churn_small(2000 * scale);
	grow_chains(8 * scale, GROW_MATRIX);
	pthread_barrier_wait(&barrier);
	/* 2: grow only */
	for (size_t i = 0; i < 1000 * scale; i++)
		(void)book_alloc(LEAK_WORKER, site_leak_worker(32), 32);
	for (size_t i = 0; i < 400 * scale; i++) {
		size_t size = 16 + i % 97 * 5;
		(void)book_alloc(LEAK_STRINGS, site_leak_strings(size), size);
	}
	for (size_t i = 0; i < 20 * scale; i++)
		(void)book_alloc(POSIX_POOL, site_posix_pool(8192), 8192);
	for (size_t i = 0; i < 300 * scale; i++)
		(void)book_alloc(OLD_POOL, site_old_pool(96), 96);
	pthread_barrier_wait(&barrier);
	/* 3: the peak is main's alone; 4: main's spikes go */
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	/* 5: free what the other thread allocated; churn again */
	for (size_t i = 0; i < npassed; i++)
		release(&passed[i]);
	churn_small(2000 * scale);
	shrink_chains(200 * scale);
	return NULL;
}

static void run(void)
{
	pthread_t thread;

	npassed = 250 * scale;
	passed = table(npassed);
	struct block *cache = table(100 * scale), *pages = table(80 * scale), *spikes = table(40);
	pthread_barrier_init(&barrier, NULL, 2);
	if (pthread_create(&thread, NULL, worker, NULL)) {
		fprintf(stderr, "known: no thread\n");
		exit(1);
	}

	/* 1 */
	churn_small(2000 * scale);
	churn_big(200 * scale);
	grow_chains(8 * scale, GROW_VECTOR);
	pthread_barrier_wait(&barrier);

	/* 2 */
	for (size_t i = 0; i < 1000 * scale; i++) {
		struct block b = book_alloc(LEAK_LIST, site_leak_list(48), 48);
		/* a realloc that must fail leaves the block as it is */
		if (i % 100 == 0 && site_shrink_block(b.p, PTRDIFF_MAX))
			exit(1);
	}
	for (size_t i = 0; i < 100 * scale; i++)
		cache[i] = book_alloc(CACHE_FILL, site_cache_fill(4, 1000), 4000);
	for (size_t i = 0; i < 100 * scale; i++)
		(void)book_alloc(ALIGNED_POOL, site_aligned_pool(640), 640);
	for (size_t i = 0; i < 40 * scale; i++) {
		pages[2 * i] = book_alloc(PAGE_POOL, site_page_pool(4096), 4096);
		pages[2 * i + 1] = book_alloc(PPAGE_POOL, site_ppage_pool(5000), 5000);
	}
	for (size_t i = 0; i < npassed; i++)
		passed[i] = book_alloc(PASS_ON, site_pass_on(200 + i % 50), 200 + i % 50);
	copy_names(1000 * scale);
	if (rate == 0)		/* never sampled: has no standard error */
		for (size_t i = 0; i < 100; i++)
			(void)book_alloc(ZERO_SIZE, site_zero_size(), 0);
	pthread_barrier_wait(&barrier);

	/* 3 */
	for (size_t i = 0; i < 40; i++)
		spikes[i] = book_alloc(PEAK_SPIKE, site_peak_spike(256 << 10), 256 << 10);
	pthread_barrier_wait(&barrier);

	/* 4 */
	for (size_t i = 0; i < 40; i++)
		release(&spikes[i]);
	for (size_t i = 0; i < 80 * scale; i++)
		release(&pages[i]);
	for (size_t i = 0; i < 50 * scale; i++)
		release(&cache[2 * i]);
	pthread_barrier_wait(&barrier);

	/* 5 */
	for (size_t i = 0; i < 500 * scale; i++)
		(void)book_alloc(LEAK_LATE, site_leak_late(64), 64);
	churn_small(2000 * scale);
	grow_chains(4 * scale, GROW_VECTOR);
	pthread_join(thread, NULL);
}

static void print_row(const char *kind, const char *name, const struct count *c)
{
	printf("%s%s%s allocs %ju alloc_bytes %ju frees %ju live_blocks %ju live_bytes %ju peak_bytes %ju\n",
	       kind, *name ? " " : "", name, (uintmax_t)c->allocs, (uintmax_t)c->alloc_bytes,
	       (uintmax_t)c->frees, (uintmax_t)(c->allocs - c->frees),
	       (uintmax_t)(c->alloc_bytes - c->freed_bytes), (uintmax_t)c->peak_bytes);
}

static void print_se(const char *name, const struct count *c)
{
	/* the live variances are differences of sums: rounding may leave a trace below 0 */
	printf("se %s alloc_blocks %.6g alloc_bytes %.6g live_blocks %.6g live_bytes %.6g\n", name,
	       sqrt(c->var_alloc_blocks), sqrt(c->var_alloc_bytes),
	       sqrt(fmax(c->var_live_blocks, 0)), sqrt(fmax(c->var_live_bytes, 0)));
}

static double number(const char *text)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !(v >= 0) || v > 1e9) {
		fprintf(stderr, "usage: known [SCALE [RATE [FILE]]]\n");
		exit(2);
	}
	return v;
}

int main(int argc, char **argv)
{
	static char out[16384];

	/* stdio would take its buffer from the heap */
	setvbuf(stdout, out, _IOFBF, sizeof(out));
	if (argc > 1)
		scale = (size_t)number(argv[1]);
	if (scale == 0)
		scale = 1;
	if (argc > 2)
		rate = number(argv[2]);
	if (argc > 3) {
		int fd = open(argv[3], O_WRONLY | O_CREAT | O_TRUNC, 0666);
		if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0) {
			perror(argv[3]);
			return 1;
		}
	}
	run();

	struct count total = { .peak_bytes = total_peak };
	for (int i = 0; i < NSITES; i++) {
		if (!counts[i].allocs)
			continue;
		print_row("site", site_names[i], &counts[i]);
		if (rate > 0)
			print_se(site_names[i], &counts[i]);
		total.allocs += counts[i].allocs;
		total.alloc_bytes += counts[i].alloc_bytes;
		total.frees += counts[i].frees;
		total.freed_bytes += counts[i].freed_bytes;
		total.var_alloc_blocks += counts[i].var_alloc_blocks;
		total.var_alloc_bytes += counts[i].var_alloc_bytes;
		total.var_live_blocks += counts[i].var_live_blocks;
		total.var_live_bytes += counts[i].var_live_bytes;
	}
	print_row("total", "", &total);
	if (rate > 0)
		print_se("total", &total);
	fflush(stdout);
	return 0;
}
