/*
 * The walk: rules frame by frame, libunwind where a rule says so, the frame pointer where there
 * is no CFI.
 *
 * Nearly every frame's CFA hangs on sp or the frame pointer, so a walk first carries only those
 * and the return address: two loads a frame. The first frame that needs another register
 * (aligned stacks, libunwind) makes the walk start again, with all of them.
 *
 * What ends a walk that can't go on: every address must lie in the copied bytes, and sp must
 * grow from frame to frame, so a walk never takes more steps than the copy has words.
 */
#include "unwind/unwind.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "unwind/regs.h"
#include "unwind/remote.h"
#include "unwind/rules.h"

/* A register that points further beyond the copy than any stack is long isn't a cut stack. */
#define FAR (64ull << 20)

struct unwinder {
	struct rules rules;
	struct remote *remote;
	struct unwind_stats stats;
};

/* Counters of one walk, added to the unwinder's when it has ended. */
struct tally {
	uint64_t hits, misses, remote, guessed;
	bool records;	/* a frame record was gone by, be it to the stack's end */
};

enum step {
	STEP_OK,
	STEP_LAST,	/* one more frame, then the end, *why says why */
	STEP_END,	/* *why says so */
	STEP_FULL,	/* needs a register that a fast walk doesn't carry */
};

static const char *const end_texts[UNWIND_END_COUNT] = {
	[UNWIND_END_ROOT] = "complete",
	[UNWIND_END_CUT] = "stack copy too short",
	[UNWIND_END_NO_CFI] = "code without unwind information",
	[UNWIND_END_NO_MODULE] = "code outside of any module",
	[UNWIND_END_BAD] = "unwind information led astray",
	[UNWIND_END_DEPTH] = "too deep",
	[UNWIND_END_LOST] = "an event before this one was lost",
	[UNWIND_END_ELSEWHERE] = "a signal handler on a stack of its own",
};

const char *unwind_end_text(enum unwind_end why)
{
	return (unsigned)why < UNWIND_END_COUNT ? end_texts[why] : "unknown";
}

struct unwinder *unwinder_create(const struct modules *mods)
{
	struct unwinder *u = xcalloc(1, sizeof(*u));

	rules_init(&u->rules, mods);
	u->remote = remote_create(mods);
	return u;
}

void unwinder_destroy(struct unwinder *u)
{
	if (!u)
		return;
	remote_destroy(u->remote);
	rules_deinit(&u->rules);
	free(u);
}

void unwinder_flush(struct unwinder *u)
{
	rules_flush(&u->rules);
	remote_flush(u->remote);
}

const struct unwind_stats *unwinder_stats(const struct unwinder *u)
{
	return &u->stats;
}

static inline bool load(const struct stack_copy *stack, uint64_t addr, uint64_t *ret)
{
	uint64_t offset = addr - stack->addr;

	if (__builtin_expect(stack->len < 8 || offset > stack->len - 8, 0))
		return false;
	memcpy(ret, stack->bytes + offset, 8);
	return true;
}

static inline const struct rule *rule_at(struct unwinder *u, uint64_t pc, struct tally *t)
{
	const struct rule *r = rules_find(&u->rules, pc);
	bool derived;

	if (__builtin_expect(r != NULL, 1))
		return r;
	r = rules_get(&u->rules, pc, &derived);
	t->misses += derived;
	return r;
}

/* Why an address outside of the copy can't be read: the copy is short, or the address is wild. */
static enum step outside(const struct stack_copy *stack, uint64_t addr, enum unwind_end *why)
{
	*why = addr - stack->addr < stack->len + FAR ? UNWIND_END_CUT : UNWIND_END_BAD;
	return STEP_END;
}

static inline uint64_t saved_at(const struct rule *r, unsigned slot, uint64_t cfa)
{
	return cfa + (uint64_t)((int64_t)r->saved[slot] * 8);
}

static enum step step_rule(const struct rule *r, struct regs_frame *f,
			   const struct stack_copy *stack, bool full, bool first,
			   enum unwind_end *why)
{
	uint64_t base, cfa;

	if (r->base == REGS_SP)
		base = f->sp;
	else if (full || r->base == regs_cpu.fp)
		base = f->reg[r->base % REGS_SLOTS];
	else
		return STEP_FULL;
	cfa = base + (uint64_t)(int64_t)r->offset;
	if (r->kind == RULE_CFA_DEREF && !load(stack, cfa, &cfa))
		return outside(stack, cfa, why);
	/* A leaf function of a CPU with a link register has nothing on the stack. */
	if (cfa < f->sp || (cfa == f->sp && !first)) {
		*why = UNWIND_END_BAD;
		return STEP_END;
	}

