/*
 * The way of an event: from the probe's records to the heap model. A stack that was walked in the target
 * comes as its difference to the thread's last one; any other is found in its copy here, and its
 * rules are told to the probe, so that next time it isn't copied. No process and no clock but the
 * events' own. The collector thread; allocates nothing for an event.
 */
#ifndef HEAPTOP_COLLECT_INTAKE_H
#define HEAPTOP_COLLECT_INTAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probe/probe.h"
#include "unwind/unwind.h"
#include "wire/wire.h"

struct frames;
struct heap;
struct recorder;
struct ticks_clock;

/* In a large heap most of an event's time goes into waiting for its block's entry in the live table. */
#define INTAKE_AHEAD 16u	/* a power of two */

struct intake {
	/* borrowed, set by the owner */
	struct heap *heap;
	struct frames *frames;
	struct unwinder *unwinder;
	struct recorder *recorder;	/* or NULL */
	const struct ticks_clock *clock;
	/* these n return addresses were on a stack that was copied: true if one of them lies outside all
	 * known modules, and the modules have been read again and have changed */
	bool (*missed)(void *ctx, const uint64_t *pcs, size_t n);
	/* then they shall be told to the probe */
	void (*teach)(void *ctx, const uint64_t *pcs, size_t n);
	/* the name of a thread that couldn't say it itself: 16 bytes, false: not to be had */
	bool (*thread_name)(void *ctx, uint32_t tid, char name[16]);
	void *ctx;

	/* since the start */
	uint64_t events, allocs;
	uint64_t stacks_complete, ends[UNWIND_END_COUNT];

	/* events that came last, oldest first: their blocks are being fetched into the cache */
	struct probe_event ahead[INTAKE_AHEAD];
	unsigned first, nahead;

	bool resync;			/* an event was lost that a later one referred to; the owner clears it */
	uint8_t seqs[WIRE_SLOTS];	/* of the slot's last event with a stack */
	bool broken[WIRE_SLOTS];	/* and what came before it is unknown */
	uint64_t pcs[WIRE_MAX_FRAMES * 2];
	uint64_t addrs[WIRE_MAX_FRAMES * 2];
};

/* Another program image: counters begin again. The borrowed stay. */
void intake_reset(struct intake *in);

/* A probe_event_fn; ctx is the struct intake. Its work is done INTAKE_AHEAD events later, */
void intake_event(void *ctx, const struct probe_event *e);
/* or now: after every drain. */
void intake_flush(struct intake *in);

#endif
