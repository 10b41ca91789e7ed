/*
 * Programs that make threads, one per argument. Each prints what is true.
 *
 *	churn N		N threads, eight at a time, each of which allocates 3 blocks of 40 bytes at churn_site,
 *			frees two of them, and leaves the third; the libc uses their stacks again and again
 *	distinct N	the same one after the other, each on a stack of its own at an address of its own
 *	leave N		N threads, each leaves 1 block; then main frees all but 100 of them
 *	many N		N threads at once, named crowd-0 to crowd-9, with 100 bytes each; "ready", waits for a line,
 *			then each frees its block, "gone", and waits for a line
 *	burst N		N threads that begin together, 1,500 times a block of 40 bytes each, 16 calls deep
 *	names		threads red, green, blue hold 1000, 2000, 3000 bytes; red calls itself "ro\033t" later
 *	shrink		a thread with 256 KiB of stack, then one with 16 KiB that ends at the same address
 *	vfork N		N times vfork and malloc in a thread's child
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *volatile kept[65536];

__attribute__((noinline)) void *churn_site(size_t n)
{
	void *p = malloc(n);

	__asm__ volatile("" :: "r"(p) : "memory");
	return p;
}

static void *churn_body(void *arg)
{
	void *a = churn_site(40), *b = churn_site(40), *c = churn_site(40);

	free(b);
	free(a);
	kept[(size_t)arg % 65536] = c;
	return NULL;
}

static void say(const char *text)
{
	if (write(1, text, strlen(text)) < 0)
		_exit(1);
}

static void wait_line(void)
{
	char c;

	while (read(0, &c, 1) == 1 && c != '\n')
		;
}

static void make(pthread_t *t, const pthread_attr_t *attr, void *(*body)(void *), void *arg)
{
	if (pthread_create(t, attr, body, arg)) {
		say("no thread\n");
		_exit(1);
	}
}

static int churn(size_t n)
{
	pthread_t t[8];

	for (size_t i = 0; i < n; i += 8) {
		for (size_t k = 0; k < 8; k++)
			make(&t[k], NULL, churn_body, (void *)(i + k));
		for (size_t k = 0; k < 8; k++)
			pthread_join(t[k], NULL);
	}
	return 0;
}

/* Stacks that follow each other in a reservation: each thread pointer is met once. */
static int distinct(size_t n)
{
	size_t size = 64 << 10;
	char *at = mmap(NULL, n * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	pthread_attr_t attr;

	if (at == MAP_FAILED)
		return 1;
	pthread_attr_init(&attr);
	for (size_t i = 0; i < n; i++, at += size) {
		pthread_t t;

		mprotect(at, size, PROT_READ | PROT_WRITE);
		pthread_attr_setstack(&attr, at, size);
		make(&t, &attr, churn_body, (void *)i);
		pthread_join(t, NULL);
		munmap(at, size);
	}
	return 0;
}

static void *leave_body(void *arg)
{
	kept[(size_t)arg % 65536] = churn_site(40);
	return NULL;
}

static int leave(size_t n)
{
	for (size_t i = 0; i < n; i++) {
		pthread_t t;

		make(&t, NULL, leave_body, (void *)i);
		pthread_join(t, NULL);
	}
	for (size_t i = 100; i < n; i++)
		free(kept[i]);
	return 0;
}

static pthread_barrier_t barrier;

static void *many_body(void *arg)
{
	char name[16];

	snprintf(name, sizeof(name), "crowd-%d", (int)((size_t)arg % 10));
	pthread_setname_np(pthread_self(), name);
	void *p = churn_site(100);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	free(p);
	return NULL;
}

static int many(size_t n)
{
	pthread_t *t = calloc(n, sizeof(*t));
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	pthread_barrier_init(&barrier, NULL, (unsigned)n + 1);
	for (size_t i = 0; i < n; i++)
		make(&t[i], &attr, many_body, (void *)i);
	pthread_barrier_wait(&barrier);
	say("ready\n");
	wait_line();
	pthread_barrier_wait(&barrier);
	for (size_t i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	say("gone\n");
	wait_line();
	return 0;
}

/* Frames large enough that copies of such a stack fill what they are put into. */
__attribute__((noinline)) static void deeper(int depth)
{
	volatile char frame[256];

	frame[0] = (char)depth;
	if (depth > 0)
		deeper(depth - 1);
	else
		for (int i = 0; i < 1500; i++)
			free(churn_site(40));
	frame[1] = frame[0];
}

static void *burst_body(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&barrier);
	deeper(16);
	return NULL;
}

static int burst(size_t n)
{
	pthread_t *t = calloc(n, sizeof(*t));

	pthread_barrier_init(&barrier, NULL, (unsigned)n);
	for (size_t i = 0; i < n; i++)
		make(&t[i], NULL, burst_body, NULL);
	for (size_t i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	free(t);
	return 0;
}

static void *names_body(void *arg)
{
	static const char *const names[] = { "red", "green", "blue" };
	size_t i = (size_t)arg;

	pthread_setname_np(pthread_self(), names[i]);
	void *p = churn_site(1000 * (i + 1));
	pthread_barrier_wait(&barrier);
	if (!i)
		pthread_setname_np(pthread_self(), "ro\033t");
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	free(p);
	return NULL;
}

static int names(void)
{
	pthread_t t[3];

	pthread_barrier_init(&barrier, NULL, 4);
	for (size_t i = 0; i < 3; i++)
		make(&t[i], NULL, names_body, (void *)i);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	say("ready\n");
	wait_line();
	pthread_barrier_wait(&barrier);
	for (size_t i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	return 0;
}

/* With frames all over the stack, so that a walk by the old bounds would leave the new ones. */
static __attribute__((noinline)) int deep(int depth, int blocks)
{
	volatile char room[700];
	int ret = 0;

	room[0] = (char)depth;
	if (depth)
		ret = deep(depth - 1, blocks);
	else
		for (int i = 0; i < blocks; i++)
			free(churn_site(40));
	return ret + room[0];
}

static void *big_body(void *arg)
{
	(void)arg;
	return (void *)(size_t)deep(200, 1000);
}

static void *small_body(void *arg)
{
	(void)arg;
	return (void *)(size_t)deep(4, 1000);
}

static int shrink(void)
{
	size_t big = 256 << 10, small = 16 << 10;
	char *at = mmap(NULL, big, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	for (int round = 0; round < 20; round++) {
		mmap(at, big, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		pthread_attr_setstack(&attr, at, big);
		make(&t, &attr, big_body, NULL);
		pthread_join(t, NULL);
		munmap(at, big - small);
		pthread_attr_setstack(&attr, at + big - small, small);
		make(&t, &attr, small_body, NULL);
		pthread_join(t, NULL);
	}
	return 0;
}

static void *vfork_body(void *arg)
{
	for (volatile size_t i = 0; i < (size_t)arg; i++) {
		pid_t pid = vfork();

		if (!pid) {
			free(churn_site(40));
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		free(churn_site(40));
	}
	return NULL;
}

static int in_vfork(size_t n)
{
	pthread_t t;

	make(&t, NULL, vfork_body, (void *)n);
	pthread_join(t, NULL);
	return 0;
}

/* $VICTIM_WAIT: milliseconds of processor time before anything else is done. */
static void wait_first(void)
{
	const char *wait = getenv("VICTIM_WAIT");
	struct timespec used;

	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	while (wait && used.tv_sec * 1000 + used.tv_nsec / 1000000 < atol(wait));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;

	wait_first();

	if (!strcmp(what, "churn") && n)
		return churn(n);
	if (!strcmp(what, "distinct") && n)
		return distinct(n);
	if (!strcmp(what, "leave") && n > 100 && n <= 65536)
		return leave(n);
	if (!strcmp(what, "many") && n)
		return many(n);
	if (!strcmp(what, "burst") && n)
		return burst(n);
	if (!strcmp(what, "names"))
		return names();
	if (!strcmp(what, "shrink"))
		return shrink();
	if (!strcmp(what, "vfork") && n)
		return in_vfork(n);
	fprintf(stderr, "usage: victim_churn churn N|distinct N|leave N|many N|names|shrink|vfork N\n");
	return 2;
}
