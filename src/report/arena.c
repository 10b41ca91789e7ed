/* Arenas; see arena.h. */
#include "report/arena.h"

#include <stdalign.h>
#include <stdlib.h>

#include "base/mem.h"

#define CHUNK (64u << 10)

struct arena_chunk {
	struct arena_chunk *next;
	alignas(max_align_t) char bytes[];
};

void *arena_take(struct arena *arena, size_t bytes)
{
	bytes = (bytes + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
	if (bytes > arena->size - arena->used) {
		size_t size = bytes > CHUNK ? bytes : CHUNK;
		struct arena_chunk *chunk = xcalloc(1, sizeof(*chunk) + size);
		chunk->next = arena->chunks;
		arena->chunks = chunk;
		arena->size = size;
		arena->used = 0;
	}
	void *ret = arena->chunks->bytes + arena->used;
	arena->used += bytes;
	return ret;
}

void arena_free(struct arena *arena)
{
	while (arena->chunks) {
		struct arena_chunk *next = arena->chunks->next;
		free(arena->chunks);
		arena->chunks = next;
	}
	*arena = (struct arena){ 0 };
}
