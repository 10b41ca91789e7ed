/*
 * What the agent's C files share: the way to the control block, access to what other threads and heaptop
 * see, and two decisions that both recording and the filter need. Only for src/agent/.
 */
#ifndef HEAPTOP_AGENT_INSIDE_H
#define HEAPTOP_AGENT_INSIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/wire.h"

/* In the first bytes of the blob, filled in by heaptop. */
extern const struct wire_island agent_island __attribute__((visibility("hidden")));

static inline struct wire_ctl *control(void)
{
	return (struct wire_ctl *)agent_island.ctl;
}

#define LOAD(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define STORE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELAXED)
#define COUNT(x) __atomic_fetch_add(&(x), 1, __ATOMIC_RELAXED)
/* For counters with one writer: signal handlers may cost a count, never more. */
#define ADD(x, n) STORE(x, LOAD(x) + (n))
/* The compiler must not move slot stores across: signal handlers look at them. */
#define BARRIER() __asm__ volatile("" ::: "memory")

/* So that what only some events need isn't on everybody's stack. */
#define NOINLINE __attribute__((noinline))

static inline unsigned slot_index(const struct wire_ctl *ctl, const struct wire_slot *s)
{
	return (unsigned)(((uint64_t)s - (uint64_t)ctl - WIRE_STATE_SLOTS) / sizeof(*s));
}

/* The end of the thread's own stack, if sp is on it and heaptop has told where that is; else 0. */
static inline uint64_t own_stack_end(const struct wire_slot *s, uint64_t sp)
{
	uint64_t end = LOAD(s->stack_hi);

	return LOAD(s->stack_lo) <= sp && sp < end && LOAD(s->stack_tid) == LOAD(s->tid) ? end : 0;
}

/* The slot's ring, and whether no other thread reserves there. */
static inline struct wire_ring *ring_of(const struct wire_slot *s, bool *ret_own)
{
	uint64_t index = s->ring & (agent_island.nrings - 1);

	*ret_own = index < wire_own_rings(LOAD(agent_island.nrings));
	return (struct wire_ring *)(agent_island.rings + index * agent_island.ring_stride);
}

enum missed { MISSED_DROPPED, MISSED_LOST, MISSED_GAP };

/*
 * One more of what isn't recorded. Not in a forked child that nobody has taken over: its control block is wiped,
 * and the rings are its parent's.
 */
static inline void count_missed(const struct wire_ctl *ctl, const struct wire_slot *s, enum missed what)
{
	bool own;
	struct wire_ring *ring = ring_of(s, &own);
	uint64_t *n = what == MISSED_DROPPED ? &ring->dropped : what == MISSED_LOST ? &ring->lost : &ring->gap;

	if (LOAD(ctl->magic) != WIRE_CTL_MAGIC)
		return;
	if (own)
		ADD(*n, 1);
	else
		COUNT(*n);
}

/* slot.c: scrambles the bits of x. */
uint64_t agent_mix(uint64_t x);

/*
 * May what happens at `now` be recorded? Past the lease heaptop has died or was stopped: then collection
 * is switched off here, and nobody asks for the time again.
 */
static inline bool may_record(struct wire_ctl *ctl, uint64_t now)
{
	uint64_t lease = LOAD(ctl->lease);

	if (!LOAD(ctl->active))
		return false;
	if (now < lease)
		return true;
	/* heaptop writes the lease first: what it has renewed meanwhile must not stay switched off */
	__atomic_exchange_n(&ctl->active, 0, __ATOMIC_SEQ_CST);
	if (LOAD(ctl->lease) != lease)
		STORE(ctl->active, 1);
	return false;
}

/*
 * Auto: heaptop looks at the rings some tens of times a second, and a program that has just begun to
 * allocate fast may fill one before that. Rather than lose events, sample more rarely at once.
 * Every event carries the rate it was drawn with, so the estimates stay unbiased.
 */
static inline void raise_rate(struct wire_ctl *ctl, uint64_t least)
{
	if (LOAD(ctl->raise) && LOAD(ctl->rate) < least)
		STORE(ctl->rate, least);
}

#endif
