/* Interned strings: an open-addressed table over copies that never move; see strings.h. */
#include "symbol/strings.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

struct strings {
	pthread_mutex_t lock;
	char **slots;		/* capacity a power of two, at most half full */
	size_t n, cap;
};

struct strings *strings_create(void)
{
	struct strings *strings = xcalloc(1, sizeof(*strings));

	pthread_mutex_init(&strings->lock, NULL);
	strings->cap = 256;
	strings->slots = xcalloc(strings->cap, sizeof(*strings->slots));
	return strings;
}

void strings_destroy(struct strings *strings)
{
	if (!strings)
		return;
	for (size_t i = 0; i < strings->cap; i++)
		free(strings->slots[i]);
	free(strings->slots);
	pthread_mutex_destroy(&strings->lock);
	free(strings);
}

/* FNV-1a, 64 bits */
static uint64_t hash(const char *s)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 0x100000001b3u;
	return h ^ h >> 32;
}

static char **find_slot(char **slots, size_t cap, const char *s)
{
	size_t i = hash(s) & (cap - 1);

	while (slots[i] && strcmp(slots[i], s))
		i = (i + 1) & (cap - 1);
	return &slots[i];
}

static void grow(struct strings *strings)
{
	size_t cap = strings->cap * 2;
	char **slots = xcalloc(cap, sizeof(*slots));

	for (size_t i = 0; i < strings->cap; i++)
		if (strings->slots[i])
			*find_slot(slots, cap, strings->slots[i]) = strings->slots[i];
	free(strings->slots);
	strings->slots = slots;
	strings->cap = cap;
}

const char *strings_intern(struct strings *strings, const char *s)
{
	char *copy = xstrndup(s, STRINGS_MAX);

	text_sanitize(copy);
	pthread_mutex_lock(&strings->lock);
	if (2 * (strings->n + 1) > strings->cap)
		grow(strings);
	char **slot = find_slot(strings->slots, strings->cap, copy);
	if (*slot) {
		free(copy);
	} else {
		*slot = copy;
		strings->n++;
	}
	const char *ret = *slot;
	pthread_mutex_unlock(&strings->lock);
	return ret;
}
