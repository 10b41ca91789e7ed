/* The table of pairs; see touches.h. */
#include "heap/touches.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define FIRST_SLOTS 256u

struct touches *touches_ref(struct touches *touches)
{
	if (touches)
		__atomic_add_fetch(&touches->refs, 1, __ATOMIC_RELAXED);
	return touches;
}

void touches_unref(struct touches *touches)
{
	if (touches && __atomic_sub_fetch(&touches->refs, 1, __ATOMIC_ACQ_REL) == 0)
		free(touches);
}

void touch_table_deinit(struct touch_table *t)
{
	touches_unref(t->made);
	free(t->slots);
	*t = (struct touch_table){ 0 };
}

static struct touch_pair *slot_of(const struct touch_table *t, uint32_t toucher, uint32_t owner)
{
	uint64_t hash = ((uint64_t)toucher << 32 | owner) * 0x9e3779b97f4a7c15ull;
	size_t i = (hash ^ hash >> 32) & (t->nslots - 1);

	while (t->slots[i].bytes && (t->slots[i].toucher != toucher || t->slots[i].owner != owner))
		i = (i + 1) & (t->nslots - 1);
	return &t->slots[i];
}

static void grow(struct touch_table *t)
{
	struct touch_table old = *t;

	t->nslots = old.nslots ? old.nslots * 2 : FIRST_SLOTS;
	t->slots = xcalloc(t->nslots, sizeof(*t->slots));
	for (size_t i = 0; i < old.nslots; i++)
		if (old.slots[i].bytes)
			*slot_of(t, old.slots[i].toucher, old.slots[i].owner) = old.slots[i];
	free(old.slots);
}

void touch_table_add(struct touch_table *t, uint32_t toucher, uint32_t owner, uint64_t bytes)
{
	if (!bytes)
		return;
	if (t->n * 2 >= t->nslots)
		grow(t);
	struct touch_pair *slot = slot_of(t, toucher, owner);
	if (!slot->bytes && t->n >= TOUCH_PAIRS_MAX)
		/* which there is one of at most for each trace, and traces are bounded */
		slot = slot_of(t, toucher, owner = TOUCH_NOBODY);
	if (!slot->bytes) {
		*slot = (struct touch_pair){ .toucher = toucher, .owner = owner };
		t->n++;
	}
	slot->bytes += bytes;
	touches_unref(t->made);
	t->made = NULL;
}

static int compare(const void *pa, const void *pb)
{
	const struct touch_pair *a = pa, *b = pb;

	if (a->toucher != b->toucher)
		return a->toucher < b->toucher ? -1 : 1;
	return a->owner < b->owner ? -1 : a->owner > b->owner;
}

struct touches *touch_table_list(struct touch_table *t)
{
	if (!t->made && t->n) {
		t->made = xmalloc(sizeof(*t->made) + t->n * sizeof(t->made->pairs[0]));
		t->made->refs = 1;
		t->made->n = 0;
		for (size_t i = 0; i < t->nslots; i++)
			if (t->slots[i].bytes)
				t->made->pairs[t->made->n++] = t->slots[i];
		qsort(t->made->pairs, t->made->n, sizeof(t->made->pairs[0]), compare);
	}
	return touches_ref(t->made);
}
