/*
 * Frames of code that has no CFI, by its instructions: followed from an address to the function's
 * returns, they tell where the return address lies and what is put back into the callee-saved registers.
 * musl as distributions build it has none, nor has much hand-written assembly.
 *
 * Nothing is guessed: every path that gets to a return must agree, each callee-saved register
 * must hold the caller's value there, and an instruction that does with the stack pointer what can't be followed
 * ends its path. Where no path returns (exit, abort), the same is done from the function's start, if a
 * symbol tells it. A function that hands on what it was returned to exit or pthread_exit is the
 * outermost one of its stack. One file a processor, code-CPU.c. Reads the file only; any thread.
 */
#ifndef HEAPTOP_UNWIND_CODE_H
#define HEAPTOP_UNWIND_CODE_H

#include <stdbool.h>
#include <stdint.h>

struct elf_file;
struct rule;

/*
 * Fill kind, base, offset, mask and saved of *r for the frame whose rule is looked up at `vaddr` (the
 * byte before a return address, or the address of an interrupted instruction). False: it can't be
 * told, and *r is unchanged. Some hundred microseconds at most.
 */
bool code_rule(struct elf_file *file, uint64_t vaddr, struct rule *r);

#endif
