/* Room in the ring, the stack, the record; see record.h. */
#include "agent/record.h"

#include <stddef.h>

#include "agent/agent.h"
#include "agent/cpu-x86_64.h"
#include "agent/filter.h"
#include "agent/inside.h"
#include "agent/walk.h"

#define FREE_PATIENCE 256	/* tries for room for a free where nobody waits for room */
#define RELAX_TRIES 16u
#define YIELD_TRIES 24u
#define NAP_NS 50000u		/* the first; a ring is looked at once a millisecond while events come, */
#define NAP_DOUBLINGS 4u	/* or much more rarely on a busy machine: up to 0.8 ms */
#define MAX_EVENT_TICKS (1u << 16)	/* about 25 us: see own_ticks */
#define ANSWER_TICKS (1u << 19)	/* about 200 us: how long a rule asked for is waited for */
#define CROWDED_STACK 256u	/* bytes of it copied while the ring fills up and its rule is about to come */
#define PROVED_PAGES 14u		/* 2 + 4 + 8: what is deeper is copied */
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
static inline struct wire_head *ring_try(struct wire_ring *ring, bool own, uint64_t kind_size, uint64_t limit,
					 uint64_t *ret_used)
{
	uint64_t size = kind_size & WIRE_SIZE_MASK;
	uint8_t *data = (uint8_t *)(ring + 1);
	uint64_t head = LOAD(ring->head);

	for (;;) {
		uint64_t bytes = LOAD(agent_island.ring_bytes), off = head & (bytes - 1);
		uint64_t pad = size > bytes - off ? bytes - off : 0, to = head + pad + size;

		*ret_used = to - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
		if (*ret_used > limit)
			return NULL;
		if (own ? !cpu_swap_own(&ring->head, &head, to)
			: !__atomic_compare_exchange_n(&ring->head, &head, to, false, __ATOMIC_ACQ_REL,
						       __ATOMIC_RELAXED))
			continue;
		if (pad)
			__atomic_store_n((uint64_t *)(data + off), (uint64_t)wire_tag(head, LOAD(agent_island.nonce))
					 << 32 | pad | WIRE_PAD, __ATOMIC_RELEASE);
		head = to - size;
		struct wire_head *h = (struct wire_head *)(data + (head & (bytes - 1)));
		__atomic_store_n(&h->word, (uint64_t)wire_tag(head, LOAD(agent_island.nonce)) << 32 | kind_size |
				 WIRE_BUSY, __ATOMIC_RELEASE);
		cpu_prefetch_write(data + ((to + PREFETCH_BYTES) & (bytes - 1)));
		return h;
	}
}

/*
 * A poll of nothing: unlike a nanosleep that is interrupted it leaves no rest to be restarted (restart_syscall,
 * a restart block that may be the program's), the kernel just makes it again.
 */
static NOINLINE void sleep_briefly(unsigned naps)
{
	struct {
		uint64_t seconds, ns;
	} time = { 0, NAP_NS << (naps < NAP_DOUBLINGS ? naps : NAP_DOUBLINGS) };

	cpu_syscall(CPU_NR_PPOLL, 0, 0, (uint64_t)&time, 0, 0, 0);
}

/*
 * Who yields stays runnable: heaptop, for which many busy threads wait, would get no more of the processors than
 * each of them. So a thread that waits for it sleeps, but for the first few tries.
 */
static void let_others_run(const struct wire_ctl *ctl, unsigned tries)
{
	if (!LOAD(ctl->may_syscall) || tries <= RELAX_TRIES)
		cpu_relax();
	else if (!LOAD(ctl->wait) || tries <= YIELD_TRIES)
		cpu_syscall(CPU_NR_SCHED_YIELD, 0, 0, 0, 0, 0, 0);
	else
		sleep_briefly(tries - YIELD_TRIES - 1);
}

/* Waiting since then isn't work: *start moves on by it. */
static void waited(struct wire_slot *s, uint64_t since, uint64_t *start)
{
	since = cpu_ticks() - since;
	if (*start)
		*start += since;
	ADD(s->waited, since);
}

