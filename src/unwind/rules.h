/*
 * The rule cache: code address to a tiny rule that takes one frame off the stack. Open
 * addressing, one cache line a rule, derived on the first look-up (derive.h) and kept. Owned
 * by the unwinder, used by its thread.
 *
 * A flush doesn't empty the table: it makes every rule prove at its next look-up that its
 * address still lies in the same module at the same place, which costs a tenth of deriving
 * it again. Programs that generate code change their mappings all the time.
 */
#ifndef HEAPTOP_UNWIND_RULES_H
#define HEAPTOP_UNWIND_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/regs.h"

struct modules;

#define RULES_MIN_LOG2 16	/* slots at first: 4 MiB, touched as used */
#define RULES_MAX_LOG2 19	/* slots at most: 32 MiB; when that fills up it starts afresh */

enum rule_kind {
	RULE_NONE,	/* address in no known module */
	RULE_CFA,	/* CFA = base + offset */
	RULE_CFA_DEREF,	/* CFA = *(base + offset): realigned stacks, as gcc makes them */
	RULE_SIGNAL,	/* a signal trampoline: registers lie in the signal frame */
	RULE_ROOT,	/* outermost frame: the return address is undefined */
	RULE_REMOTE,	/* CFI beyond a tiny rule: libunwind does the frame */
	RULE_FP,	/* no CFI: the frame pointer, if it is plausible */
};

struct rule {
	uint64_t pc;		/* address looked up; 0: empty slot */
	uint64_t place;		/* of its module when derived: its bias; without a file, where the
				 * mapping around pc starts */
	uint32_t module;	/* id */
	uint32_t generation;	/* of the table when last known to be right */
	int32_t offset;		/* bytes */
	uint16_t mask;		/* bit n: register slot n was saved on the stack */
	uint8_t kind;		/* enum rule_kind */
	uint8_t base;		/* register slot or REGS_SP */
	int16_t saved[REGS_SLOTS];	/* at CFA + 8 * saved[n] */
	uint16_t base_mask;	/* RULE_CFA_DEREF: those at base + 8 * saved[n] instead */
	uint8_t signal;		/* RULE_REMOTE: the caller was interrupted, its pc is exact */
	uint8_t held;		/* RULE_FP: the frame pointer has led to a caller, on a stack that was
				 * followed to its end */
	uint8_t reserved[4];
};
_Static_assert(sizeof(struct rule) == 64, "one cache line");

struct rules {
	struct rule *slots;
	unsigned shift;		/* 64 - log2 of the number of slots */
	uint32_t generation;
	size_t count;		/* slots in use */
	void *memory;		/* what slots were aligned in */
	const struct modules *mods;
};

void rules_init(struct rules *t, const struct modules *mods);
void rules_deinit(struct rules *t);
void rules_flush(struct rules *t);

/*
 * The rule for an address that rules_find() didn't have. *ret_derived tells whether CFI had to
 * be asked. Never NULL; valid until the next call of this function.
 */
const struct rule *rules_get(struct rules *t, uint64_t pc, bool *ret_derived);

/* Note that the guess at this address held; pc is in the table as RULE_FP. */
void rules_held(struct rules *t, uint64_t pc);

/* In the agent's words, wire.h; WIRE_RULE_NONE if it can't be said in them. */
uint32_t rule_tell(const struct rule *r);

/* Fibonacci hashing (Knuth 6.4): the high bits of the product. */
static inline size_t rules_hash(const struct rules *t, uint64_t pc)
{
	return (size_t)(pc * 0x9e3779b97f4a7c15ull >> t->shift);
}

/* The cached rule, NULL if there is none known to be right. Valid until rules_get() or a flush. */
static inline const struct rule *rules_find(const struct rules *t, uint64_t pc)
{
	size_t mask = ((size_t)1 << (64 - t->shift)) - 1;

	for (size_t i = rules_hash(t, pc);; i = (i + 1) & mask) {
		const struct rule *r = &t->slots[i];
		if (r->pc == pc)
			return r->generation == t->generation ? r : NULL;
		if (!r->pc)
			return NULL;
	}
}

#endif
