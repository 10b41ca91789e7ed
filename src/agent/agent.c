/*
 * The agent's slow paths: deciding what is sampled, drawing gaps, the free filter, writing
 * events. Any thread of the target, also from signal handlers: no locks, and nothing that a siglongjmp out of here
 * would leave stuck.
 *
 * Sampling. Think of all bytes asked for as one long line, with marks on it that form a Poisson
 * process of mean distance R; a block is sampled if a mark lies on it. The slot holds the
 * distance to the next mark. With E exponential of mean R, gap = floor(E) + 1 is geometric:
 * P(gap > s) = P(E >= s) = exp(-s/R), so "gap <= s" samples a block of s bytes with probability
 * 1 - exp(-s/R) exactly, whatever came before (no memory), and it stands for the inverse of that.
 *
 *  - A gap is at least 1, so a countdown of 0 isn't natural: it was set, by a mark or by heaptop, to make
 *    the thread come here. What remained of the gap is forgotten then and a new one is drawn with the
 *    rate of now, *before* deciding on the call. That is right because nothing about the old gap led to
 *    the decision to draw again. The contrary isn't: a call that came here because its gap ended is
 *    sampled with the rate that gap was drawn with (slot->rate), even if the rate has changed
 *    since; drawing again for it would lose the sample. So rates change at the next draw.
 *  - While nothing is recorded (lease over) the countdown is IDLE_BYTES and the rate
 *    WIRE_RATE_IDLE, which isn't natural either.
 *  - R <= 1: the countdown stays 0, every call comes here and is recorded, blocks of 0 bytes too.
 *
 * E = -ln(u) R with u = x / 2^64: -log2(u) = clz(x) + 1 - log2(m), with m = x shifted up to
 * [1, 2). log2(m) bit by bit: square m; if the square is >= 2, the next bit is 1, halve it. 32 bits, error
 * below 2^-30.
 *
 * Marks. Inside a hook that goes through a frame, slot->mark is the frame's stack address and the
 * countdown 0: allocators call each other (calloc -> malloc), and the outermost counts. A mark
 * deeper than the current stack pointer is left over from a siglongjmp or a cancelled thread; so is
 * one whose frame others have written over since.
 */
#include "agent/agent.h"

#include <stdbool.h>
#include <stddef.h>

#include "agent/cpu-x86_64.h"
#include "agent/walk.h"

#define IDLE_BYTES (1u << 20)	/* between looks at whether there is something to record again */
#define FREE_PATIENCE 256	/* tries for room for a free where nobody waits for room */
#define RATE_FILTER_FULL (64u << 10)	/* see raise_rate */
#define INSIDE_KIND 0xfffull		/* wire_slot.inside, besides the island's page */
#define MAX_EVENT_TICKS (1u << 16)	/* about 25 us: see own_ticks */
#define ANSWER_TICKS (1u << 19)	/* about 200 us: how long a rule asked for is waited for */
#define TIMED 7u	/* of so many events one is timed; odd, as allocations and frees alternate */
#define PREFETCH_BYTES 256	/* some records ahead in the ring */

_Static_assert(offsetof(struct wire_island, ctl) == 16, "entry-*.S");
_Static_assert(offsetof(struct wire_island, entry) == 80, "entry-*.S");
_Static_assert(WIRE_HOOK_KINDS == 8, "entry-*.S");
_Static_assert(offsetof(struct wire_ctl, free_all) == 32, "entry-*.S");
_Static_assert(offsetof(struct wire_slot, tp) == 0, "entry-*.S");
_Static_assert(offsetof(struct wire_slot, countdown) == 8, "entry-*.S");
_Static_assert(WIRE_STATE_SLOTS == 4096 && WIRE_SLOT_HOMES == 4096, "entry-*.S");
_Static_assert(WIRE_STATE_FILTER == 4096 + 4128 * 128, "entry-*.S");
_Static_assert(WIRE_FILTER_WAYS == 7 && WIRE_FILTER_WORDS == 8 && WIRE_FILTER_BITS == 14, "entry-*.S");
_Static_assert(offsetof(struct wire_ctl, no_slot) % 64 == 0, "counters have a cache line of their own");
_Static_assert(WIRE_STATE_FILTER % 64 == 0 && WIRE_STATE_WALKS % 64 == 0, "cache lines");
_Static_assert(offsetof(struct agent_frame, hook) == 96, "entry-*.S");
_Static_assert(offsetof(struct agent_frame, result) == 104, "entry-*.S");
_Static_assert(offsetof(struct agent_frame, ip) == 152, "entry-*.S");
_Static_assert(sizeof(struct wire_ctl) <= WIRE_STATE_SLOTS, "one page");

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

