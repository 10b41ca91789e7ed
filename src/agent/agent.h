/*
 * Between the hooks' entries (entry-*.S) and the agent's C part. Everything runs inside the
 * target, on whatever thread and stack called the allocator: freestanding, no libc, no TLS, no
 * relocations, general registers only, less than 512 bytes of stack.
 *
 * The entries decide the common case alone and jump on to the original. For the rest they build an
 * agent_frame on the stack and call, in this order:
 *
 *	agent_before	an allocation call is about to be made
 *	the original	only if agent_before said so; else the frame is taken down and the
 *			original is jumped to, as if we had not been there
 *	agent_after	with its result
 *	agent_leave	last
 * or
 *	agent_free	a free is about to be made; the original is jumped to afterwards
 */
#ifndef HEAPTOP_AGENT_AGENT_H
#define HEAPTOP_AGENT_AGENT_H

#include <stdint.h>

#include "agent/walk.h"
#include "wire/wire.h"

enum {
	AGENT_SAMPLED = 1,	/* record the block */
	AGENT_FREED = 2,	/* realloc: a FREE of the old block has been recorded */
	AGENT_TAGGED = 4,	/* and its tag taken out of the filter */
	AGENT_RANGE = 8,	/* a mapping, not a block */
	AGENT_MOVED = 16,	/* mremap: of what the UNMAP recorded before has taken */
};

/* Bytes from a frame's start to the return address at its end. */
#define AGENT_FRAME_BYTES 200

/* entry-x86_64.S lays it out too; asserted in agent.c. */
struct agent_frame {
	uint64_t saved[6];	/* callee-saved registers at entry: wire_regs.saved */
	uint64_t arg[6];	/* argument registers, restored before the original runs */
	const struct wire_hook *hook;
	uint64_t result;	/* of the original */
	/* what agent_before leaves for agent_after */
	struct wire_slot *slot;
	uint64_t left;		/* the countdown from then on */
	uint64_t rate;		/* the one the sample was drawn with */
	uint64_t size;
	uint64_t flags;
	struct walk walk;	/* agent_after's, here so that it needn't be on the stack once more */
	uint64_t ip;		/* return address: pushed by the caller */
};

int agent_before(struct agent_frame *f);
void agent_after(struct agent_frame *f);
void agent_leave(struct agent_frame *f);
void agent_free(struct agent_frame *f);

/* A gap drawn from the exponential distribution of mean `rate` for the random word x. */
uint64_t agent_gap(uint64_t x, uint64_t rate);

#endif
