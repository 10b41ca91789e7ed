/*
 * The trace tree; see tree.h.
 *
 * A node's record {addr, parent, last child} is 16 bytes, so a step that hits the last-lookup
 * cache touches one cache line: the child's, which holds the address to compare and the next
 * step's last child. Depths lie apart: only readers and the hint want them. Records lie in chunks
 * that double in size, so that they never move and 22 pointers suffice for 2^32 nodes. The
 * hash holds node ids only; the key is read from the node.
 */
#include "heap/tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define FIRST_LOG2 10			/* nodes of the first chunk, log2 */
#define CHUNKS (33 - FIRST_LOG2)
#define FIRST_SLOTS 2048u
#define SLOTS_AHEAD 16u			/* slots are fetched so many nodes before they are filled: they lie all over */

struct node {
	uint64_t addr;
	uint32_t parent;
	uint32_t last;		/* child last looked up, 0: none; the writer's alone */
};

struct chunk {
	struct node *nodes;
	uint16_t *depths;
};

struct tree {
	int refs;
	bool last_lookup;
	uint32_t count;		/* atomic: published after the node is complete */
	struct chunk chunks[CHUNKS];
	uint32_t *slots;	/* hash: node ids, 0 empty (the root is never looked up) */
	uint32_t nslots;	/* power of two */
	struct tree_stats stats;
};

/* Chunk k holds the ids from 2^(k + FIRST_LOG2) - 2^FIRST_LOG2 on, as many as its size. */
static inline unsigned chunk_of(uint32_t id, uint64_t *ret_at)
{
	uint64_t biased = (uint64_t)id + (1u << FIRST_LOG2);
	unsigned log2 = 63 - (unsigned)__builtin_clzll(biased);

	*ret_at = biased - (1ull << log2);
	return log2 - FIRST_LOG2;
}

static inline struct node *node_at(const struct tree *tree, uint32_t id)
{
	uint64_t at;
	unsigned k = chunk_of(id, &at);

	return &tree->chunks[k].nodes[at];
}

static inline uint16_t *depth_at(const struct tree *tree, uint32_t id)
{
	uint64_t at;
	unsigned k = chunk_of(id, &at);

	return &tree->chunks[k].depths[at];
}

static inline uint32_t hash(uint32_t parent, uint64_t addr)
{
	uint64_t h = (addr ^ (uint64_t)parent << 32 ^ parent) * 0x9e3779b97f4a7c15ull;

	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9ull;	/* splitmix64's first multiplier */
	return (uint32_t)(h >> 32);
}

static void slot_put(struct tree *tree, uint32_t id, uint32_t parent, uint64_t addr)
{
	uint32_t mask = tree->nslots - 1;
	uint32_t i = hash(parent, addr) & mask;

	while (tree->slots[i])
		i = (i + 1) & mask;
	tree->slots[i] = id;
}

static void slots_grow(struct tree *tree)
{
	free(tree->slots);
	tree->stats.bytes += (uint64_t)tree->nslots * sizeof(*tree->slots);
	tree->nslots *= 2;
	tree->slots = xcalloc(tree->nslots, sizeof(*tree->slots));
	for (uint32_t id = 1; id < tree->count; id++) {
		const struct node *node = node_at(tree, id);
		if (tree->count - id > SLOTS_AHEAD) {
			const struct node *later = node_at(tree, id + SLOTS_AHEAD);
			uint32_t slot = hash(later->parent, later->addr) & (tree->nslots - 1);
			__builtin_prefetch(&tree->slots[slot], 1);
		}
		slot_put(tree, id, node->parent, node->addr);
	}
}

/* Id of a new node, or 0 when 2^31 of them are there (the callers' bounds come far earlier). */
static uint32_t node_add(struct tree *tree, uint32_t parent, uint64_t addr, uint16_t depth)
{
	uint32_t id = tree->count;
	uint64_t at;
	unsigned k = chunk_of(id, &at);
	struct chunk *chunk = &tree->chunks[k];

	if (id >= 1u << 31)
		return 0;
	if (!chunk->nodes) {
		size_t n = (size_t)1 << (k + FIRST_LOG2);
		chunk->nodes = xcalloc(n, sizeof(*chunk->nodes));
		chunk->depths = xcalloc(n, sizeof(*chunk->depths));
		tree->stats.bytes += n * (sizeof(*chunk->nodes) + sizeof(*chunk->depths));
	}
	chunk->nodes[at] = (struct node){ .addr = addr, .parent = parent };
	chunk->depths[at] = depth;
	__atomic_store_n(&tree->count, id + 1, __ATOMIC_RELEASE);
	return id;
}

struct tree *tree_create(void)
{
	struct tree *tree = xcalloc(1, sizeof(*tree));

