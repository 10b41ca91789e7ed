/*
 * What the agent costs: ns per malloc+free pair in a tight loop, in one and in two threads, bare, sampled
 * and exact; then 10 and 30 frames deep, exact, with stacks walked in the target against stacks
 * copied out of it. The loop runs in a child that is attached to; each figure is the best of several
 * runs. What heaptop does with the events is not part of it, but who waits for room waits for that.
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
#include "line.h"
#include "probe/probe.h"
#include "target/target.h"
#include "unwind/unwind.h"

#define PAIRS 200000
#define BEST_OF (getenv("HEAPTOP_QUICK") ? 2 : 15)

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
	int depth;			/* calls between the loop's function and malloc's caller */
};

static struct board *board;

static void pairs(int n)
{
	for (int k = 0; k < n; k++) {
		void *p = malloc(64);
		__asm__ volatile("" :: "r"(p) : "memory");
		free(p);
	}
}

static __attribute__((noinline)) int deeper(int depth, int n)
{
	int ret = depth;

	if (depth > 0)
		ret += deeper(depth - 1, n);
	else
		pairs(n);
	__asm__ volatile("" : "+r"(ret));
	return ret;
}

static void *loop(void *arg)
{
	int i = (int)(intptr_t)arg;

	while (!__atomic_load_n(&board->stop, __ATOMIC_RELAXED)) {
		double t = now();
		if (board->depth)
			deeper(board->depth, PAIRS);
		else
			pairs(PAIRS);
		double ns = (now() - t) * 1e9 / PAIRS;
		if (ns < board->ns[i])
			board->ns[i] = ns;
		__atomic_fetch_add(&board->runs[i], 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static pid_t start(int threads, int depth)
{
	memset(board, 0, sizeof(*board));
	board->depth = depth;
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

struct reader {
	struct probe *probe;
	struct unwinder *unwinder;	/* NULL: the agent is told nothing */
	uint64_t frames;		/* of the last stack that was copied */
};

static uint32_t rule_of(void *ctx, uint64_t pc)
{
	return unwinder_wire_rule(((struct reader *)ctx)->unwinder, pc);
}

static void on_event(void *ctx, const struct probe_event *e)
{
	struct reader *r = ctx;
	uint64_t pcs[WIRE_MAX_FRAMES];
	enum unwind_end why;

	if (e->kind != WIRE_ALLOC || e->flags & WIRE_F_WALKED || e->nframes || !r->unwinder)
		return;
	const struct stack_copy copy = { e->regs->sp, e->stack, e->stack_bytes };
	r->frames = unwinder_walk(r->unwinder, e->regs, &copy, pcs, WIRE_MAX_FRAMES, &why);
	r->probe->ops->teach(r->probe, pcs, r->frames, rule_of, r);
}

static void die(struct err *err)
{
	if (!err)
		return;
	fprintf(stderr, "bench_agent: %s\n", err->text);
	exit(1);
}

static double measure(struct probe *p, struct target *t, struct reader *r, int threads)
{
	for (int i = 0; i < 2; i++) {
		board->ns[i] = 1e9;
		board->runs[i] = 0;
	}
	double end = now() + 5;
	while (now() < end && (board->runs[0] < BEST_OF || (threads > 1 && board->runs[1] < BEST_OF))) {
		if (p) {
			die(p->ops->renew(p, t));
			p->ops->drain(p, t, false, on_event, r);
		}
		poll(NULL, 0, 1);
	}
	return threads > 1 && board->ns[1] > board->ns[0] ? board->ns[1] : board->ns[0];
}

static double attached(pid_t pid, const struct probe_config *config, bool taught, int threads)
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
	struct reader r = { .probe = p, .unwinder = taught ? unwinder_create(mods) : NULL };
	double ns = measure(p, t, &r, threads);
	p->ops->stats(p, t, &s);
	printf("# (%lu events, %lu dropped, %lu cycles each, %lu waited; %lu stacks walked, %lu copied)\n",
	       (unsigned long)s.recorded, (unsigned long)s.dropped,
	       (unsigned long)(s.recorded ? s.cycles / s.recorded : 0),
	       (unsigned long)(s.recorded ? s.waited / s.recorded : 0), (unsigned long)s.walked,
	       (unsigned long)s.copied);
	die(target_stop(t));
	do {
		die(p->ops->remove(p, t, &again));
		die(target_resume(t));
		usleep(1000);
		die(target_stop(t));
	} while (again);
	die(target_resume(t));
	p->ops->destroy(p);
	unwinder_destroy(r.unwinder);
	target_destroy(t);
	modules_destroy(mods);
	return ns;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* The whole cost of a recorded pair, by how its stack gets out. */
static void deep(int frames, int threads)
{
	static const struct probe_config exact = { .exact = true };
	pid_t pid = start(threads, frames);

	usleep(20000);
	double bare = measure(NULL, NULL, NULL, threads);
	double copied = attached(pid, &exact, false, threads) - bare;
	double walked = attached(pid, &exact, true, threads) - bare;
	char name[64];
	snprintf(name, sizeof(name), "agent.exact.%d.%d", frames, threads);
	bench_line(name, "malloc(64), free; agent attached, exact; stacks walked, or copied", "printed", true,
		   "+%.0f ns walked, +%.0f ns copied: %.1f times", walked, copied, copied / walked);
	end(pid);
}

int main(void)
{
	static const struct {
		const char *name, *what;
		struct probe_config config;
		bool taught;
		double most;	/* added ns; 0: printed only */
	} ways[] = {
		{ "512K", "sampled, 512K", { .rate = 512 << 10 }, true, 3 },
		{ "64K", "sampled, 64K", { .rate = 64 << 10 }, true, 0 },
		{ "exact", "exact", { .exact = true }, true, 0 },
		{ "copied", "exact, stacks copied", { .exact = true }, false, 0 },
		{ "copied-256", "exact, 256 bytes of stack copied", { .exact = true, .max_stack = 256 },
		  false, 0 },
	};
	int ret = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int threads = 1; threads <= 2; threads++) {
		pid_t pid = start(threads, 0);

		usleep(20000);
		double bare = measure(NULL, NULL, NULL, threads);
		for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
			char name[64], what[128], target[32] = "printed";
			double ns = attached(pid, &ways[i].config, ways[i].taught, threads);
			snprintf(name, sizeof(name), "agent.%s.%d", ways[i].name, threads);
			snprintf(what, sizeof(what), "malloc(64), free; agent attached, %s", ways[i].what);
			if (ways[i].most > 0)
				snprintf(target, sizeof(target), "<= +%.0f ns", ways[i].most);
			ret |= bench_line(name, what, target, ways[i].most <= 0 || ns - bare <= ways[i].most,
					  "%.1f ns bare, +%.1f ns, %.2f times", bare, ns - bare, ns / bare);
		}
		printf("# %d thread%s: bare again %.1f ns\n", threads, threads > 1 ? "s" : "",
		       measure(NULL, NULL, NULL, threads));
		end(pid);
		deep(10, threads);
		deep(30, threads);
	}
	return ret;
}
