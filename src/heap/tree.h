/*
 * The trace tree: call stacks, root first, sharing their outer frames. Nodes live in one
 * chunked array, are only ever added, and never move: (addr, parent) of node k < tree_count() may
 * be read by any thread while the writer adds more. A parent's id is smaller than its child's.
 *
 * A look-up goes first to the child the node last went to, then to a hash of (parent, addr).
 * Consecutive allocations come from the same or similar stacks, so most steps hit that cache;
 * the counters say how many. Writer: the collector thread.
 */
#ifndef HEAPTOP_HEAP_TREE_H
#define HEAPTOP_HEAP_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A frame's address: module id above, vaddr (or absolute address for module 0) below. Module
 * ids above 0xffff are not representable: use 0. Small values of module 0 are pseudo frames.
 */
#define FRAME_VADDR_BITS 48
static inline uint64_t frame_addr(uint32_t module, uint64_t vaddr)
{
	return (uint64_t)(module <= 0xffff ? module : 0) << FRAME_VADDR_BITS
		| (vaddr & ((1ull << FRAME_VADDR_BITS) - 1));
}
static inline uint32_t frame_module(uint64_t addr)
{
	return (uint32_t)(addr >> FRAME_VADDR_BITS);
}
static inline uint64_t frame_vaddr(uint64_t addr)
{
	return addr & ((1ull << FRAME_VADDR_BITS) - 1);
}
/*
 * Pseudo frame put above the outermost known frame of a stack that isn't complete: 1 + enum
 * unwind_end (so 2..15 in practice). Also FRAME_MERGED for cold traces given up for the bound.
 */
#define FRAME_PSEUDO_MAX 15u
#define FRAME_MERGED 15u

struct tree;
struct tree_node {
	uint64_t addr;
	uint32_t parent;	/* node id; the root (id 0) has itself */
	uint32_t depth;		/* 0 for the root */
};

struct tree_stats {
	uint64_t steps;		/* frames of the stacks */
	uint64_t last_hits;	/* answered by the last-lookup cache, or kept from the thread's last stack */
	uint64_t hash_hits;	/* found in the hash */
	uint64_t added;		/* new nodes */
	uint64_t bytes;		/* memory held */
};

/*
 * A tree has one reference at birth; views hold further ones, so it outlives its heap. Any
 * thread may take and drop them; tree_destroy drops the creator's. Both accept NULL.
 */
struct tree *tree_create(void);
void tree_destroy(struct tree *tree);
const struct tree *tree_ref(const struct tree *tree);
void tree_unref(const struct tree *tree);
/* Off: for the benchmark that shows what it brings. On at start. */
void tree_set_last_lookup(struct tree *tree, bool on);

/*
 * The way to the node of a thread's last stack, outermost frame first: what the next one shares
 * with it isn't looked up again. {0} is an empty one; 4 bytes a frame. The writer's.
 */
struct tree_path {
	uint32_t *ids;
	uint32_t n, cap;
};
void tree_path_deinit(struct tree_path *path);

/*
 * The node of a stack: the `keep` outermost frames of the path (cut to its length), and within them
 * addrs[n - 1] .. addrs[0], the innermost. With no frames the root. The path becomes that of this
 * stack; NULL: none is kept, keep is 0.
 */
uint32_t tree_insert(struct tree *tree, struct tree_path *path, size_t keep, const uint64_t *addrs, size_t n);

/* The same without adding anything: TREE_NONE if the stack isn't there. */
#define TREE_NONE UINT32_MAX
uint32_t tree_find(struct tree *tree, struct tree_path *path, size_t keep, const uint64_t *addrs, size_t n);

/* One frame inwards of a node that is there; added if need be. */
uint32_t tree_child(struct tree *tree, uint32_t parent, uint64_t addr);

/* Frames of a stack that are kept; of longer ones the outermost are cut off. */
#define TREE_MAX_DEPTH 4096u

/* Any thread. */
uint32_t tree_count(const struct tree *tree);
struct tree_node tree_get(const struct tree *tree, uint32_t id);
/* Writer. */
struct tree_stats tree_stats(const struct tree *tree);

#endif
