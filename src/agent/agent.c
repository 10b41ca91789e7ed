/*
 * The agent's slow paths: deciding what is sampled, drawing gaps, what a call needs before and
 * after it. Any thread of the target, also from signal handlers: no locks, and nothing that a siglongjmp
 * out of here would leave stuck.
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
#include "agent/filter.h"
#include "agent/inside.h"
#include "agent/ranges.h"
#include "agent/record.h"
#include "agent/slot.h"

#define IDLE_BYTES (1u << 20)	/* between looks at whether there is something to record again */
#define INSIDE_KIND 0xfffull		/* wire_slot.inside, besides the island's page */

_Static_assert(offsetof(struct wire_island, ctl) == 16, "entry-*.S");
_Static_assert(offsetof(struct wire_island, entry) == 80, "entry-*.S");
_Static_assert(WIRE_HOOK_KINDS == 8 && WIRE_ENTRIES == 8, "entry-*.S");
_Static_assert(offsetof(struct wire_hook, original) == 40 && offsetof(struct wire_hook, instead) == 0, "entry-*.S");
_Static_assert(offsetof(struct wire_hook, args.nothrow) == 30, "entry-*.S");
_Static_assert(offsetof(struct wire_ctl, free_all) == 32, "entry-*.S");
_Static_assert(offsetof(struct wire_slot, tp) == 0, "entry-*.S");
_Static_assert(offsetof(struct wire_slot, countdown) == 8, "entry-*.S");
_Static_assert(WIRE_STATE_SLOTS == 4096 && WIRE_SLOT_HOMES == 4096, "entry-*.S");
_Static_assert(WIRE_STATE_FILTER == 4096 + 4128 * 256, "entry-*.S");
_Static_assert(WIRE_FILTER_WAYS == 7 && WIRE_FILTER_WORDS == 8 && WIRE_FILTER_BITS == 14, "entry-*.S");
_Static_assert(offsetof(struct wire_ctl, no_slot) % 64 == 0, "counters have a cache line of their own");
_Static_assert(WIRE_STATE_FILTER % 64 == 0 && WIRE_STATE_WALKS % 64 == 0, "cache lines");
_Static_assert(offsetof(struct agent_frame, hook) == 96, "entry-*.S");
_Static_assert(offsetof(struct agent_frame, result) == 104, "entry-*.S");
_Static_assert(offsetof(struct agent_frame, ip) == AGENT_FRAME_BYTES && AGENT_FRAME_BYTES == 200, "entry-*.S");
_Static_assert(sizeof(struct wire_ctl) <= WIRE_STATE_SLOTS, "one page");

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
	return agent_gap(agent_mix(s->rng), rate);
}

/* ---- called by the entries ---- */

/* The n-th argument, counted from 1; 0 if there is none. */
static uint64_t argument(const struct agent_frame *f, unsigned n)
{
	return n - 1 < WIRE_ARGS_MAX ? f->arg[n - 1] : 0;
}

/* Bytes asked for; a product that overflows fails in the allocator and is never recorded. */
static uint64_t request(const struct agent_frame *f)
{
	const struct wire_args *args = &f->hook->args;
	uint64_t size = argument(f, args->size), count, product;

	if (!args->size)
		return args->bytes;
	if (args->flags & WIRE_ARGS_INT)
		size = (uint32_t)size;
	if (!args->count)
		return size;
	count = argument(f, args->count);
	if (args->flags & WIRE_ARGS_INT)
		count = (uint32_t)count;
	return __builtin_mul_overflow(size, count, &product) ? ~0ull >> 1 : product;
}

/* Address of the block there is after the call, 0: it failed. */
static uint64_t block_of(const struct agent_frame *f)
{
	const struct wire_args *args = &f->hook->args;

	switch (args->returns) {
	case WIRE_RETURNS_STATUS:
		return (uint32_t)f->result ? 0 : *(uint64_t *)argument(f, args->out);
	case WIRE_RETURNS_SIZE:
		return f->result < f->size ? 0 : argument(f, args->pointer);
	default:
		return f->result;
	}
}

/* What isn't sampled goes on to the original without a frame, and hence leaves no mark. */
static bool passes_on(const struct agent_frame *f)
{
	return f->hook->kind == WIRE_HOOK_MALLOC || f->hook->kind == WIRE_HOOK_NEW;
}

