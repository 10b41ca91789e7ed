/*
 * Programs with odd stacks and hands, one per argument:
 *
 *	fiber		20,000 blocks of 1,000 bytes at main_site, 200 of 11 at fiber_site on a fiber's stack
 *	handover N	one thread allocates N blocks, another frees each as soon as it sees it
 *	handler		an own malloc; while a thread is in it, a signal handler on an alternate stack
 *			writes "inside" and reads a line from standard input before it returns
 *
 * Each ends with 0.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

/* ---- an allocator of its own, whose malloc can be interrupted where the test wants it ---- */

static char pool[1 << 26] __attribute__((aligned(16)));
static size_t used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int armed;

static __attribute__((noinline)) void within(void)
{
	if (armed) {
		armed = 0;
		raise(SIGUSR1);
	}
}

/* Blocks of one size class are used again, newest first: as quickly as any allocator does. */
static struct block {
	struct block *next;
} *spare;

void *malloc(size_t n)
{
	void *p;

	within();
	n = (n + 15) & ~(size_t)15;
	pthread_mutex_lock(&lock);
	if (n == 32 && spare) {
		p = spare;
		spare = spare->next;
	} else {
		p = used + n <= sizeof(pool) ? pool + used : NULL;
		used += n;
	}
	pthread_mutex_unlock(&lock);
	return p;
}

void free(void *p)
{
	struct block *b = p;

	if (!p)
		return;
	pthread_mutex_lock(&lock);
	/* only `handover` frees, and only blocks of its class */
	b->next = spare;
	spare = b;
	pthread_mutex_unlock(&lock);
}

void *calloc(size_t a, size_t b)
{
	return malloc(a * b);	/* never used before */
}

/* ---- fiber ---- */

static ucontext_t main_context, fiber_context;

__attribute__((noinline)) void *fiber_site(void)
{
	void *p = malloc(11);

	__asm__ volatile("" :: "r"(p));
	return p;
}

__attribute__((noinline)) void *main_site(void)
{
	void *p = malloc(1000);

	__asm__ volatile("" :: "r"(p));
	return p;
}

static void fiber_body(void)
{
	for (;;) {
		fiber_site();
		swapcontext(&fiber_context, &main_context);
	}
}

static int fiber(void)
{
	getcontext(&fiber_context);
	fiber_context.uc_stack.ss_sp = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	fiber_context.uc_stack.ss_size = 65536;
	fiber_context.uc_link = &main_context;
	makecontext(&fiber_context, fiber_body, 0);
	for (int i = 0; i < 20000; i++) {
		main_site();
		if (i % 100 == 0)
			swapcontext(&main_context, &fiber_context);
	}
	return 0;
}

/* ---- handover ---- */

#define PLACES 8
static struct {
	void *volatile p;
	char pad[56];
} places[PLACES];

static void *consumer(void *arg)
{
	for (long i = 0; i < (long)arg; i++) {
		void *p;
		while (!(p = places[i % PLACES].p))
			;
		free(p);
		places[i % PLACES].p = NULL;
	}
	return NULL;
}

static int handover(long n)
{
	pthread_t thread;

	pthread_create(&thread, NULL, consumer, (void *)n);
	for (long i = 0; i < n; i++) {
		while (places[i % PLACES].p)
			;
		places[i % PLACES].p = malloc(24);
	}
	pthread_join(thread, NULL);
	return 0;
}

/* ---- handler ---- */

static void on_signal(int sig)
{
	char c;

	(void)sig;
	if (write(1, "inside\n", 7) != 7)
		_exit(1);
	while (read(0, &c, 1) == 1 && c != '\n')
		;
}

static int handler(void)
{
	static char alternate[65536];
	const stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };
	const struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	char c;

	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	if (write(1, "ready\n", 6) != 6)
		return 1;
	while (read(0, &c, 1) == 1 && c != '\n')
		;
	armed = 1;
	void *p = malloc(100);
	__asm__ volatile("" :: "r"(p) : "memory");
	return !p;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "fiber"))
		return fiber();
	if (!strcmp(what, "handover") && argc > 2)
		return handover(atol(argv[2]));
	if (!strcmp(what, "handler"))
		return handler();
	fprintf(stderr, "usage: victim_odd fiber|handover N|handler\n");
	return 2;
}
