/*
 * What the live blocks are like (heap/classes.h) and the threads, as comments of a profile and back; meta.h has the
 * other comments. Numbers in hex:
 *
 *	#heaptop row <tid> <merged> <flags> <12 numbers>=name	a row of view.threads
 *	#heaptop who <tid> <merged> <flags>=name		one of classes.threads; they are numbered as they come
 *	#heaptop cells <sample> <size> <age> <thread> <bytes> <q10> <samples> ...	all cells of a sample
 *
 * A sample stays one sample: with labels it would be several, each with rounded numbers of blocks.
 */
#ifndef HEAPTOP_EXPORT_CELLS_H
#define HEAPTOP_EXPORT_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/meta.h"
#include "heap/classes.h"

/* All threads of a view. */
void cells_write_threads(const struct view *view, meta_emit_fn emit, void *ctx);
/* The cells of sample `index`, whose trace has that node; nothing if the view's classes aren't its own. */
void cells_write_sample(const struct view *view, uint32_t node, size_t index, meta_emit_fn emit, void *ctx);

/* Cells as they are read, by sample. */
struct cells {
	struct classes_build build;	/* nodes are indices of samples */
	size_t read;
};
#define CELLS_MAX (4u << 20)		/* beyond, cells are left out */

void cells_init(struct cells *cells);
void cells_deinit(struct cells *cells);
/* Take one comment without its "#heaptop "; false if it is none of these. nsamples: indices are below that. */
bool cells_read(struct cells *cells, struct view *view, size_t nsamples, const char *text);
/*
 * All is read; `traces` are what the view is about to get, `nodes` those by sample. Gives the view its classes, fresh if
 * each trace's cells add up to what the trace says, as another tool may have changed the one and kept the other; and
 * each trace its old_bytes.
 */
void cells_finish(const struct cells *cells, const uint32_t *nodes, struct view *view, struct view_trace *traces, size_t n);

#endif
