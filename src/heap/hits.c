/* Addresses into blocks; see hits.h. */
#include "heap/hits.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "heap/live.h"
#include "heap/ranges.h"
#include "heap/traces.h"
#include "heap/tree.h"

#define PAGE_SHIFT 12u
#define FEW_PAGES 4u		/* of a block, up to which its pages are looked for one by one first */

void hits_deinit(struct hits *h)
{
	free(h->items);
	free(h->order);
	*h = (struct hits){ 0 };
}

static size_t bit_of(uint64_t page)
{
	return (page * 0x9e3779b97f4a7c15ull) >> 50;
}
_Static_assert(sizeof(((struct hits *)0)->pages) * 8 == 1u << (64 - 50), "a bit for each value of the hash");

static void mark(struct hits *h, uint64_t addr)
{
	size_t bit = bit_of(addr >> PAGE_SHIFT);

	h->pages[bit / 64] |= 1ull << bit % 64;
}

void hits_add(struct hits *h, uint64_t addr, uint64_t time)
{
	VEC_GROW(h->items, h->n, h->cap);
	h->items[h->n++] = (struct hit){ .addr = addr, .time = time, .owner = TREE_NONE };
	mark(h, addr);
}

void hits_drop(struct hits *h, size_t n)
{
	memmove(h->items, h->items + n, (h->n - n) * sizeof(h->items[0]));
	h->n -= n;
	h->nsorted = 0;
	memset(h->pages, 0, sizeof(h->pages));
	for (size_t i = 0; i < h->n; i++)
		mark(h, h->items[i].addr);
}

static int by_address(const void *pa, const void *pb, void *arg)
{
	const struct hit *items = arg;
	uint64_t a = items[*(const uint32_t *)pa].addr, b = items[*(const uint32_t *)pb].addr;

	return a < b ? -1 : a > b;
}

static void sort(struct hits *h)
{
	if (h->nsorted == h->n)
		return;
	if (h->order_cap < h->n) {
		h->order_cap = h->n * 2;
		h->order = xreallocarray(h->order, h->order_cap, sizeof(h->order[0]));
	}
	for (size_t i = 0; i < h->n; i++)
		h->order[i] = (uint32_t)i;
	qsort_r(h->order, h->n, sizeof(h->order[0]), by_address, h->items);
	h->nsorted = h->n;
}

/* May there be any in the block? */
static bool may_hit(const struct hits *h, const struct hit_block *block)
{
	uint64_t first = block->start >> PAGE_SHIFT, last = (block->start + block->size - 1) >> PAGE_SHIFT;

	if (last - first >= FEW_PAGES)
		return true;
	for (uint64_t page = first; page <= last; page++) {
		size_t bit = bit_of(page);
		if (h->pages[bit / 64] >> bit % 64 & 1)
			return true;
	}
	return false;
}

static void take(struct hit *hit, const struct hit_block *block)
{
	bool early = hit->time < block->since, free = hit->owner == TREE_NONE;

	if (hit->time > block->until || (early && block->since - hit->time > HIT_EARLY_NS))
		return;
	if (!free && (early || (!hit->early && hit->size <= block->size)))
		return;
	hit->owner = block->owner;
	hit->size = block->size;
	hit->early = early;
}

void hits_take(struct hits *h, const struct hit_block *block)
{
	if (!h->n || !block->size || block->start > UINT64_MAX - block->size || !may_hit(h, block))
		return;
	sort(h);
	size_t low = 0, high = h->n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (h->items[h->order[mid]].addr < block->start)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < h->n && h->items[h->order[low]].addr < block->start + block->size; low++)
		take(&h->items[h->order[low]], block);
}

void hits_take_live(struct hits *h, const struct live *live, const struct ranges *ranges, const struct traces *traces)
{
	for (size_t i = 0; h->n && i < live_slots(live); i++) {
		const struct live_block *b = live_slot(live, i);
		if (!b->addr)
			continue;
		struct hit_block block = { b->addr, b->size, b->time, UINT64_MAX, b->trace };
		/* its node is one more line to fetch: for those that are hit only */
		if (!b->size || b->addr > UINT64_MAX - b->size || !may_hit(h, &block))
			continue;
		block.owner = traces->items[b->trace].node;
		hits_take(h, &block);
	}
	for (size_t i = 0; h->n && i < ranges->nnodes; i++) {
		const struct range_node *node = &ranges->nodes[i];
		const struct range_mapping *m = &ranges->mappings[node->mapping];
		if (node->start < node->end)
			hits_take(h, &(struct hit_block){
				node->start, node->end - node->start, m->time, UINT64_MAX, traces->items[m->trace].node,
			});
	}
}
