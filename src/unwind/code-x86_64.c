/*
 * x86-64 code without CFI; see code.h. A small interpreter that knows of each register only what
 * unwinding needs: the value some register had at the start plus a constant, the word that lay at such an
 * address at the start, or nothing. Zydis reads the instructions.
 */
#include "unwind/code.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <Zydis/Zydis.h>

#include "base/mem.h"
#include "elf/file.h"
#include "unwind/rules.h"

/* Bounds of one question: a frame's way to its return is short. */
#define STEPS_MAX 2048		/* instructions in all */
#define STEPS_AGREED 256	/* no more of them once paths agree on where they return to */
#define SEEN_SIZE (2 * STEPS_MAX)
#define PATHS_MAX 64		/* waiting to be followed */
#define OFFSET_MAX (1 << 28)	/* bytes; no frame is that large */
#define STORES_MAX 48		/* words written to the stack on one path */
#define WINDOW 4096		/* bytes of code read at a time */
#define WINDOWS 4
#define INSN_MAX 15

/* Callee-saved registers in the order of the unwinder's slots, then the stack pointer. */
enum { RBP, RBX, R12, R13, R14, R15, RSP, NREGS };
#define NSAVED RSP

enum { UNKNOWN, REGISTER, MEMORY };
struct value {
	uint8_t kind;
	uint8_t reg;	/* RSP or RBP for MEMORY */
	int32_t off;	/* REGISTER: reg + off; MEMORY: the word at reg + off */
};

struct store {
	struct value at, what;
};

/* What is known at one instruction. */
struct state {
	uint64_t pc;
	struct value reg[NREGS];
	bool restored;	/* a callee-saved register has got its caller's value back */
	bool returned;	/* a call was the last instruction, but for one that widens its result */
	bool handed_on;	/* the result of the last call is the first argument of the next one */
	size_t nstores;
	struct store stores[STORES_MAX];
};

struct search {
	struct elf_file *file;
	uint64_t target;	/* stop there; 0: at returns */
	uint64_t start, end;	/* of the function; end 0: unknown */
	struct window {
		uint64_t at;
		size_t len;
		uint8_t bytes[WINDOW + INSN_MAX];
	} windows[WINDOWS];
	bool returns;		/* it starts at a return address */
	ZydisDecoder decoder;
	struct state *paths;
	size_t npaths;
	uint64_t *seen;		/* hash table of addresses, SEEN_SIZE */
	bool found, failed, root;
	struct rule rule;
	uint64_t exit, pthread_exit;	/* 0: not looked for, or not there */
	bool exits_known;
};

struct insn {
	ZydisDecodedInstruction i;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

static int reg_of(ZydisRegister r)
{
	switch (ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r)) {
	case ZYDIS_REGISTER_RBP: return RBP;
	case ZYDIS_REGISTER_RBX: return RBX;
	case ZYDIS_REGISTER_R12: return R12;
	case ZYDIS_REGISTER_R13: return R13;
	case ZYDIS_REGISTER_R14: return R14;
	case ZYDIS_REGISTER_R15: return R15;
	case ZYDIS_REGISTER_RSP: return RSP;
	default: return -1;
	}
}

static bool read_insn(struct search *s, uint64_t pc, struct insn *ret)
{
	uint64_t page = pc & ~(uint64_t)(WINDOW - 1);
	struct window *w = &s->windows[pc / WINDOW % WINDOWS];

	if (w->at != page || !w->len) {
		w->at = page;
		w->len = elf_file_read(s->file, page, w->bytes, sizeof(w->bytes));
	}
	size_t off = pc - page;
	return off < w->len && ZYAN_SUCCESS(ZydisDecoderDecodeFull(&s->decoder, w->bytes + off, w->len - off,
								   &ret->i, ret->op));
}

static bool is_reg64(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_REGISTER && op->size == 64;
}

/* ---- values ---- */

static bool same(const struct value *a, const struct value *b)
{
	return a->kind == b->kind && a->reg == b->reg && a->off == b->off;
}

static struct value plus(struct value v, int64_t n)
{
	if (v.kind != REGISTER || n > OFFSET_MAX || n < -OFFSET_MAX || v.off > OFFSET_MAX ||
	    v.off < -OFFSET_MAX)
		return (struct value){ UNKNOWN, 0, 0 };
	v.off += (int32_t)n;
	return v;
}

/* The address that a memory operand means, if it is one on the stack. */
static struct value address(const struct state *st, const ZydisDecodedOperand *op)
{
	int base = reg_of(op->mem.base);

