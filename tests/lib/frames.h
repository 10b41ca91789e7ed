/*
 * Functions whose frames no compiler makes, for tests of the unwinder: each calls fn from a frame
 * with the CFI that its comment names.
 */
#ifndef HEAPTOP_TESTS_LIB_FRAMES_H
#define HEAPTOP_TESTS_LIB_FRAMES_H

void asm_expression(void (*fn)(void));	/* CFA by an expression no rule knows */
void asm_endless(void (*fn)(void));	/* its expression never ends */
void asm_register(void (*fn)(void));	/* caller's rbx in rbp, CFA on the caller's rbx */
void asm_no_cfi(void (*fn)(void));	/* no CFI, frame pointer kept */
void asm_fault(void);			/* faults at its first byte */
void asm_plt(void);			/* faults inside a PLT stub, after the push */
void asm_noreturn(void (*fn)(void));	/* ends with the call; other CFI follows */
void asm_noreturn_expression(void (*fn)(void));	/* the same for libunwind */
void asm_deref(void (*fn)(void));	/* CFA = *(rbp - 8) */
void asm_rbp(void (*fn)(void));		/* CFA on a callee-saved register */
void asm_rbx(void (*fn)(void));
void asm_r12(void (*fn)(void));
void asm_r13(void (*fn)(void));
void asm_r14(void (*fn)(void));
void asm_r15(void (*fn)(void));
/* the end of asm_no_cfi's code; the return addresses in those above */
extern const char asm_no_cfi_end[], asm_rbp_call[];
extern const char asm_rbx_call[], asm_r12_call[], asm_r13_call[], asm_r14_call[], asm_r15_call[];

#endif
