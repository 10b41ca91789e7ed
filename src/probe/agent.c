/*
 * The agent back end while the target runs: the lease, the rate, reading the rings, counters. place.c put
 * the agent in, remove.c takes it out.
 */
#include "probe/probe.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/ticks.h"
#include "elf/modules.h"
#include "probe/entries.h"
#include "probe/placed.h"
#include "target/target.h"

#define FILTER_INTERVAL_NS 50000000ull	/* between looks for a seccomp filter */
#define FILTER_LOOKS 4u			/* threads, beside the first one */
/*
 * Programs that bring themselves under a filter mostly do when they start, or start to work. How long that takes
 * on a busy machine, or until a client comes, the clock doesn't tell: one is grown up when it has used a second of
 * processor time, or else is as old as that.
 */
#define FILTER_START_CPU 1.0
#define FILTER_START_NS 30000000000ull
/* Bytes of the rings that are still read when heaptop leaves: beside a crowd of busy threads all of them take seconds. */
#define CROWD_SHARE 16u		/* of a ring: filled that far before it was read, it will soon be full */
#define READ_LEAVING (2u << 20)
#define LEASE_EVENTS 256u		/* between looks at the lease while events are handed over */
/*
 * Reading the TSC isn't ordered with the loads around it. Events younger than this, a few
 * microseconds at most, are left for the next round instead.
 */
#define TICKS_SLACK 8192u

/* All slots, and where the used ones are, if they are few. */
static bool read_all_slots(struct agent *a, struct target *t)
{
	struct wire_slot *slots = a->table;
	struct err *err = target_read(t, agent_slot_address(a, 0), slots, WIRE_SLOTS * sizeof(*slots));

	if (err) {
		err_free(err);
		return false;
	}
	a->nfew = 0;
	for (uint32_t i = 0; i < WIRE_SLOTS && a->nfew <= SLOTS_FEW; i++)
		if (slots[i].tp) {
			if (a->nfew < SLOTS_FEW)
				a->few[a->nfew] = (uint16_t)i;
			a->nfew++;
		}
	return true;
}

/*
 * The slots as they are now; NULL: not to be had. They are scattered over a megabyte, and never become empty: a few
 * are read alone while their number is what it was before all were read.
 */
static const struct wire_slot *read_slots(struct agent *a, struct target *t)
{
	struct wire_slot *slots = a->table;
	uint32_t used;

	if (!a->state || target_read_some(t, CTL(a, slots_used), &used, sizeof(used)) != sizeof(used))
		return NULL;
	if (!slots)
		a->table = slots = xcalloc(WIRE_SLOTS, sizeof(*slots));
	else if (used == a->slots_used && a->nfew <= SLOTS_FEW) {
		for (uint32_t i = 0; i < a->nfew; i++)
			if (target_read_some(t, agent_slot_address(a, a->few[i]), &slots[a->few[i]], sizeof(*slots)) !=
			    sizeof(*slots))
				return NULL;
		return slots;
	}
	if (!read_all_slots(a, t))
		return NULL;
	a->slots_used = used;
	return slots;
}

/* Make every thread look at its next call: a new rate or the end of a pause takes effect. */
static struct err *wake_slots(struct agent *a, struct target *t)
{
	const struct wire_slot *s = read_slots(a, t);
	static const uint64_t zero = 0;
	struct err *err = NULL;

	for (uint32_t i = 0; s && i < WIRE_SLOTS && !err; i++)
		if (s[i].tp && s[i].countdown)
			err = target_write(t, agent_slot_address(a, i) + offsetof(struct wire_slot, countdown), &zero,
					   sizeof(zero));
	return err;
}

void agent_note_placed(struct agent *a, struct target *t)
{
	struct target_usage usage;

	a->placed_ns = agent_clock_ns();
	a->placed_cpu = target_usage(t, &usage) ? usage.cpu : 0;
}

static bool is_young(struct agent *a, struct target *t, uint64_t now)
{
	struct target_usage usage;

	if (!a->grown_up)
		a->grown_up = !target_is_launched(t) || now - a->placed_ns >= FILTER_START_NS ||
			      (target_usage(t, &usage) && usage.cpu - a->placed_cpu >= FILTER_START_CPU);
	return !a->grown_up;
}

