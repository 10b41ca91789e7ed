/*
 * Live bytes of each trace at the last times about a second apart: what a snapshot's trends are made of, since who opens
 * it has seen nothing of the time before. 8 bytes a trace and step, so 80 a trace.
 *
 * A series is written by the owner of its traces (the collector thread); what is published is immutable,
 * reference-counted, any thread's.
 */
#ifndef HEAPTOP_HEAP_SERIES_H
#define HEAPTOP_HEAP_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SERIES_STEPS 10u
#define SERIES_STEP 0.95	/* seconds between them, at least */

/* All zero: empty. */
struct series {
	uint64_t *values[SERIES_STEPS];	/* by trace; a ring of steps */
	double times[SERIES_STEPS];	/* seconds, as a view's */
	size_t room;			/* traces */
	uint32_t n;			/* steps ever */
};

void series_deinit(struct series *series);
/* Is it time for another step? */
bool series_due(const struct series *series, double time);
/* Another step, the oldest gives way: its values for `ntraces` traces, zeroes, to be filled in. */
uint64_t *series_step(struct series *series, double time, size_t ntraces);
/* Trace `from` is merged into another: so is what it held. */
void series_move(struct series *series, size_t from, size_t into);

struct view_series {
	int refs;			/* atomic */
	uint32_t n;			/* steps, 2 to SERIES_STEPS */
	double times[SERIES_STEPS];	/* oldest first */
	size_t ntraces;
	uint64_t values[];		/* n a trace, oldest first */
};

/* What is known of the first `ntraces` traces; NULL: of less than two times. */
struct view_series *series_publish(const struct series *series, size_t ntraces);
/* One for so many steps and traces, to be filled in; NULL if there is no such number of steps. */
struct view_series *view_series_create(uint32_t n, size_t ntraces);
struct view_series *view_series_ref(struct view_series *series);	/* accepts NULL */
void view_series_unref(struct view_series *series);			/* accepts NULL */

/* The n values of a trace; NULL: it is none of its traces. */
static inline uint64_t *view_series_of(struct view_series *series, size_t trace)
{
	return trace < series->ntraces ? &series->values[trace * series->n] : NULL;
}

#endif