	unsigned mask = r->mask;
	if (!full)
		mask &= 1u << REGS_RA | 1u << regs_cpu.fp;
	for (; mask; mask &= mask - 1) {
		unsigned slot = (unsigned)__builtin_ctz(mask);
		uint64_t addr = saved_at(r, slot, r->base_mask & 1u << slot ? base : cfa);
		if (!load(stack, addr, &f->reg[slot]))
			return outside(stack, addr, why);
	}
	f->pc = f->reg[REGS_RA];
	f->sp = cfa;
	f->exact = false;
	return STEP_OK;
}

/*
 * The kernel's signal frame holds all registers. The interrupted stack pointer may lie on
 * another stack (sigaltstack), of which there is no copy.
 */
static enum step step_signal(struct regs_frame *f, const struct stack_copy *stack,
			     enum unwind_end *why)
{
	struct regs_frame caller = { .exact = true };

	if (!load(stack, f->sp + regs_cpu.sig_pc, &caller.pc) ||
	    !load(stack, f->sp + regs_cpu.sig_sp, &caller.sp))
		return outside(stack, f->sp + regs_cpu.sig_pc, why);
	for (int i = 0; i < REGS_SLOTS; i++) {
		if (regs_cpu.sig_reg[i] && !load(stack, f->sp + regs_cpu.sig_reg[i], &caller.reg[i]))
			return outside(stack, f->sp + regs_cpu.sig_reg[i], why);
	}
	/* further out, but not in the copy, that may simply have been too short */
	bool other_stack = caller.sp <= f->sp || caller.sp - stack->addr > stack->len + FAR;
	bool cut = !other_stack && caller.sp - stack->addr > stack->len;
	*f = caller;
	if (!other_stack && !cut)
		return STEP_OK;
	*why = other_stack ? UNWIND_END_ELSEWHERE : UNWIND_END_CUT;
	return STEP_LAST;
}

static enum step step_remote(struct unwinder *u, const struct rule *r, struct regs_frame *f,
			     const struct stack_copy *stack, enum unwind_end *why)
{
	uint64_t sp = f->sp;
	bool signal = r->signal;

	if (!remote_step(u->remote, f, stack)) {
		*why = UNWIND_END_BAD;
		return STEP_END;
	}
	if (f->pc && f->sp <= sp) {
		*why = UNWIND_END_BAD;
		return STEP_END;
	}
	if (f->pc && f->sp - stack->addr > stack->len)
		return outside(stack, f->sp, why);
	f->exact = signal;
	return STEP_OK;
}

/*
 * No CFI: believe the frame pointer if it points into the stack above sp and the return address
 * above it lies in code. Generated code and interpreters' assembly keep such chains.
 */
static enum step step_record(struct unwinder *u, struct regs_frame *f,
			     const struct stack_copy *stack, enum unwind_end none,
			     struct tally *t, enum unwind_end *why)
{
	uint64_t fp = f->reg[regs_cpu.fp];
	uint64_t caller_fp, ra;

	*why = none;
	if (fp < f->sp || fp % 8)
		return STEP_END;
	if (!load(stack, fp, &caller_fp) || !load(stack, fp + regs_cpu.record_ra, &ra)) {
		if (fp - stack->addr < stack->len + FAR)
			*why = UNWIND_END_CUT;
		return STEP_END;
	}
	if (ra == 0) {
		*why = UNWIND_END_ROOT;
		return STEP_END;
	}
	/* Code generated since the modules were last looked at, or no frame pointer after all. */
	if (rule_at(u, ra - 1, t)->kind == RULE_NONE) {
		*why = UNWIND_END_NO_MODULE;
		return STEP_END;
	}
	f->pc = ra;
	f->sp = fp + regs_cpu.record_size;
	f->reg[regs_cpu.fp] = caller_fp;
	f->exact = false;
	return STEP_OK;
}

static enum step step_frame(struct unwinder *u, struct regs_frame *f,
			    const struct stack_copy *stack, bool full, bool first,
			    struct tally *t, enum unwind_end *why)
{
	const struct rule *r = rule_at(u, f->pc - !f->exact, t);
	enum step step;

	switch (r->kind) {
	case RULE_CFA:
	case RULE_CFA_DEREF:
		t->hits++;
		return step_rule(r, f, stack, full, first, why);
	case RULE_ROOT:
		t->hits++;
		*why = UNWIND_END_ROOT;
		return STEP_END;
	case RULE_SIGNAL:
		t->hits++;
		return step_signal(f, stack, why);
	case RULE_REMOTE:
		if (!full)
			return STEP_FULL;
		step = step_remote(u, r, f, stack, why);
		t->remote++;
		return step;
	case RULE_FP:
	case RULE_NONE:
	default:
		step = step_record(u, f, stack, r->kind == RULE_NONE ? UNWIND_END_NO_MODULE
				   : UNWIND_END_NO_CFI, t, why);
		t->guessed += step == STEP_OK;
		t->records |= step == STEP_OK || *why == UNWIND_END_ROOT;
		return step;
	}
}

