/*
 * What the agent costs: ns per malloc+free pair in a tight loop, in one and in two threads, bare, sampled and
 * exact. The loop runs in a child that is attached to; each figure is the best of several runs.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "elf/modules.h"
#include "probe/probe.h"
#include "target/target.h"

#define PAIRS 200000
#define BEST_OF 15

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* Shared with the child. */
struct board {
	double ns[2];			/* best since last asked, by thread */
	int runs[2];
	int stop;
};

static struct board *board;
static void *loop(void *arg)
{
	int i = (int)(intptr_t)arg;

	while (!__atomic_load_n(&board->stop, __ATOMIC_RELAXED)) {
		double t = now();
		for (int k = 0; k < PAIRS; k++) {
			void *p = malloc(64);
			__asm__ volatile("" :: "r"(p) : "memory");
			free(p);
		}
		double ns = (now() - t) * 1e9 / PAIRS;
		if (ns < board->ns[i])
			board->ns[i] = ns;
		__atomic_fetch_add(&board->runs[i], 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static pid_t start(int threads)
{
	memset(board, 0, sizeof(*board));
	pid_t pid = fork();
	if (!pid) {
		pthread_t t;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (threads > 1)
			pthread_create(&t, NULL, loop, (void *)1);
		loop(0);
		_exit(0);
	}
	return pid;
}

static uint64_t events;

static void on_event(void *ctx, const struct wire_head *h)
{
	(void)ctx;
	(void)h;
	events++;
}

static void die(struct err *err)
{
	if (!err)
		return;
	fprintf(stderr, "bench_agent: %s\n", err->text);
	exit(1);
}

static double measure(struct probe *p, struct target *t, int threads)
{
	for (int i = 0; i < 2; i++) {
		board->ns[i] = 1e9;
		board->runs[i] = 0;
	}
	double end = now() + 5;
	while (now() < end && (board->runs[0] < BEST_OF || (threads > 1 && board->runs[1] < BEST_OF))) {
		if (p) {
			die(p->ops->renew(p, t));
			p->ops->drain(p, t, false, on_event, NULL);
		}
		poll(NULL, 0, 2);
	}
	return threads > 1 && board->ns[1] > board->ns[0] ? board->ns[1] : board->ns[0];
}

static double attached(pid_t pid, const struct probe_config *config, int threads)
{
	struct modules *mods = modules_create();
	struct target *t;
	bool changed, again;
	struct probe *p = probe_agent_create(config);
	struct probe_stats s;

	die(target_attach(pid, &t));
	die(target_refresh_modules(t, mods, &changed));
	die(p->ops->prepare(p, t, mods));
	die(p->ops->place(p, t));
	die(target_resume(t));
	double ns = measure(p, t, threads);
	p->ops->stats(p, t, &s);
	printf("  (%lu events, %lu dropped, %lu cycles each, %lu waited)\n", (unsigned long)s.recorded,
	       (unsigned long)s.dropped, (unsigned long)(s.recorded ? s.cycles / s.recorded : 0),
	       (unsigned long)(s.recorded ? s.waited / s.recorded : 0));
	die(target_stop(t));
	do {
		die(p->ops->remove(p, t, &again));
		die(target_resume(t));
		usleep(1000);
		die(target_stop(t));
	} while (again);
	die(target_resume(t));
	p->ops->destroy(p);
	target_destroy(t);
	modules_destroy(mods);
	return ns;
}

int main(void)
{
	static const struct {
		const char *name;
		struct probe_config config;
	} ways[] = {
		{ "sampled, 512K", { .rate = 512 << 10 } },
		{ "sampled, 64K", { .rate = 64 << 10 } },
		{ "exact", { .exact = true } },
		{ "exact, 256 bytes of stack", { .exact = true, .max_stack = 256 } },
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int threads = 1; threads <= 2; threads++) {
		pid_t pid = start(threads);

		usleep(20000);
		double bare = measure(NULL, NULL, threads);
		printf("%d thread%s: bare %.1f ns per pair\n", threads, threads > 1 ? "s" : "", bare);
		for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
			double ns = attached(pid, &ways[i].config, threads);
			printf("  %-28s %8.1f ns, +%.1f ns, %.2f times\n", ways[i].name, ns, ns - bare, ns / bare);
		}
		printf("  %-28s %8.1f ns\n", "bare again", measure(NULL, NULL, threads));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	return 0;
}
