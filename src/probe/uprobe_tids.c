/* Slots for thread ids; see uprobe_tids.h. */
#include "probe/uprobe_tids.h"

#include <string.h>

static uint16_t *tid_home(struct tids *ids, uint32_t tid)
{
	uint32_t at = tid * 0x9e3779b1u >> 19;

	for (uint32_t i = 0; i < TIDS_HASH; i++, at = (at + 1) % TIDS_HASH)
		if (!ids->at[at] || ids->tid[ids->at[at] - 1] == tid)
			return &ids->at[at];
	return NULL;
}

/* All slots again: entries can't be taken out of such a table one by one. */
static void rehash(struct tids *ids)
{
	memset(ids->at, 0, sizeof(ids->at));
	for (uint32_t i = 0; i < ids->used; i++)
		if (ids->tid[i])
			*tid_home(ids, ids->tid[i]) = (uint16_t)(i + 1);
}

bool tids_slot(struct tids *ids, uint32_t tid, uint32_t *ret)
{
	uint16_t *home = tid ? tid_home(ids, tid) : NULL;

	if (!home)
		return false;
	if (*home) {
		*ret = *home - 1u;
		return true;
	}
	for (uint32_t i = 0; i < WIRE_SLOTS; i++) {
		uint32_t slot = (ids->hint + i) % WIRE_SLOTS;

		if (ids->tid[slot])
			continue;
		ids->tid[slot] = tid;
		ids->used = slot + 1 > ids->used ? slot + 1 : ids->used;
		ids->hint = slot + 1;
		*home = (uint16_t)(slot + 1);
		*ret = slot;
		return true;
	}
	return false;
}

static void give_back(struct tids *ids)
{
	ids->hint = 0;
	rehash(ids);
}

void tids_keep(struct tids *ids, const uint32_t *tids, size_t n)
{
	bool any = false;

	for (uint32_t i = 0; i < ids->used; i++) {
		uint32_t low = 0, high = (uint32_t)n;

		while (low < high) {
			uint32_t mid = low + (high - low) / 2;
			if (tids[mid] < ids->tid[i])
				low = mid + 1;
			else
				high = mid;
		}
		if (ids->tid[i] && (low == n || tids[low] != ids->tid[i])) {
			ids->tid[i] = 0;
			any = true;
		}
	}
	if (any)
		give_back(ids);
}

void tids_forget(struct tids *ids, uint32_t tid)
{
	uint16_t *home = tid ? tid_home(ids, tid) : NULL;

	if (!home || !*home)
		return;
	ids->tid[*home - 1] = 0;
	give_back(ids);
}

uint32_t tids_count(const struct tids *ids)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < ids->used; i++)
		n += ids->tid[i] != 0;
	return n;
}