	if (base < 0 || op->mem.index != ZYDIS_REGISTER_NONE ||
	    (op->mem.segment != ZYDIS_REGISTER_SS && op->mem.segment != ZYDIS_REGISTER_DS))
		return (struct value){ UNKNOWN, 0, 0 };
	return plus(st->reg[base], op->mem.disp.has_displacement ? op->mem.disp.value : 0);
}

static struct value load(const struct state *st, struct value at)
{
	if (at.kind != REGISTER || (at.reg != RSP && at.reg != RBP))
		return (struct value){ UNKNOWN, 0, 0 };
	for (size_t i = st->nstores; i-- > 0;)
		if (same(&st->stores[i].at, &at))
			return st->stores[i].what;
	return (struct value){ MEMORY, at.reg, at.off };
}

/* A store that can't be remembered only makes a later load of it look like the caller's word. */
static bool store(struct state *st, struct value at, struct value what)
{
	if (at.kind != REGISTER || (at.reg != RSP && at.reg != RBP))
		return true;	/* elsewhere */
	for (size_t i = 0; i < st->nstores; i++) {
		if (same(&st->stores[i].at, &at)) {
			st->stores[i].what = what;
			return true;
		}
	}
	if (st->nstores == STORES_MAX)
		return false;
	st->stores[st->nstores++] = (struct store){ at, what };
	return true;
}

static struct value operand_value(const struct state *st, const ZydisDecodedOperand *op)
{
	int r;

	if (is_reg64(op) && (r = reg_of(op->reg.value)) >= 0)
		return st->reg[r];
	if (op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->size == 64)
		return load(st, address(st, op));
	return (struct value){ UNKNOWN, 0, 0 };
}

/* ---- what a path tells ---- */

/* cfa, and where each register's caller's value is, as a rule; false if it can't be put so. */
static bool make_rule(struct value cfa, const struct value at[NSAVED], const bool saved[NSAVED],
		      struct value base, struct rule *ret)
{
	int32_t offset = cfa.off - base.off;

	if (cfa.kind != REGISTER || cfa.reg != base.reg || offset < 8)
		return false;
	ret->kind = RULE_CFA;
	ret->base = base.reg == RSP ? REGS_SP : regs_cpu.fp;
	ret->offset = offset;
	ret->mask = 1u << REGS_RA;
	ret->saved[REGS_RA] = -1;
	for (int i = 0; i < NSAVED; i++) {
		if (!saved[i])
			continue;
		int32_t n = at[i].off - cfa.off;
		if (at[i].reg != cfa.reg || n % 8 || n / 8 < INT16_MIN || n > -16)
			return false;
		ret->mask |= (uint16_t)(1u << i);
		ret->saved[i] = (int16_t)(n / 8);
	}
	return true;
}

static bool same_rule(const struct rule *a, const struct rule *b)
{
	if (a->kind != b->kind || a->base != b->base || a->offset != b->offset || a->mask != b->mask)
		return false;
	for (int i = 0; i < REGS_SLOTS; i++)
		if (a->mask & 1u << i && a->saved[i] != b->saved[i])
			return false;
	return true;
}

static void take(struct search *s, const struct rule *r)
{
	if (!s->found) {
		s->found = true;
		s->rule = *r;
	} else if (!same_rule(&s->rule, r)) {
		s->failed = true;
	}
}

/*
 * At a return: sp is just below the CFA. Each callee-saved register has its value of the start, which is
 * the caller's, or one loaded from where it was saved. A path on which that isn't so has run past the end
 * of its function, and so has one that leads to a CFA which no call can have had: at each of them
 * sp is a multiple of 16 (psABI 3.2.2), and was so at the call that returns here.
 */
static void at_return(struct search *s, const struct state *st)
{
	struct value at[NSAVED], cfa = plus(st->reg[RSP], 8);
	bool saved[NSAVED];
	struct rule r = { 0 };

	for (int i = 0; i < NSAVED; i++) {
		const struct value *v = &st->reg[i];
		saved[i] = v->kind == MEMORY;
		at[i] = *v;
		if (!saved[i] && !(v->kind == REGISTER && v->reg == i && v->off == 0))
			return;
	}
	if (s->returns && cfa.reg == RSP && cfa.off % 16)
		return;
	if (make_rule(cfa, at, saved, (struct value){ REGISTER, cfa.reg, 0 }, &r))
		take(s, &r);
}