/*
 * As many frames as cached plain rules go, in machine registers: what a walk consists of. Stops in
 * front of anything out of the ordinary, for step_frame() to do or to refuse.
 */
static size_t run_rules(struct unwinder *u, struct regs_frame *f, const struct stack_copy *stack,
			uint64_t *pcs, size_t n, size_t max, struct tally *t)
{
	uint64_t pc = f->pc, sp = f->sp, fp = f->reg[regs_cpu.fp], ra;
	size_t first = n;

	if (f->exact)
		return n;
	while (n < max) {
		const struct rule *r = rules_find(&u->rules, pc - 1);
		if (!r || r->kind != RULE_CFA || !(r->mask & 1u << REGS_RA) ||
		    (r->base != REGS_SP && r->base != regs_cpu.fp))
			break;
		uint64_t cfa = (r->base == REGS_SP ? sp : fp) + (uint64_t)(int64_t)r->offset;
		if (cfa <= sp || !load(stack, saved_at(r, REGS_RA, cfa), &ra) || ra == 0)
			break;
		if (r->mask & 1u << regs_cpu.fp && !load(stack, saved_at(r, regs_cpu.fp, cfa), &fp))
			break;
		sp = cfa;
		pcs[n++] = pc = ra;
	}
	if (n > first) {
		f->pc = f->reg[REGS_RA] = pc;
		f->sp = sp;
		f->reg[regs_cpu.fp] = fp;
		t->hits += n - first;
	}
	return n;
}

/* Returns 0 if the walk must be done in full. */
static size_t walk(struct unwinder *u, const struct wire_regs *regs, const struct stack_copy *stack,
		   uint64_t *pcs, size_t max, bool full, struct tally *t, enum unwind_end *why)
{
	struct regs_frame f = { .pc = regs->ip, .sp = regs->sp };
	size_t n = 0;

	memcpy(f.reg, regs->saved, sizeof(regs->saved));
	f.reg[REGS_WIRE_FP] = regs->fp;
	f.reg[REGS_RA] = regs->lr;
	pcs[n++] = f.pc;
	for (;;) {
		if (!full)
			n = run_rules(u, &f, stack, pcs, n, max, t);
		if (n == max) {
			*why = UNWIND_END_DEPTH;
			return n;
		}
		enum step step = step_frame(u, &f, stack, full, n == 1, t, why);
		if (step == STEP_FULL)
			return 0;
		if (step == STEP_END)
			return n;
		if (f.pc == 0) {
			*why = UNWIND_END_ROOT;
			return n;
		}
		/* An interrupted instruction: the contract is that pc - 1 is looked up. */
		pcs[n++] = f.pc + f.exact;
		if (step == STEP_LAST)
			return n;
	}
}

/* The stack was followed to its end, so where it was by frame pointers, these can be relied on. */
static void guesses_held(struct unwinder *u, const uint64_t *pcs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct rule *r = rules_find(&u->rules, pcs[i] - 1);
		if (r && r->kind == RULE_FP && !r->held)
			rules_held(&u->rules, pcs[i] - 1);
	}
}

size_t unwinder_walk(struct unwinder *u, const struct wire_regs *regs, const struct stack_copy *stack,
		     uint64_t *pcs, size_t max, enum unwind_end *ret_why)
{
	struct tally t = { 0 };
	size_t n;

	*ret_why = UNWIND_END_DEPTH;
	if (max == 0)
		return 0;
	n = walk(u, regs, stack, pcs, max, false, &t, ret_why);
	if (n == 0) {
		t = (struct tally){ .misses = t.misses };
		n = walk(u, regs, stack, pcs, max, true, &t, ret_why);
	}
	if (*ret_why == UNWIND_END_ROOT && t.records)
		guesses_held(u, pcs, n);
	u->stats.walks++;
	u->stats.frames += n;
	u->stats.rule_hits += t.hits;
	u->stats.rule_misses += t.misses;
	u->stats.libunwind += t.remote;
	u->stats.guessed += t.guessed;
	u->stats.ends[*ret_why]++;
	return n;
}

static const struct rule *rule_of_call(struct unwinder *u, uint64_t pc)
{
	struct tally t = { 0 };
	const struct rule *r = rule_at(u, pc - 1, &t);

	u->stats.rule_misses += t.misses;
	return r;
}

uint32_t unwinder_wire_rule(struct unwinder *u, uint64_t pc)
{
	return pc ? rule_tell(rule_of_call(u, pc)) : WIRE_RULE_NONE;
}

bool unwinder_is_guess(struct unwinder *u, uint64_t pc)
{
	return pc && rule_of_call(u, pc)->kind == RULE_FP;
}
