/* Resident bytes, kept up with; see residence.h. */
#include "collect/residence.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/ticks.h"
#include "heap/heap.h"
#include "probe/probe.h"
#include "target/rss.h"

#define PASS_SECONDS 1.0	/* between passes, at least; */
#define QUIET_SECONDS 10.0	/* and where nothing seems to have happened */
#define RSS_SECONDS 1.0		/* between looks at what RSS is made of, each after a pass */
#define SLICE 0.002
#define LAST_SECONDS 0.2
#define OWN_MAX 64u

void residence_init(struct residence *r, bool attached)
{
	*r = (struct residence){ .map.fd = -1, .attached = attached };
}

void residence_deinit(struct residence *r)
{
	pagemap_close(&r->map);
}

void residence_want(struct residence *r, bool want)
{
	if (want == !r->off)
		return;
	r->off = !want;
	r->passing = false;
	pagemap_close(&r->map);
	r->memory.scan_share = 0;
	r->next = r->next_rss = 0;
}

struct looked_at {
	struct pagemap *map;
	struct target *target;
};

static int runs(void *ctx, uint64_t start, uint64_t end, struct page_run *ret, size_t max, size_t *ret_n,
		uint64_t *ret_next)
{
	const struct looked_at *at = ctx;

	if (!end)
		return target_has_memory(at->target) ? 0 : ESRCH;
	return pagemap_runs(at->map, start, end, ret, max, ret_n, ret_next);
}

static void count_share(struct residence *r)
{
	double share = 0;

	if (r->interval > 0)
		share += r->took / (r->interval + r->took);
	if (r->interval_rss > 0)
		share += r->took_rss / (r->interval_rss + r->took_rss);
	r->memory.scan_share = (float)share;
}

/* What its page maps say, whatever the reason, stays unknown: said once. */
static void fail(struct residence *r, int errnum)
{
	if (!r->failed && errnum != ESRCH) {
		log_line("resident bytes aren't known: the page maps can't be read: %s", strerror(errnum));
		r->failed = true;	/* said once; it may go better next time */
	}
	r->passing = false;
	pagemap_close(&r->map);
}

static bool nothing_new(const struct residence *r, const struct residence_of *of, double now)
{
	return of->events == r->events && of->rss == r->rss && now - r->began < QUIET_SECONDS;
}

static void begin_pass(struct residence *r, const struct residence_of *of, double now)
{
	double before = thread_cpu_seconds();
	int errnum = target_pagemap(of->target, &r->map);

	r->began = now;
	r->next = now + PASS_SECONDS;
	r->events = of->events;
	r->rss = of->rss;
	if (errnum) {
		fail(r, errnum);
		return;
	}
	heap_resident_begin(of->heap);
	r->passing = true;
	r->spent = thread_cpu_seconds() - before;
}

/* What there is of anon that nobody else claims. */
static uint64_t rest_of_anon(const struct view_memory *m)
{
	uint64_t claimed = m->stacks + m->data + m->agent_anon + m->tracked_anon;

	return m->anon > claimed ? m->anon - claimed : 0;
}

static void look_at_rss(struct residence *r, const struct residence_of *of, double now)
{
	struct rss_range own[OWN_MAX];
	struct target_rss rss;
	double before = thread_cpu_seconds();
	size_t n = of->probe && of->probe->ops->memory ? of->probe->ops->memory(of->probe, own, OWN_MAX) : 0;

	if (target_rss(of->target, own, n, &rss)) {
		struct view_memory *m = &r->memory;
		m->anon = rss.anon;
		m->file = rss.file;
		m->shmem = rss.shmem;
		m->swap = rss.swap;
		m->stacks = rss.stacks;
		m->data = rss.data;
		m->agent_anon = rss.own_anon;
		m->agent_shmem = rss.own_shmem;
		if (r->attached && !r->known)
			m->older = rest_of_anon(m);
		r->known = true;
	}
	r->took_rss = thread_cpu_seconds() - before;
	r->interval_rss = r->took_rss / RESIDENCE_RSS_SHARE;
	if (r->interval_rss < RSS_SECONDS)
		r->interval_rss = RSS_SECONDS;
	r->next_rss = now + r->interval_rss;
	count_share(r);
}

static void go_on(struct residence *r, const struct residence_of *of, double now, double seconds)
{
	double before = thread_cpu_seconds();
	int errnum;
	struct looked_at at = { &r->map, of->target };
	bool over = heap_resident_step(of->heap, runs, &at, seconds, &errnum);

	r->spent += thread_cpu_seconds() - before;
	if (!over)
		return;
	if (errnum) {
		fail(r, errnum);
		return;
	}
	pagemap_close(&r->map);
	r->passing = false;
	const struct resident_totals *totals = heap_resident_totals(of->heap);
	r->memory.tracked_anon = totals->anon;
	r->memory.tracked_file = totals->file;
	r->memory.tracked_var = totals->variance;
	r->took = r->spent;
	r->interval = r->spent / RESIDENCE_SHARE;
	if (r->interval < PASS_SECONDS)
		r->interval = PASS_SECONDS;
	r->next = now + r->interval;
	count_share(r);
	if (now >= r->next_rss)
		look_at_rss(r, of, now);
}

void residence_step(struct residence *r, const struct residence_of *of, double now)
{
	if (r->off)
		return;
	/* what was there before us is what is there now, and nothing of it is tracked */
	if (!r->known && now >= r->next_rss)
		look_at_rss(r, of, now);
	if (!r->passing && now >= r->next && !nothing_new(r, of, now))
		begin_pass(r, of, now);
	if (r->passing)
		go_on(r, of, now, SLICE);
}

void residence_finish(struct residence *r, const struct residence_of *of, double now)
{
	if (r->off)
		return;
	if (r->passing) {
		r->passing = false;
		pagemap_close(&r->map);
	}
	begin_pass(r, of, now);
	if (r->passing)
		go_on(r, of, now, LAST_SECONDS);
	look_at_rss(r, of, now);
}
