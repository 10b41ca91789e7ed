/*
 * What the heap model consists of, for the files that change it: heap.c (blocks, threads, what is published), mappings.c,
 * classify.c. All others use heap.h. The collector thread.
 */
#ifndef HEAPTOP_HEAP_MODEL_H
#define HEAPTOP_HEAP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap/classes.h"
#include "heap/heap.h"
#include "heap/hits.h"
#include "heap/live.h"
#include "heap/points.h"
#include "heap/ranges.h"
#include "heap/threads.h"
#include "heap/touches.h"
#include "heap/traces.h"
#include "heap/tree.h"
#include "heap/weight.h"
#include "wire/wire.h"

#define TEMP_NS 10000000ull		/* freed sooner than this: temporary */
#define TREND_VALUES 64

/* A realloc's free that may have to be undone. */
struct undo {
	uint64_t addr;		/* 0: none */
	struct live_block block;
	uint32_t node;		/* of its trace then */
	uint32_t serial;	/* of its thread's number */
	bool temp;
};

/* What a slot's last unmapping took away. More pieces than that are never one mapping to be moved. */
#define TAKEN_MAX 64u
struct taken {
	uint64_t start, end;		/* what was asked for */
	struct {
		struct range_part part;
		uint32_t node;		/* of its trace then */
		bool temp;
	} parts[TAKEN_MAX];
	uint32_t n;
};

struct heap {
	struct tree *tree;
	uint32_t max_nodes;
	uint32_t merged_node;
	struct traces traces;
	struct live live;
	struct threads threads;
	char *which;		/* the threads chosen, NULL: all */
	struct traces chosen;	/* what theirs hold; of no use otherwise */
	struct weights weights;
	struct tree_path paths[WIRE_SLOTS + 1];	/* of the thread's last stack; one for no thread at all */
	struct undo undo[WIRE_SLOTS];
	struct ranges ranges;
	struct resident *resident;
	struct hits hits;		/* page faults waiting for their blocks */
	struct touch_table touches, chosen_touches;	/* of all threads; of those chosen, since they were */
	struct taken *taken[WIRE_SLOTS];	/* NULL: it hasn't unmapped anything yet */
	uint64_t min_size;
	uint64_t now;			/* newest time seen */
	uint64_t lost_frees, untracked;
	uint64_t alloc_bytes;		/* estimated, since the start; so are these */
	uint64_t alloc_q10, free_q10;
	uint64_t seq;
	struct points points, chosen_points;	/* of all blocks; of those chosen, since they were */
	struct { double time; uint64_t live; } trend[TREND_VALUES];
	size_t ntrend;			/* values ever put; ring */
	struct classes *classes;	/* of the last pass, or NULL */
	bool classes_fresh;	/* they are of the view that comes next, */
	bool series_due;	/* which is for a file */
	double classes_next;		/* monotonic: not before this is the next pass */
};

/* Is it one of those threads that only are to be shown? */
static inline bool heap_is_chosen(const struct heap *heap, uint16_t thread)
{
	return heap->which && heap->threads.items[thread].chosen;
}

/* An event of the slot's thread (WIRE_SLOTS: of nobody): what came before it can't be undone any more. */
static inline void heap_see(struct heap *heap, uint64_t time, uint32_t slot)
{
	if (time > heap->now)
		heap->now = time;
	if (slot < WIRE_SLOTS)
		heap->undo[slot].addr = 0;
}

/* The trace of a node, or of all those there is no room for. */
static inline uint32_t heap_trace_of(struct heap *heap, uint32_t node)
{
	if (node == TREE_NONE)
		return traces_merged(&heap->traces, heap->merged_node);
	return traces_of_node(&heap->traces, node, heap->merged_node);
}

/* Bytes as they are, and a block or none: mappings aren't sampled. */
static inline struct heap_weight heap_weight_of_mapping(uint64_t bytes)
{
	return (struct heap_weight){ .bytes = bytes, .blocks_q10 = 1024 };
}

/* The node of a stack, TREE_NONE if there may be no more; with a pseudo frame outside if it isn't complete. */
uint32_t heap_node_of_stack(struct heap *heap, const struct heap_stack *stack, uint32_t slot);

#endif
