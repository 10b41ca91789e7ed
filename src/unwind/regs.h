/*
 * What unwinding must know about the CPU: where the walk keeps each register, its DWARF number,
 * what a frame record, a signal frame and a PLT stub look like. One implementation,
 * regs-CPU.c, is compiled in; the rest of unwind/ knows only slots. Constant data and pure
 * functions, any thread.
 */
#ifndef HEAPTOP_UNWIND_REGS_H
#define HEAPTOP_UNWIND_REGS_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/wire.h"

/*
 * Slots: wire_regs.saved[0..9], then fp and lr. REGS_RA is where a frame's return address
 * ends up: the link register where there is one, else a slot of its own. REGS_SP is no
 * slot: it names the stack pointer as a base of the CFA.
 */
#define REGS_SLOTS 12
#define REGS_WIRE_SAVED 10
#define REGS_WIRE_FP 10
#define REGS_RA 11
#define REGS_SP 15

/* Registers of one frame during a walk. */
struct regs_frame {
	uint64_t pc;		/* as found on the stack: a return address, unless exact */
	uint64_t sp;
	uint64_t reg[REGS_SLOTS];
	bool exact;		/* pc was interrupted by a signal: look it up as it is */
};

struct regs_cpu {
	int machine;			/* e_machine of this CPU's ELF files */
	/* DWARF number of each slot, -1: no such register. libunwind's numbers are the same. */
	int8_t dwarf[REGS_SLOTS];
	int8_t dwarf_sp;
	uint8_t fp;			/* slot of the frame pointer */
	uint8_t record_ra;		/* frame record: the caller's fp lies at fp, the return */
	uint8_t record_size;		/* address at fp + record_ra; the CFA is fp + record_size */
	/* Signal frame: byte offsets from sp, when the handler has returned to the trampoline. */
	uint16_t sig_pc, sig_sp;
	uint16_t sig_reg[REGS_SLOTS];	/* 0: not there */
	size_t sig_code;		/* bytes regs_is_sigreturn wants to see */
};
extern const struct regs_cpu regs_cpu;

/* Is this the code of the signal trampoline? `code` has regs_cpu.sig_code bytes, from the return
 * address on. */
bool regs_is_sigreturn(const uint8_t *code);

/*
 * A CFA expression that depends only on registers of the walk and pc, as linkers write for PLT
 * stubs: true, and the offset from sp for this pc in *ret.
 */
bool regs_plt_cfa(const Dwarf_Op *ops, size_t n, uint64_t pc, int64_t *ret);

#endif
