/*
 * What a profile has no field for, as comments: state, mode, counters, the live graph, and what the
 * integers of a sample can't say (fractions of blocks, variances, rates), so that a snapshot shows the
 * same numbers as the screen did. One comment each, beginning with '#', which pprof doesn't print:
 *
 *	#heaptop rate 80000			a field of the view (numbers in hex; floats as their bits)
 *	#heaptop command=./server --port 80	a text
 *	#heaptop point <time> <live> <rss> <rate>
 *	#heaptop sample <index> <12 numbers>	see meta_sample
 *
 * Live blocks and threads are in cells.h, what traces held before in steps.h.
 */
#ifndef HEAPTOP_EXPORT_META_H
#define HEAPTOP_EXPORT_META_H

#include <stdbool.h>
#include <stddef.h>

#include "heap/view.h"

#define META_PREFIX "#heaptop "

typedef void (*meta_emit_fn)(void *ctx, const char *text);

/* All comments of a view but those of samples. */
void meta_write(const struct view *view, meta_emit_fn emit, void *ctx);
/* The comment of sample `index`, if its numbers differ from what meta_defaults makes of its values. */
void meta_write_sample(const struct trace_stats *s, size_t index, meta_emit_fn emit, void *ctx);

/* Blocks from whole numbers, exact: what is true unless a comment says otherwise. */
void meta_defaults(struct trace_stats *s, uint64_t alloc, uint64_t live, uint64_t temp,
		   uint64_t peak);

/* Numbers in comments: floats as their bits; back, what isn't finite is 0. */
uint32_t meta_float_bits(float f);
uint64_t meta_double_bits(double d);
float meta_bits_float(uint64_t bits);
double meta_bits_double(uint64_t bits);
/* A blank and up to 16 hex digits; false: there are none, and *text stays or is of no use. */
bool meta_take_hex(const char **text, uint64_t *ret);

/* Take one comment; false if it is none of ours. samples: n of them, by index in the file. */
bool meta_read(struct view *view, struct trace_stats *samples, size_t n, const char *text);

#endif
