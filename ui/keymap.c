/* See keymap.h. */
#include "ui/keymap.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* splitmix64's finaliser */
static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 27;
	x *= UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

uint64_t keymap_mix(uint64_t a, uint64_t b)
{
	return mix(mix(a) + b + UINT64_C(0x9e3779b97f4a7c15));
}

void keymap_deinit(struct keymap *m)
{
	free(m->slots);
	m->slots = NULL;
	m->n = m->cap = 0;
}

void keymap_clear(struct keymap *m)
{
	if (m->cap)
		memset(m->slots, 0, m->cap * sizeof(*m->slots));
	m->n = 0;
}

static struct keymap_slot *find(struct keymap_slot *slots, size_t cap, uint64_t key)
{
	size_t i = mix(key) & (cap - 1);

	while (slots[i].used && slots[i].key != key)
		i = (i + 1) & (cap - 1);
	return &slots[i];
}

static void grow(struct keymap *m)
{
	size_t cap = m->cap ? m->cap * 2 : 64;
	struct keymap_slot *slots = xcalloc(cap, sizeof(*slots));

	for (size_t i = 0; i < m->cap; i++)
		if (m->slots[i].used)
			*find(slots, cap, m->slots[i].key) = m->slots[i];
	free(m->slots);
	m->slots = slots;
	m->cap = cap;
}

void keymap_put(struct keymap *m, uint64_t key, uint64_t value)
{
	size_t max = m->max ? m->max : 1 << 18;

	if (m->n >= max)
		keymap_clear(m);
	if (!m->cap || m->n * 2 >= m->cap)
		grow(m);
	struct keymap_slot *slot = find(m->slots, m->cap, key);
	if (!slot->used)
		m->n++;
	*slot = (struct keymap_slot){ key, value, true };
}

bool keymap_get(const struct keymap *m, uint64_t key, uint64_t *ret)
{
	if (!m->cap)
		return false;
	const struct keymap_slot *slot = find(m->slots, m->cap, key);
	if (!slot->used)
		return false;
	*ret = slot->value;
	return true;
}
