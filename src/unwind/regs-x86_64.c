/*
 * x86-64's side of unwinding: slots rbp, rbx, r12-r15 and the return address column (DWARF 16,
 * System V psABI 3.6.2), the kernel's rt_sigframe, GNU ld's PLT expression.
 */
#include "unwind/regs.h"

#include <dwarf.h>
#include <elf.h>
#include <string.h>

/*
 * Offsets in the kernel's struct ucontext (arch/x86/include/uapi/asm/sigcontext.h): uc_mcontext
 * starts at 40 with r8. The handler's `ret` has taken pretcode away, so sp is at the ucontext.
 */
const struct regs_cpu regs_cpu = {
	.machine = EM_X86_64,
	.dwarf = { 6, 3, 12, 13, 14, 15, -1, -1, -1, -1, -1, 16 },
	.dwarf_sp = 7,
	.fp = 0,
	.record_ra = 8,
	.record_size = 16,
	.sig_pc = 168,
	.sig_sp = 160,
	.sig_reg = { 120, 128, 72, 80, 88, 96 },
	.sig_code = 9,
};

bool regs_is_sigreturn(const uint8_t *code)
{
	/* mov $15,%rax; syscall (glibc, musl) or mov $15,%eax; syscall */
	static const uint8_t wide[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t narrow[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 };

	return memcmp(code, wide, sizeof(wide)) == 0 || memcmp(code, narrow, sizeof(narrow)) == 0;
}

/* DW_OP_lit0..31, const1u, const1s: the small constants a linker writes. */
static bool small_const(const Dwarf_Op *op, uint64_t *ret)
{
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
		*ret = op->atom - DW_OP_lit0;
	else if (op->atom == DW_OP_const1u || op->atom == DW_OP_const1s)
		*ret = op->number;
	else
		return false;
	return true;
}

/*
 * DW_OP_breg7 (rsp): 8; DW_OP_breg16 (rip): 0; DW_OP_lit15; DW_OP_and; DW_OP_lit11; DW_OP_ge;
 * DW_OP_lit3; DW_OP_shl; DW_OP_plus: rsp + 8, and 8 more once the stub's push has been done.
 */
bool regs_plt_cfa(const Dwarf_Op *ops, size_t n, uint64_t pc, int64_t *ret)
{
	uint64_t mask, from, shift;

	if (n != 9 || ops[0].atom != DW_OP_breg7 || ops[1].atom != DW_OP_breg16 ||
	    ops[1].number != 0 || !small_const(&ops[2], &mask) || ops[3].atom != DW_OP_and ||
	    !small_const(&ops[4], &from) || ops[5].atom != DW_OP_ge ||
	    !small_const(&ops[6], &shift) || ops[7].atom != DW_OP_shl ||
	    ops[8].atom != DW_OP_plus || shift > 16)
		return false;
	*ret = (int64_t)(ops[0].number + ((uint64_t)((int64_t)(pc & mask) >= (int64_t)from) << shift));
	return true;
}
