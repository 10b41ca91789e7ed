/*
 * What a frame costs: by cached rules, by rules not yet derived, by rules after a flush, by
 * libunwind alone. Own stack through recursion and qsort. Prints ns of CPU time a
 * frame; nothing has a target.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "elf/modules.h"
#include "line.h"
#include "tests/lib/selfwalk.h"
#include "unwind/remote.h"
#include "unwind/unwind.h"

static struct snapshot snap;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* Three kinds of functions in turn, so that not every frame is the same rule. */
static int deep(int n);

static __attribute__((noinline)) int wide(int n)
{
	volatile int local[24] = { n };
	int ret = deep(n - 1) + local[0];

	__asm__ volatile("" : "+r"(ret));
	return ret;
}

static int compare(const void *a, const void *b)
{
	int ret = *(const int *)a - *(const int *)b;

	return ret ? ret : deep(*(const int *)a);
}

static __attribute__((noinline)) int deep(int n)
{
	int ret;

	if (n <= 0) {
		self_snapshot(&snap, 1);
		ret = 0;
	} else if (n % 8 == 0) {
		int v[2] = { n - 1, n - 1 };
		qsort(v, 2, sizeof(v[0]), compare);
		ret = v[0];
	} else {
		ret = n % 2 ? wide(n) : deep(n - 1) + n;
	}
	__asm__ volatile("" : "+r"(ret));
	return ret;
}

static size_t by_libunwind(struct remote *r)
{
	struct regs_frame f = { .pc = snap.regs.ip, .sp = snap.regs.sp };
	size_t n = 1;

	memcpy(f.reg, snap.regs.saved, sizeof(snap.regs.saved));
	while (n < SELF_FRAMES && remote_step(r, &f, &snap.stack) && f.pc)
		n++;
	return n;
}

int main(void)
{
	uint64_t pcs[SELF_FRAMES];
	enum unwind_end why;
	struct modules *mods = modules_create();
	size_t n = 0, total = 0;

	snapshot_init(&snap);
	deep(80);
	self_modules(mods);
	struct unwinder *u = unwinder_create(mods);

	double t = now();
	n = unwinder_walk(u, &snap.regs, &snap.stack, pcs, SELF_FRAMES, &why);
	t = now() - t;
	printf("# stack of %zu frames (libgcc: %zu), %s, %llu rules derived\n", n, snap.ntrace,
	       unwind_end_text(why), (unsigned long long)unwinder_stats(u)->rule_misses);
	bench_line("unwind.first", "unwinder_walk of the own stack: the first of all", "printed", true,
		   "%.1f ns a rule", t / (double)unwinder_stats(u)->rule_misses);

	double best = 1e18;
	for (int round = 0; round < 5; round++) {
		total = 0;
		t = now();
		for (int i = 0; i < 20000; i++)
			total += unwinder_walk(u, &snap.regs, &snap.stack, pcs, SELF_FRAMES, &why);
		t = (now() - t) / (double)total;
		best = t < best ? t : best;
	}
	double cached = best;
	bench_line("unwind.cached", "unwinder_walk of the own stack: rules, cached", "printed", true,
		   "%.1f ns a frame", cached);

	total = 0;
	t = now();
	for (int i = 0; i < 2000; i++) {
		unwinder_flush(u);
		total += unwinder_walk(u, &snap.regs, &snap.stack, pcs, SELF_FRAMES, &why);
	}
	bench_line("unwind.flushed", "unwinder_walk of the own stack: rules, after each flush", "printed", true,
		   "%.1f ns a frame", (now() - t) / (double)total);

	t = 0;
	uint64_t derived = 0;
	for (int i = 0; i < 20; i++) {
		struct unwinder *fresh = unwinder_create(mods);
		double from = now();
		unwinder_walk(fresh, &snap.regs, &snap.stack, pcs, SELF_FRAMES, &why);
		t += now() - from;
		derived += unwinder_stats(fresh)->rule_misses;
		unwinder_destroy(fresh);
	}
	bench_line("unwind.derived", "unwinder_walk of the own stack: rules, derived", "printed", true,
		   "%.1f ns a rule", t / (double)derived);

	struct remote *r = remote_create(mods);
	n = by_libunwind(r);
	total = 0;
	t = now();
	for (int i = 0; i < 200; i++)
		total += by_libunwind(r);
	t = (now() - t) / (double)total;
	bench_line("unwind.libunwind", "remote_step over the own stack: libunwind alone", "printed", true,
		   "%.1f ns a frame (%zu frames), %.0f times the rules", t, n, t / cached);
	remote_destroy(r);
	unwinder_destroy(u);
	modules_destroy(mods);
	snapshot_deinit(&snap);
	return 0;
}
