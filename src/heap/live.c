/* The live table; see live.h. */
#include "heap/live.h"

#include <stdlib.h>

#include "base/mem.h"

#define FIRST_BITS 10u
#define MOVED_A_PUT 16u		/* old slots: a table has grown after a sixteenth of its slots in puts */

/* Fibonacci hashing (Knuth 6.4); allocators hand out 16-byte granules. */
static inline uint64_t hash(uint64_t addr)
{
	return (addr >> 4 ^ addr << 60) * 0x9e3779b97f4a7c15ull;
}

static struct live_table make_table(unsigned bits)
{
	size_t n = (size_t)1 << bits;

	return (struct live_table){ .blocks = xcalloc(n, sizeof(struct live_block)), .n = n, .shift = 64 - bits };
}

static inline size_t home_of(const struct live_table *t, uint64_t addr)
{
	return (size_t)(hash(addr) >> t->shift);
}

/* The one it goes into: while the table grows, what hasn't been moved yet still gathers in the old one. */
static inline const struct live_table *table_for(const struct live *live, uint64_t addr)
{
	return __builtin_expect(!live->old.n, 1) || home_of(&live->old, addr) < live->moved ? &live->table : &live->old;
}

void live_init(struct live *live, size_t max)
{
	*live = (struct live){ .max = max, .table = make_table(FIRST_BITS) };
}

void live_deinit(struct live *live)
{
	free(live->table.blocks);
	free(live->old.blocks);
	*live = (struct live){ 0 };
}

void live_ahead(const struct live *live, uint64_t addr)
{
	const struct live_table *t = table_for(live, addr);

	__builtin_prefetch(&t->blocks[home_of(t, addr)], 1);
}

static inline struct live_block *find_in(const struct live_table *t, uint64_t addr)
{
	for (size_t i = home_of(t, addr); t->blocks[i].addr; i = (i + 1) & (t->n - 1))
		if (t->blocks[i].addr == addr)
			return &t->blocks[i];
	return NULL;
}

struct live_block *live_find(struct live *live, uint64_t addr)
{
	if (!addr)
		return NULL;
	if (__builtin_expect(!live->old.n, 1))
		return find_in(&live->table, addr);
	const struct live_table *t = table_for(live, addr);
	struct live_block *ret = find_in(t, addr);
	/* a run of blocks is moved as a whole, also those of it whose home is elsewhere */
	return ret ? ret : find_in(t == &live->old ? &live->table : &live->old, addr);
}

static inline void place(const struct live_table *t, const struct live_block *block)
{
	size_t i = home_of(t, block->addr);

	while (t->blocks[i].addr)
		i = (i + 1) & (t->n - 1);
	t->blocks[i] = *block;
}

/*
 * Move what is in the next slots of the old table, and on to the end of the run of used ones: without it, or
 * the end of it, the old table is as good as before.
 */
static void move_some(struct live *live)
{
	size_t mask = live->old.n - 1, end = live->moved + MOVED_A_PUT;

	for (; live->moved < end || live->old.blocks[live->moved & mask].addr; live->moved++) {
		struct live_block *block = &live->old.blocks[live->moved & mask];
		if (block->addr)
			place(&live->table, block);
		block->addr = 0;
	}
	if (live->moved >= live->old.n) {
		free(live->old.blocks);
		live->old = (struct live_table){ 0 };
	}
}

/* A table twice as large, into which every later put moves some blocks: clearing it all takes a second. */
static void grow(struct live *live)
{
	while (live->old.n)
		move_some(live);
	live->old = live->table;
	live->table = make_table(64 - live->old.shift + 1);
	live->moved = 0;
}

bool live_put(struct live *live, const struct live_block *block)
{
	if (live->count >= live->max)
		return false;
	if (live->count >= live->table.n / 8 * 5)
		grow(live);
	if (live->old.n)
		move_some(live);
	place(table_for(live, block->addr), block);
	live->count++;
	return true;
}

void live_remove(struct live *live, struct live_block *block)
{
	bool old = live->old.n && block >= live->old.blocks && block < live->old.blocks + live->old.n;
	const struct live_table *t = old ? &live->old : &live->table;
	size_t mask = t->n - 1;
	size_t hole = (size_t)(block - t->blocks);

	/* Knuth 6.4, algorithm R: an entry moves into the hole unless its home lies after it */
	for (size_t i = (hole + 1) & mask; t->blocks[i].addr; i = (i + 1) & mask) {
		size_t home = home_of(t, t->blocks[i].addr);
		if (((i - home) & mask) >= ((i - hole) & mask)) {
			t->blocks[hole] = t->blocks[i];
			hole = i;
		}
	}
	t->blocks[hole].addr = 0;
	live->count--;
}
