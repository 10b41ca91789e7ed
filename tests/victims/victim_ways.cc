/*
 * Ways out of an allocator's function, and allocations that fail: exceptions, jumps, cancellation, contexts,
 * signal handlers that allocate, memory that has run out. Every way is taken many times; what was allocated
 * is printed, by size, at the end.
 *
 *	victim_ways WAY [N [FILE]]
 *	victim_ways tight	leaves itself 16 MiB of address space, prints "ready", allocates until SIGTERM
 *
 * Prints "size BYTES count COUNT live COUNT" for the sizes that are only this program's, and leaves with 0
 * if everything came out as it must.
 */
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

static long rounds;

[[noreturn]] static void wrong(const char *what)
{
	printf("wrong: %s\n", what);
	exit(1);
}

/* Sizes nobody else asks for; their counts are what the test compares. */
enum { SMALL = 4321, OTHER = 5431, HUGE_SIZE = 1 << 30 };

static void *take(size_t size)
{
	void *p = malloc(size);

	if (!p)
		wrong("malloc failed");
	memset(p, 1, size);
	return p;
}

static void tell(size_t size, long count, long live)
{
	printf("size %zu count %ld live %ld\n", size, count, live);
}

/* operator new throws, through everything that lies between, and its blocks are right before and after. */
__attribute__((noinline)) static void *build(size_t size)
{
	return ::operator new(size);
}

static void way_throw()
{
	long caught = 0;

	for (long i = 0; i < rounds; i++) {
		void *p = build(SMALL);
		try {
			::operator delete(build(SIZE_MAX / 2 - 4096));
		} catch (const std::bad_alloc &) {
			caught++;
		}
		if (i + 10 < rounds)
			::operator delete(p);
	}
	if (caught != rounds)
		wrong("an exception wasn't caught");
	tell(SMALL, rounds, 10);
}

static sigjmp_buf place;
static volatile sig_atomic_t jumping;

/* Not out of the allocator itself: glibc would keep its lock. */
static void on_alarm_jump(int)
{
	if (jumping)
		siglongjmp(place, 1);
}

static void start_timer(long us)
{
	struct itimerval every = { { 0, us }, { 0, us } };

	setitimer(ITIMER_REAL, &every, NULL);
}

/* A handler that jumps out of a loop which waits; it has allocated before, and goes on to afterwards. */
static void way_jump()
{
	struct sigaction action = {};
	volatile long jumps = 0;

	action.sa_handler = on_alarm_jump;
	sigaction(SIGALRM, &action, NULL);
	start_timer(1000);
	while (jumps < rounds) {
		free(take(SMALL));
		if (sigsetjmp(place, 1)) {
			jumping = 0;
			jumps = jumps + 1;
			continue;
		}
		jumping = 1;
		for (;;)
			pause();
	}
	start_timer(0);
	tell(SMALL, rounds, 0);
}

/* Cancelled in the middle of allocating, deferred: at the next call that is a cancellation point. */
static void *cancelled(void *arg)
{
	(void)arg;
	for (;;) {
		free(malloc(OTHER));
		pthread_testcancel();
	}
	return NULL;
}

static void way_cancel()
{
	for (long i = 0; i < rounds; i++) {
		pthread_t th;
		void *result;
		if (pthread_create(&th, NULL, cancelled, NULL))
			wrong("no thread");
		free(take(SMALL));
		pthread_cancel(th);
		if (pthread_join(th, &result) || result != PTHREAD_CANCELED)
			wrong("it wasn't cancelled");
	}
	tell(SMALL, rounds, 0);
}

/* Asynchronously, while it computes between two calls: the thread's slot is another one's afterwards. */
static void *cancelled_anywhere(void *arg)
{
	void *p = take(SMALL);

	free(p);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	*(volatile int *)arg = 1;
	for (;;)
		;
	return NULL;
}

static void way_cancel_async()
{
	for (long i = 0; i < rounds; i++) {
		pthread_t th;
		volatile int there = 0;
		if (pthread_create(&th, NULL, cancelled_anywhere, (void *)&there))
			wrong("no thread");
		while (!there)
			usleep(100);
		pthread_cancel(th);
		pthread_join(th, NULL);
	}
	tell(SMALL, rounds, 0);
}