/* ---- slots ---- */

static uint64_t mix(uint64_t x)	/* the finaliser of splitmix64 (Steele, Lea, Flood 2014) */
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static struct wire_slot *slot_find(struct wire_ctl *ctl, bool claim)
{
	uint64_t tp = cpu_thread_pointer();
	struct wire_slot *s = (struct wire_slot *)((uint64_t)ctl + WIRE_STATE_SLOTS) + wire_slot_hash(tp);

	if (!tp)
		return NULL;
	for (unsigned i = 0; i < WIRE_SLOT_PROBES; i++, s++) {
		uint64_t owner = LOAD(s->tp);
		if (owner == tp)
			return s;
		if (owner || !claim)
			continue;
		if (__atomic_compare_exchange_n(&s->tp, &owner, tp, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED)) {
			s->rng = mix(tp ^ ctl->seed);
			s->ring = wire_ring_of(COUNT(ctl->slots_used), agent_island.nrings);
			return s;
		}
	}
	COUNT(ctl->no_slot);
	return NULL;
}

static inline unsigned slot_index(const struct wire_ctl *ctl, const struct wire_slot *s)
{
	return (unsigned)(((uint64_t)s - (uint64_t)ctl - WIRE_STATE_SLOTS) / sizeof(*s));
}

/* ---- sampling ---- */

uint64_t agent_gap(uint64_t x, uint64_t rate)
{
	if (!x)
		x = 1;
	int lz = __builtin_clzll(x);
	uint64_t m = x << lz;		/* in [1, 2), 63 bits after the point */
	uint64_t log = 0;		/* 32 bits after the point */

	for (int i = 0; i < 32; i++) {
		unsigned __int128 square = (unsigned __int128)m * m;	/* 126 bits after it */
		bool two = (uint64_t)(square >> 127);

		log = log << 1 | two;
		m = (uint64_t)(square >> (two ? 64 : 63));
	}
	uint64_t bits = (((uint64_t)lz + 1) << 32) - log;		/* -log2(u), 32 */
	uint64_t e = (uint64_t)((unsigned __int128)bits * 0xb17217f7d1cf79acull >> 64);	/* * ln 2 */
	unsigned __int128 gap = (unsigned __int128)e * rate >> 32;

	return gap >> 62 ? 1ull << 62 : (uint64_t)gap + 1;
}

/* A new gap with the rate of now; remembers that rate. 0: every call. */
static uint64_t draw(const struct wire_ctl *ctl, struct wire_slot *s)
{
	uint64_t rate = LOAD(ctl->rate);

	s->rate = rate;
	if (rate <= 1)
		return 0;
	s->rng += 0x9e3779b97f4a7c15ull;
	return agent_gap(mix(s->rng), rate);
}

/*
 * May what happens at `now` be recorded? Past the lease heaptop has died or was stopped: then collection
 * is switched off here, and nobody asks for the time again.
 */
static bool may_record(struct wire_ctl *ctl, uint64_t now)
{
	if (LOAD(ctl->active) && now < LOAD(ctl->lease))
		return true;
	STORE(ctl->active, 0);
	return false;
}

/*
 * Auto: heaptop looks at the rings some tens of times a second, and a program that has just begun to
 * allocate fast may fill one before that. Rather than lose events, sample more rarely at once.
 * Every event carries the rate it was drawn with, so the estimates stay unbiased.
 */
