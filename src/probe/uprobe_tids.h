/*
 * Slots for thread ids: small numbers, the same for a thread as long as it lives. A table of fixed size; plain data.
 */
#ifndef HEAPTOP_PROBE_UPROBE_TIDS_H
#define HEAPTOP_PROBE_UPROBE_TIDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/wire.h"

#define TIDS_HASH 8192u		/* a power of two, about twice WIRE_SLOTS */

struct tids {	/* zero: empty */
	uint32_t tid[WIRE_SLOTS];	/* 0: free */
	uint16_t at[TIDS_HASH];		/* slot + 1 */
	uint32_t used;			/* slots ever */
	uint32_t hint;			/* where a free one is looked for next */
};

/* The slot of a thread, < WIRE_SLOTS, a new one if need be; false: all are taken, or tid is 0. */
bool tids_slot(struct tids *ids, uint32_t tid, uint32_t *ret);
/* Of the threads these n, ascending, are left. */
void tids_keep(struct tids *ids, const uint32_t *tids, size_t n);
/* This one has ended. */
void tids_forget(struct tids *ids, uint32_t tid);
uint32_t tids_count(const struct tids *ids);

#endif
