/*
 * The live table: address -> the tracked block there. Open addressing with linear probing, 32
 * bytes an entry, at most 5/8 full (that an address isn't there takes four looks then; at 3/4 it would be
 * more than eight); an entry is removed by shifting its followers back, so there are no
 * tombstones and a table that once was full is as quick as a new one. Grows by doubling, up to
 * `max` blocks (51 to 102 bytes a block, 153 while it grows), a few slots with each put: nobody waits while a large
 * table is filled. The home of a block is told by the upper bits of its hash, so both tables have the blocks in
 * the same order, and the new one comes into use page after page. The collector thread.
 */
#ifndef HEAPTOP_HEAP_LIVE_H
#define HEAPTOP_HEAP_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct live_block {
	uint64_t addr;		/* 0: no block */
	uint64_t size;		/* bytes asked for */
	uint64_t time;		/* of the allocation, ns since the start */
	uint32_t trace;		/* index of its trace */
	uint16_t rate;		/* index of its sampling interval, see weight.h */
	uint16_t thread;	/* number of the one that allocated it, see threads.h */
};
_Static_assert(sizeof(struct live_block) == 32, "the stated bound");

struct live_table {
	struct live_block *blocks;
	size_t n;		/* slots, a power of two: 2^(64 - shift); 0: no table */
	unsigned shift;
};

struct live {
	struct live_table table;
	struct live_table old;	/* what is still to be moved from there */
	size_t moved;		/* slots of it that are done */
	size_t count, max;
};

void live_init(struct live *live, size_t max);
void live_deinit(struct live *live);

/* It will soon be looked for: what isn't in the cache is fetched meanwhile. */
void live_ahead(const struct live *live, uint64_t addr);

/* All slots, in no order that means anything; one without an address is empty. */
static inline size_t live_slots(const struct live *live)
{
	return live->table.n + live->old.n;
}
static inline struct live_block *live_slot(const struct live *live, size_t i)
{
	return i < live->table.n ? &live->table.blocks[i] : &live->old.blocks[i - live->table.n];
}

/* The block at addr or NULL; valid until the next put or remove. */
struct live_block *live_find(struct live *live, uint64_t addr);
/* Add a block whose address isn't in the table yet and isn't 0. False: the table is at its bound. */
bool live_put(struct live *live, const struct live_block *block);
/* Take out a block that live_find gave. */
void live_remove(struct live *live, struct live_block *block);

#endif