/* The old block of a realloc, if it is one we know: recorded as freed before the original runs. */
static void release_old(struct wire_ctl *ctl, struct agent_frame *f)
{
	uint64_t old = argument(f, f->hook->args.pointer);

	f->slot->moving = old;
	if (!old || !(LOAD(ctl->free_all) || agent_filter_has(ctl, old)))
		return;
	if (!LOAD(ctl->active)) {
		count_missed(ctl, f->slot, MISSED_GAP);
		return;
	}
	if (!agent_record_free(ctl, f->slot, old, WIRE_FREE, WIRE_F_REALLOC))
		return;
	f->flags |= AGENT_FREED;
	if (agent_filter_remove(ctl, old))
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
	if (!(own_stack_end(s, sp) > s->mark) &&
	    !(LOAD(ctl->main_stack_lo) <= sp && s->mark < LOAD(ctl->main_stack_hi)))
		return true;
	return *(const uint64_t *)at - (s->inside & ~INSIDE_KIND) < agent_island.code_bytes;
}

/* From here on the thread is inside this hook. */
static int enter(struct wire_slot *s, const struct agent_frame *f, uint64_t sp)
{
	s->inside = (uint64_t)&agent_island | f->hook->kind;
	STORE(s->countdown, 0);
	BARRIER();
	STORE(s->mark, sp);
	BARRIER();
	return 1;
}

int agent_before(struct agent_frame *f)
{
	struct wire_ctl *ctl = control();
	struct wire_slot *s = slot_find(ctl);
	uint64_t sp = (uint64_t)&f->ip;

	if (!s)
		return 0;
	if (s->mark) {
		if (mark_lives(ctl, s, sp)) {
			ADD(s->nested, 1);
			if (f->hook->kind == WIRE_HOOK_MALLOC && (s->inside & INSIDE_KIND) == WIRE_HOOK_MALLOC)
				COUNT(ctl->wrapped);
			return 0;
		}
		STORE(s->countdown, 0);
		s->mark = 0;
	}

	if (f->hook->kind == WIRE_HOOK_RANGE) {
		f->slot = s;
		f->left = LOAD(s->countdown);
		return agent_range_before(ctl, f) ? enter(s, f, sp) : 0;
	}
	uint64_t left = LOAD(s->countdown), size = request(f);
	bool again = !left || s->rate == WIRE_RATE_IDLE;

	if (again)
		left = draw(ctl, s);
	bool sampled = s->rate <= 1 || left <= size;
	if ((again || sampled) && !LOAD(ctl->active)) {
		count_missed(ctl, s, MISSED_GAP);
		s->rate = WIRE_RATE_IDLE;
		BARRIER();
		STORE(s->countdown, IDLE_BYTES);
		return 0;
	}
	if (!sampled && passes_on(f)) {
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
	if (f->hook->kind == WIRE_HOOK_REALLOC)
		release_old(ctl, f);
	return enter(s, f, sp);
}

void agent_after(struct agent_frame *f)
{
	struct wire_ctl *ctl = control();
	struct wire_slot *s = f->slot;

	if (f->hook->kind == WIRE_HOOK_RANGE) {
		agent_range_after(ctl, f);
		return;
	}
	uint64_t addr = block_of(f);

	/* realloc(p, 0) that returns NULL has freed p; any other NULL has not. */
	if (f->flags & AGENT_FREED && !addr && f->size && !(f->hook->args.flags & WIRE_ARGS_FREES)) {
		uint64_t old = argument(f, f->hook->args.pointer);

		if (f->flags & AGENT_TAGGED)
			agent_filter_insert(ctl, old);
		agent_record_free(ctl, s, old, WIRE_UNFREE, WIRE_F_REALLOC);
	}
	if (!(f->flags & AGENT_SAMPLED) || !addr)
		return;
	if (LOAD(ctl->active))
		agent_record_alloc(ctl, f, addr);
	else
		count_missed(ctl, s, MISSED_GAP);
}

void agent_leave(struct agent_frame *f)
{
	struct wire_slot *s = f->slot;

	if (f->flags & AGENT_SAMPLED && !LOAD(control()->active)) {
		s->rate = WIRE_RATE_IDLE;
		f->left = IDLE_BYTES;
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
	uint64_t addr = argument(f, f->hook->args.pointer);

	if (!addr || (!LOAD(ctl->active) && (LOAD(ctl->free_all) || !agent_filter_has(ctl, addr))))
		return;
	struct wire_slot *s = slot_find(ctl);
	if (!s)
		return;
	if (!LOAD(ctl->active)) {
		count_missed(ctl, s, MISSED_GAP);
		return;
	}
	if (s->mark && s->moving == addr && mark_lives(ctl, s, (uint64_t)&f->ip)) {
		ADD(s->nested, 1);	/* realloc lets go of its old block: already recorded */
		return;
	}
	if (!LOAD(ctl->free_all) && !agent_filter_has(ctl, addr))
		return;
	/*
	 * A lost free leaves its tag: the next free of that address is recorded then, and the
	 * block is late instead of leaked.
	 */
	if (agent_record_free(ctl, s, addr, WIRE_FREE, 0) && !LOAD(ctl->free_all))
		agent_filter_remove(ctl, addr);
}
