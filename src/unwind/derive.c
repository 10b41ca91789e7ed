/*
 * CFI rows as rules. What libdw gives for a row are DWARF expressions; those that compilers
 * write for ordinary frames have one of few shapes:
 *
 *	CFA	DW_OP_bregx reg, offset			base + offset
 *		DW_OP_bregN offset; DW_OP_deref		*(base + offset), gcc's DRAP
 *		the PLT's, see regs-CPU.c		sp + offset, as pc is given
 *	saved	DW_OP_call_frame_cfa; DW_OP_plus_uconst offset
 *		DW_OP_call_frame_cfa; DW_OP_bregN offset	at base + offset, gcc's DRAP
 *		none, ops == NULL			same value
 *		none, ops == ops_mem			undefined
 *
 * Everything else is left to libunwind.
 */
#include "unwind/derive.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <limits.h>
#include <stdlib.h>

#include "elf/file.h"
#include "elf/modules.h"
#include "unwind/code.h"
#include "unwind/rules.h"

enum saved {
	SAVED_SAME,
	SAVED_UNDEFINED,
	SAVED_AT,	/* at CFA + offset */
	SAVED_BY_BASE,	/* at the CFA's base register + offset */
	SAVED_OTHER,
};

static int slot_of(uint64_t dwarf)
{
	if (dwarf == (uint64_t)regs_cpu.dwarf_sp)
		return REGS_SP;
	for (int i = 0; i < REGS_SLOTS; i++)
		if (regs_cpu.dwarf[i] >= 0 && dwarf == (uint64_t)regs_cpu.dwarf[i])
			return i;
	return -1;
}

/* DW_OP_bregN and DW_OP_bregx alike: register and offset. */
static bool op_breg(const Dwarf_Op *op, uint64_t *ret_reg, int64_t *ret_offset)
{
	if (op->atom == DW_OP_bregx) {
		*ret_reg = op->number;
		*ret_offset = (int64_t)op->number2;
		return true;
	}
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		*ret_reg = op->atom - DW_OP_breg0;
		*ret_offset = (int64_t)op->number;
		return true;
	}
	return false;
}

static enum saved saved_where(Dwarf_Frame *frame, int dwarf, int base, int64_t *ret_offset)
{
	Dwarf_Op mem[3], *ops;
	size_t n;
	uint64_t reg;

	if (dwarf_frame_register(frame, dwarf, mem, &ops, &n))
		return SAVED_OTHER;
	if (n == 0)
		return ops ? SAVED_UNDEFINED : SAVED_SAME;
	if (ops[0].atom != DW_OP_call_frame_cfa)
		return SAVED_OTHER;
	if (n == 1) {
		*ret_offset = 0;
		return SAVED_AT;
	}
	if (n == 2 && ops[1].atom == DW_OP_plus_uconst) {
		*ret_offset = (int64_t)ops[1].number;
		return SAVED_AT;
	}
	/* libdw writes the CFA that an expression starts with first; here it goes unused */
	if (n == 2 && op_breg(&ops[1], &reg, ret_offset) && base != REGS_SP && slot_of(reg) == base)
		return SAVED_BY_BASE;
	return SAVED_OTHER;
}

/* The caller's sp is the CFA, as everywhere but in exotic assembly. */
static bool sp_is_cfa(Dwarf_Frame *frame)
{
	Dwarf_Op mem[3], *ops;
	size_t n;

	return dwarf_frame_register(frame, regs_cpu.dwarf_sp, mem, &ops, &n) == 0 && n == 2 &&
	       ops[0].atom == DW_OP_call_frame_cfa && ops[1].atom == DW_OP_stack_value;
}

static bool cfa_rule(Dwarf_Frame *frame, uint64_t pc, struct rule *r)
{
	Dwarf_Op *ops;
	size_t n;
	uint64_t reg;
	int64_t offset;
	int base;

	if (dwarf_frame_cfa(frame, &ops, &n) || n == 0)
		return false;
	if (n <= 2 && op_breg(&ops[0], &reg, &offset) &&
	    (n == 1 || ops[1].atom == DW_OP_deref)) {
		base = slot_of(reg);
		r->kind = n == 1 ? RULE_CFA : RULE_CFA_DEREF;
	} else if (regs_plt_cfa(ops, n, pc, &offset)) {
		base = REGS_SP;
		r->kind = RULE_CFA;
	} else {
		return false;
	}
	if (base < 0 || base == REGS_RA || offset < INT_MIN || offset > INT_MAX)
		return false;
	r->base = (uint8_t)base;
	r->offset = (int32_t)offset;
	return true;
}

