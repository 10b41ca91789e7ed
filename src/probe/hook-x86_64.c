/*
 * Displacing instructions on x86-64, with Zydis as the reader. Everything position-dependent
 * is one of two things: a memory operand relative to rip, whose displacement is adjusted, or
 * a relative branch, which becomes its 32-bit form. Calls are not displaced: their return
 * address would lie in the thunk.
 */
#include "probe/hook.h"

#include <stdio.h>
#include <string.h>

#include <Zydis/Zydis.h>

#define THUNK_CODE (HOOK_RECORD + sizeof(struct wire_hook))
#define FUNCTION_MAX (1u << 20)		/* bytes of a function that are looked at */
#define STRAIGHT_MAX 64u	/* instructions followed */

struct insn {
	ZydisDecodedInstruction i;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

static bool decode(const uint8_t *code, size_t len, struct insn *ret)
{
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, len, &ret->i, ret->op));
}

/* A relative branch: where to, relative to the start of the instruction. */
static bool branch_target(const struct insn *in, int64_t *ret)
{
	if (!in->i.raw.imm[0].is_relative)
		return false;
	*ret = (int64_t)in->i.length + in->i.raw.imm[0].value.s;
	return true;
}

static bool is_end(const struct insn *in)
{
	return in->i.meta.category == ZYDIS_CATEGORY_RET ||
	       in->i.meta.category == ZYDIS_CATEGORY_UNCOND_BR;
}


/* Padding of at least `need` bytes; a longer nop may reach past them. */
static bool padding_follows(const uint8_t *code, size_t len, size_t need)
{
	size_t off = 0;
	struct insn in;

	while (off < need) {
		if (off >= len)
			return false;
		if (!code[off] || code[off] == 0xcc) {
			off++;
			continue;
		}
		if (!decode(code + off, len - off, &in) || in.i.mnemonic != ZYDIS_MNEMONIC_NOP)
			return false;
		off += in.i.length;
	}
	return true;
}

static const char *refuses(const struct insn *in)
{
	switch (in->i.meta.category) {
	case ZYDIS_CATEGORY_CALL:
		return "a call among its first instructions";
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET:
	case ZYDIS_CATEGORY_INTERRUPT:
		return "a system call or trap among its first instructions";
	default:
		break;
	}
	switch (in->i.mnemonic) {
	case ZYDIS_MNEMONIC_LOOP:
	case ZYDIS_MNEMONIC_LOOPE:
	case ZYDIS_MNEMONIC_LOOPNE:
	case ZYDIS_MNEMONIC_JCXZ:
	case ZYDIS_MNEMONIC_JECXZ:
	case ZYDIS_MNEMONIC_JRCXZ:
	case ZYDIS_MNEMONIC_XBEGIN:
		return "a branch that can't be moved among its first instructions";
	case ZYDIS_MNEMONIC_INT3:
		return "a breakpoint at its entry";
	default:
		return NULL;
	}
}

static bool refuse(char reason[HOOK_REASON], const char *text)
{
	snprintf(reason, HOOK_REASON, "%s", text);
	return false;
}

/* Does the function branch to one of its own displaced bytes, the entry itself excepted? */
static bool branches_back(const uint8_t *code, size_t len, uint32_t displaced)
{
	struct insn in;
	int64_t rel;

	for (size_t off = 0; off < len; off += in.i.length) {
		if (!decode(code + off, len - off, &in)) {
			in.i.length = 1;	/* data between the instructions */
			continue;
		}
		if (branch_target(&in, &rel) && (int64_t)off + rel > 0 && (int64_t)off + rel < displaced)
			return true;
	}
	return false;
}

bool hook_plan(const uint8_t *code, size_t len, uint64_t size, uint64_t addr, struct hook_plan *ret,
	       char reason[HOOK_REASON])
{
	uint32_t off = 0;
	bool ended = false;
	struct insn in;

	while (off < HOOK_PATCH && !ended) {
		if (off >= len || !decode(code + off, len - off, &in))
			return refuse(reason, "its first instructions can't be decoded");
		if (size && off + in.i.length > size)
			return refuse(reason, "shorter than the patch");
		const char *why = refuses(&in);
		if (why)
			return refuse(reason, why);
		off += in.i.length;
		ended = is_end(&in);
	}
	if (off < HOOK_PATCH) {
		/* Ended before. What follows within the function is reached by branches only, and
		 * those are looked for below; what follows the function must be padding. */
		uint32_t end = size > off && size < HOOK_PATCH ? (uint32_t)size : off;
		if ((!size || size < HOOK_PATCH) &&
		    (end > len || !padding_follows(code + end, len - end, HOOK_PATCH - end)))
			return refuse(reason, "shorter than the patch");
		off = HOOK_PATCH;
	}
	if (off > HOOK_WINDOW || off > len)
		return refuse(reason, "its first instructions are too long");

	uint64_t body = size ? size : HOOK_LOOK;	/* may reach into the next function */
	if (body > len)
		body = len;
	if (body > FUNCTION_MAX)
		body = FUNCTION_MAX;
	if (branches_back(code, body, off))
		return refuse(reason, "it branches back into its own first instructions");

	ret->addr = addr;
	ret->displaced = off;
	memcpy(ret->code, code, off);
	return true;
}

