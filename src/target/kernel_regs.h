/* Registers as the kernel hands them to our programs in it, on x86-64. Compiled for both sides. */
#ifndef HEAPTOP_TARGET_KERNEL_REGS_H
#define HEAPTOP_TARGET_KERNEL_REGS_H

struct kernel_regs {
	unsigned long long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};

/* Those of struct wire_regs, in its order, of which it has 14. */
#define KERNEL_REGS_WIRE(to, g) do { \
	(to)[0] = (g)->ip, (to)[1] = (g)->sp, (to)[2] = (g)->bp, (to)[3] = (g)->bx; \
	(to)[4] = (g)->r12, (to)[5] = (g)->r13, (to)[6] = (g)->r14, (to)[7] = (g)->r15; \
	(to)[8] = (to)[9] = (to)[10] = (to)[11] = (to)[12] = (to)[13] = 0; \
} while (0)

#endif
