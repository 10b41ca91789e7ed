/*
 * Which block each of some addresses lies in, that were touched a moment ago: page faults (collect/touching.h). The live
 * table finds a block by its start alone, so it is asked the other way round: each block that ends takes the addresses
 * in it, and for the rest there is a pass over those that live. The collector thread.
 *
 * An address belongs to the innermost block that was there when it was touched: a block in a mapping, not the
 * mapping. calloc and realloc touch their block before it is told of; so a block that is told within HIT_EARLY_NS
 * after takes what no other does.
 */
#ifndef HEAPTOP_HEAP_HITS_H
#define HEAPTOP_HEAP_HITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct live;
struct ranges;
struct traces;

#define HIT_EARLY_NS 100000000ull

struct hit {
	uint64_t addr, time;		/* ns since the start */
	uint64_t size;			/* of the block it was found in */
	uint32_t owner;			/* node of that block's trace; TREE_NONE: none was found */
	bool early;			/* it was touched before the block was told of */
};

struct hits {
	struct hit *items;		/* in the order they came */
	size_t n, cap;
	uint32_t *order;		/* by address; of the first nsorted */
	size_t nsorted, order_cap;
	uint64_t pages[1u << 8];	/* a bit a page, hashed: is there any on it? */
};

/* What a block is to it: bytes [start, start + size), there from `since` until `until` (ns since the start). */
struct hit_block {
	uint64_t start, size, since, until;
	uint32_t owner;
};

void hits_deinit(struct hits *h);	/* all zero is an empty one */
void hits_add(struct hits *h, uint64_t addr, uint64_t time);
void hits_take(struct hits *h, const struct hit_block *block);
/* All blocks and mappings that live now: 2 to 5 ns a block. */
void hits_take_live(struct hits *h, const struct live *live, const struct ranges *ranges, const struct traces *traces);
/* The first n are done with. */
void hits_drop(struct hits *h, size_t n);

#endif