/*
 * The agent's own system calls, which spare it faults and long waits, might be what a seccomp filter kills
 * for. Whether there is one takes long to see where there are many threads: not done while the target
 * stands still.
 */
static void watch_filter(struct agent *a, struct target *t)
{
	uint64_t now = agent_clock_ns();
	uint32_t may;

	if (a->filtered || now - a->filter_ns < FILTER_INTERVAL_NS || is_young(a, t, now))
		return;
	a->filtered = target_has_seccomp(t, a->filter_ns ? FILTER_LOOKS : SIZE_MAX);
	a->filter_ns = now;
	may = !a->filtered;
	if (may == a->may_syscall)
		return;
	a->may_syscall = may;
	err_free(target_write(t, CTL(a, may_syscall), &may, sizeof(may)));
}

static struct err *renew(struct probe *p, struct target *t)
{
	struct agent *a = agent_of(p);
	uint64_t now = ticks_now(), old = a->lease;

	if (!a->state)
		return NULL;
	if (!target_is_stopped(t)) {
		watch_filter(a, t);
		agent_forget_pending(a);
	}
	a->lease = now + 2 * agent_ticks_per_second(a);
	/* An agent that has found the lease over has switched itself off. Each in one store, this one first. */
	uint32_t active = a->active;
	struct err *err = target_write(t, CTL(a, lease), &a->lease, sizeof(a->lease));
	if (!err)
		err = target_write(t, CTL(a, active), &active, sizeof(active));
	if (!err && now > old)
		err = wake_slots(a, t);
	return err;
}

/* Half of it is over. */
static void keep_lease(struct agent *a, struct target *t)
{
	if (a->state && ticks_now() + agent_ticks_per_second(a) > a->lease)
		err_free(renew(&a->probe, t));
}

static struct err *set_rate(struct probe *p, struct target *t, uint64_t rate)
{
	struct agent *a = agent_of(p);

	/* also the rate last set: the agent may have raised it since */
	if (!a->state)
		return NULL;
	struct err *err = target_write(t, CTL(a, rate), &rate, sizeof(rate));
	if (!err)
		err = wake_slots(a, t);
	return err;
}

static struct err *write_raise(struct agent *a, struct target *t, bool raise)
{
	uint32_t wait = !raise, may = raise;
	struct err *err = target_write(t, CTL(a, raise), &may, sizeof(may));

	a->waits = wait;
	if (!err)
		err = target_write(t, CTL(a, wait), &wait, sizeof(wait));
	return err;
}

static struct err *set_raise(struct probe *p, struct target *t, bool raise)
{
	struct agent *a = agent_of(p);

	if (!a->state)
		return NULL;
	/* a ring that is full since it was waited for would drive the rate up at once: when it has been read */
	a->raise_next = raise;
	return raise ? NULL : write_raise(a, t, false);
}

static struct err *set_active(struct probe *p, struct target *t, bool active)
{
	struct agent *a = agent_of(p);
	uint32_t word = active;

	if (active == a->active || !a->state)
		return NULL;
	a->active = active;
	struct err *err = target_write(t, CTL(a, active), &word, sizeof(word));
	if (!err && active)
		err = wake_slots(a, t);
	return err;
}

/* ---- drain ---- */

struct handing {
	struct agent *a;
	struct target *t;
	uint64_t n;
	bool last;
	probe_event_fn fn;
	void *ctx;
};

static void hand_over(void *ctx, const struct probe_event *e)
{
	struct handing *g = ctx;

	/* a round on a busy machine may take longer than the lease lasts */
	if (++g->n % LEASE_EVENTS == 0 && !g->last)
		keep_lease(g->a, g->t);
	if (e->kind == WIRE_THREAD) {
		g->a->tids[e->slot] = (uint32_t)e->addr;
		if (e->flags & WIRE_F_NO_BOUNDS)
			agent_ask_bounds(g->a, e->slot, e->sp);
	}
	if (e->kind == WIRE_ALLOC) {
		bool walked = e->flags & WIRE_F_WALKED;

		g->a->walked += walked;
		g->a->copied += !walked;
		if (!walked && e->flags & WIRE_F_NO_BOUNDS)
			agent_ask_bounds(g->a, e->slot, e->regs->sp);
	}
	g->fn(g->ctx, e);
}