static void raise_rate(struct wire_ctl *ctl, uint64_t least)
{
	if (LOAD(ctl->raise) && LOAD(ctl->rate) < least)
		STORE(ctl->rate, least);
}

/* TSC ticks one event may be said to have taken; a thread that was preempted meanwhile spent no
 * more of the CPU's time on it. */
static inline uint64_t own_ticks(uint64_t ticks)
{
	return ticks < MAX_EVENT_TICKS ? ticks : MAX_EVENT_TICKS;
}

/* ---- filter: wire.h tells the tags ---- */

static inline uint32_t *bucket(const struct wire_ctl *ctl, uint64_t addr)
{
	return (uint32_t *)((uint64_t)ctl + WIRE_STATE_FILTER) +
	       (uint64_t)wire_filter_bucket(addr) * WIRE_FILTER_WORDS;
}

static inline uint32_t *tag_line(uint64_t hash, unsigned second)
{
	return ((struct wire_tags *)agent_island.tags)->tag[wire_tag_line(hash, second)];
}

static bool swap_tag(uint32_t *way, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(way, &from, to, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static bool has(const uint32_t *ways, unsigned n, uint32_t tag)
{
	for (unsigned i = 0; i < n; i++)
		if (LOAD(ways[i]) == tag)
			return true;
	return false;
}

/* The first way that holds `from` shall hold `to`. Returns its index, n if none does. */
static unsigned replace(uint32_t *ways, unsigned n, uint32_t from, uint32_t to)
{
	unsigned i = 0;

	while (i < n && !(LOAD(ways[i]) == from && swap_tag(&ways[i], from, to)))
		i++;
	return i;
}

static bool filter_has(const struct wire_ctl *ctl, uint64_t addr)
{
	const uint32_t *b = bucket(ctl, addr);

	if (has(b, WIRE_FILTER_WAYS, wire_filter_tag(addr)))
		return true;
	if (!LOAD(b[WIRE_FILTER_WAYS]))
		return false;
	uint64_t hash = wire_tag_hash(addr);
	for (unsigned second = 0; second < 2; second++)
		if (has(tag_line(hash, second), WIRE_TAG_WAYS, wire_tag_of(hash, second)))
			return true;
	return false;
}

/*
 * Outside the bucket. Its count goes up first, and down last: whoever frees the block while it is
 * counted finds it. False: no room.
 */
static bool insert_elsewhere(struct wire_ctl *ctl, uint32_t *more, uint64_t addr)
{
	uint64_t hash = wire_tag_hash(addr);

	if (!agent_island.tags)
		return false;
	for (uint32_t n = LOAD(*more); !swap_tag(more, n, (n | WIRE_FILTER_MORE) + 1);)
		n = LOAD(*more);
	if (replace(tag_line(hash, 0), WIRE_TAG_WAYS, 0, wire_tag_of(hash, 0)) < WIRE_TAG_WAYS)
		return true;
	raise_rate(ctl, RATE_FILTER_FULL);
	return replace(tag_line(hash, 1), WIRE_TAG_WAYS, 0, wire_tag_of(hash, 1)) < WIRE_TAG_WAYS;
}

/* With no room for the tag anywhere, all frees are recorded from now on. */
static void filter_insert(struct wire_ctl *ctl, uint64_t addr)
{
	uint32_t *b = bucket(ctl, addr);

	if (LOAD(ctl->free_all) || filter_has(ctl, addr))
		return;
	if (replace(b, WIRE_FILTER_WAYS, 0, wire_filter_tag(addr)) < WIRE_FILTER_WAYS ||
	    insert_elsewhere(ctl, &b[WIRE_FILTER_WAYS], addr))
		return;
	COUNT(ctl->filter_full);
	STORE(ctl->free_all, 1);
}

static bool filter_remove(struct wire_ctl *ctl, uint64_t addr)
{
	uint32_t *b = bucket(ctl, addr), *more = &b[WIRE_FILTER_WAYS];

	if (replace(b, WIRE_FILTER_WAYS, wire_filter_tag(addr), 0) < WIRE_FILTER_WAYS)
		return true;
	if (!LOAD(*more))
		return false;
	uint64_t hash = wire_tag_hash(addr);
	for (unsigned second = 0; second < 2; second++) {
		if (replace(tag_line(hash, second), WIRE_TAG_WAYS, wire_tag_of(hash, second), 0) == WIRE_TAG_WAYS)
			continue;
		uint32_t n = LOAD(*more);
		while (n && !swap_tag(more, n, n == (WIRE_FILTER_MORE | 1) ? 0 : n - 1))
			n = LOAD(*more);
		return true;
	}
	return false;
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
static bool record_free(struct wire_ctl *ctl, struct wire_slot *s, uint64_t addr, unsigned kind,
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
	filter_insert(ctl, addr);
	a->h.addr_slot = addr_slot(ctl, s, addr);
	a->size = (uint32_t)(f->size < WIRE_LARGE ? f->size : WIRE_LARGE);
	return a;
}

static void record_alloc(struct wire_ctl *ctl, const struct agent_frame *f, uint64_t addr)
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
		filter_remove(ctl, addr);
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

/* ---- called by the entries ---- */

/* Bytes asked for; a product that overflows fails in the allocator and is never recorded. */
static uint64_t request(const struct agent_frame *f)
{
	uint64_t a, b, product;

	switch (f->hook->kind) {
	case WIRE_HOOK_CALLOC:
		a = f->arg[0];
		b = f->arg[1];
		break;
	case WIRE_HOOK_REALLOCARRAY:
		a = f->arg[1];
		b = f->arg[2];
		break;
	case WIRE_HOOK_REALLOC:
	case WIRE_HOOK_MEMALIGN:
		return f->arg[1];
	case WIRE_HOOK_POSIX_MEMALIGN:
		return f->arg[2];
	default:
		return f->arg[0];
	}
	return __builtin_mul_overflow(a, b, &product) ? ~0ull >> 1 : product;
}

static bool is_realloc(const struct agent_frame *f)
{
	return f->hook->kind == WIRE_HOOK_REALLOC || f->hook->kind == WIRE_HOOK_REALLOCARRAY;
}

/* The old block of a realloc, if it is one we know: recorded as freed before the original runs. */
static void release_old(struct wire_ctl *ctl, struct agent_frame *f)
{
	uint64_t old = f->arg[0];

	f->slot->moving = old;
	if (!old || !(LOAD(ctl->free_all) || filter_has(ctl, old)))
		return;
	if (!LOAD(ctl->active)) {
		ADD(f->slot->gap, 1);
		return;
	}
	if (!record_free(ctl, f->slot, old, WIRE_FREE, WIRE_F_REALLOC))
		return;
	f->flags |= AGENT_FREED;
	if (filter_remove(ctl, old))
		f->flags |= AGENT_TAGGED;
}

/*
 * Is this thread, with its stack down to sp, inside the hook that left the mark? Then a return address
 * into that hook's island lies right below its frame. Calls made after a siglongjmp out of it have
 * written over that, or will.
 */
static bool mark_lives(const struct wire_ctl *ctl, const struct wire_slot *s, uint64_t sp)
{
	uint64_t at = s->mark - offsetof(struct agent_frame, ip) - sizeof(uint64_t);

	/* Equal: the original has jumped to another one, whose return address is ours, too. */
	if (s->mark <= sp || at < sp)
		return false;
	/* Another stack (a signal's, a fiber's) mustn't be touched: it may be gone. */
	if (!(LOAD(s->stack_lo) <= sp && s->mark < LOAD(s->stack_hi)) &&
	    !(LOAD(ctl->main_stack_lo) <= sp && s->mark < LOAD(ctl->main_stack_hi)))
		return true;
	return *(const uint64_t *)at - (s->inside & ~INSIDE_KIND) < agent_island.code_bytes;
}

int agent_before(struct agent_frame *f)
{
	struct wire_ctl *ctl = control();
	struct wire_slot *s = slot_find(ctl, true);
	uint64_t sp = (uint64_t)&f->ip;

	if (!s)
		return 0;
	if (s->mark) {
		if (mark_lives(ctl, s, sp)) {
			ADD(s->nested, 1);
			if (f->hook->kind == WIRE_HOOK_MALLOC &&
			    (s->inside & INSIDE_KIND) == WIRE_HOOK_MALLOC)
				COUNT(ctl->wrapped);
			return 0;
		}
		STORE(s->countdown, 0);
		s->mark = 0;
	}

	uint64_t left = LOAD(s->countdown), size = request(f);
	bool again = !left || s->rate == WIRE_RATE_IDLE;

	if (again)
		left = draw(ctl, s);
	bool sampled = s->rate <= 1 || left <= size;
	if ((again || sampled) && !LOAD(ctl->active)) {
		ADD(s->gap, 1);
		s->rate = WIRE_RATE_IDLE;
		BARRIER();
		STORE(s->countdown, IDLE_BYTES);
		return 0;
	}
	if (!sampled && f->hook->kind == WIRE_HOOK_MALLOC) {
		STORE(s->countdown, left - size);
		return 0;
	}
	f->slot = s;
	f->size = size;
	f->rate = s->rate <= 1 ? 1 : s->rate;
	f->flags = sampled ? AGENT_SAMPLED : 0;
	left = sampled ? draw(ctl, s) : left - size;
	f->left = left;
	s->moving = 0;
	if (is_realloc(f))
		release_old(ctl, f);
	s->inside = (uint64_t)&agent_island | f->hook->kind;
	STORE(s->countdown, 0);
	BARRIER();
	STORE(s->mark, sp);
	BARRIER();
	return 1;
}

void agent_after(struct agent_frame *f)
{
	struct wire_ctl *ctl = control();
	struct wire_slot *s = f->slot;
	uint64_t addr = f->result;

	if (f->hook->kind == WIRE_HOOK_POSIX_MEMALIGN)
		addr = (uint32_t)f->result ? 0 : *(uint64_t *)f->arg[0];
	/* realloc(p, 0) that returns NULL has freed p; any other NULL has not. */
	if (f->flags & AGENT_FREED && !addr && f->size) {
		if (f->flags & AGENT_TAGGED)
			filter_insert(ctl, f->arg[0]);
		record_free(ctl, s, f->arg[0], WIRE_UNFREE, WIRE_F_REALLOC);
	}
	if (f->flags & AGENT_SAMPLED && addr) {
		if (LOAD(ctl->active))
			record_alloc(ctl, f, addr);
		else
			ADD(s->gap, 1);
		if (!LOAD(ctl->active)) {
			s->rate = WIRE_RATE_IDLE;
			f->left = IDLE_BYTES;
		}
	}
	s->moving = 0;
	BARRIER();
	STORE(s->mark, 0);
	BARRIER();
	STORE(s->countdown, f->left);
}

void agent_free(struct agent_frame *f)
{
	struct wire_ctl *ctl = control();
	uint64_t addr = f->arg[0];

	if (!addr || !LOAD(ctl->active))
		return;
	struct wire_slot *s = slot_find(ctl, true);
	if (!s)
		return;
	if (s->mark && s->moving == addr && mark_lives(ctl, s, (uint64_t)&f->ip)) {
		ADD(s->nested, 1);	/* realloc lets go of its old block: already recorded */
		return;
	}
	if (!LOAD(ctl->free_all) && !filter_has(ctl, addr))
		return;
	/*
	 * A lost free leaves its tag: the next free of that address is recorded then, and the
	 * block is late instead of leaked.
	 */
	if (record_free(ctl, s, addr, WIRE_FREE, 0))
		filter_remove(ctl, addr);
}
