/*
 * What the live blocks of a view are like: of each trace, how large they are, how old, and whose. A
 * sparse table of cells, one for each combination there is of (node of the trace, size class, age class, thread),
 * whose sums over a trace are that trace's live_bytes, live_q10 and live_samples to the last bit.
 *
 * Nothing of it is kept while events come in: a pass over the live table makes it (heap_classify), when
 * somebody wants to see it. A pass costs some 30 ns a block (150 with 100,000 traces; make bench BENCH=classes)
 * and nothing else may happen meanwhile, so they are rationed: see CLASSES_SHARE.
 *
 * Cells are built by one thread; a finished table is immutable, reference-counted, any thread's.
 */
#ifndef HEAPTOP_HEAP_CLASSES_H
#define HEAPTOP_HEAP_CLASSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap/view.h"

/*
 * Passes that a screen asks for take at most one part in so many of the collector's time, and beyond so many live
 * blocks there are none: the rings would fill up meanwhile. A snapshot's is always made.
 */
#define CLASSES_SHARE 50u
#define CLASSES_MAX_LIVE (1u << 20)

/*
 * Sizes by powers of two: class 0 holds what asked for 0 bytes, class k what asked for 2^(k-1) up to
 * 2^k - 1; the last one everything above as well.
 */
#define CLASS_SIZES 48u
/* Ages by powers of ten as far as people count in them: <1 ms, <10 ms, <100 ms, <1 s, <10 s, <1 min, <10 min, <1 h, more. */
#define CLASS_AGES 9u
#define CLASS_AGE_MINUTE 6u	/* the first class of what is at least a minute old */
#define CLASS_AGE_HOUR 8u
/* The thread of what has none: mappings; and of those beyond the number of threads told apart. */
#define CLASS_NO_THREAD 0xffffu

unsigned class_of_size(uint64_t size);
unsigned class_of_age(uint64_t ns);
/* Smallest size of a class. */
uint64_t class_size_from(unsigned size_class);
/* Age in ns at which a class ends; UINT64_MAX for the last. */
uint64_t class_age_until(unsigned age_class);

struct class_cell {
	uint32_t node;		/* of the trace: stays the same in all views of a tree */
	uint16_t thread;	/* index in classes.threads, or CLASS_NO_THREAD */
	uint8_t size, age;	/* classes */
	uint64_t bytes, q10;	/* estimated: what the blocks met by sampling stand for */
	uint32_t samples;	/* blocks met */
};

struct class_thread {
	uint32_t tid;		/* in the target's PID namespace; 0: not known, or a sum */
	uint32_t merged;	/* not 0: a sum over so many threads of this name */
	bool ended;
	char name[VIEW_THREAD_NAME];	/* sanitised; "": not known */
};

struct classes {
	int refs;		/* atomic */
	double time;		/* seconds since the start: what ages are told from */
	uint64_t cost_ns;	/* of the pass; 0: none was needed (a sum, a file) */
	struct class_thread *threads;
	uint32_t nthreads;
	struct class_cell *cells;	/* by node, size, age, thread */
	size_t n;
};

struct classes *classes_ref(struct classes *classes);	/* accepts NULL */
void classes_unref(struct classes *classes);		/* accepts NULL */

/* The cells of a node; *ret_n 0 if it has none. */
const struct class_cell *classes_of_node(const struct classes *classes, uint32_t node, size_t *ret_n);

/* ---- building ---- */

struct classes_build {
	struct class_cell *slots;	/* hash; samples 0: empty */
	size_t nslots, n;
	struct class_thread *threads;
	size_t nthreads, threads_cap;
};

void classes_build_init(struct classes_build *b);
void classes_build_deinit(struct classes_build *b);
/* Add to the cell of that combination. Cells without samples or out of range are left out. */
void classes_add(struct classes_build *b, const struct class_cell *cell);
/* It will soon be added: fetch what isn't in the cache. */
void classes_ahead(const struct classes_build *b, const struct class_cell *cell);
/* A new thread's index; CLASS_NO_THREAD if there are too many. */
uint16_t classes_thread(struct classes_build *b, const struct class_thread *thread);
/* The index of the threads of that name, in a sum over processes: `thread` is counted among them. */
uint16_t classes_thread_by_name(struct classes_build *b, const struct class_thread *thread);
/*
 * The table, with one reference. `b` stays as it is. node_of: what is to stand in place of each cell's node (a
 * trace's index, say), NULL: that itself; cells that are one then add up.
 */
typedef uint32_t (*classes_node_fn)(void *ctx, uint32_t node);
struct classes *classes_finish(const struct classes_build *b, double time, classes_node_fn node_of, void *ctx);

#endif