/* At the address asked for, come from the function's start, where sp pointed to the return address. */
static void at_target(struct search *s, const struct state *st)
{
	const struct value cfa = { REGISTER, RSP, 8 };
	struct value at[NSAVED], base = st->reg[RSP];
	bool saved[NSAVED];
	struct rule r = { 0 };

	for (int i = 0; i < NSAVED; i++) {
		const struct value *v = &st->reg[i];
		saved[i] = !(v->kind == REGISTER && v->reg == i && v->off == 0);
		bool known = !saved[i];
		for (size_t k = 0; k < st->nstores && !known; k++) {
			const struct store *w = &st->stores[k];
			known = w->at.reg == RSP && w->what.kind == REGISTER && w->what.reg == i &&
				w->what.off == 0;
			at[i] = w->at;
		}
		if (!known) {
			s->failed = true;
			return;
		}
	}
	bool by_sp = base.kind == REGISTER && base.reg == RSP;
	if (!by_sp)	/* realigned, or of variable size: then rbp was set to it before */
		base = st->reg[RBP];
	bool aligned = !by_sp || !s->returns || (cfa.off - base.off) % 16 == 0;
	if (aligned && base.kind == REGISTER && base.reg == RSP && make_rule(cfa, at, saved, base, &r)) {
		r.base = by_sp ? REGS_SP : regs_cpu.fp;
		take(s, &r);
	} else {
		s->failed = true;
	}
}

/* ---- one instruction ---- */

static void copy_state(struct state *to, const struct state *from)
{
	memcpy(to, from, offsetof(struct state, stores) + from->nstores * sizeof(from->stores[0]));
}

/* Where pc is in the table, or belongs. */
static uint64_t *seen_slot(struct search *s, uint64_t pc)
{
	size_t i = (size_t)(pc * 0x9e3779b97f4a7c15ull >> 32) % SEEN_SIZE;

	while (s->seen[i] && s->seen[i] != pc)
		i = (i + 1) % SEEN_SIZE;
	return &s->seen[i];
}

static void push_path(struct search *s, const struct state *st, uint64_t pc)
{
	if (!pc || *seen_slot(s, pc))
		return;
	if (s->npaths == PATHS_MAX) {
		s->failed = true;
		return;
	}
	struct state *to = &s->paths[s->npaths++];
	copy_state(to, st);
	to->pc = pc;
	to->returned = to->handed_on = false;
}

/* A direct call or jump's destination, 0: none. */
static uint64_t destination(const struct insn *in, uint64_t pc)
{
	return in->i.raw.imm[0].is_relative ? pc + in->i.length + (uint64_t)in->i.raw.imm[0].value.s : 0;
}

static void find_exits(struct search *s)
{
	if (s->exits_known)
		return;
	s->exits_known = true;
	s->exit = elf_file_find_symbol(s->file, "exit");
	s->pthread_exit = elf_file_find_symbol(s->file, "pthread_exit");
}

/*
 * After a call of a function that doesn't return comes padding, or at once another function, or the
 * end of ours.
 */
static bool falls_out(struct search *s, uint64_t pc)
{
	struct insn in;
	uint64_t start, size, at = pc;

	if (s->end && pc >= s->end)
		return true;
	while (at % 16 && read_insn(s, at, &in) &&
	       (in.i.mnemonic == ZYDIS_MNEMONIC_NOP || in.i.mnemonic == ZYDIS_MNEMONIC_INT3))
		at += in.i.length;
	if (at % 16)
		return false;
	return at > pc || (elf_file_symbol_at(s->file, at, &start, &size) && start == at);
}

/* True: the path goes on behind it. */
static bool do_call(struct search *s, struct state *st, const struct insn *in, uint64_t next)
{
	uint64_t to = destination(in, st->pc);

	if (s->target && next == s->target)
		return true;
	/* what it returned goes to exit or pthread_exit: no caller beyond */
	if (to && st->handed_on) {
		find_exits(s);
		if (to == s->exit || to == s->pthread_exit) {
			s->root = true;
			return false;
		}
	}
	st->returned = true;
	st->handed_on = false;
	return !falls_out(s, next);
}

/* `mov %eax,%edi`, `mov %rax,%rdi`, `cltq` after a call. */
static void follow_result(struct state *st, const struct insn *in)
{
	if (!st->returned)
		return;
	if (in->i.mnemonic == ZYDIS_MNEMONIC_CDQE)
		return;
	st->handed_on = in->i.mnemonic == ZYDIS_MNEMONIC_MOV &&
			in->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			in->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			((in->op[0].reg.value == ZYDIS_REGISTER_EDI && in->op[1].reg.value == ZYDIS_REGISTER_EAX) ||
			 (in->op[0].reg.value == ZYDIS_REGISTER_RDI && in->op[1].reg.value == ZYDIS_REGISTER_RAX));
	st->returned = false;
}

