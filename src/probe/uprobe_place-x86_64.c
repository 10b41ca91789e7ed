/* The kernel's side: arch/x86/kernel/uprobes.c, push_xol_ops and branch_xol_ops. See uprobe_place.h. */
#include "probe/uprobe_place.h"

#include <Zydis/Zydis.h>

#include "wire/wire.h"

#define LOOK 48u	/* bytes from the entry on in which a place is looked for */

static bool decode(const uint8_t *code, size_t len, ZydisDecodedInstruction *i, ZydisDecodedOperand *op)
{
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, len, i, op));
}

/* push of a register, jmp and jcc to a displacement, one-byte nop; no prefix but the one for r8 to r15. */
static bool is_emulated(const uint8_t *code, size_t len)
{
	switch (code[0]) {
	case 0x41:
		return len > 1 && code[1] >= 0x50 && code[1] <= 0x57;
	case 0x0f:
		return len > 1 && code[1] >= 0x80 && code[1] <= 0x8f;
	case 0x90: case 0xe9: case 0xeb:
		return true;
	default:
		return (code[0] >= 0x50 && code[0] <= 0x57) || (code[0] >= 0x70 && code[0] <= 0x7f);
	}
}

static const ZydisRegister argument_registers[WIRE_ARGS_MAX] = {
	ZYDIS_REGISTER_RDI, ZYDIS_REGISTER_RSI, ZYDIS_REGISTER_RDX,
	ZYDIS_REGISTER_RCX, ZYDIS_REGISTER_R8, ZYDIS_REGISTER_R9,
};

static bool is_needed(ZydisRegister reg, const struct wire_args *args)
{
	const uint8_t which[] = { args->size, args->count, args->pointer, args->out };

	reg = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
	if (reg == ZYDIS_REGISTER_RSP)
		return true;
	for (size_t k = 0; k < sizeof(which); k++)
		if (which[k] && which[k] <= WIRE_ARGS_MAX && reg == argument_registers[which[k] - 1])
			return true;
	return false;
}

/* Does it leave alone what the probe is to see, and go on to the next one? */
static bool is_harmless(const ZydisDecodedInstruction *i, const ZydisDecodedOperand *op, const struct wire_args *args)
{
	switch (i->meta.category) {
	case ZYDIS_CATEGORY_CALL: case ZYDIS_CATEGORY_RET: case ZYDIS_CATEGORY_UNCOND_BR: case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_INTERRUPT: case ZYDIS_CATEGORY_SYSCALL: case ZYDIS_CATEGORY_SYSTEM:
		return false;
	default:
		break;
	}
	for (size_t k = 0; k < i->operand_count; k++)
		if (op[k].type == ZYDIS_OPERAND_TYPE_REGISTER && op[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
		    is_needed(op[k].reg.value, args))
			return false;
	return true;
}

/* Does the function branch back to behind its entry, up to `last`? Then a call may pass there more than once. */
static bool is_looped_to(const uint8_t *code, size_t len, size_t last)
{
	ZydisDecodedInstruction i;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	ZyanU64 to;

	for (size_t at = 0; at < len && decode(code + at, len - at, &i, op); at += i.length)
		for (size_t k = 0; k < i.operand_count_visible; k++)
			if (op[k].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && op[k].imm.is_relative &&
			    ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&i, &op[k], at, &to)) && to > 0 && to <= last)
				return true;
	return false;
}

size_t uprobe_place(const uint8_t *code, size_t len, const struct wire_args *args, bool *ret_stepped)
{
	ZydisDecodedInstruction i;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];

	*ret_stepped = false;
	for (size_t at = 0; at < LOOK && at < len && decode(code + at, len - at, &i, op); at += i.length) {
		if (is_emulated(code + at, len - at) && (!at || !is_looped_to(code, len, at)))
			return at;
		if (!is_harmless(&i, op, args))
			break;
	}
	*ret_stepped = true;
	return 0;
}