/* Bring the bytes [tail, head) of a private ring here, at their places. */
static bool fetch(struct agent *a, struct target *t, uint64_t ring, uint64_t tail, uint64_t head)
{
	uint64_t data = ring + sizeof(struct wire_ring);

	if (head - tail > a->ring_bytes)
		return true;	/* the reader will say so */
	while (tail != head) {
		uint64_t off = tail & (a->ring_bytes - 1), n = a->ring_bytes - off;

		n = n < head - tail ? n : head - tail;
		struct err *err = target_read(t, data + off, a->copy + off, n);
		if (err) {
			err_free(err);
			return false;
		}
		tail += n;
	}
	return true;
}

static void read_private(struct agent *a, struct target *t, uint32_t i)
{
	uint64_t ring = a->rings + i * a->ring_stride, head, tail = ring_reader_tail(a->reader, i);
	struct err *err = target_read(t, ring, &head, sizeof(head));

	if (err) {
		err_free(err);
		return;
	}
	if (!fetch(a, t, ring, tail, head))
		return;
	uint64_t now = ring_reader_read(a->reader, i, head, a->copy);
	if (now != tail)
		err_free(target_write(t, ring + offsetof(struct wire_ring, tail), &now, sizeof(now)));
}

static void read_shared(struct agent *a, uint32_t i)
{
	struct wire_ring *ring = (struct wire_ring *)(a->shared + i * a->ring_stride);
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring_reader_read(a->reader, i, head, (const uint8_t *)(ring + 1));

	__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
}

static bool read_stats(struct agent *a, struct target *t);

/* Does the memory of a ring's head exist: has anybody written there? */
static bool is_touched(const struct agent *a, uint32_t ring)
{
	unsigned char there = 1;

	return mincore(a->shared + ring * a->ring_stride, 1, &there) || there & 1;
}

/*
 * Rings come into use in order. To look at one that nobody has used costs two pages, one of them for the page
 * table, and most processes have one thread. Where the target can't be asked any more the memory is.
 */
static void find_rings_used(struct agent *a, struct target *t)
{
	uint32_t used = WIRE_SLOTS;
	uint64_t magic = 0;

	if (a->state && target_read_some(t, a->state, &magic, sizeof(magic)) == sizeof(magic) &&
	    magic == WIRE_CTL_MAGIC &&
	    target_read_some(t, CTL(a, slots_used), &used, sizeof(used)) != sizeof(used))
		used = WIRE_SLOTS;
	uint32_t rings = used < wire_own_rings(a->nrings) ? used : a->nrings;
	while (used == WIRE_SLOTS && a->shared && rings > a->rings_used && !is_touched(a, rings - 1))
		rings--;
	if (rings > a->rings_used)
		a->rings_used = rings;
}

/* Those that heaptop, and what it has launched, may run on. */
static uint32_t processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : (uint32_t)CPU_COUNT(&set);
}

/* Would threads without room spin, and could it be held? (Attached it isn't traced: that would be attaching again.) */
static bool may_crowd(const struct agent *a, const struct target *t)
{
	return !a->probe.unheld && a->state && a->waits && !a->may_syscall && target_is_launched(t);
}

/* Of the rings known to be in use, see probe_ops.crowded. */
static bool many_fill(struct agent *a, struct target *t)
{
	uint32_t full = 0, many = a->rings_used ? processors() : 0;
	for (uint32_t i = 0; i < a->rings_used && full <= many; i++) {
		uint64_t head;

		if (a->shared)
			head = __atomic_load_n(&((struct wire_ring *)(a->shared + i * a->ring_stride))->head,
					       __ATOMIC_RELAXED);
		else if (target_read_some(t, a->rings + i * a->ring_stride, &head, sizeof(head)) != sizeof(head))
			return false;
		full += head - ring_reader_tail(a->reader, i) > a->ring_bytes / CROWD_SHARE;
	}
	return full > many;
}