/* Whatever it writes of the registers is unknown from now on. */
static void forget_written(struct state *st, const struct insn *in)
{
	for (int i = 0; i < in->i.operand_count; i++) {
		const ZydisDecodedOperand *op = &in->op[i];
		int r = op->type == ZYDIS_OPERAND_TYPE_REGISTER ? reg_of(op->reg.value) : -1;
		if (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE && r >= 0)
			st->reg[r] = (struct value){ UNKNOWN, 0, 0 };
		if (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE && op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    !store(st, address(st, op), (struct value){ UNKNOWN, 0, 0 }))
			st->reg[RSP] = (struct value){ UNKNOWN, 0, 0 };
	}
}

static bool do_push(struct state *st, const struct insn *in)
{
	if (in->i.operand_width != 64)
		return false;
	struct value what = operand_value(st, &in->op[0]);
	st->reg[RSP] = plus(st->reg[RSP], -8);
	return st->reg[RSP].kind == REGISTER && store(st, st->reg[RSP], what);
}

static bool do_pop(struct state *st, const struct insn *in)
{
	int r = is_reg64(&in->op[0]) ? reg_of(in->op[0].reg.value) : -1;

	if (in->i.operand_width != 64 || r == RSP)
		return false;
	struct value what = load(st, st->reg[RSP]);
	st->reg[RSP] = plus(st->reg[RSP], 8);
	if (r >= 0) {
		st->reg[r] = what;
		st->restored = what.kind == MEMORY;
	}
	return st->reg[RSP].kind == REGISTER;
}

