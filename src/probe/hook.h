/*
 * Patching one function: can its first instructions be displaced, and the thunk that replaces
 * them. Bytes in, bytes out; no process, no file. Any thread. The code looked at is untrusted.
 *
 *	entry:  jmp thunk		HOOK_PATCH bytes, over the displaced instructions
 *	thunk:  struct wire_hook at HOOK_RECORD; load its address; jmp agent's entry for this kind
 *		the displaced instructions, relocated; jmp entry + displaced
 *
 * Implemented per CPU in hook-*.c.
 */
#ifndef HEAPTOP_PROBE_HOOK_H
#define HEAPTOP_PROBE_HOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/wire.h"

#define HOOK_PATCH 5u		/* bytes of the jump at the entry */
#define HOOK_WINDOW 20u		/* bytes displaced at most */
#define HOOK_LOOK 192u		/* bytes from the entry on that a decision may depend on: short branches
				 * back to its first bytes come from no further */
#define HOOK_THUNK_MAX 128u	/* bytes a thunk takes at most, and the distance between thunks */
#define HOOK_RECORD 24u		/* so that what is read and run on a fast path is in one cache line */
#define HOOK_REASON 96
#define HOOK_HITS 4u

struct hook_plan {
	uint64_t addr;			/* runtime address of the entry */
	uint32_t displaced;		/* bytes of whole instructions displaced, >= HOOK_PATCH, or
					 * HOOK_PATCH where the function ends before and padding follows */
	uint8_t code[HOOK_WINDOW];	/* those bytes */
};

/*
 * Look at a function of `size` bytes (0: unknown) at runtime address addr; `code` holds its
 * bytes and what follows, len of them (at least HOOK_PATCH). False: not to be patched, reason
 * says why.
 */
bool hook_plan(const uint8_t *code, size_t len, uint64_t size, uint64_t addr, struct hook_plan *ret,
	       char reason[HOOK_REASON]);

/* Addresses strictly between which nobody may branch to. */
struct hook_window {
	uint64_t lo, hi;
	bool hit;		/* somebody does */
	uint64_t hits[HOOK_HITS];	/* where such branches would begin; more than HOOK_HITS: the last */
	size_t nhits;			/* one is overwritten, and nhits is more */
};

/*
 * Look for instructions of a piece of text that branch into one of the windows by a 32-bit
 * displacement, and mark those. Finds them at any byte offset, so that no linear decoding has to be
 * right: a false alarm is as likely as four random bytes hitting a window of a few addresses, and whoever knows
 * where the function around it begins can tell it by hook_is_branch_at.
 */
void hook_scan_text(const uint8_t *text, size_t len, uint64_t text_addr, struct hook_window *windows,
		    size_t n);

/*
 * Is the opcode `off` bytes into this code, read from its start, that of a direct branch (prefixes may come
 * before it)? *ret_read: it could be read as far as that.
 */
bool hook_is_branch_at(const uint8_t *code, size_t len, size_t off, bool *ret_read);

/* Does the function call or jump through a register or memory: could it be a wrapper? */
bool hook_has_indirect_call(const uint8_t *code, size_t len);

/* Where a function at runtime address addr calls or branches to outside itself, directly: at most max,
 * returns how many. */
size_t hook_leaves_for(const uint8_t *code, size_t len, uint64_t addr, uint64_t *out, size_t max);

/*
 * Where the straight path from its entry, no conditional branch taken, first calls or jumps to outside the
 * function. False: it returns before that, or the way can't be followed.
 */
bool hook_straight(const uint8_t *code, size_t len, uint64_t addr, uint64_t *ret);

/* Is that a linkage stub, a jump through a word in memory? *ret: the word's address. */
bool hook_is_stub(const uint8_t *code, size_t len, uint64_t addr, uint64_t *ret);

/*
 * Write the thunk of a plan into out (HOOK_THUNK_MAX bytes), to run at `at` (64-byte aligned);
 * `entry` is the address of the agent's code. `what`: kind, index, args, and `instead` for the kinds
 * NEW; the rest of it is filled in. *ret_jump_to: where the patch jumps to. False: something it
 * refers to is out of reach.
 */
bool hook_thunk(const struct hook_plan *plan, uint64_t at, uint64_t entry, const struct wire_hook *what,
		uint8_t out[HOOK_THUNK_MAX], uint64_t *ret_jump_to);

/* The jump for the entry at `from`; false: out of reach. */
bool hook_jump(uint64_t from, uint64_t to, uint8_t out[HOOK_PATCH]);
/* If the bytes at `from` are such a jump: where to. */
bool hook_is_jump(const uint8_t bytes[HOOK_PATCH], uint64_t from, uint64_t *ret_to);

#endif
