/* Tags of live samples; wire.h tells where each lies and filter.h what for. */
#include "agent/filter.h"

#include "agent/inside.h"

#define RATE_FULL (64u << 10)	/* see raise_rate */

static inline uint32_t *bucket(const struct wire_ctl *ctl, uint64_t addr)
{
	return (uint32_t *)((uint64_t)ctl + WIRE_STATE_FILTER) +
	       (uint64_t)wire_filter_bucket(addr) * WIRE_FILTER_WORDS;
}

static inline uint32_t *tag_line(uint64_t hash, unsigned second)
{
	return ((struct wire_tags *)agent_island.tags)->tag[wire_tag_line(hash, second)];
}

static bool swap_tag(uint32_t *way, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(way, &from, to, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static bool has(const uint32_t *ways, unsigned n, uint32_t tag)
{
	for (unsigned i = 0; i < n; i++)
		if (LOAD(ways[i]) == tag)
			return true;
	return false;
}

/* The first way that holds `from` shall hold `to`. Returns its index, n if none does. */
static unsigned replace(uint32_t *ways, unsigned n, uint32_t from, uint32_t to)
{
	unsigned i = 0;

	while (i < n && !(LOAD(ways[i]) == from && swap_tag(&ways[i], from, to)))
		i++;
	return i;
}

bool agent_filter_has(const struct wire_ctl *ctl, uint64_t addr)
{
	const uint32_t *b = bucket(ctl, addr);

	if (has(b, WIRE_FILTER_WAYS, wire_filter_tag(addr)))
		return true;
	if (!LOAD(b[WIRE_FILTER_WAYS]))
		return false;
	uint64_t hash = wire_tag_hash(addr);
	for (unsigned second = 0; second < 2; second++)
		if (has(tag_line(hash, second), WIRE_TAG_WAYS, wire_tag_of(hash, second)))
			return true;
	return false;
}

/*
 * Outside the bucket. Its count goes up first, and down last: whoever frees the block while it is
 * counted finds it. False: no room.
 */
static bool insert_elsewhere(struct wire_ctl *ctl, uint32_t *more, uint64_t addr)
{
	uint64_t hash = wire_tag_hash(addr);

	if (!agent_island.tags)
		return false;
	for (uint32_t n = LOAD(*more); !swap_tag(more, n, (n | WIRE_FILTER_MORE) + 1);)
		n = LOAD(*more);
	if (replace(tag_line(hash, 0), WIRE_TAG_WAYS, 0, wire_tag_of(hash, 0)) < WIRE_TAG_WAYS)
		return true;
	raise_rate(ctl, RATE_FULL);
	return replace(tag_line(hash, 1), WIRE_TAG_WAYS, 0, wire_tag_of(hash, 1)) < WIRE_TAG_WAYS;
}

/* With no room for the tag anywhere, all frees are recorded from now on. */
void agent_filter_insert(struct wire_ctl *ctl, uint64_t addr)
{
	uint32_t *b = bucket(ctl, addr);

	if (LOAD(ctl->free_all) || agent_filter_has(ctl, addr))
		return;
	if (replace(b, WIRE_FILTER_WAYS, 0, wire_filter_tag(addr)) < WIRE_FILTER_WAYS ||
	    insert_elsewhere(ctl, &b[WIRE_FILTER_WAYS], addr))
		return;
	COUNT(ctl->filter_full);
	STORE(ctl->free_all, 1);
}

bool agent_filter_remove(struct wire_ctl *ctl, uint64_t addr)
{
	uint32_t *b = bucket(ctl, addr), *more = &b[WIRE_FILTER_WAYS];

	if (replace(b, WIRE_FILTER_WAYS, wire_filter_tag(addr), 0) < WIRE_FILTER_WAYS)
		return true;
	if (!LOAD(*more))
		return false;
	uint64_t hash = wire_tag_hash(addr);
	for (unsigned second = 0; second < 2; second++) {
		if (replace(tag_line(hash, second), WIRE_TAG_WAYS, wire_tag_of(hash, second), 0) == WIRE_TAG_WAYS)
			continue;
		uint32_t n = LOAD(*more);
		while (n && !swap_tag(more, n, n == (WIRE_FILTER_MORE | 1) ? 0 : n - 1))
			n = LOAD(*more);
		return true;
	}
	return false;
}
