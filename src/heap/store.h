/*
 * What views share: trace records in chunks of VIEW_CHUNK. A chunk that a view has is never written
 * again; the next view has either the same chunk or a new one in its place, so a view costs its changed
 * chunks and one array of pointers (8 bytes for 16 traces).
 *
 * Who frees a chunk. Chunks have no counts: a view of 20,000 chunks would have to touch each of them
 * twice. Instead a chunk that was replaced hangs on the newest living view that has it. When that
 * view dies, the chunk goes on to the view before it, if that is young enough to have it too, and is
 * free otherwise. (Views have chunks in one stretch of their order: from the one the chunk was made for to
 * the last before its replacement.) Dying so costs what was replaced, too.
 *
 * One writer, the model's thread; views die on any. A store lives as long as its writer or a view.
 */
#ifndef HEAPTOP_HEAP_STORE_H
#define HEAPTOP_HEAP_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "heap/view.h"

struct store;

/* Writer. Destroying leaves the views that there are as they are. */
struct store *store_create(void);
void store_destroy(struct store *store);	/* accepts NULL */

/* The chunk the newest view has there, NULL if none: what store_replace is to be compared with. */
const struct view_chunk *store_chunk(const struct store *store, size_t chunk);
/* Room for what that chunk will hold from the next view on, to be filled before store_publish. At most
 * once for a chunk and view; new chunks in order. */
struct view_trace *store_replace(struct store *store, size_t chunk);
/* Give `view` the chunks. Those of the indices below `ntraces` must all be there. */
void store_publish(struct store *store, struct view *view, size_t ntraces);
/* Chunks that were ever taken from the heap, not counting those used again. */
uint64_t store_made(const struct store *store);

/* Any thread: view_unref's part. */
void store_drop(struct view *view);

#endif
