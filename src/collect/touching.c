/* Page faults into the model; see touching.h. */
#include "collect/touching.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "collect/frames.h"
#include "heap/heap.h"
#include "target/faults.h"
#include "target/pagemap.h"
#include "target/rss.h"
#include "unwind/unwind.h"

#define SETTLE_SECONDS 0.1
#define FRAMES_MAX 512u
#define PENDING_MAX 4096u	/* samples between two settlings; what is beyond is settled at once */
#define HUGE_BYTES (2ull << 20)

struct pending {
	uint64_t addr, period;
	size_t first;		/* of its frames */
	uint32_t n;
	int why;
};

struct touching {
	struct faults *faults;
	struct target *target;
	const struct touching_of *of;	/* during a step */
	struct pending *pending;
	size_t npending, pending_cap;
	uint64_t *addrs;		/* of all pending stacks */
	size_t naddrs, addrs_cap;
	uint64_t counted;		/* at the last settling */
	double next;			/* monotonic seconds */
	uint64_t pcs[FRAMES_MAX];
};

struct err *touching_open(struct target *t, struct touching **ret)
{
	struct faults *faults;
	struct err *err = faults_open(t, &faults);

	if (err)
		return err;
	*ret = xcalloc(1, sizeof(**ret));
	(*ret)->faults = faults;
	(*ret)->target = t;
	return NULL;
}

void touching_close(struct touching *g)
{
	if (!g)
		return;
	faults_close(g->faults);
	free(g->pending);
	free(g->addrs);
	free(g);
}

static void take_in(void *ctx, const struct fault *fault)
{
	struct touching *g = ctx;
	const struct touching_of *of = g->of;
	const struct stack_copy stack = { fault->regs.sp, fault->stack, fault->stack_bytes };
	struct wire_regs regs = fault->regs;
	enum unwind_end why = UNWIND_END_BAD;

	if (g->npending == PENDING_MAX)
		return;		/* the others stand for it, too */
	/* an interrupted instruction is told by its address + 1 */
	regs.ip++;
	size_t n = unwinder_walk(of->unwinder, &regs, &stack, g->pcs, FRAMES_MAX, &why);
	if (of->missed(of->ctx, g->pcs, n))
		n = unwinder_walk(of->unwinder, &regs, &stack, g->pcs, FRAMES_MAX, &why);
	VEC_GROW(g->pending, g->npending, g->pending_cap);
	g->pending[g->npending++] = (struct pending){ fault->addr, fault->period, g->naddrs, (uint32_t)n, why };
	for (size_t i = 0; i < n; i++) {
		VEC_GROW(g->addrs, g->naddrs, g->addrs_cap);
		g->addrs[g->naddrs++] = frames_addr(of->frames, g->pcs[i]);
	}
}

/* Bytes of the page there; 0: it isn't the process's own, or has gone again. */
static uint64_t page_bytes(struct pagemap *map, uint64_t addr)
{
	struct page_run run;
	uint64_t next;
	size_t n;

	if (pagemap_runs(map, addr, addr + 1, &run, 1, &n, &next) || !n)
		return map->page;	/* it was there when it was touched */
	if (run.flags & PAGE_FILE)
		return 0;
	return run.flags & PAGE_HUGE ? HUGE_BYTES : map->page;
}

static void settle(struct touching *g, uint64_t time)
{
	struct pagemap map;
	uint64_t count = faults_count(g->faults), sampled = 0;

	for (size_t i = 0; i < g->npending; i++)
		sampled += g->pending[i].period;
	/* without a sample its faults are left to the next ones */
	if (!sampled)
		return;
	double scale = (double)(count - g->counted) / (double)sampled;
	g->counted = count;
	bool open = !target_pagemap(g->target, &map);
	for (size_t i = 0; i < g->npending; i++) {
		const struct pending *p = &g->pending[i];
		const struct heap_stack stack = { .addrs = g->addrs + p->first, .n = p->n, .why = p->why };
		uint64_t bytes = open ? page_bytes(&map, p->addr) : 4096;
		double all = (double)p->period * scale * (double)bytes;
		if (all > 0 && all < 0x1p60)
			heap_fault(g->of->heap, (uint64_t)(all + 0.5), time, &stack);
	}
	pagemap_close(&map);
	g->npending = g->naddrs = 0;
}

size_t touching_step(struct touching *g, const struct touching_of *of, uint64_t time, double now, bool last)
{
	g->of = of;
	size_t n = faults_drain(g->faults, take_in, g);
	if (last || now >= g->next || g->npending == PENDING_MAX) {
		settle(g, time);
		g->next = now + SETTLE_SECONDS;
	}
	g->of = NULL;
	return n;
}
