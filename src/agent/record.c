/* Room in the ring, the stack, the record; see record.h. */
#include "agent/record.h"

#include <stddef.h>

#include "agent/agent.h"
#include "agent/cpu-x86_64.h"
#include "agent/filter.h"
#include "agent/inside.h"
#include "agent/walk.h"

#define FREE_PATIENCE 256	/* tries for room for a free where nobody waits for room */
#define MAX_EVENT_TICKS (1u << 16)	/* about 25 us: see own_ticks */
#define ANSWER_TICKS (1u << 19)	/* about 200 us: how long a rule asked for is waited for */
#define TIMED 7u	/* of so many events one is timed; odd, as allocations and frees alternate */
#define PREFETCH_BYTES 256	/* some records ahead in the ring */

/* TSC ticks one event may be said to have taken; a thread that was preempted meanwhile spent no
 * more of the CPU's time on it. */
static inline uint64_t own_ticks(uint64_t ticks)
{
	return ticks < MAX_EVENT_TICKS ? ticks : MAX_EVENT_TICKS;
}

/* ---- ring ---- */

/* One try. `own`: no other thread reserves there. `limit`: how full the ring may become. */
static inline struct wire_head *ring_try(struct wire_ring *ring, bool own, unsigned kind, uint64_t size,
					 uint64_t limit, uint64_t *ret_used)
{
	uint64_t bytes = agent_island.ring_bytes, nonce = agent_island.nonce;
	uint8_t *data = (uint8_t *)(ring + 1);
	uint64_t head = LOAD(ring->head);

	for (;;) {
		uint64_t off = head & (bytes - 1);
		uint64_t pad = size > bytes - off ? bytes - off : 0;
		uint64_t used = head + pad + size - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);

		*ret_used = used;
		if (used > limit)
			return NULL;
		if (own ? !cpu_swap_own(&ring->head, &head, head + pad + size)
			: !__atomic_compare_exchange_n(&ring->head, &head, head + pad + size, false,
						       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		if (pad) {
			__atomic_store_n((uint64_t *)(data + off), (uint64_t)wire_tag(head, nonce) << 32 |
					 pad | WIRE_PAD, __ATOMIC_RELEASE);
			off = 0;
		}
		uint64_t word = (uint64_t)wire_tag(head + pad, nonce) << 32 | kind << WIRE_KIND_SHIFT | size;
		struct wire_head *h = (struct wire_head *)(data + off);
		__atomic_store_n(&h->word, word | WIRE_BUSY, __ATOMIC_RELEASE);
		cpu_prefetch_write(data + ((head + pad + size + PREFETCH_BYTES) & (bytes - 1)));
		return h;
	}
}

static void let_others_run(const struct wire_ctl *ctl, unsigned tries)
{
	if (LOAD(ctl->may_syscall) && tries > 16)
		cpu_syscall(CPU_NR_SCHED_YIELD, 0, 0, 0, 0, 0, 0);
	else
		cpu_relax();
}

/* Waiting since then isn't work: *start moves on by it. */
static void waited(struct wire_slot *s, uint64_t since, uint64_t *start)
{
	since = cpu_ticks() - since;
	*start += since;
	ADD(s->waited, since);
}

/*
 * Reserve `size` bytes, a multiple of 8, for a record of this kind, waiting for room where that is asked for; NULL: no room.
 * *ret_used: bytes of the ring in use, these included. *start moves on by the time waited.
 */
static struct wire_head *ring_reserve(struct wire_ctl *ctl, struct wire_slot *s, unsigned kind, uint64_t size,
				      uint64_t limit, unsigned patience, uint64_t *start, uint64_t *ret_used)
{
	uint64_t index = s->ring & (agent_island.nrings - 1);
	bool own = index < wire_own_rings(agent_island.nrings);
	struct wire_ring *ring = (struct wire_ring *)(agent_island.rings + index * agent_island.ring_stride);
	struct wire_head *h;
	uint64_t since = 0;

	for (unsigned tries = 0;; tries++) {
		h = ring_try(ring, own, kind, size, limit, ret_used);
		if (h)
			break;
		if (LOAD(ctl->wait) ? !may_record(ctl, cpu_ticks()) : tries >= patience)
			break;
		if (!since)
			since = cpu_ticks();
		let_others_run(ctl, tries);
	}
	if (since)
		waited(s, since, start);
	return h;
}

static inline void ring_commit(struct wire_head *h, unsigned flags)
{
	__atomic_store_n(&h->word, (h->word & ~(uint64_t)WIRE_BUSY) | (uint64_t)flags << WIRE_FLAGS_SHIFT,
			 __ATOMIC_RELEASE);
}

/* Nothing after all: the reader skips it. */
static inline void ring_void(struct wire_head *h)
{
	h->word = (h->word & ~(15ull << WIRE_KIND_SHIFT)) | (uint64_t)WIRE_VOID << WIRE_KIND_SHIFT;
	ring_commit(h, 0);
}

/* ---- events ---- */

static inline uint64_t addr_slot(const struct wire_ctl *ctl, const struct wire_slot *s, uint64_t addr)
{
	return addr << 16 | slot_index(ctl, s);
}

/*
 * FREE or UNFREE. False: not recorded, for want of room or because heaptop has gone. One reading of the
 * clock is the event's time and the time to compare with the lease; only some of the events are
 * timed, for all of them. It isn't ordered with what comes before, and needn't be: nobody sees
 * the block free before this instruction has retired.
 */
bool agent_record_free(struct wire_ctl *ctl, struct wire_slot *s, uint64_t addr, unsigned kind,
			unsigned flags)
{
	uint64_t used, start = 0, recorded = LOAD(s->recorded);
	bool timed = recorded % TIMED == 0;

	if (timed)
		start = cpu_ticks();
	struct wire_head *h = ring_reserve(ctl, s, kind, sizeof(*h), agent_island.ring_bytes, FREE_PATIENCE,
					   &start, &used);
	if (!h) {
		if (LOAD(ctl->active))
			ADD(s->lost, 1);
		else
			ADD(s->gap, 1);
		return false;
	}
	uint64_t now = h->tsc = cpu_ticks();
	h->addr_slot = addr_slot(ctl, s, addr);
	if (!may_record(ctl, now)) {
		ring_void(h);
		ADD(s->gap, 1);
		return false;
	}
	ring_commit(h, flags);
	STORE(s->recorded, recorded + 1);
	if (timed)
		ADD(s->cycles, own_ticks(cpu_ticks() - start) * TIMED);
	return true;
}

/*
 * Remote side of process_vm_readv one page each: a fault then costs no more than that page. Two at
 * a time: this is where the stack is deepest.
 */
static NOINLINE uint64_t copy_unknown(const struct wire_ctl *ctl, void *dst, uint64_t src, uint64_t len)
{
	struct {
		uint64_t base, len;
	} local, remote[2];
	uint64_t done = 0;

	while (done < len) {
		uint64_t n = 0, want = 0, from = src + done;

		for (; n < 2 && done + want < len; n++) {
			uint64_t room = CPU_PAGE - ((from + want) & (CPU_PAGE - 1));

			remote[n].base = from + want;
			remote[n].len = room < len - done - want ? room : len - done - want;
			want += remote[n].len;
		}
		local.base = (uint64_t)dst + done;
		local.len = want;
		int64_t got = cpu_syscall(CPU_NR_PROCESS_VM_READV, LOAD(ctl->pid), (uint64_t)&local, 1,
					  (uint64_t)remote, n, 0);
		if (got > 0)
			done += (uint64_t)got;
		if (got < 0 || (uint64_t)got < want)
			break;
	}
	return done & ~7ull;
}

/* What an event says of the stack: what walk found, and unless that is complete, a copy. */
struct stack {
	struct walk walk;	/* the copy starts at walk.sp */
	uint64_t end;		/* of the stack, 0: unknown. Else it may be read up to there */
	uint64_t bytes;		/* to copy */
	unsigned flags;
};

static uint64_t stack_end(const struct wire_ctl *ctl, const struct wire_slot *s, uint64_t sp)
{
	uint64_t end = LOAD(s->stack_hi);

	if (LOAD(s->stack_lo) <= sp && sp < end)
		return end;
	end = LOAD(ctl->main_stack_hi);
	return LOAD(ctl->main_stack_lo) <= sp && sp < end ? end : 0;
}

/* How much of the stack from walk.sp on goes into the event. */
static void stack_extent(const struct wire_ctl *ctl, const struct wire_slot *s, struct stack *k)
{
	uint64_t max = LOAD(ctl->max_stack), room, sp = k->walk.sp;

	k->flags = 0;
	if (max > WIRE_MAX_STACK)
		max = WIRE_MAX_STACK;
	if (k->end) {
		room = k->end - sp;
	} else {
		k->flags = WIRE_F_NO_BOUNDS;
		if (LOAD(ctl->may_syscall)) {
			/* On a stack of its own a thread has its TCB on top of it. */
			room = s->tp > sp ? s->tp - sp : max;
		} else {
			room = CPU_PAGE - (sp & (CPU_PAGE - 1));
			k->flags |= WIRE_F_CUT;
		}
	}
	k->bytes = (room < max ? room : max) & ~7ull;
	if (room > max)
		k->flags |= WIRE_F_CUT;
}

static inline struct wire_walk *last_walk(const struct wire_ctl *ctl, const struct wire_slot *s)
{
	return (struct wire_walk *)((uint64_t)ctl + WIRE_STATE_WALKS) + slot_index(ctl, s);
}

static uint64_t *copy_frames(uint64_t *to, const struct wire_walk *w, const struct walk *walk, uint32_t n)
{
	const struct wire_walk_frame *f = &w->frame[walk->first];

	for (; n; n--, f--)
		*to++ = f->pc & ((1ull << WIRE_PC_BITS) - 1);
	return to;
}

/* Registers of the frame that the copy of the stack begins with, and the copy. */
static NOINLINE void copy_stack(const struct wire_ctl *ctl, const struct agent_frame *f,
				struct wire_copy *c, bool inner, struct stack *k)
{
	c->regs.ip = k->walk.pc;
	c->regs.sp = k->walk.sp;
	c->regs.saved[0] = k->walk.bp;
	for (unsigned i = 1; i < CPU_SAVED; i++)
		c->regs.saved[i] = inner ? f->saved[i] : 0;
	for (unsigned i = CPU_SAVED; i < 10; i++)
		c->regs.saved[i] = 0;
	c->regs.fp = 0;
	c->regs.lr = 0;
	if (k->end || !LOAD(ctl->may_syscall)) {
		cpu_copy_words(c + 1, k->walk.sp, k->bytes / 8);
	} else {
		uint64_t got = copy_unknown(ctl, c + 1, k->walk.sp, k->bytes);
		if (got < k->bytes)
			k->flags |= WIRE_F_CUT;
		k->bytes = got;
	}
	c->bytes = k->bytes;
}

/*
 * The walk hasn't been complete: what to copy. That had better start where all saved registers are known,
 * so that heaptop can do any frame. Only if it would leave out the outer part it starts further out.
 */
static NOINLINE void plan_copy(const struct wire_ctl *ctl, const struct agent_frame *f, struct stack *k)
{
	struct walk reached = k->walk;

	k->walk.n = 0;
	k->walk.pc = f->ip;
	k->walk.sp = (uint64_t)(f + 1);
	k->walk.bp = f->saved[0];
	stack_extent(ctl, f->slot, k);
	if (k->flags & WIRE_F_CUT && reached.n && reached.pc) {
		k->walk = reached;
		stack_extent(ctl, f->slot, k);
	}
}

static inline struct wire_rules *rules(void)
{
	return (struct wire_rules *)agent_island.rules;
}

static inline void walk_from(const struct wire_ctl *ctl, const struct agent_frame *f, struct stack *k)
{
	k->walk.pc = f->ip;
	k->walk.sp = (uint64_t)(f + 1);
	k->walk.bp = f->saved[0];
	agent_walk(last_walk(ctl, f->slot), rules(), k->end, &k->walk);
}

/*
 * heaptop has been asked for a rule and will answer in a moment: better than to fill the ring with
 * copies, each of which asks the same, is to wait for it; where waiting is allowed.
 */
static NOINLINE void await_rule(struct wire_ctl *ctl, const struct agent_frame *f, struct stack *k,
				uint64_t *start)
{
	uint64_t since = cpu_ticks();

	for (unsigned tries = 0; k->walk.why == WIRE_RULE_PENDING && !k->walk.complete; tries++) {
		if (cpu_ticks() - since > ANSWER_TICKS)
			agent_give_up(rules(), k->walk.pc);
		else
			let_others_run(ctl, tries);
		if (wire_rule_kind(agent_rule(rules(), k->walk.pc)) != WIRE_RULE_PENDING)
			walk_from(ctl, f, k);
	}
	waited(f->slot, since, start);
}

/* Room for an event of `size` bytes, and what all of them begin with. NULL: dropped. */
static NOINLINE struct wire_alloc *begin_alloc(struct wire_ctl *ctl, const struct agent_frame *f,
					       uint64_t addr, uint64_t size, uint64_t *start)
{
	struct wire_slot *s = f->slot;
	uint64_t used;
	struct wire_alloc *a = (struct wire_alloc *)ring_reserve(ctl, s, WIRE_ALLOC, size,
		agent_island.ring_bytes - agent_island.ring_bytes / 8, 0, start, &used);

	/* a quarter full: 4K, half: 64K, three quarters and more: 1M */
	uint64_t quarters = used / (agent_island.ring_bytes / 4);
	if (quarters)
		raise_rate(ctl, 256ull << 4 * (quarters < 3 ? quarters : 3));
	if (!a) {
		ADD(s->dropped, 1);
		return NULL;
	}
	/* Only now, so that a dropped event leaves no tag; before the program sees the block. */
	agent_filter_insert(ctl, addr);
	a->h.addr_slot = addr_slot(ctl, s, addr);
	a->size = (uint32_t)(f->size < WIRE_LARGE ? f->size : WIRE_LARGE);
	return a;
}

void agent_record_alloc(struct wire_ctl *ctl, const struct agent_frame *f, uint64_t addr)
{
	struct wire_slot *s = f->slot;
	struct wire_walk *w = last_walk(ctl, s);
	struct stack k = { .end = stack_end(ctl, s, (uint64_t)(f + 1)) };
	struct wire_alloc *a;
	unsigned flags = 0, more = 0;
	uint32_t keep, n;
	uint64_t recorded = LOAD(s->recorded), start = 0;

	if (recorded % TIMED == 0)
		start = cpu_ticks();

	if (f->hook->kind == WIRE_HOOK_REALLOC || f->hook->kind == WIRE_HOOK_REALLOCARRAY)
		flags |= WIRE_F_REALLOC;
	if (f->size >= WIRE_LARGE)
		flags |= WIRE_F_LARGE;
	if (f->rate > 1)
		flags |= WIRE_F_RATE;
	if (flags & (WIRE_F_LARGE | WIRE_F_RATE))
		more = f->size >= WIRE_LARGE && f->rate > 1 ? 16 : 8;
	if (rules() && k.end) {
		walk_from(ctl, f, &k);
		if (!k.walk.complete && k.walk.why == WIRE_RULE_PENDING && LOAD(ctl->wait))
			await_rule(ctl, f, &k, &start);
	}
	/* of the frame without a rule */
	uint64_t ask = k.walk.why == WIRE_RULE_NONE && k.walk.seq ? k.walk.pc : 0;

	for (;;) {
		uint64_t size = sizeof(*a) + more;

		keep = k.walk.keep;
		if (k.walk.complete) {
			k.flags = WIRE_F_WALKED;
		} else {
			plan_copy(ctl, f, &k);
			size += sizeof(struct wire_copy) + k.bytes;
			keep = 0;
		}
		n = k.walk.n - keep;
		a = begin_alloc(ctl, f, addr, size + n * 8ull, &start);
		if (!a)
			return;
		uint64_t *to = (uint64_t *)(a + 1);
		if (flags & WIRE_F_LARGE)
			*to++ = f->size;
		if (flags & WIRE_F_RATE)
			*to++ = f->rate;
		if (n)
			to = copy_frames(to, w, &k.walk, n);
		if (!k.walk.complete)
			copy_stack(ctl, f, (struct wire_copy *)to, !n, &k);
		BARRIER();
		if ((!n && !keep) || LOAD(w->seq) == k.walk.seq)
			break;
		/* A signal handler has walked meanwhile: these aren't our frames. */
		a->h.tsc = cpu_ticks();
		ring_void(&a->h);
		w->n = 0;
		k.walk.n = k.walk.keep = k.walk.complete = 0;
	}
	uint64_t now = a->h.tsc = cpu_ticks_ordered();
	if (!may_record(ctl, now)) {
		ring_void(&a->h);
		agent_filter_remove(ctl, addr);
		ADD(s->gap, 1);
		return;
	}
	a->stack = ++w->count << 24 | keep << 12 | n;
	ring_commit(&a->h, flags | k.flags);
	if (k.walk.complete) {
		STORE(w->sent, k.walk.seq);
	} else if (ask && !(ask >> WIRE_PC_BITS)) {
		agent_ask(rules(), ask);
	}
	STORE(s->recorded, recorded + 1);
	if (recorded % TIMED == 0)
		ADD(s->cycles, own_ticks(now - start) * TIMED);
}
