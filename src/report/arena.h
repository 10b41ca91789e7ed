/*
 * Memory for what dies together: taken in pieces, given back all at once. One thread.
 */
#ifndef HEAPTOP_REPORT_ARENA_H
#define HEAPTOP_REPORT_ARENA_H

#include <stddef.h>

struct arena_chunk;
struct arena {
	struct arena_chunk *chunks;
	size_t used, size;	/* of the newest chunk */
};

/* Zeroed, aligned for any type. */
void *arena_take(struct arena *arena, size_t bytes);
/* Everything; the arena is empty and usable again. A zeroed struct is an empty arena. */
void arena_free(struct arena *arena);

#endif