/*
 * Reserve `size` bytes, a multiple of 8, for a record of this kind, waiting for room where that is asked
 * for; NULL: no room. *start moves on by the time waited. Allocations leave the last eighth to frees,
 * and raise the rate as the ring fills: half full 4K, five eighths 64K, three quarters and more 1M. A
 * new call site alone, all of whose first events copy their stacks, mustn't do that.
 */
static NOINLINE struct wire_head *ring_reserve(struct wire_ctl *ctl, struct wire_slot *s, unsigned kind,
					       uint64_t size, uint64_t *start)
{
	bool own;
	struct wire_ring *ring = ring_of(s, &own);
	uint64_t used, since = 0;
	struct wire_head *h;

	/* a child forked by a signal handler that interrupted us: its slot and number of the ring are gone */
	if (!LOAD(ctl->active))
		return NULL;
	for (unsigned tries = 0;; tries++) {
		uint64_t bytes = LOAD(agent_island.ring_bytes);

		h = ring_try(ring, own, (uint64_t)kind << WIRE_KIND_SHIFT | size,
			     kind == WIRE_ALLOC ? bytes - bytes / 8 : bytes, &used);
		if (h)
			break;
		if (!may_record(ctl, cpu_ticks()) ||
		    (!LOAD(ctl->wait) && tries >= (kind == WIRE_ALLOC ? 0 : FREE_PATIENCE)))
			break;
		if (!since)
			since = cpu_ticks();
		let_others_run(ctl, tries);
	}
	if (since)
		waited(s, since, start);
	if (kind == WIRE_ALLOC) {
		uint64_t eighths = used / (LOAD(agent_island.ring_bytes) / 8);

		if (eighths >= 4)
			raise_rate(ctl, 4096ull << 4 * (eighths < 6 ? eighths - 4 : 2));
	}
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

/* Of the stack that sp is on; 0: not known. */
static uint64_t stack_end(const struct wire_ctl *ctl, const struct wire_slot *s, uint64_t sp)
{
	uint64_t end = own_stack_end(s, sp);

	if (end)
		return end;
	end = LOAD(ctl->main_stack_hi);
	return LOAD(ctl->main_stack_lo) <= sp && sp < end ? end : 0;
}

/* Whose events the slot's are from here on. If it can't be told now, the next event tries again. */
static NOINLINE void record_thread(struct wire_ctl *ctl, struct wire_slot *s)
{
	uint64_t start = 0;
	uint32_t tid = LOAD(s->tid);
	struct wire_thread *t;

	if (tid == WIRE_TID_NONE) {
		STORE(s->told, 1);
		return;
	}
	t = (struct wire_thread *)ring_reserve(ctl, s, WIRE_THREAD, sizeof(*t), &start);
	if (!t)
		return;
	t->h.addr_slot = addr_slot(ctl, s, tid);
	*(uint64_t *)t->name = *(uint64_t *)(t->name + 8) = 0;
	if (LOAD(ctl->may_syscall))
		cpu_syscall(CPU_NR_PRCTL, CPU_PR_GET_NAME, (uint64_t)t->name, 0, 0, 0, 0);
	t->sp = (uint64_t)__builtin_frame_address(0);
	t->h.tsc = cpu_ticks_ordered();
	ring_commit(&t->h, stack_end(ctl, s, t->sp) ? 0 : WIRE_F_NO_BOUNDS);
	STORE(s->told, 1);
}

/*
 * FREE, UNFREE or, of `bytes`, UNMAP. False: not recorded, for want of room or because heaptop has gone. One
 * reading of the clock is the event's time and the time to compare with the lease; only some of the events are
 * timed, for all of them. It is ordered, too: the block may have come from another thread a moment
 * ago, and the load that found it there may not have happened yet.
 */
static inline bool record_end(struct wire_ctl *ctl, struct wire_slot *s, uint64_t addr, uint64_t bytes,
			      unsigned kind, unsigned flags)
{
	uint64_t start = 0, recorded = LOAD(s->recorded);
	bool timed = recorded % TIMED == 0;

	if (!LOAD(s->told))
		record_thread(ctl, s);
	if (timed)
		start = cpu_ticks();
	struct wire_head *h = ring_reserve(ctl, s, kind, bytes ? sizeof(struct wire_range) : sizeof(*h), &start);
	if (!h) {
		if (LOAD(ctl->active))
			count_missed(ctl, s, MISSED_LOST);
		else
			count_missed(ctl, s, MISSED_GAP);
		return false;
	}
	uint64_t now = h->tsc = cpu_ticks_ordered();
	h->addr_slot = addr_slot(ctl, s, addr);
	if (bytes)
		((struct wire_range *)h)->bytes = bytes;
	if (!may_record(ctl, now)) {
		ring_void(h);
		count_missed(ctl, s, MISSED_GAP);
		return false;
	}
	ring_commit(h, flags);
	STORE(s->recorded, recorded + 1);
	if (timed)
		ADD(s->cycles, own_ticks(cpu_ticks() - start) * TIMED);
	return true;
}

bool agent_record_free(struct wire_ctl *ctl, struct wire_slot *s, uint64_t addr, unsigned kind,
			unsigned flags)
{
	return record_end(ctl, s, addr, 0, kind, flags);
}

bool agent_record_unmap(struct wire_ctl *ctl, struct wire_slot *s, uint64_t addr, uint64_t bytes)
{
	return record_end(ctl, s, addr, bytes, WIRE_UNMAP, 0);
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

static inline struct wire_walk *last_walk(const struct wire_ctl *ctl, const struct wire_slot *s)
{
	return (struct wire_walk *)((uint64_t)ctl + WIRE_STATE_WALKS) + slot_index(ctl, s);
}

static inline struct wire_rules *rules(void)
{
	return (struct wire_rules *)agent_island.rules;
}

/* ---- an allocation ---- */

/* Words that only some events have, ahead of the frames. */
static inline unsigned extra_flags(const struct agent_frame *f)
{
	return (f->size >= WIRE_LARGE ? WIRE_F_LARGE : 0) | (f->rate > 1 ? WIRE_F_RATE : 0) |
	       (f->hook->kind == WIRE_HOOK_REALLOC || f->flags & AGENT_MOVED ? WIRE_F_REALLOC : 0) |
	       (f->flags & AGENT_RANGE ? WIRE_F_RANGE : 0);
}

static inline uint64_t *put_extra(const struct agent_frame *f, struct wire_alloc *a)
{
	uint64_t *to = (uint64_t *)(a + 1);

	if (f->size >= WIRE_LARGE)
		*to++ = f->size;
	if (f->rate > 1)
		*to++ = f->rate;
	return to;
}

/* Room for an event that has `bytes` of stack to tell, and what all begin with. NULL: dropped. */
static inline struct wire_alloc *begin_alloc(struct wire_ctl *ctl, const struct agent_frame *f, uint64_t addr,
					     uint64_t bytes, uint64_t *start)
{
	struct wire_slot *s = f->slot;

	bytes += sizeof(struct wire_alloc) + (f->size >= WIRE_LARGE ? 8 : 0) + (f->rate > 1 ? 8 : 0);
	struct wire_alloc *a = (struct wire_alloc *)ring_reserve(ctl, s, WIRE_ALLOC, bytes, start);
	if (!a) {
		count_missed(ctl, s, MISSED_DROPPED);
		return NULL;
	}
	/* Only now, so that a dropped event leaves no tag; before the program sees the block. */
	if (!(f->flags & AGENT_RANGE))
		agent_filter_insert(ctl, addr);
	a->h.addr_slot = addr_slot(ctl, s, addr);
	a->size = (uint32_t)(f->size < WIRE_LARGE ? f->size : WIRE_LARGE);
	return a;
}

/* The record is complete but for its time. False: heaptop has gone, nothing was recorded. */
static inline bool commit_alloc(struct wire_ctl *ctl, const struct agent_frame *f, struct wire_alloc *a,
				uint64_t addr, uint32_t keep_n, unsigned flags, uint64_t start)
{
	struct wire_slot *s = f->slot;
	struct wire_walk *w = last_walk(ctl, s);

	/* From here on a handler's event is later than this one, or has the same number: then nothing builds on it. */
	STORE(w->sent, flags & WIRE_F_WALKED ? f->walk.seq : 0);
	BARRIER();
	uint64_t now = a->h.tsc = cpu_ticks_ordered(), recorded = LOAD(s->recorded);

	if (!may_record(ctl, now)) {
		ring_void(&a->h);
		STORE(w->sent, 0);
		if (!(f->flags & AGENT_RANGE))
			agent_filter_remove(ctl, addr);
		count_missed(ctl, s, MISSED_GAP);
		return false;
	}
	a->stack = (f->walk.count + 1) << 24 | keep_n;
	w->count++;
	ring_commit(&a->h, flags | extra_flags(f));
	STORE(s->recorded, recorded + 1);
	if (start)
		ADD(s->cycles, own_ticks(now - start) * TIMED);
	return true;
}

static inline uint64_t *copy_frames(uint64_t *to, const struct wire_walk *w, uint32_t first, uint32_t n)
{
	const struct wire_walk_frame *f = &w->frame[first];

	for (; n; n--, f--)
		*to++ = f->pc & ((1ull << WIRE_PC_BITS) - 1);
	return to;
}

/* A signal handler has walked after `walk` did: its frames aren't ours. */
static inline bool disturbed(struct wire_walk *w, const struct walk *walk)
{
	BARRIER();
	if (LOAD(w->seq) == walk->seq)
		return false;
	w->n = 0;
	return true;
}

/* Of a complete walk. False: its frames were overwritten, nothing was recorded. */
static NOINLINE bool record_walked(struct wire_ctl *ctl, const struct agent_frame *f, uint64_t addr,
				   uint64_t start)
{
	const struct walk *walk = &f->walk;
	struct wire_walk *w = last_walk(ctl, f->slot);
	uint32_t n = walk->n - walk->keep;
	struct wire_alloc *a = begin_alloc(ctl, f, addr, n * 8ull, &start);

	if (!a)
		return true;
	copy_frames(put_extra(f, a), w, walk->first, n);
	if (disturbed(w, walk)) {
		ring_void(&a->h);
		return false;
	}
	commit_alloc(ctl, f, a, addr, walk->keep << WIRE_STACK_BITS | n, WIRE_F_WALKED, start);
	return true;
}

/* How full is the ring of the slot, bytes? */
static inline uint64_t ring_used(const struct wire_slot *s)
{
	bool own;
	const struct wire_ring *ring = ring_of(s, &own);

	return LOAD(ring->head) - LOAD(ring->tail);
}

/* The rule that a walk needs will come in a moment, but copies of stacks have begun to fill the ring. */
static inline bool crowded(const struct agent_frame *f)
{
	return f->walk.why == WIRE_RULE_PENDING && ring_used(f->slot) > LOAD(agent_island.ring_bytes) / 4;
}

/*
 * How much of a stack may be copied at most? A program that begins to allocate much makes thousands of copies until
 * heaptop has answered. Where it doesn't wait for that, they must not drive the rate up: an event with
 * only the inner frames counts exactly, a stack of all frames recorded at a rate of 1M says little of how much there is.
 */
static inline uint64_t most_stack(const struct wire_ctl *ctl, const struct agent_frame *f)
{
	uint64_t max = LOAD(ctl->max_stack);

	if (max > WIRE_MAX_STACK)
		max = WIRE_MAX_STACK;
	return max > CROWDED_STACK && !LOAD(ctl->wait) && crowded(f) ? CROWDED_STACK : max;
}

/* How much of the stack goes into the event that copies it, from the walk's sp on. */
struct extent {
	uint64_t bytes;
	unsigned flags;
};

static struct extent stack_extent(const struct wire_ctl *ctl, const struct wire_slot *s, uint64_t sp, uint64_t max)
{
	uint64_t end = stack_end(ctl, s, sp), room;
	struct extent ret = { 0 };

	if (end) {
		room = end - sp;
	} else {
		ret.flags = WIRE_F_NO_BOUNDS;
		if (LOAD(ctl->may_syscall)) {
			/* On a stack of its own a thread has its TCB on top of it. */
			room = s->tp > sp ? s->tp - sp : max;
		} else {
			room = CPU_PAGE - (sp & (CPU_PAGE - 1));
			ret.flags |= WIRE_F_CUT;
		}
	}
	ret.bytes = (room < max ? room : max) & ~7ull;
	if (room > max)
		ret.flags |= WIRE_F_CUT;
	return ret;
}

/*
 * The copy had better start where all saved registers are known, so that heaptop can do any frame. Only
 * if it would leave out the outer part it starts further out, where the walk got stuck.
 */
static struct extent plan_copy(const struct wire_ctl *ctl, struct agent_frame *f)
{
	struct walk *walk = &f->walk;
	uint64_t max = most_stack(ctl, f);
	struct extent e = stack_extent(ctl, f->slot, (uint64_t)(f + 1), max);

	if (e.flags & WIRE_F_CUT && walk->n && walk->pc)
		return stack_extent(ctl, f->slot, walk->sp, max);
	walk->n = 0;
	walk->pc = f->ip;
	walk->sp = (uint64_t)(f + 1);
	walk->bp = f->saved[0];
	return e;
}

/* Registers of the frame that the copy of the stack begins with, and the copy. */
static inline void put_copy(const struct wire_ctl *ctl, const struct agent_frame *f, struct wire_copy *to,
			    struct extent *e)
{
	to->regs.ip = f->walk.pc;
	to->regs.sp = f->walk.sp;
	to->regs.saved[0] = f->walk.bp;
	for (unsigned i = 1; i < CPU_SAVED; i++)
		to->regs.saved[i] = f->walk.n ? 0 : f->saved[i];
	for (unsigned i = CPU_SAVED; i < 10; i++)
		to->regs.saved[i] = 0;
	to->regs.fp = 0;
	to->regs.lr = 0;
	/* The bounds may be those of a thread before this one, whose thread pointer this one has: a walk hardly
	 * meets what is no longer there, a copy would run into it. */
	if (!LOAD(ctl->may_syscall)) {
		cpu_copy_words(to + 1, f->walk.sp, e->bytes / 8);
	} else {
		uint64_t got = copy_unknown(ctl, to + 1, f->walk.sp, e->bytes);
		if (got < e->bytes)
			e->flags |= WIRE_F_CUT;
		e->bytes = got;
	}
	to->bytes = e->bytes;
}

/* Of a walk that got stuck, or none at all. `ask`: the address whose rule is wanted, 0: none. */
static NOINLINE void record_copied(struct wire_ctl *ctl, struct agent_frame *f, uint64_t addr, uint64_t ask,
				   uint64_t start)
{
	struct wire_walk *w = last_walk(ctl, f->slot);
	struct wire_alloc *a;
	struct extent e;

	for (;;) {
		e = plan_copy(ctl, f);
		a = begin_alloc(ctl, f, addr, f->walk.n * 8ull + sizeof(struct wire_copy) + e.bytes, &start);
		if (!a)
			return;
		put_copy(ctl, f, (struct wire_copy *)copy_frames(put_extra(f, a), w, f->walk.first, f->walk.n), &e);
		if (!f->walk.n || !disturbed(w, &f->walk))
			break;
		ring_void(&a->h);
		f->walk.n = 0;
	}
	if (commit_alloc(ctl, f, a, addr, f->walk.n, e.flags, start) && ask && !(ask >> WIRE_PC_BITS))
		agent_ask(rules(), ask);
}

static inline void walk_from(const struct wire_ctl *ctl, struct agent_frame *f, uint64_t end)
{
	f->walk.pc = f->ip;
	f->walk.sp = (uint64_t)(f + 1);
	f->walk.bp = f->saved[0];
	agent_walk(last_walk(ctl, f->slot), rules(), end, &f->walk);
}

/* How many of the two pages from `page` on can be read? The kernel says so: nothing else is certain not to fault. */
static NOINLINE unsigned two_pages(const struct wire_ctl *ctl, uint64_t page)
{
	uint64_t words[2];
	struct {
		uint64_t base, len;
	} local = { (uint64_t)words, sizeof(words) }, remote[2] = { { page, 8 }, { page + CPU_PAGE, 8 } };

	int64_t got = cpu_syscall(CPU_NR_PROCESS_VM_READV, LOAD(ctl->pid), (uint64_t)&local, 1, (uint64_t)remote, 2, 0);

	return got < 8 ? 0 : (unsigned)got / 8;
}

/*
 * A walk on a stack whose end isn't known: a fiber's, a signal handler's, that of a thread that has just
 * begun. Bounds told beforehand wouldn't do for fibers: their stacks come and go. The page that the return
 * address was read from can be read, and most walks that get further than that don't need much: at first two
 * pages more, then four, up to PROVED_PAGES. What lies behind the stack does no harm: no rule leads there.
 * Returns the end.
 */
static NOINLINE uint64_t walk_unknown(const struct wire_ctl *ctl, struct agent_frame *f)
{
	uint64_t end = ((uint64_t)&f->ip & ~(uint64_t)(CPU_PAGE - 1)) + CPU_PAGE;

	walk_from(ctl, f, end);
	bool more = LOAD(ctl->may_syscall);
	for (unsigned pages = 2, all = 0; more && f->walk.why == WALK_OUT && all < PROVED_PAGES; pages *= 2) {
		for (unsigned i = 0; more && i < pages; i += 2, all += 2) {
			unsigned n = two_pages(ctl, end);
			end += n * CPU_PAGE;
			more = n == 2;
		}
		walk_from(ctl, f, end);
	}
	return end;
}

/*
 * heaptop has been asked for a rule and will answer in a moment. Once copies begin to fill the ring, each of
 * which asks the same, it is better to wait for that; where waiting is allowed.
 */
static NOINLINE uint64_t await_rule(struct wire_ctl *ctl, struct agent_frame *f, uint64_t end, uint64_t start)
{
	uint64_t since = cpu_ticks();
	bool given_up = false;

	for (unsigned tries = 0; f->walk.why == WIRE_RULE_PENDING; tries++) {
		uint64_t ticks = cpu_ticks() - since;

		if (given_up && ticks > 2 * ANSWER_TICKS)
			break;		/* somebody has scribbled over the word */
		given_up = ticks > ANSWER_TICKS;
		if (given_up)
			agent_give_up(rules(), f->walk.pc);
		else
			let_others_run(ctl, tries);
		if (wire_rule_kind(agent_rule(rules(), f->walk.pc)) != WIRE_RULE_PENDING)
			walk_from(ctl, f, end);
	}
	waited(f->slot, since, &start);
	return start;
}

void agent_record_alloc(struct wire_ctl *ctl, struct agent_frame *f, uint64_t addr)
{
	uint64_t end = stack_end(ctl, f->slot, (uint64_t)(f + 1)), ask = 0;
	uint64_t start = LOAD(f->slot->recorded) % TIMED ? 0 : cpu_ticks();

	if (!LOAD(f->slot->told))
		record_thread(ctl, f->slot);
	f->walk.n = 0;
	f->walk.first = 0;
	f->walk.why = WIRE_RULE_NONE;
	f->walk.count = LOAD(last_walk(ctl, f->slot)->count);	/* before it is known what can be kept */
	BARRIER();
	if (rules()) {
		if (end)
			walk_from(ctl, f, end);
		else
			end = walk_unknown(ctl, f);
		if (LOAD(ctl->wait) && crowded(f))
			start = await_rule(ctl, f, end, start);
		if (f->walk.complete && record_walked(ctl, f, addr, start))
			return;
		if (f->walk.complete)
			f->walk.n = 0;
		else if (f->walk.why == WIRE_RULE_NONE)
			ask = f->walk.pc;
	}
	record_copied(ctl, f, addr, ask, start);
}
