/*
 * The agent in the process of a test: its blob mapped, hooks made for made-up allocators, whose thunks are
 * called like the allocators themselves, and its events read back. One agent at a time. For unit tests.
 */
#ifndef HEAPTOP_TESTS_LIB_PLACED_H
#define HEAPTOP_TESTS_LIB_PLACED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probe/probe.h"
#include "wire/wire.h"

/* The made-up allocators: malloc takes the next bytes from `bump` and never gets any back. */
void *fake_malloc(size_t n);
void fake_free(void *p);
void *fake_calloc(size_t n, size_t size);
void *fake_realloc(void *p, size_t size);
int fake_posix_memalign(void **p, size_t align, size_t size);
void *fake_new(size_t n, size_t align);
void *fake_new_nothrow(size_t n, size_t align, const void *nothrow);
void *fake_object(void);
void fake_put(void *pool, void *p);
size_t fake_grow(void *p, size_t size);

extern uint64_t bump, frees;			/* next address; calls of fake_free */
extern uint64_t news, new_sp;			/* calls of fake_new, its stack pointer then */
extern uint64_t grown;				/* what fake_grow returns */
extern const void *nothrow_given;		/* to fake_new_nothrow */
extern bool nothrow_fails;
extern void *(*nested_malloc)(size_t);		/* the hooked one, as allocators call it */
extern bool realloc_fails;			/* from now on */
extern void (*malloc_body_hook)(void);		/* called inside each malloc, or NULL */

enum { H_MALLOC, H_FREE, H_CALLOC, H_REALLOC, H_POSIX, H_NEW, H_OBJECT, H_PUT, H_GROW, H_COUNT };
extern uint64_t thunk[H_COUNT];			/* what stands in their places when they are hooked */
#define h_malloc ((void *(*)(size_t))thunk[H_MALLOC])
#define h_free ((void (*)(void *))thunk[H_FREE])
#define h_calloc ((void *(*)(size_t, size_t))thunk[H_CALLOC])
#define h_realloc ((void *(*)(void *, size_t))thunk[H_REALLOC])
#define h_posix_memalign ((int (*)(void **, size_t, size_t))thunk[H_POSIX])

#define RING_BYTES (1u << 18)
#define NRINGS 2

extern uint8_t *island, *state, *rings;
extern struct wire_rules *rules;
extern struct wire_tags *tags;
extern struct wire_ctl *ctl;

/* A test's setup and teardown: every call is recorded, nothing waits. */
int placed_setup(void **unused);
int placed_teardown(void **unused);

struct wire_slot *slots(void);
struct wire_slot *my_slot(void);		/* of the calling thread, NULL if it has none */
struct wire_ring *ring_number(unsigned i);
struct wire_ring *my_ring(void);
/* Tell the bounds of the calling thread's stack, as heaptop does. */
void set_bounds(uint64_t lo, uint64_t hi);
const struct wire_walk *slots_walk(void);	/* the calling thread's last walk */

/* Next committed event of any ring, NULL if there is none. Valid until the ring comes round. */
const struct probe_event *next_event(void);
/* What it passed over: the last WIRE_THREAD and its name, and how many there were. */
extern struct probe_event told;
extern char told_name[17];
extern unsigned ntold;
/* The next one, which must be this. */
const struct probe_event *expect_alloc(const void *p, size_t size);
const struct probe_event *expect_free(const void *p, unsigned kind);
#define expect_nothing() assert_null(next_event())

#endif