	tree->refs = 1;
	tree->last_lookup = true;
	tree->nslots = FIRST_SLOTS;
	tree->slots = xcalloc(tree->nslots, sizeof(*tree->slots));
	tree->stats.bytes = sizeof(*tree) + tree->nslots * sizeof(*tree->slots);
	node_add(tree, 0, 0, 0);
	return tree;
}

const struct tree *tree_ref(const struct tree *tree)
{
	if (tree)
		__atomic_add_fetch(&((struct tree *)tree)->refs, 1, __ATOMIC_RELAXED);
	return tree;
}

void tree_unref(const struct tree *ctree)
{
	struct tree *tree = (struct tree *)ctree;

	if (!tree || __atomic_sub_fetch(&tree->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	for (unsigned k = 0; k < CHUNKS; k++) {
		free(tree->chunks[k].nodes);
		free(tree->chunks[k].depths);
	}
	free(tree->slots);
	free(tree);
}

void tree_destroy(struct tree *tree)
{
	tree_unref(tree);
}

void tree_set_last_lookup(struct tree *tree, bool on)
{
	tree->last_lookup = on;
}

/* One frame inwards: the child of `id` at addr; TREE_NONE if it isn't there and not to be added. */
static inline uint32_t step(struct tree *tree, uint32_t id, uint64_t addr, size_t depth, bool add)
{
	struct node *node = node_at(tree, id);

	if (tree->last_lookup && node->last && node_at(tree, node->last)->addr == addr) {
		tree->stats.last_hits++;
		return node->last;
	}
	uint32_t mask = tree->nslots - 1;
	uint32_t slot = hash(id, addr) & mask;
	uint32_t found;
	while ((found = tree->slots[slot])) {
		const struct node *child = node_at(tree, found);
		if (child->addr == addr && child->parent == id)
			break;
		slot = (slot + 1) & mask;
	}
	if (found) {
		tree->stats.hash_hits++;
	} else {
		if (!add)
			return TREE_NONE;
		found = node_add(tree, id, addr, (uint16_t)depth);
		if (!found)
			return id;
		tree->slots[slot] = found;
		tree->stats.added++;
		if (tree->count > tree->nslots / 8 * 5)
			slots_grow(tree);
	}
	node->last = found;
	return found;
}

void tree_path_deinit(struct tree_path *path)
{
	free(path->ids);
	*path = (struct tree_path){ 0 };
}

static void path_room(struct tree_path *path, size_t n)
{
	if (n <= path->cap)
		return;
	path->cap = (uint32_t)(n < 32 ? 32 : n + n / 2);
	path->ids = xreallocarray(path->ids, path->cap, sizeof(*path->ids));
}

static inline uint32_t lookup(struct tree *tree, struct tree_path *path, size_t keep, const uint64_t *addrs,
			      size_t n, bool add)
{
	uint32_t id = 0;

	if (!path)
		keep = 0;
	else if (keep > path->n)
		keep = path->n;
	if (n > TREE_MAX_DEPTH - keep)
		n = TREE_MAX_DEPTH - keep;
	tree->stats.steps += keep + n;
	tree->stats.last_hits += keep;
	if (keep)
		id = path->ids[keep - 1];
	if (path) {
		path_room(path, keep + n);
		path->n = (uint32_t)(keep + n);
	}
	for (size_t depth = keep + 1; n > 0; depth++) {
		/* below a frame that isn't there nothing is */
		if (id != TREE_NONE)
			id = step(tree, id, addrs[--n], depth, add);
		else
			n--;
		if (path)
			path->ids[depth - 1] = id;
	}
	return id;
}

uint32_t tree_insert(struct tree *tree, struct tree_path *path, size_t keep, const uint64_t *addrs, size_t n)
{
	return lookup(tree, path, keep, addrs, n, true);
}

uint32_t tree_child(struct tree *tree, uint32_t parent, uint64_t addr)
{
	return step(tree, parent, addr, *depth_at(tree, parent) + 1u, true);
}

uint32_t tree_find(struct tree *tree, struct tree_path *path, size_t keep, const uint64_t *addrs, size_t n)
{
	return lookup(tree, path, keep, addrs, n, false);
}

uint32_t tree_count(const struct tree *tree)
{
	return __atomic_load_n(&tree->count, __ATOMIC_ACQUIRE);
}

struct tree_node tree_get(const struct tree *tree, uint32_t id)
{
	const struct node *node = node_at(tree, id);

	return (struct tree_node){
		.addr = node->addr,
		.parent = node->parent,
		.depth = *depth_at(tree, id),
	};
}

struct tree_stats tree_stats(const struct tree *tree)
{
	return tree->stats;
}
