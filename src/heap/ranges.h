/*
 * The live table of mappings: which ranges of addresses the program has mapped. Unlike a block, a mapping
 * can be unmapped in part, in the middle, or together with others: what is left of it are its
 * pieces, disjoint ranges that know the mapping they are of. The last piece to go ends it.
 *
 * A treap of 32 bytes a piece and 32 bytes a mapping; all operations are logarithmic. Addresses come
 * from the target: nothing is assumed of them. The collector thread.
 */
#ifndef HEAPTOP_HEAP_RANGES_H
#define HEAPTOP_HEAP_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One call's mapping. */
struct range_mapping {
	uint64_t time;		/* ns since the start */
	uint64_t id;		/* never given out twice; 0: a free record */
	uint32_t trace;		/* index of its trace */
	uint32_t pieces;	/* there are of it now */
	uint32_t slot;		/* of the thread that made it */
};

/* A part of a piece, as it is taken out. */
struct range_part {
	uint64_t start, end;
	struct range_mapping mapping;	/* as it is without the part: no pieces: this was the last one */
	uint32_t index;			/* of the mapping */
};

struct range_node {
	uint64_t start, end;		/* both 0: a spare one */
	uint32_t mapping;		/* index */
	uint32_t left, right;		/* index + 1, 0: none */
	uint32_t priority;		/* no smaller than its children's */
};

struct ranges {
	struct range_node *nodes;
	size_t nnodes, nodes_cap;
	uint32_t *spare_nodes;
	size_t nspare_nodes, spare_nodes_cap;
	struct range_mapping *mappings;
	size_t nmappings, mappings_cap;
	uint32_t *spare_mappings;
	size_t nspare_mappings, spare_mappings_cap;
	uint32_t root;			/* index + 1 */
	uint32_t random;
	uint64_t last_id;
	size_t max;			/* pieces at most */
};

void ranges_init(struct ranges *ranges, size_t max);
void ranges_deinit(struct ranges *ranges);

/* Is there room for one more piece? */
bool ranges_room(const struct ranges *ranges);
/* A mapping without pieces as yet; pieces, id are set here. Returns its index. */
uint32_t ranges_begin(struct ranges *ranges, const struct range_mapping *mapping);
/* Is it this mapping that the index stands for? */
bool ranges_is(const struct ranges *ranges, uint32_t index, uint64_t id);
/* There is no piece in [start, end). */
bool ranges_free(struct ranges *ranges, uint64_t start, uint64_t end);
/* A piece of it where nothing is; there must be room, and start < end. */
void ranges_add(struct ranges *ranges, uint32_t index, uint64_t start, uint64_t end);

/*
 * Take the first part within [start, end) out; call it until it returns false: there is nothing left.
 * Where a hole leaves two pieces of one and there is no room for that, what lies behind the hole goes with it.
 */
bool ranges_cut(struct ranges *ranges, uint64_t start, uint64_t end, struct range_part *ret);

size_t ranges_count(const struct ranges *ranges);
/* Add the bytes of each mapping's pieces to `bytes`, by index of the mapping (nmappings of them). */
void ranges_bytes(const struct ranges *ranges, uint64_t *bytes);

#endif
