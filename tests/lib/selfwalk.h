/*
 * For tests of the unwinder: this process as its own target. Takes the registers as an allocator's
 * caller has them on return, a copy of the stack, and what libgcc's unwinder says of the same place.
 */
#ifndef HEAPTOP_TESTS_LIB_SELFWALK_H
#define HEAPTOP_TESTS_LIB_SELFWALK_H

#include <stddef.h>
#include <stdint.h>
#include <unwind.h>

#include "elf/modules.h"
#include "unwind/unwind.h"

#define SELF_FRAMES 256
#define SELF_STACK (256u << 10)

struct snapshot {
	struct wire_regs regs;
	struct stack_copy stack;
	uint8_t *bytes;		/* SELF_STACK of them */
	void *trace[SELF_FRAMES];	/* by libgcc, [0] lies in self_snapshot() as regs.ip does */
	size_t ntrace;
};

/* (Re)read /proc/self/maps into mods; files are opened by path. */
void self_modules(struct modules *mods);
/* The same with files opened by open_fn. */
void self_modules_open(struct modules *mods, modules_open_fn open_fn, void *ctx);

/* Returns the registers of its caller as after the return. */
void self_regs(struct wire_regs *ret);

struct self_trace {
	void **pcs;
	size_t n;
};

static inline _Unwind_Reason_Code self_trace_frame(struct _Unwind_Context *ctx, void *arg)
{
	struct self_trace *t = arg;
	uintptr_t pc = _Unwind_GetIP(ctx);

	if (pc == 0 || t->n == SELF_FRAMES)
		return _URC_END_OF_STACK;
	t->pcs[t->n++] = (void *)pc;
	return _URC_NO_REASON;
}

/*
 * The frames from the caller on, as many as SELF_FRAMES. Not backtrace(3): the address sanitiser
 * replaces that. An interrupted frame's pc is exact.
 */
static inline __attribute__((always_inline)) size_t self_backtrace(void **pcs)
{
	struct self_trace t = { pcs, 0 };

	_Unwind_Backtrace(self_trace_frame, &t);
	return t.n;
}

void snapshot_init(struct snapshot *s);
void snapshot_deinit(struct snapshot *s);

/* Take it here. Without `trace`, libgcc isn't asked: some frames here would hang it. */
void self_snapshot(struct snapshot *s, int trace);

#endif
