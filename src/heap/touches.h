/*
 * Who touched whose memory: bytes of pages first touched, by the stack that touched them and the stack that had asked
 * for the block they lie in. A sparse table of pairs of nodes of the trace tree; the sum over a toucher's pairs is
 * its trace's fault_bytes to the last bit, since what lies in no known block has a pair, too. (Where traces had to
 * be merged, the pairs still know who it was.)
 *
 * Built by one thread; a finished list is immutable, reference-counted, any thread's.
 */
#ifndef HEAPTOP_HEAP_TOUCHES_H
#define HEAPTOP_HEAP_TOUCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOUCH_NOBODY UINT32_MAX	/* owner: no known block (not sampled, freed too long ago, no heap memory) */
#define TOUCH_PAIRS_MAX (1u << 16)	/* with an owner; what is beyond counts as nobody's */

struct touch_pair {
	uint32_t toucher, owner;	/* nodes; owner: or TOUCH_NOBODY */
	uint64_t bytes;
};

struct touches {
	int refs;		/* atomic */
	size_t n;
	struct touch_pair pairs[];	/* by toucher, owner */
};

struct touches *touches_ref(struct touches *touches);	/* accepts NULL */
void touches_unref(struct touches *touches);		/* accepts NULL */

/* ---- building ---- */

struct touch_table {
	struct touch_pair *slots;	/* hash; bytes 0: empty */
	size_t nslots, n;
	struct touches *made;		/* of what is in it, or NULL: something has come since */
};

void touch_table_deinit(struct touch_table *t);
void touch_table_add(struct touch_table *t, uint32_t toucher, uint32_t owner, uint64_t bytes);
/* The list, with a reference for the caller, NULL if it is empty. Costs nothing if nothing has come since the last. */
struct touches *touch_table_list(struct touch_table *t);

#endif
