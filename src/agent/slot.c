/* Claiming slots and passing them on; see slot.h and, for who may do what when, wire.h. */
#include "agent/slot.h"

#include "agent/cpu-x86_64.h"
#include "agent/inside.h"

#define NO_SUCH_THREAD (-3)	/* -ESRCH */

uint64_t agent_mix(uint64_t x)	/* the finaliser of splitmix64 (Steele, Lea, Flood 2014) */
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* heaptop's word about the thread `tid` with this thread pointer; NULL: it didn't see it come. */
static const struct wire_birth *birth_of(uint64_t tp, uint32_t tid)
{
	if (!agent_island.rules)
		return NULL;
	const struct wire_birth *b = (const struct wire_birth *)(agent_island.rules + WIRE_RULES_BYTES) +
				     wire_slot_hash(tp);

	for (unsigned i = 0; i < WIRE_SLOT_PROBES && LOAD(b->tp); i++, b++)
		if (LOAD(b->tp) == tp)
			return tid && __atomic_load_n(&b->tid, __ATOMIC_ACQUIRE) == tid ? b : NULL;
	return NULL;
}

/* Where its stack begins and ends, if that is known from its birth: it needn't be asked for. */
static void know_stack(struct wire_slot *s, uint64_t tp, uint32_t tid)
{
	const struct wire_birth *b = birth_of(tp, tid);

	if (!b || !b->stack_lo)
		return;
	STORE(s->stack_lo, b->stack_lo);
	STORE(s->stack_hi, tp);
	STORE(s->stack_tid, tid);
}

static uint32_t ask_kernel(void)
{
	return (uint32_t)cpu_syscall(CPU_NR_GETTID, 0, 0, 0, 0, 0, 0);
}

/* The calling thread's id, and how to know it again. */
static uint32_t identify(const struct wire_ctl *ctl, uint64_t tp, uint16_t *ret_how)
{
	uint32_t word = slot_word(ctl, tp), tid = LOAD(ctl->may_syscall) ? ask_kernel() : word;

	*ret_how = word && word == tid ? WIRE_TID_WORD : WIRE_TID_ASK;
	return tid ? tid : WIRE_TID_NONE;
}

/*
 * A slot with our thread pointer and no id yet, or TAKEN by us. Or it is what a signal handler has interrupted
 * here and settled meanwhile: the same once more does no harm. The id last: it says that all is done.
 */
static struct wire_slot *settle(struct wire_ctl *ctl, struct wire_slot *s, uint64_t tp)
{
	if (!LOAD(s->rng)) {
		STORE(s->ring, wire_ring_of(COUNT(ctl->slots_used), agent_island.nrings));
		BARRIER();
		STORE(s->rng, agent_mix(tp ^ ctl->seed) | 1);
	}
	uint16_t how;
	uint32_t tid = identify(ctl, tp, &how);
	STORE(s->how, how);
	STORE(s->told, 0);
	if (how == WIRE_TID_WORD)
		know_stack(s, tp, tid);
	__atomic_store_n(&s->tid, tid, __ATOMIC_RELEASE);
	return s;
}

/*
 * What an owner that is no more has left. But for the countdown and its rate: a thread that comes to the slot at
 * its thread pointer may have come because that gap has ended, and its call is the sample then. To draw
 * anew would lose the first sample of every thread.
 */
static void wipe(const struct wire_ctl *ctl, struct wire_slot *s)
{
	struct wire_walk *w = (struct wire_walk *)((uint64_t)ctl + WIRE_STATE_WALKS) + slot_index(ctl, s);

	STORE(s->mark, 0);
	s->moving = 0;
	STORE(s->owners, LOAD(s->owners) + 1);
	w->n = 0;
	STORE(w->sent, 0);
}

static bool hand_over(struct wire_slot *s, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(&s->tid, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

bool slot_asks(const struct wire_ctl *ctl, struct wire_slot *s, uint64_t tp)
{
	uint32_t tid = LOAD(s->tid);

	if (tid == WIRE_TID_NONE)
		return !slot_word(ctl, tp);
	if (!tid || tid == WIRE_TID_TAKEN || !LOAD(ctl->may_syscall) || ask_kernel() != tid)
		return false;
	/* heaptop may have found out meanwhile where the libc has it */
	if (slot_word(ctl, tp) == tid)
		STORE(s->how, WIRE_TID_WORD);
	return true;
}

bool slot_renew(struct wire_ctl *ctl, struct wire_slot *s, uint64_t tp)
{
	uint32_t tid = __atomic_load_n(&s->tid, __ATOMIC_ACQUIRE);

	/* Taken meanwhile? Who takes it writes tp first, then tid: an id of theirs is seen with their tp. */
	if (tid == WIRE_TID_TAKEN || LOAD(s->tp) != tp)
		return false;
	if (tid && !hand_over(s, tid, 0))
		return false;
	if (tid && tid != WIRE_TID_NONE)
		wipe(ctl, s);
	settle(ctl, s, tp);
	return true;
}

static bool has_ended(const struct wire_ctl *ctl, const struct wire_slot *s, uint32_t tid)
{
	if (!tid || tid == WIRE_TID_NONE || tid == WIRE_TID_TAKEN)
		return false;
	if (!LOAD(ctl->may_syscall)) {
		const struct wire_birth *b = birth_of(LOAD(s->tp), tid);
		return LOAD(s->gone) == tid ||
		       (b && __atomic_load_n(&b->ended, __ATOMIC_ACQUIRE) && LOAD(b->tid) == tid);
	}
	return cpu_syscall(CPU_NR_TGKILL, LOAD(ctl->pid), tid, 0, 0, 0, 0) == NO_SUCH_THREAD;
}

static bool take(struct wire_ctl *ctl, struct wire_slot *s, uint64_t tp)
{
	uint32_t tid = LOAD(s->tid);

	if (!has_ended(ctl, s, tid) || !hand_over(s, tid, WIRE_TID_TAKEN))
		return false;
	wipe(ctl, s);
	STORE(s->countdown, 0);
	STORE(s->tp, tp);
	return true;
}

/*
 * The first slot on the way that is empty or whose thread has ended: the nearer to its home, the cheaper each
 * call. Whoever claims an empty one has found all before it in use; so it is if it was taken meanwhile.
 */
struct wire_slot *slot_claim(struct wire_ctl *ctl, uint64_t tp)
{
	struct wire_slot *s = (struct wire_slot *)((uint64_t)ctl + WIRE_STATE_SLOTS) + wire_slot_hash(tp);

	for (unsigned i = 0; i < WIRE_SLOT_PROBES; i++, s++) {
		uint64_t owner = 0;
		if (__atomic_compare_exchange_n(&s->tp, &owner, tp, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
		    (owner != tp && take(ctl, s, tp)))
			return settle(ctl, s, tp);
	}
	COUNT(ctl->no_slot);
	return NULL;
}
