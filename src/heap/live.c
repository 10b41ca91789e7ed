/* The live table; see live.h. */
#include "heap/live.h"

#include <stdlib.h>

#include "base/mem.h"

#define FIRST_SLOTS 1024u

/* Fibonacci hashing (Knuth 6.4); allocators hand out 16-byte granules. */
static inline size_t home_of(const struct live *live, uint64_t addr)
{
	uint64_t h = (addr >> 4 ^ addr << 60) * 0x9e3779b97f4a7c15ull;

	return (size_t)(h >> 20) & (live->nslots - 1);
}

void live_init(struct live *live, size_t max)
{
	*live = (struct live){ .nslots = FIRST_SLOTS, .max = max };
	live->blocks = xcalloc(live->nslots, sizeof(*live->blocks));
}

void live_deinit(struct live *live)
{
	free(live->blocks);
	*live = (struct live){ 0 };
}

void live_ahead(const struct live *live, uint64_t addr)
{
	__builtin_prefetch(&live->blocks[home_of(live, addr)], 1);
}

struct live_block *live_find(struct live *live, uint64_t addr)
{
	if (!addr)
		return NULL;
	for (size_t i = home_of(live, addr); live->blocks[i].addr; i = (i + 1) & (live->nslots - 1))
		if (live->blocks[i].addr == addr)
			return &live->blocks[i];
	return NULL;
}

static void place(struct live *live, const struct live_block *block)
{
	size_t i = home_of(live, block->addr);

	while (live->blocks[i].addr)
		i = (i + 1) & (live->nslots - 1);
	live->blocks[i] = *block;
}

static void grow(struct live *live)
{
	struct live_block *old = live->blocks;
	size_t n = live->nslots;

	live->nslots = n * 2;
	live->blocks = xcalloc(live->nslots, sizeof(*live->blocks));
	for (size_t i = 0; i < n; i++)
		if (old[i].addr)
			place(live, &old[i]);
	free(old);
}

bool live_put(struct live *live, const struct live_block *block)
{
	if (live->count >= live->max)
		return false;
	if (live->count >= live->nslots / 8 * 5)
		grow(live);
	place(live, block);
	live->count++;
	return true;
}

void live_remove(struct live *live, struct live_block *block)
{
	size_t mask = live->nslots - 1;
	size_t hole = (size_t)(block - live->blocks);

	/* Knuth 6.4, algorithm R: an entry moves into the hole unless its home lies after it */
	for (size_t i = (hole + 1) & mask; live->blocks[i].addr; i = (i + 1) & mask) {
		size_t home = home_of(live, live->blocks[i].addr);
		if (((i - home) & mask) >= ((i - hole) & mask)) {
			live->blocks[hole] = live->blocks[i];
			hole = i;
		}
	}
	live->blocks[hole].addr = 0;
	live->count--;
}