static ucontext_t here, there;
static long switches;

static void other_context()
{
	for (;;) {
		void *p = take(SMALL);
		switches++;
		setcontext(&here);
		free(p);
	}
}

/* A context that is left for good with a block in hand, again and again. */
static void way_context()
{
	static char stack[64 << 10];

	for (volatile long i = 0; i < rounds; i = i + 1) {
		volatile int back = 0;
		getcontext(&here);
		if (back)
			continue;
		back = 1;
		getcontext(&there);
		there.uc_stack.ss_sp = stack;
		there.uc_stack.ss_size = sizeof(stack);
		there.uc_link = NULL;
		makecontext(&there, other_context, 0);
		setcontext(&there);
	}
	if (switches != rounds)
		wrong("a switch was lost");
	tell(SMALL, rounds, rounds);
}

/* A handler that allocates, at moments when nothing it interrupts is in the allocator. */
static volatile long in_handler;
static void on_alarm_allocate(int)
{
	free(take(SMALL));
	in_handler = in_handler + 1;
}

static void way_handler()
{
	struct sigaction action = {};
	sigset_t alarm_only, old;

	sigemptyset(&alarm_only);
	sigaddset(&alarm_only, SIGALRM);
	sigprocmask(SIG_BLOCK, &alarm_only, &old);
	action.sa_handler = on_alarm_allocate;
	sigaction(SIGALRM, &action, NULL);
	start_timer(500);
	while (in_handler < rounds) {
		free(take(OTHER));
		sigsuspend(&old);
	}
	start_timer(0);
	tell(SMALL, in_handler, 0);
	tell(OTHER, in_handler, 0);
}

/* Nothing is left: malloc fails, realloc fails and leaves the old block as it was, both are counted as what
 * they are. */
static void way_exhausted()
{
	struct rlimit limit = { 256 << 20, RLIM_INFINITY };

	if (setrlimit(RLIMIT_AS, &limit))
		wrong("setrlimit");
	for (long i = 0; i < rounds; i++) {
		char *p = (char *)take(SMALL);
		if (malloc(HUGE_SIZE) || calloc(HUGE_SIZE / 16, 16) || aligned_alloc(4096, HUGE_SIZE))
			wrong("there was room for a gigabyte");
		if (realloc(p, HUGE_SIZE))
			wrong("realloc had room for a gigabyte");
		for (int k = 0; k < SMALL; k++)
			if (p[k] != 1)
				wrong("the old block has changed");
		if (i + 10 < rounds)
			free(p);
	}
	tell(SMALL, rounds, 10);
	tell(HUGE_SIZE, 0, 0);
}

static volatile sig_atomic_t ended;
static void on_term(int)
{
	ended = 1;
}

static int be_tight()
{
	unsigned long pages = 0;
	FILE *statm = fopen("/proc/self/statm", "r");

	if (!statm || fscanf(statm, "%lu", &pages) != 1)
		return 97;
	fclose(statm);
	signal(SIGTERM, on_term);
	struct rlimit limit = { pages * 4096 + (16 << 20), RLIM_INFINITY };
	if (setrlimit(RLIMIT_AS, &limit))
		return 96;
	puts("ready");
	fflush(stdout);
	while (!ended) {
		free(take(SMALL));
		usleep(1000);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*go)();
	} ways[] = {
		{ "throw", way_throw }, { "jump", way_jump }, { "cancel", way_cancel },
		{ "cancel_async", way_cancel_async }, { "context", way_context }, { "handler", way_handler },
		{ "exhausted", way_exhausted },
	};

	if (argc > 1 && !strcmp(argv[1], "tight"))
		return be_tight();
	if (argc > 3 && !freopen(argv[3], "w", stdout))
		return 95;
	rounds = argc > 2 ? atol(argv[2]) : 200;
	for (const auto &way : ways)
		if (argc > 1 && !strcmp(way.name, argv[1])) {
			way.go();
			return 0;
		}
	for (const auto &way : ways)
		puts(way.name);
	return 2;
}
