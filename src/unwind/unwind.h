/*
 * Registers + a copy of the stack + the modules' CFI in, return addresses out. No process, no
 * names. One unwinder per address space, used by one thread.
 *
 * Two ways, tried in this order for each frame:
 *  - rules: a hash from pc to a tiny rule (CFA = sp or bp + offset, where the caller's bp and
 *    other callee-saved registers lie), derived once from the module's CFI with libdw
 *    (dwarf_cfi_addrframe); a frame then costs a look-up and one or two loads;
 *  - libunwind with remote accessors over the copied bytes and the ELF file's image, for the
 *    frames whose CFI is no tiny rule (expressions other than those of PLT stubs and
 *    realigned stacks; registers kept in registers);
 *  - no CFI at all (JIT code): frame pointer, if it is plausible; the frame is marked guessed.
 */
#ifndef HEAPTOP_UNWIND_UNWIND_H
#define HEAPTOP_UNWIND_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/wire.h"

struct modules;
struct unwinder;

/* Why a walk ended. */
enum unwind_end {
	UNWIND_END_ROOT,	/* outermost frame: CFI says ra undefined, pc 0, _start / clone */
	UNWIND_END_CUT,		/* the copy of the stack ended first */
	UNWIND_END_NO_CFI,	/* no CFI for this pc and no plausible frame pointer */
	UNWIND_END_NO_MODULE,	/* a pc lies in no known module: perhaps mapped since the modules
				 * were read last. Refresh, unwinder_flush(), walk again */
	UNWIND_END_BAD,		/* CFI led outside of the stack or in a circle */
	UNWIND_END_DEPTH,	/* max frames reached */
	UNWIND_END_LOST,	/* no walk of ours: the event told a difference to one that was lost */
	UNWIND_END_ELSEWHERE,	/* a signal handler on a stack of its own: the interrupted one wasn't copied */
	UNWIND_END_COUNT
};
const char *unwind_end_text(enum unwind_end why);

struct stack_copy {
	uint64_t addr;		/* target address of bytes[0]; regs->sp lies at or above it */
	const uint8_t *bytes;
	size_t len;
};

struct unwind_stats {
	uint64_t walks, frames;
	uint64_t rule_hits;	/* frames done by a cached rule */
	uint64_t rule_misses;	/* rules derived with libdw */
	uint64_t libunwind;	/* frames done by libunwind */
	uint64_t guessed;	/* frames by frame pointer without CFI */
	uint64_t ends[UNWIND_END_COUNT];
};

/* `mods` is borrowed and must outlive the unwinder. */
struct unwinder *unwinder_create(const struct modules *mods);
void unwinder_destroy(struct unwinder *u);

/*
 * The modules' ranges have changed: forget rules of addresses that may mean something else now.
 * Cheap: rules whose module is still in its place are kept.
 */
void unwinder_flush(struct unwinder *u);

/*
 * Walk from regs (an allocator's caller: regs->ip is a return address). pcs[0] = regs->ip, then
 * each caller's return address, innermost first, at most max. All are return addresses: look
 * them up at pc - 1 (for an instruction interrupted by a signal, its address + 1 is given).
 * *ret_why says why it ended. Returns the number of pcs (>= 1 if max is).
 */
size_t unwinder_walk(struct unwinder *u, const struct wire_regs *regs, const struct stack_copy *stack,
		     uint64_t *pcs, size_t max, enum unwind_end *ret_why);

/*
 * The rule for return address pc in the agent's words (wire.h), WIRE_RULE_NONE if it can't be
 * said in them. Derived if it wasn't known. Where there is no CFI, the frame pointer is such a
 * rule once a walk has gone on by it from pc to the stack's end, and until the mapping that
 * pc lies in has changed.
 */
uint32_t unwinder_wire_rule(struct unwinder *u, uint64_t pc);
/* Return address pc lies in a known module without CFI for it: its caller is guessed, wherever the
 * stack is walked. */
bool unwinder_is_guess(struct unwinder *u, uint64_t pc);

const struct unwind_stats *unwinder_stats(const struct unwinder *u);

#endif