static void frame_rule(Dwarf_Frame *frame, uint64_t pc, struct rule *r)
{
	bool signal = false;
	int64_t offset = 0;

	r->kind = RULE_REMOTE;
	dwarf_frame_info(frame, NULL, NULL, &signal);
	r->signal = signal;

	if (saved_where(frame, regs_cpu.dwarf[REGS_RA], REGS_SP, &offset) == SAVED_UNDEFINED) {
		r->kind = RULE_ROOT;
		return;
	}
	if (signal || !sp_is_cfa(frame) || !cfa_rule(frame, pc, r)) {
		r->kind = RULE_REMOTE;
		return;
	}
	for (int i = 0; i < REGS_SLOTS; i++) {
		if (regs_cpu.dwarf[i] < 0)
			continue;
		enum saved where = saved_where(frame, regs_cpu.dwarf[i], r->base, &offset);
		if (where == SAVED_SAME || where == SAVED_UNDEFINED)
			continue;
		if (where == SAVED_OTHER ||
		    (where == SAVED_BY_BASE && r->kind != RULE_CFA_DEREF) ||
		    offset % 8 || offset / 8 < INT16_MIN || offset / 8 > INT16_MAX) {
			r->kind = RULE_REMOTE;
			return;
		}
		r->mask |= (uint16_t)(1u << i);
		if (where == SAVED_BY_BASE)
			r->base_mask |= (uint16_t)(1u << i);
		r->saved[i] = (int16_t)(offset / 8);
	}
}

static bool from_cfi(Dwarf_CFI *cfi, uint64_t vaddr, uint64_t pc, struct rule *r)
{
	Dwarf_Frame *frame;

	if (!cfi || dwarf_cfi_addrframe(cfi, vaddr, &frame))
		return false;
	frame_rule(frame, pc, r);
	free(frame);
	return true;
}

/*
 * glibc's trampoline has CFI, all of it expressions; musl's has none. Both are recognised by
 * their code. The handler returns *to* it, so the address looked up lies one byte before.
 */
static bool is_trampoline(const struct elf_file *file, uint64_t vaddr)
{
	uint8_t code[16];

	return elf_file_read(file, vaddr + 1, code, regs_cpu.sig_code) == regs_cpu.sig_code &&
	       regs_is_sigreturn(code);
}

/*
 * A program's first instructions, which often have no CFI (ld.so's _start and _dl_start_user, musl's
 * _start), are nobody's callee. They are this short, or have CFI.
 */
#define ENTRY_BYTES 64

static bool is_entry(const struct elf_file *file, uint64_t vaddr)
{
	uint64_t entry = elf_file_entry(file);

	return entry && vaddr - entry < ENTRY_BYTES;
}

/*
 * A return address that no call has left: the first byte of a function, with nothing that has CFI before it.
 * glibc's makecontext has the functions it is given return so to __start_context. (That of a call which is its
 * function's last instruction has that function before it.)
 */
static bool is_made_up(Dwarf_CFI *cfi, uint64_t vaddr)
{
	Dwarf_Frame *frame;
	Dwarf_Addr start = 0;

	if (!cfi || dwarf_cfi_addrframe(cfi, vaddr + 1, &frame))
		return false;
	dwarf_frame_info(frame, &start, NULL, NULL);
	free(frame);
	return start == vaddr + 1;
}

void derive_rule(const struct module *mod, uint64_t pc, struct rule *r)
{
	struct elf_file *file = mod->file;
	uint64_t vaddr = pc - mod->bias;
	int64_t bias = 0;

	r->kind = RULE_FP;
	if (!file || elf_file_machine(file) != regs_cpu.machine)
		return;
	if (is_trampoline(file, vaddr)) {
		r->kind = RULE_SIGNAL;
		return;
	}
	elf_file_lock(file);
	Dwarf_CFI *cfi = elf_file_eh_cfi(file, &bias);
	bool found = from_cfi(cfi, vaddr - (uint64_t)bias, pc, r) ||
		     from_cfi(elf_file_debug_cfi(file), vaddr, pc, r);
	bool made_up = !found && is_made_up(cfi, vaddr - (uint64_t)bias);
	elf_file_unlock(file);
	if (!found && (made_up || is_entry(file, vaddr)))
		r->kind = RULE_ROOT;
	else if (!found)
		code_rule(file, vaddr, r);
}