static bool crowded(struct probe *p, struct target *t)
{
	struct agent *a = agent_of(p);

	if (!may_crowd(a, t))
		return false;
	if (a->rings_used < a->nrings)
		find_rings_used(a, t);
	return many_fill(a, t);
}

static void read_rings(struct agent *a, struct target *t, bool last)
{
	/* after the time up to which events count was taken: an event before it has its slot */
	if (a->rings_used < a->nrings)
		find_rings_used(a, t);
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < a->rings_used; i++) {
		uint64_t tail = ring_reader_tail(a->reader, i);

		/* many full rings are a long way for who gets little of a busy machine */
		if (!last)
			keep_lease(a, t);
		if (bytes > READ_LEAVING && a->config.leaving && __atomic_load_n(a->config.leaving, __ATOMIC_RELAXED))
			return;
		/* it has become a crowd meanwhile: the rest is read where it is held */
		if (i && !last && !target_is_stopped(t) && may_crowd(a, t) && many_fill(a, t))
			return;
		if (a->shared)
			read_shared(a, i);
		else if (a->rings)
			read_private(a, t, i);
		bytes += ring_reader_tail(a->reader, i) - tail;
	}
	for (uint32_t i = a->rings_used; i < a->nrings; i++)
		ring_reader_read(a->reader, i, 0, NULL);	/* nothing of up to now is in there */
}

static size_t drain(struct probe *p, struct target *t, bool last, probe_event_fn fn, void *ctx)
{
	struct agent *a = agent_of(p);
	struct handing g = { .a = a, .t = t, .last = last, .fn = fn, .ctx = ctx };
	uint64_t now_ns = agent_clock_ns();

	if (!a->reader)
		return 0;
	if (last)
		read_stats(a, t);
	ring_reader_begin(a->reader, ticks_now() - TICKS_SLACK, now_ns, last);
	/* as long as it is behind, the rings fill up: the agent sees that, and records less or waits */
	if (!ring_reader_behind(a->reader))
		read_rings(a, t, last);
	if (a->raise_next && !last && a->state && !ring_reader_behind(a->reader)) {
		err_free(write_raise(a, t, true));
		a->raise_next = false;
	}
	size_t n = ring_reader_finish(a->reader, ticks_now() + TICKS_SLACK, hand_over, &g);
	p->more = ring_reader_behind(a->reader);
	if (!last && a->state)
		agent_answer_bounds(a, t, now_ns);
	return n;
}

/* ---- counters ---- */

static bool read_stats(struct agent *a, struct target *t)
{
	const struct wire_slot *s = read_slots(a, t);
	struct probe_stats st = { .dropped = a->stats.dropped, .lost = a->stats.lost, .gap = a->stats.gap };
	struct wire_ctl ctl;

	if (!s)
		return false;
	struct err *err = target_read(t, a->state, &ctl, sizeof(ctl));
	if (err) {
		err_free(err);
		return false;
	}
	bool few = a->nfew <= SLOTS_FEW;
	for (uint32_t k = 0; k < (few ? a->nfew : WIRE_SLOTS); k++) {
		const struct wire_slot *slot = &s[few ? a->few[k] : k];

		if (!slot->tp)
			continue;
		st.threads++;
		st.recorded += slot->recorded;
		st.nested += slot->nested;
		st.cycles += slot->cycles;
		st.waited += slot->waited;
	}
	st.no_slot = ctl.no_slot;
	st.filter_full = ctl.filter_full;
	st.wrapped = ctl.wrapped;
	st.free_all = ctl.free_all != 0;
	st.rate = ctl.rate;
	a->stats = st;
	return true;
}

