/* Registers of a hit as perf_event tells them: bits of asm/perf_regs.h; values come in the order of the bits. */
#include "probe/uprobe_hits.h"

#include "probe/uprobe_wire.h"

const uint64_t uprobe_perf_regs = 0x3full /* ax, bx, cx, dx, si, di */ | 7ull << 6 /* bp, sp, ip */ |
				  3ull << 16 /* r8, r9 */ | 0xfull << 20 /* r12 to r15 */;

void uprobe_from_perf(const uint64_t *values, struct kernel_regs *ret)
{
	*ret = (struct kernel_regs){
		.ax = values[0], .bx = values[1], .cx = values[2], .dx = values[3], .si = values[4], .di = values[5],
		.bp = values[6], .sp = values[7], .ip = values[8], .r8 = values[9], .r9 = values[10],
		.r12 = values[11], .r13 = values[12], .r14 = values[13], .r15 = values[14],
	};
}
