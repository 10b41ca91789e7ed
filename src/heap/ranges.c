/* The live table of mappings; see ranges.h. */
#include "heap/ranges.h"

#include <stdlib.h>
#include <sys/random.h>

#include "base/mem.h"

void ranges_init(struct ranges *ranges, size_t max)
{
	uint32_t seed = 0;

	/* not to be foreseen: a target that knew the priorities could make a list of the tree */
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed) || !seed)
		seed = 2463534242u;
	*ranges = (struct ranges){ .max = max, .random = seed };
}

void ranges_deinit(struct ranges *ranges)
{
	free(ranges->nodes);
	free(ranges->spare_nodes);
	free(ranges->mappings);
	free(ranges->spare_mappings);
}

size_t ranges_count(const struct ranges *ranges)
{
	return ranges->nnodes - ranges->nspare_nodes;
}

bool ranges_room(const struct ranges *ranges)
{
	return ranges_count(ranges) < ranges->max;
}

uint32_t ranges_begin(struct ranges *ranges, const struct range_mapping *mapping)
{
	uint32_t index;

	if (ranges->nspare_mappings) {
		index = ranges->spare_mappings[--ranges->nspare_mappings];
	} else {
		VEC_GROW(ranges->mappings, ranges->nmappings, ranges->mappings_cap);
		index = (uint32_t)ranges->nmappings++;
	}
	ranges->mappings[index] = *mapping;
	ranges->mappings[index].pieces = 0;
	ranges->mappings[index].id = ++ranges->last_id;
	return index;
}

bool ranges_is(const struct ranges *ranges, uint32_t index, uint64_t id)
{
	return id && index < ranges->nmappings && ranges->mappings[index].id == id;
}

/* ---- the treap ---- */

static struct range_node *node_at(struct ranges *ranges, uint32_t link)
{
	return &ranges->nodes[link - 1];
}

/* Into those that start before `start`, and the others. */
static void split(struct ranges *ranges, uint32_t link, uint64_t start, uint32_t *ret_left, uint32_t *ret_right)
{
	if (!link) {
		*ret_left = *ret_right = 0;
		return;
	}
	struct range_node *node = node_at(ranges, link);
	if (node->start < start) {
		*ret_left = link;
		split(ranges, node->right, start, &node->right, ret_right);
	} else {
		*ret_right = link;
		split(ranges, node->left, start, ret_left, &node->left);
	}
}

/* All of `left` starts before all of `right`. */
static uint32_t join(struct ranges *ranges, uint32_t left, uint32_t right)
{
	if (!left || !right)
		return left ? left : right;
	struct range_node *l = node_at(ranges, left), *r = node_at(ranges, right);
	if (l->priority >= r->priority) {
		l->right = join(ranges, l->right, right);
		return left;
	}
	r->left = join(ranges, left, r->left);
	return right;
}

/* The first piece that ends behind addr; 0: none. */
static uint32_t find(struct ranges *ranges, uint64_t addr)
{
	uint32_t link = ranges->root, ret = 0;

	while (link) {
		const struct range_node *node = node_at(ranges, link);
		if (node->end > addr) {
			ret = link;
			link = node->left;
		} else {
			link = node->right;
		}
	}
	return ret;
}

static void insert(struct ranges *ranges, uint32_t mapping, uint64_t start, uint64_t end)
{
	uint32_t left, right, link;

	if (ranges->nspare_nodes) {
		link = ranges->spare_nodes[--ranges->nspare_nodes] + 1;
	} else {
		VEC_GROW(ranges->nodes, ranges->nnodes, ranges->nodes_cap);
		link = (uint32_t)++ranges->nnodes;
	}
	/* xorshift (Marsaglia 2003) */
	ranges->random ^= ranges->random << 13;
	ranges->random ^= ranges->random >> 17;
	ranges->random ^= ranges->random << 5;
	*node_at(ranges, link) = (struct range_node){
		.start = start, .end = end, .mapping = mapping, .priority = ranges->random,
	};
	split(ranges, ranges->root, start, &left, &right);
	ranges->root = join(ranges, join(ranges, left, link), right);
}

static void take_out(struct ranges *ranges, uint32_t link)
{
	uint32_t left, middle, right;
	uint64_t start = node_at(ranges, link)->start;

	split(ranges, ranges->root, start, &left, &right);
	split(ranges, right, start + 1, &middle, &right);
	ranges->root = join(ranges, left, right);
	*node_at(ranges, link) = (struct range_node){ 0 };
	VEC_GROW(ranges->spare_nodes, ranges->nspare_nodes, ranges->spare_nodes_cap);
	ranges->spare_nodes[ranges->nspare_nodes++] = link - 1;
}

/* ---- pieces ---- */

bool ranges_free(struct ranges *ranges, uint64_t start, uint64_t end)
{
	uint32_t link = find(ranges, start);

	return !link || node_at(ranges, link)->start >= end;
}

void ranges_add(struct ranges *ranges, uint32_t index, uint64_t start, uint64_t end)
{
	insert(ranges, index, start, end);
	ranges->mappings[index].pieces++;
}

bool ranges_cut(struct ranges *ranges, uint64_t start, uint64_t end, struct range_part *ret)
{
	uint32_t link = start < end ? find(ranges, start) : 0;

	if (!link || node_at(ranges, link)->start >= end)
		return false;
	struct range_node *node = node_at(ranges, link);
	const struct range_node old = *node;
	struct range_mapping *mapping = &ranges->mappings[old.mapping];

	ret->start = old.start > start ? old.start : start;
	ret->end = old.end < end ? old.end : end;
	if (ret->start > old.start) {
		node->end = ret->start;
		if (old.end > end && ranges_room(ranges)) {
			insert(ranges, old.mapping, end, old.end);
			mapping->pieces++;
		} else {
			ret->end = old.end;
		}
	} else if (old.end > end) {
		node->start = end;
	} else {
		take_out(ranges, link);
		mapping->pieces--;
	}
	ret->mapping = *mapping;
	ret->index = old.mapping;
	if (!mapping->pieces) {
		mapping->id = 0;
		VEC_GROW(ranges->spare_mappings, ranges->nspare_mappings, ranges->spare_mappings_cap);
		ranges->spare_mappings[ranges->nspare_mappings++] = old.mapping;
	}
	return true;
}

static void add_bytes(const struct ranges *ranges, uint32_t link, uint64_t *bytes)
{
	for (; link; link = ranges->nodes[link - 1].right) {
		const struct range_node *node = &ranges->nodes[link - 1];

		bytes[node->mapping] += node->end - node->start;
		add_bytes(ranges, node->left, bytes);
	}
}

void ranges_bytes(const struct ranges *ranges, uint64_t *bytes)
{
	add_bytes(ranges, ranges->root, bytes);
}
