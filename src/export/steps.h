/*
 * What each trace held at the last times (heap/series.h), as comments of a profile:
 *
 *	#heaptop steps <time>...		2 to SERIES_STEPS of them, oldest first, as bits
 *	#heaptop held <sample> <bytes>...	one each; a sample without held as much all the time as it does now
 *	#heaptop thread-steps <time>...		the same of view.threads, by their indices
 *	#heaptop thread-held <thread> <bytes>...
 */
#ifndef HEAPTOP_EXPORT_STEPS_H
#define HEAPTOP_EXPORT_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/meta.h"
#include "heap/series.h"

void steps_write(const struct view *view, meta_emit_fn emit, void *ctx);
/* All of the threads, which come before. */
void steps_write_threads(const struct view *view, meta_emit_fn emit, void *ctx);
/* The comment of the sample `index`, which is trace `trace` of the view. */
void steps_write_sample(const struct view *view, size_t trace, size_t index, meta_emit_fn emit, void *ctx);

/* What has been read: memory as the comments' own text. All zero: nothing. */
struct steps {
	uint32_t n;
	double times[SERIES_STEPS];
	struct steps_held {
		uint32_t sample;
		uint64_t bytes[SERIES_STEPS];
	} *held;
	size_t nheld, cap;
};

void steps_deinit(struct steps *steps);
/* Take one comment without its "#heaptop "; false if it is none of these. nsamples: indices are below that. */
bool steps_read(struct steps *steps, size_t nsamples, const char *text);
/* The same of threads: `steps` are theirs alone. */
bool steps_read_threads(struct steps *steps, size_t nthreads, const char *text);
/*
 * All is read; `traces` are what the view is about to get, `nodes` those by sample, live: bytes by sample. Gives the view
 * its series, if it has any.
 */
void steps_finish(const struct steps *steps, const uint32_t *nodes, const struct trace_stats *samples, size_t nsamples,
		  const struct view_trace *traces, size_t n, struct view *view);
/* The same of threads, whose rows the view has. */
void steps_finish_threads(const struct steps *steps, struct view *view);

#endif
