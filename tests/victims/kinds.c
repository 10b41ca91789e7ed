/*
 * The same work built in every way a program can be built (tests/target/executables.sh): static, with
 * another C library, stripped, huge. Each site_* function allocates from one place; some are called
 * by the C library, which may have no unwind information.
 *
 *	kinds FILE		works, writes what each site did to FILE, ends
 *	kinds FILE wait		says "ready", works when a line comes, says "done", ends at another line
 *
 *	site NAME <tab> allocated blocks <tab> bytes <tab> live blocks <tab> bytes
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SITE __attribute__((noinline, noclone)) static

static void *volatile keep;
static int early_calls;
static char text[4096];

SITE void site_early(void)
{
	keep = malloc(111);
	early_calls++;
}

static __attribute__((constructor)) void early(void)
{
	site_early();
}

SITE void site_malloc(void)
{
	for (int i = 0; i < 100; i++) {
		keep = malloc(101);
		if (i % 4)
			free(keep);
	}
}

SITE void site_calloc(void)
{
	for (int i = 0; i < 70; i++) {
		keep = calloc(7, 143);
		free(keep);
	}
}

SITE void site_realloc(void)
{
	for (int i = 0; i < 20; i++) {
		keep = realloc(NULL, 201);
		keep = realloc(keep, 20002);
		keep = realloc(keep, 302);
	}
}

SITE void site_aligned(void)
{
	void *p = NULL;

	for (int i = 0; i < 30; i++) {
		keep = aligned_alloc(64, 1280);
		free(keep);
		if (posix_memalign(&p, 128, 1302))
			abort();
	}
}

SITE void *site_thread(void *arg)
{
	for (int i = 0; i < 1000; i++) {
		keep = malloc(103);
		free(keep);
	}
	return arg;
}

SITE void site_once(void)
{
	keep = malloc(105);
}

/* Called by qsort. */
SITE int site_compare(const void *a, const void *b)
{
	keep = malloc(107);
	free(keep);
	return *(const int *)a - *(const int *)b;
}

SITE void site_handler(int sig)
{
	keep = malloc(100 + (size_t)sig);
}

/* An exit handler; by then the books are closed. */
SITE void site_late(void)
{
	keep = malloc(109);
}

static size_t compared;

SITE int count_compare(const void *a, const void *b)
{
	compared++;
	return *(const int *)a - *(const int *)b;
}

static void sort(int (*compare)(const void *, const void *))
{
	int v[40];

	for (int i = 0; i < 40; i++)
		v[i] = i * 7 % 40;
	qsort(v, 40, sizeof(v[0]), compare);
}

static void book(const char *name, size_t blocks, size_t bytes, size_t live_blocks, size_t live_bytes)
{
	size_t len = strlen(text);

	snprintf(text + len, sizeof(text) - len, "%s\t%zu\t%zu\t%zu\t%zu\n", name, blocks, bytes, live_blocks,
		 live_bytes);
}

static void say(int fd, const char *s)
{
	if (write(fd, s, strlen(s)) < 0)
		abort();
}

static void wait_line(void)
{
	char c;

	while (read(0, &c, 1) == 1 && c != '\n')
		;
}

int main(int argc, char **argv)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_t t;

	if (argc > 2) {
		say(1, "ready\n");
		wait_line();
		early_calls = 0;
	}
	atexit(site_late);
	site_malloc();
	site_calloc();
	site_realloc();
	site_aligned();
	pthread_create(&t, NULL, site_thread, NULL);
	pthread_join(t, NULL);
	pthread_once(&once, site_once);
	sort(count_compare);
	sort(site_compare);
	signal(SIGUSR1, site_handler);
	raise(SIGUSR1);
	if (early_calls)
		book("site_early", 1, 111, 1, 111);
	book("site_malloc", 100, 10100, 25, 2525);
	book("site_calloc", 70, 70 * 1001, 0, 0);
	book("site_realloc", 60, 20 * (201 + 20002 + 302), 20, 20 * 302);
	book("site_aligned", 60, 30 * (1280 + 1302), 30, 30 * 1302);
	book("site_thread", 1000, 103000, 0, 0);
	book("site_once", 1, 105, 1, 105);
	book("site_compare", compared, compared * 107, 0, 0);
	book("site_handler", 1, 100 + SIGUSR1, 1, 100 + SIGUSR1);
	book("site_late", 1, 109, 1, 109);
	int fd = open(argc > 1 ? argv[1] : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0644);
	say(fd, text);
	close(fd);
	if (argc > 2) {
		say(1, "done\n");
		wait_line();
	}
	return 7;
}