void hook_scan_text(const uint8_t *text, size_t len, uint64_t text_addr, struct hook_window *windows,
		    size_t n)
{
	uint64_t lo = ~0ull, hi = 0;

	for (size_t k = 0; k < n; k++) {
		lo = windows[k].lo < lo ? windows[k].lo : lo;
		hi = windows[k].hi > hi ? windows[k].hi : hi;
	}
	/*
	 * What could be the distance comes first, as hardly any four bytes lead there by chance, while
	 * what could be the opcode is in every other instruction. Modulo 2^32 here, exactly below.
	 */
	uint32_t span = hi - lo < UINT32_MAX ? (uint32_t)(hi - lo) : UINT32_MAX;
	uint32_t from = (uint32_t)(text_addr + 4 - lo);
	for (size_t at = 1; at + 4 <= len; at++) {
		int32_t rel;
		memcpy(&rel, text + at, sizeof(rel));
		if ((uint32_t)rel + from + (uint32_t)at >= span)
			continue;
		bool direct = (text[at - 1] & 0xfe) == 0xe8;
		bool conditional = at > 1 && text[at - 2] == 0x0f && (text[at - 1] & 0xf0) == 0x80;
		if (!direct && !conditional)
			continue;
		uint64_t target = text_addr + at + 4 + (uint64_t)(int64_t)rel;
		for (size_t k = 0; k < n; k++) {
			struct hook_window *w = &windows[k];

			if (target <= w->lo || target >= w->hi)
				continue;
			w->hit = true;
			w->hits[w->nhits < HOOK_HITS ? w->nhits : HOOK_HITS - 1] = text_addr + at - (direct ? 1 : 2);
			w->nhits++;
		}
	}
}

bool hook_is_branch_at(const uint8_t *code, size_t len, size_t off, bool *ret_read)
{
	size_t at = 0;
	struct insn in;
	int64_t rel;

	for (;;) {
		*ret_read = at < len && decode(code + at, len - at, &in);
		if (!*ret_read)
			return false;
		if (off < at + in.i.length)
			return branch_target(&in, &rel) && off == at + in.i.raw.prefix_count;
		at += in.i.length;
	}
}

bool hook_has_indirect_call(const uint8_t *code, size_t len)
{
	struct insn in;

	for (size_t off = 0; off < len; off += in.i.length) {
		if (!decode(code + off, len - off, &in)) {
			in.i.length = 1;
			continue;
		}
		if ((in.i.mnemonic == ZYDIS_MNEMONIC_CALL || in.i.mnemonic == ZYDIS_MNEMONIC_JMP) &&
		    !in.i.raw.imm[0].is_relative)
			return true;
	}
	return false;
}

size_t hook_leaves_for(const uint8_t *code, size_t len, uint64_t addr, uint64_t *out, size_t max)
{
	struct insn in;
	size_t n = 0;
	int64_t rel;

	for (size_t off = 0; off < len && n < max; off += in.i.length) {
		if (!decode(code + off, len - off, &in)) {
			in.i.length = 1;
			continue;
		}
		if (branch_target(&in, &rel) && (uint64_t)((int64_t)off + rel) >= len)
			out[n++] = addr + off + (uint64_t)rel;
	}
	return n;
}

bool hook_straight(const uint8_t *code, size_t len, uint64_t addr, uint64_t *ret)
{
	struct insn in;
	uint64_t off = 0;
	int64_t rel;

	for (unsigned n = 0; n < STRAIGHT_MAX && off < len; n++) {
		if (!decode(code + off, len - off, &in) || in.i.meta.category == ZYDIS_CATEGORY_RET)
			return false;
		bool jump = in.i.meta.category == ZYDIS_CATEGORY_UNCOND_BR;
		if (!jump && in.i.meta.category != ZYDIS_CATEGORY_CALL) {
			off += in.i.length;
			continue;
		}
		if (!branch_target(&in, &rel))
			return false;
		off += (uint64_t)rel;
		if (!jump || off >= len) {
			*ret = addr + off;
			return true;
		}
	}
	return false;
}

bool hook_is_stub(const uint8_t *code, size_t len, uint64_t addr, uint64_t *ret)
{
	struct insn in;
	size_t off = 0;

	if (!decode(code, len, &in))
		return false;
	if (in.i.mnemonic == ZYDIS_MNEMONIC_ENDBR64) {
		off = in.i.length;
		if (!decode(code + off, len - off, &in))
			return false;
	}
	if (in.i.mnemonic != ZYDIS_MNEMONIC_JMP || in.op[0].type != ZYDIS_OPERAND_TYPE_MEMORY ||
	    in.op[0].mem.base != ZYDIS_REGISTER_RIP)
		return false;
	*ret = addr + off + in.i.length + (uint64_t)in.i.raw.disp.value;
	return true;
}