/* Moves between registers and the stack, and sums with constants. False: not one of those. */
static bool do_move(struct state *st, const struct insn *in)
{
	const ZydisDecodedOperand *to = &in->op[0], *from = &in->op[1];
	int r = is_reg64(to) ? reg_of(to->reg.value) : -1;

	switch (in->i.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		if (r >= 0)
			st->reg[r] = operand_value(st, from);
		else if (to->type == ZYDIS_OPERAND_TYPE_MEMORY && to->size == 64)
			return store(st, address(st, to), operand_value(st, from));
		return r >= 0;
	case ZYDIS_MNEMONIC_LEA:
		if (r >= 0)
			st->reg[r] = address(st, from);
		return r >= 0;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		if (r < 0 || from->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return false;
		st->reg[r] = plus(st->reg[r], in->i.mnemonic == ZYDIS_MNEMONIC_ADD ? from->imm.value.s
				  : -from->imm.value.s);
		return true;
	case ZYDIS_MNEMONIC_LEAVE:
		st->reg[RSP] = plus(st->reg[RBP], 8);
		st->reg[RBP] = load(st, st->reg[RBP]);
		return true;
	default:
		return false;
	}
}

/* False: the path ends here. */
static bool step(struct search *s, struct state *st)
{
	struct insn in;

	if (!read_insn(s, st->pc, &in))
		return false;
	uint64_t next = st->pc + in.i.length;
	if (in.i.meta.category != ZYDIS_CATEGORY_CALL)
		follow_result(st, &in);
	switch (in.i.meta.category) {
	case ZYDIS_CATEGORY_RET:
		if (!s->target && in.i.operand_count_visible == 0)
			at_return(s, st);
		return false;
	case ZYDIS_CATEGORY_CALL:
		if (!do_call(s, st, &in, next))
			return false;
		st->pc = next;
		return true;
	case ZYDIS_CATEGORY_UNCOND_BR:	/* in a function handed over to: its return is ours */
		if (destination(&in, st->pc))
			push_path(s, st, destination(&in, st->pc));
		else if (!s->target && st->restored)	/* not a switch in the middle */
			at_return(s, st);
		return false;
	case ZYDIS_CATEGORY_COND_BR:
		push_path(s, st, destination(&in, st->pc));
		st->pc = next;
		return true;
	case ZYDIS_CATEGORY_SYSCALL:
		if (next && read_insn(s, next, &in) && in.i.mnemonic == ZYDIS_MNEMONIC_HLT)
			s->root = true;	/* the system call exit, as musl's __clone ends */
		st->pc = next;
		return true;
	default:
		break;
	}
	switch (in.i.mnemonic) {
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_INT3:
		return false;
	case ZYDIS_MNEMONIC_PUSH:
		st->pc = next;
		return do_push(st, &in);
	case ZYDIS_MNEMONIC_POP:
		st->pc = next;
		return do_pop(st, &in);
	default:
		if (!do_move(st, &in))
			forget_written(st, &in);
		st->pc = next;
		return true;
	}
}

/* `returned`: a call has just done so. */
static void run(struct search *s, uint64_t from, bool returned)
{
	struct state first;
	size_t steps = 0;

	memset(&first, 0, offsetof(struct state, stores));
	s->found = s->failed = s->root = false;
	s->npaths = 0;
	memset(s->seen, 0, SEEN_SIZE * sizeof(*s->seen));
	for (uint8_t i = 0; i < NREGS; i++)
		first.reg[i] = (struct value){ REGISTER, i, 0 };
	push_path(s, &first, from);
	s->paths[0].returned = returned;
	while (s->npaths && !s->failed && !(s->found && steps > STEPS_AGREED)) {
		struct state st;
		copy_state(&st, &s->paths[--s->npaths]);
		for (bool more = true; more && !s->failed;) {
			if (s->target && st.pc == s->target) {
				at_target(s, &st);
				break;
			}
			uint64_t *seen = seen_slot(s, st.pc);
			if (*seen || (s->target && (st.pc < s->start || st.pc >= s->end)))
				break;
			*seen = st.pc;
			s->failed = ++steps >= STEPS_MAX;
			more = step(s, &st);
		}
	}
}

/* Does an instruction that calls end before `vaddr`? e8 rel32, or ff /2 in one of its lengths. */
static bool call_before(const struct elf_file *file, uint64_t vaddr)
{
	uint8_t code[8];

	if (vaddr < sizeof(code) || elf_file_read(file, vaddr - sizeof(code), code, sizeof(code)) != sizeof(code))
		return false;
	if (code[3] == 0xe8)
		return true;
	for (size_t len = 2; len <= 7; len++)
		if (code[8 - len] == 0xff && (code[9 - len] >> 3 & 7) == 2)
			return true;
	return false;
}

/*
 * Is what returns to `vaddr` a call of exit, or pthread_exit, with the result of the call before? An
 * exit handler's stack comes by here.
 */
static bool exit_before(struct search *s, uint64_t vaddr)
{
	uint8_t code[7];	/* mov %eax,%edi (in 64 bits: the same with a prefix); call rel32 */
	int32_t rel;

	if (vaddr < sizeof(code) ||
	    elf_file_read(s->file, vaddr - sizeof(code), code, sizeof(code)) != sizeof(code) ||
	    code[0] != 0x89 || code[1] != 0xc7 || code[2] != 0xe8)
		return false;
	memcpy(&rel, code + 3, sizeof(rel));
	find_exits(s);
	uint64_t to = vaddr + (uint64_t)(int64_t)rel;
	return to && (to == s->exit || to == s->pthread_exit);
}

bool code_rule(struct elf_file *file, uint64_t vaddr, struct rule *r)
{
	CLEANUP_FREE struct search *s = xcalloc(1, sizeof(*s));
	CLEANUP_FREE struct state *paths = xmalloc(PATHS_MAX * sizeof(*paths));
	CLEANUP_FREE uint64_t *seen = xcalloc(SEEN_SIZE, sizeof(*seen));
	bool returns = call_before(file, vaddr + 1);
	uint64_t from = returns ? vaddr + 1 : vaddr, size = 0;

	s->file = file;
	s->returns = returns;
	s->paths = paths;
	s->seen = seen;
	ZydisDecoderInit(&s->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	bool named = elf_file_symbol_at(file, vaddr, &s->start, &size) && size;
	s->end = named ? s->start + size : 0;
	/* not where it calls what doesn't return */
	if (!returns || !falls_out(s, from))
		run(s, from, returns);
	bool root = (s->root && !s->found && !s->failed) || (returns && exit_before(s, from));
	/* the outermost function has no return, but in fact a caller: _start, or clone */
	if (!s->found && !s->failed && named && from != s->start) {
		s->target = from;
		run(s, s->start, false);
	}
	if (root && (!s->found || s->failed)) {
		r->kind = RULE_ROOT;
		return true;
	}
	if (!s->found || s->failed)
		return false;
	r->kind = s->rule.kind;
	r->base = s->rule.base;
	r->offset = s->rule.offset;
	r->mask = s->rule.mask;
	memcpy(r->saved, s->rule.saved, sizeof(r->saved));
	return true;
}