/* What the rings count: where they are shared, also after the target's end. */
static void read_missed(struct agent *a, struct target *t)
{
	struct wire_ring head;
	uint64_t dropped = 0, lost = 0, gap = 0;

	if (!a->shared && !a->rings)
		return;
	if (a->rings_used < a->nrings)
		find_rings_used(a, t);
	for (uint32_t i = 0; i < a->rings_used; i++) {
		if (a->shared)
			memcpy(&head, a->shared + i * a->ring_stride, sizeof(head));
		else if (target_read_some(t, a->rings + i * a->ring_stride, &head, sizeof(head)) != sizeof(head))
			return;
		dropped += head.dropped;
		lost += head.lost;
		gap += head.gap;
	}
	a->stats.dropped = dropped;
	a->stats.lost = lost;
	a->stats.gap = gap;
}

static void stats(struct probe *p, struct target *t, struct probe_stats *ret)
{
	struct agent *a = agent_of(p);

	read_stats(a, t);	/* else what was last seen */
	read_missed(a, t);
	*ret = a->stats;
	ret->walked = a->walked;
	ret->copied = a->copied;
	if (a->reader) {
		ret->abandoned = ring_reader_abandoned(a->reader);
		ret->bad = ring_reader_bad(a->reader);
	}
}

void agent_init_finding(struct agent *a, const struct probe_config *config)
{
	a->config = *config;
	a->entries = entries_create(config->mmap);
}

void agent_free_found(struct agent *a)
{
	for (size_t i = 0; i < a->ntexts; i++)
		agent_free_text(&a->texts[i]);
	entries_destroy(a->entries);
	free(a->named_found);
	free(a->texts);
	free(a->sites);
	free(a->looked);
	free(a->probe.hooks);
}

static const char *where(struct probe *p)
{
	(void)p;
	return "agent in the program";
}

static size_t memory(const struct probe *p, struct rss_range *ret, size_t max)
{
	const struct agent *a = (const struct agent *)p;
	size_t n = 0;

	if (a->state && n < max)
		ret[n++] = (struct rss_range){ a->state, a->state + WIRE_STATE_BYTES };
	if (a->rings && n < max)
		ret[n++] = (struct rss_range){ a->rings, a->rings + a->rings_bytes };
	for (size_t i = 0; i < a->nislands && n < max; i++)
		ret[n++] = (struct rss_range){ a->islands[i].addr, a->islands[i].addr + a->islands[i].bytes };
	return n;
}

static void destroy(struct probe *p)
{
	struct agent *a = agent_of(p);

	for (size_t i = 0; i < a->nislands; i++)
		free(a->islands[i].taken);
	/* what the target couldn't unmap: from here at least the pages can be given back, most of which are the rings' */
	if (a->shared && p->stays)
		madvise(a->shared, a->rings_bytes, MADV_REMOVE);
	if (a->shared)
		munmap(a->shared, a->rings_bytes);
	ring_reader_destroy(a->reader);
	agent_free_found(a);
	free(a->copy);
	free(a->taught);
	free(a->born);
	free(a->islands);
	free(a->asked);
	free(a->table);
	free(a->outside);
	free(a);
}

static const struct probe_ops agent_ops = {
	.name = "agent",
	.prepare = agent_prepare,
	.place = agent_place,
	.renew = renew,
	.set_rate = set_rate,
	.set_raise = set_raise,
	.set_active = set_active,
	.crowded = crowded,
	.drain = drain,
	.stats = stats,
	.teach = agent_teach,
	.resync = agent_resync,
	.present = agent_present,
	.born = agent_born,
	.ended = agent_ended,
	.memory = memory,
	.reteach = agent_reteach,
	.update = agent_update,
	.extend = agent_extend,
	.remove = agent_remove,
	.verify = agent_verify,
	.where = where,
	.destroy = destroy,
};

struct probe *probe_agent_create(const struct probe_config *config)
{
	struct agent *a = xcalloc(1, sizeof(*a));

	a->probe.ops = &agent_ops;
	agent_init_finding(a, config);
	a->ns_began = agent_clock_ns();
	a->ticks_began = ticks_now();
	memset(a->tids, 0xff, sizeof(a->tids));
	_Static_assert(WIRE_TID_NONE == 0xffffffffu, "not known");
	return &a->probe;
}
