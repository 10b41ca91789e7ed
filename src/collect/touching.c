/* Page faults into the model; see touching.h. */
#include "collect/touching.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/ticks.h"
#include "collect/frames.h"
#include "heap/heap.h"
#include "target/faults.h"
#include "target/pagemap.h"
#include "target/rss.h"
#include "target/target.h"
#include "unwind/unwind.h"

#define SETTLE_SECONDS 0.1
#define FIND_SHARE 0.01		/* of a core, at most, that going through the live blocks takes */
#define FRAMES_MAX 512u
#define PENDING_MAX 4096u	/* samples between two settlings; what is beyond is settled at once */
#define HUGE_BYTES (2ull << 20)
#define KNOWN_THREADS 256u

struct pending {
	uint64_t addr, units, pages;	/* as of struct fault */
	enum fault_kind kind;
	uint64_t time;		/* ns since the heap's start */
	size_t first;		/* of its frames */
	uint32_t n;
	pid_t tid;
	int why;
};

struct touching {
	struct faults *faults;
	struct target *target;
	const struct touching_of *of;	/* during a step */
	struct pending *pending;	/* the heap has a hit for each, in this order */
	size_t npending, pending_cap;
	size_t nready;			/* of them: events that came with them are in */
	uint64_t *addrs;		/* of all pending stacks */
	size_t naddrs, addrs_cap;
	uint64_t settled[FAULT_KINDS];	/* units that the samples settled so far were set against */
	struct faults_counts ready;	/* when these became ready */
	uint64_t samples;
	uint64_t behind;		/* ns that the heap's times are behind the kernel's clock, of now */
	double next, next_find;		/* monotonic seconds */
	struct { pid_t tid; bool chosen; } known[KNOWN_THREADS];	/* since the last settling, by tid */
	uint64_t pcs[FRAMES_MAX];
};

struct err *touching_open(struct target *t, struct faults_code *code, struct touching **ret)
{
	struct faults *faults;
	struct err *err = faults_open(t, code, &faults);

	if (err)
		return err;
	*ret = xcalloc(1, sizeof(**ret));
	(*ret)->faults = faults;
	(*ret)->target = t;
	return NULL;
}

void touching_close(struct touching *g, struct heap *heap)
{
	if (!g)
		return;
	heap_drop_hits(heap, g->npending);
	faults_close(g->faults);
	free(g->pending);
	free(g->addrs);
	free(g);
}

