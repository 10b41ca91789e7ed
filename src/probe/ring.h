/*
 * Reading the agent's rings: checks every byte of them, brings the events of all rings into
 * the order of their TSC and hands over those that are safe to handle (wire.h tells which). No
 * process: heads and data come from the caller, from shared memory or a copy. The collector
 * thread. The rings are the target's to write to while they are read: each record is copied
 * out first and checked then.
 *
 * A round: ring_reader_begin, ring_reader_read for each ring, ring_reader_finish. A round hands over only so many
 * events; if there are more, the next goes on with them. `last`: all.
 */
#ifndef HEAPTOP_PROBE_RING_H
#define HEAPTOP_PROBE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probe/probe.h"
#include "wire/wire.h"

#define RING_ABANDONED_NS 1000000000ull	/* a record busy for longer isn't waited for */

struct ring_reader_config {
	uint32_t nrings;	/* power of two, <= WIRE_MAX_RINGS */
	uint64_t ring_bytes;	/* power of two */
	uint64_t nonce;
};

struct ring_reader;
struct ring_reader *ring_reader_create(const struct ring_reader_config *config);
void ring_reader_destroy(struct ring_reader *r);	/* accepts NULL */

/*
 * Start a round; tsc is from now, before any head is read. `last`: nothing is running any more that could
 * finish a record: skip the busy ones, hand over everything.
 */
void ring_reader_begin(struct ring_reader *r, uint64_t tsc, uint64_t now_ns, bool last);

/* Where reading ring i goes on; what lies before may be overwritten. */
uint64_t ring_reader_tail(const struct ring_reader *r, uint32_t i);

/*
 * Read ring i up to `head` as found in it; data: its ring_bytes of data, of which only those
 * from the tail to the head need be there. Returns the new tail.
 */
uint64_t ring_reader_read(struct ring_reader *r, uint32_t i, uint64_t head, const uint8_t *data);

/* Has the last round left something that could have been handed over? Then ring_reader_read reads nothing. */
bool ring_reader_behind(const struct ring_reader *r);

/* Hand over; tsc is from after the last read: a later one in an event is a lie. */
size_t ring_reader_finish(struct ring_reader *r, uint64_t tsc, probe_event_fn fn, void *ctx);

/* A record, all of whose bytes are there and stay as they are: false if it isn't what its kind says. */
bool ring_decode(const struct wire_head *h, struct probe_event *ret);

/* Records given up because they stayed busy, and malformed ones. */
uint64_t ring_reader_abandoned(const struct ring_reader *r);
uint64_t ring_reader_bad(const struct ring_reader *r);

#endif
