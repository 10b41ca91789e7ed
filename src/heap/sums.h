/*
 * Sums of trace statistics that are the same in whatever order they were made, and exactly back
 * at what they were when a part is taken out again. That is what lets a sum be kept from view to
 * view by adding the differences: floating sums would drift, and a standard error that doesn't come
 * back to 0 would claim an estimate where all is counted.
 *
 * So variances and rates are fixed-point integers here: variances in 2^-16 bytes^2 (a standard error
 * is then right to 1/256 byte, and 2^20 traces of up to 2^90 bytes^2 each fit), rates in 2^-20 a second
 * (up to 2^43 in a sum). What lies outside is clamped: snapshots may hold anything. Any thread.
 */
#ifndef HEAPTOP_HEAP_SUMS_H
#define HEAPTOP_HEAP_SUMS_H

#include <stddef.h>
#include <stdint.h>

#include "heap/view.h"

#define SUMS_COUNTS 17
#define SUMS_VARS 3
_Static_assert(offsetof(struct trace_stats, live_var) == SUMS_COUNTS * sizeof(uint64_t),
	       "the integers of trace_stats come first");

/* All zero: the sum of nothing. Arithmetic wraps, so a sum may also be a (negative) difference. */
struct sums {
	unsigned __int128 vars[SUMS_VARS];	/* live_var, alloc_var, fault_var */
	uint64_t counts[SUMS_COUNTS];	/* in trace_stats' order */
	uint64_t rates[4];
};

void sums_add(struct sums *sums, const struct trace_stats *s);
void sums_sub(struct sums *sums, const struct trace_stats *s);
/* dst += src */
void sums_merge(struct sums *dst, const struct sums *src);
struct trace_stats sums_get(const struct sums *sums);

#endif