struct touching_counts touching_counts(const struct touching *g)
{
	if (!g)
		return (struct touching_counts){ 0 };
	return (struct touching_counts){ g->samples, g->ready.faults };
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
	uint64_t time = fault->time > g->behind ? fault->time - g->behind : 0;
	VEC_GROW(g->pending, g->npending, g->pending_cap);
	g->pending[g->npending++] = (struct pending){
		.addr = fault->addr, .units = fault->units, .pages = fault->pages, .kind = fault->kind,
		.time = time, .first = g->naddrs, .n = (uint32_t)n, .tid = fault->tid, .why = why,
	};
	heap_hit(of->heap, fault->addr, time);
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

/* The thread's id where the heap knows it by; 0: it has gone. */
static uint32_t ns_tid(struct target *t, pid_t tid)
{
	struct target_id *ids = NULL;
	uint32_t ret = 0;

	if (target_ns_pid(t) == target_pid(t))
		return (uint32_t)tid;
	size_t n = target_ids(t, &ids);
	for (size_t i = 0; i < n && !ret; i++)
		if (ids[i].tid == tid)
			ret = ids[i].ns;
	free(ids);
	return ret;
}

static bool is_chosen(struct touching *g, pid_t tid)
{
	size_t i = (size_t)tid % KNOWN_THREADS;
	char name[16] = "";

	if (!heap_has_choice(g->of->heap))
		return false;
	if (g->known[i].tid != tid) {
		g->known[i].tid = tid;
		target_thread_name(g->target, tid, name);
		g->known[i].chosen = heap_chooses(g->of->heap, ns_tid(g->target, tid), name);
	}
	return g->known[i].chosen;
}

/* What a unit of each kind's samples stands for, by the count of all of that kind; 0: there is no sample of it. */
static void set_against_counts(struct touching *g, double scale[FAULT_KINDS])
{
	uint64_t sampled[FAULT_KINDS] = { 0 };

	for (size_t i = 0; i < g->nready; i++)
		sampled[g->pending[i].kind] += g->pending[i].units;
	for (int kind = 0; kind < FAULT_KINDS; kind++) {
		scale[kind] = 0;
		/* without a sample its faults are left to the next ones */
		if (!sampled[kind])
			continue;
		if (g->ready.units[kind] > g->settled[kind]) {
			scale[kind] = (double)(g->ready.units[kind] - g->settled[kind]) / (double)sampled[kind];
			g->settled[kind] = g->ready.units[kind];
		}
	}
}

/*
 * The fault and those it stands for, bytes B where itself was b: had they all been sampled, each with the probability b / B, the
 * sum of what the samples stand for would have the variance of B (B - b) each (Horvitz and Thompson; as if what is set
 * against the count weren't, so it is too large rather than too small). A fault that was bound to be sampled adds none.
 */
static void count_fault(struct touching *g, size_t i, double units, uint64_t page)
{
	const struct pending *p = &g->pending[i];
	const struct heap_stack stack = { .addrs = g->addrs + p->first, .n = p->n, .why = p->why };
	double one = (double)(p->pages ? p->pages * FAULTS_PAGE : page);
	double all = units * (double)(p->pages ? FAULTS_PAGE : page);

	if (page && all > 0 && all < 0x1p60)
		heap_fault(g->of->heap, &(struct heap_fault){
			.hit = i, .bytes = (uint64_t)(all + 0.5), .time = p->time, .chosen = is_chosen(g, p->tid),
			.variance = all > one ? all * (all - one) : 0,
		}, &stack);
}

/* Those that are ready: the blocks first, so that they all are of this moment. */
static void count_ready(struct touching *g, double now, bool last)
{
	double scale[FAULT_KINDS];
	struct pagemap map;

	if (!g->nready)
		return;
	if (last || now >= g->next_find) {
		double began = thread_cpu_seconds();
		heap_find_hits(g->of->heap);
		g->next_find = now + (thread_cpu_seconds() - began) / FIND_SHARE;
	}
	set_against_counts(g, scale);
	bool open = !target_pagemap(g->target, &map);
	for (size_t i = 0; i < g->nready; i++) {
		const struct pending *p = &g->pending[i];
		count_fault(g, i, (double)p->units * scale[p->kind], open ? page_bytes(&map, p->addr) : 4096);
	}
	pagemap_close(&map);
}

static void drop_ready(struct touching *g)
{
	size_t n = g->nready, first = n < g->npending ? g->pending[n].first : g->naddrs;

	heap_drop_hits(g->of->heap, n);
	memmove(g->pending, g->pending + n, (g->npending - n) * sizeof(g->pending[0]));
	memmove(g->addrs, g->addrs + first, (g->naddrs - first) * sizeof(g->addrs[0]));
	g->npending -= n;
	g->naddrs -= first;
	for (size_t i = 0; i < g->npending; i++)
		g->pending[i].first -= first;
	g->nready = 0;
}

static void make_ready(struct touching *g, bool last)
{
	g->nready = g->npending;
	g->ready = faults_count(g->faults, last);
}

static uint64_t raw_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/*
 * Faults carry the kernel's clock, events the processor's, whose rate isn't known that well in the first second: so the
 * two are set against each other anew each time. Of a few readings the one least disturbed.
 */
static uint64_t behind(const struct ticks_clock *clock)
{
	uint64_t best = UINT64_MAX, ret = 0;

	for (int i = 0; i < 3; i++) {
		uint64_t before = raw_ns(), ns = ticks_to_ns(clock, ticks_now()), took = raw_ns() - before;
		if (took < best) {
			best = took;
			ret = before + took / 2 - ns;
		}
	}
	return ret;
}

size_t touching_take(struct touching *g, const struct touching_of *of)
{
	g->of = of;
	g->behind = behind(of->clock);
	size_t n = faults_drain(g->faults, take_in, g);
	g->samples += n;
	g->of = NULL;
	return n;
}

void touching_settle(struct touching *g, const struct touching_of *of, double now, bool last)
{
	bool full = g->npending == PENDING_MAX;

	/* the passes over live blocks decide how often: with 100,000 of them that is still ten times a second */
	if (!last && !full && (now < g->next || (g->nready && now < g->next_find)))
		return;
	g->of = of;
	memset(g->known, 0, sizeof(g->known));
	if (last || (full && !g->nready))
		make_ready(g, last);
	count_ready(g, now, last);
	drop_ready(g);
	make_ready(g, last);
	g->next = now + SETTLE_SECONDS;
	g->of = NULL;
}
