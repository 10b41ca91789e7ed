/* The chunks of views; see store.h. */
#include "heap/store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define SPARE_MIN 64		/* chunks kept for later at least, and 1/8 of those in use */

struct store {
	pthread_mutex_t lock;	/* for what views share: */
	int refs;		/* the writer and each view */
	struct view *newest;	/* of the living ones */
	struct view_chunk *spare;
	size_t nspare, max_spare;
	/* the writer's alone */
	struct view_chunk **chunks;
	size_t n, cap;
	struct view_chunk *ready;	/* spares taken out in one go, for this publishing */
	struct view_chunk *replaced;	/* since the last view */
	uint64_t seq;		/* of the view in the making */
	uint64_t made;
};

struct store *store_create(void)
{
	struct store *store = xcalloc(1, sizeof(*store));

	pthread_mutex_init(&store->lock, NULL);
	store->refs = 1;
	store->seq = 1;
	store->max_spare = SPARE_MIN;
	return store;
}

static void free_chunks(struct view_chunk *list)
{
	while (list) {
		struct view_chunk *next = list->next;
		free(list);
		list = next;
	}
}

/* Locked. Keep chunks that nobody has for later; what is beyond the bound is returned. */
static struct view_chunk *keep_spare(struct store *store, struct view_chunk *list)
{
	while (list && store->nspare < store->max_spare) {
		struct view_chunk *next = list->next;
		list->next = store->spare;
		store->spare = list;
		store->nspare++;
		list = next;
	}
	return list;
}

/*
 * Locked. Hang chunks that were the view's (or the writer's) on `view`, the next older one, as far as
 * it has them; the others are returned.
 */
static struct view_chunk *pass_on(struct view_chunk *list, struct view *view)
{
	struct view_chunk *unused = NULL;

	while (list) {
		struct view_chunk *next = list->next;
		struct view_chunk **to = view && view->store_seq >= list->born ? &view->replaced : &unused;
		list->next = *to;
		*to = list;
		list = next;
	}
	return unused;
}

/* Give up one reference, and `list`, which came from it. Locked on entry, not on return. */
static void let_go(struct store *store, struct view_chunk *list, struct view *view)
{
	list = keep_spare(store, pass_on(list, view));
	bool last = --store->refs == 0;
	pthread_mutex_unlock(&store->lock);
	free_chunks(list);
	if (!last)
		return;
	free_chunks(store->spare);
	pthread_mutex_destroy(&store->lock);
	free(store->chunks);
	free(store);
}

void store_destroy(struct store *store)
{
	if (!store)
		return;
	for (size_t i = 0; i < store->n; i++) {
		store->chunks[i]->next = store->replaced;
		store->replaced = store->chunks[i];
	}
	free_chunks(store->ready);
	pthread_mutex_lock(&store->lock);
	store->max_spare = 0;	/* nobody will want them */
	let_go(store, store->replaced, store->newest);
}

void store_drop(struct view *view)
{
	struct store *store = view->store;

	pthread_mutex_lock(&store->lock);
	if (view->older)
		view->older->newer = view->newer;
	if (view->newer)
		view->newer->older = view->older;
	else
		store->newest = view->older;
	let_go(store, view->replaced, view->older);
	free(view->chunks);
}

const struct view_chunk *store_chunk(const struct store *store, size_t chunk)
{
	return chunk < store->n ? store->chunks[chunk] : NULL;
}

struct view_trace *store_replace(struct store *store, size_t k)
{
	struct view_chunk *chunk = store->ready;

	if (!chunk) {
		pthread_mutex_lock(&store->lock);
		chunk = store->spare;
		store->spare = NULL;
		store->nspare = 0;
		pthread_mutex_unlock(&store->lock);
	}
	if (chunk) {
		store->ready = chunk->next;
	} else {
		chunk = xmalloc(sizeof(*chunk));
		store->made++;
	}
	chunk->born = store->seq;
	if (k < store->n) {
		store->chunks[k]->next = store->replaced;
		store->replaced = store->chunks[k];
	} else {
		VEC_GROW(store->chunks, store->n, store->cap);
		store->n++;
	}
	store->chunks[k] = chunk;
	return chunk->traces;
}

void store_publish(struct store *store, struct view *view, size_t ntraces)
{
	size_t n = (ntraces + VIEW_CHUNK - 1) / VIEW_CHUNK;

	view->store = store;
	view->store_seq = store->seq++;
	view->ntraces = ntraces;
	view->chunks = n ? xreallocarray(NULL, n, sizeof(*view->chunks)) : NULL;
	if (n)
		memcpy(view->chunks, store->chunks, n * sizeof(*view->chunks));

	pthread_mutex_lock(&store->lock);
	store->refs++;
	store->max_spare = SPARE_MIN + n / 8;
	struct view_chunk *unused = pass_on(store->replaced, store->newest);
	unused = keep_spare(store, unused);
	struct view_chunk *ready = keep_spare(store, store->ready);
	view->older = store->newest;
	if (store->newest)
		store->newest->newer = view;
	store->newest = view;
	pthread_mutex_unlock(&store->lock);
	store->replaced = store->ready = NULL;
	free_chunks(unused);
	free_chunks(ready);
}

uint64_t store_made(const struct store *store)
{
	return store->made;
}
