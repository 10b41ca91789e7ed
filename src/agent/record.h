/*
 * Events: a free or an allocation with its stack, into the ring of the thread's slot (wire.h). What can't be
 * recorded is counted in the slot. Any thread, signal handlers too.
 */
#ifndef HEAPTOP_AGENT_RECORD_H
#define HEAPTOP_AGENT_RECORD_H

#include <stdbool.h>
#include <stdint.h>

struct agent_frame;
struct wire_ctl;
struct wire_slot;

/* A WIRE_FREE or WIRE_UNFREE. False: not recorded. */
bool agent_record_free(struct wire_ctl *ctl, struct wire_slot *s, uint64_t addr, unsigned kind,
		       unsigned flags);
/* A WIRE_UNMAP. False: not recorded. */
bool agent_record_unmap(struct wire_ctl *ctl, struct wire_slot *s, uint64_t addr, uint64_t bytes);
/* The block at addr, which the call of *f has returned; or the mapping. */
void agent_record_alloc(struct wire_ctl *ctl, struct agent_frame *f, uint64_t addr);

#endif