/* ---- writing ---- */

struct out {
	uint8_t *bytes;
	size_t len;
	uint64_t at;		/* runtime address of bytes[0] */
	bool failed;
};

static void put(struct out *o, const void *bytes, size_t n)
{
	if (o->failed || n > HOOK_THUNK_MAX - o->len) {
		o->failed = true;
		return;
	}
	memcpy(o->bytes + o->len, bytes, n);
	o->len += n;
}

static bool displacement(uint64_t next, uint64_t target, int32_t *ret)
{
	int64_t d = (int64_t)(target - next);

	*ret = (int32_t)d;
	return d == *ret;
}

/* Opcode bytes followed by a 32-bit displacement to target. */
static void put_branch(struct out *o, const uint8_t *opcode, size_t n, uint64_t target)
{
	int32_t d;

	if (!displacement(o->at + o->len + n + 4, target, &d))
		o->failed = true;
	put(o, opcode, n);
	put(o, &d, sizeof(d));
}

static void put_jump(struct out *o, uint64_t target)
{
	put_branch(o, (const uint8_t[]){ 0xe9 }, 1, target);
}

/* One displaced instruction that lay at `from`. */
static void put_moved(struct out *o, const struct insn *in, const uint8_t *code, uint64_t from)
{
	uint8_t copy[ZYDIS_MAX_INSTRUCTION_LENGTH];
	size_t n = in->i.length;
	int64_t rel;

	if (branch_target(in, &rel)) {
		uint64_t target = from + (uint64_t)rel;

		if (in->i.meta.category == ZYDIS_CATEGORY_UNCOND_BR) {
			put_jump(o, target);
		} else if (in->i.meta.category == ZYDIS_CATEGORY_COND_BR) {
			/* 70+cc rel8 and 0f 80+cc rel32 share the condition's four bits. */
			uint8_t cc = in->i.opcode & 0xf;
			put_branch(o, (const uint8_t[]){ 0x0f, 0x80 | cc }, 2, target);
		} else {
			o->failed = true;
		}
		return;
	}
	memcpy(copy, code, n);
	for (unsigned k = 0; k < in->i.operand_count; k++) {
		const ZydisDecodedOperand *op = &in->op[k];
		int32_t d;

		if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->mem.base != ZYDIS_REGISTER_RIP)
			continue;
		if (in->i.raw.disp.size != 32 || in->i.raw.disp.offset + 4u > n ||
		    !displacement(o->at + o->len + n, from + n + (uint64_t)in->i.raw.disp.value, &d)) {
			o->failed = true;
			return;
		}
		memcpy(copy + in->i.raw.disp.offset, &d, sizeof(d));
	}
	put(o, copy, n);
}

bool hook_thunk(const struct hook_plan *plan, uint64_t at, uint64_t entry, const struct wire_hook *what,
		uint8_t out[HOOK_THUNK_MAX], uint64_t *ret_jump_to)
{
	struct out o = { .bytes = out, .at = at };
	struct wire_hook hook = *what;
	int32_t back = -(int32_t)(sizeof(hook) + 7);

	memset(out, 0xcc, HOOK_THUNK_MAX);
	o.len = HOOK_RECORD;
	put(&o, &hook, sizeof(hook));
	put(&o, (const uint8_t[]){ 0x4c, 0x8d, 0x1d }, 3);	/* lea hook(%rip), %r11 */
	put(&o, &back, sizeof(back));
	put_jump(&o, entry);

	hook.original = at + o.len;
	hook.at = plan->addr;
	if (!hook.instead)
		hook.instead = hook.original;
	memcpy(out + HOOK_RECORD, &hook, sizeof(hook));
	bool ended = false;
	for (uint32_t off = 0; off < plan->displaced && !ended;) {
		struct insn in;

		if (!decode(plan->code + off, plan->displaced - off, &in))
			return false;
		put_moved(&o, &in, plan->code + off, plan->addr + off);
		off += in.i.length;
		ended = is_end(&in);
	}
	if (!ended)
		put_jump(&o, plan->addr + plan->displaced);
	*ret_jump_to = at + THUNK_CODE;
	return !o.failed;
}

bool hook_jump(uint64_t from, uint64_t to, uint8_t out[HOOK_PATCH])
{
	int32_t d;

	out[0] = 0xe9;
	if (!displacement(from + HOOK_PATCH, to, &d))
		return false;
	memcpy(out + 1, &d, sizeof(d));
	return true;
}

bool hook_is_jump(const uint8_t bytes[HOOK_PATCH], uint64_t from, uint64_t *ret_to)
{
	int32_t d;

	if (bytes[0] != 0xe9)
		return false;
	memcpy(&d, bytes + 1, sizeof(d));
	*ret_to = from + HOOK_PATCH + (uint64_t)(int64_t)d;
	return true;
}
