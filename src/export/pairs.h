/*
 * Who touched whose memory (heap/touches.h), as comments of a profile and back; meta.h has the other comments. Numbers in
 * hex, of each sample that touched anything:
 *
 *	#heaptop touch <sample> <owner> <bytes> ...
 *
 * owner: the index of the sample whose stack asked for the block, plus 1; 0: no known block, or none that is in the
 * profile. The bytes of a sample add up to its touched_space.
 */
#ifndef HEAPTOP_EXPORT_PAIRS_H
#define HEAPTOP_EXPORT_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/meta.h"
#include "heap/touches.h"

/* `sample_of`: by node, index of the sample plus 1; 0: it isn't in the profile. */
void pairs_write(const struct view *view, const uint32_t *sample_of, meta_emit_fn emit, void *ctx);

/* Take one comment without its "#heaptop " into the table, with indices of samples in place of nodes; false if it isn't
 * one of these. */
bool pairs_read(struct touch_table *table, size_t nsamples, const char *text);
/*
 * All is read, and the view has its traces; `nodes`: by sample. Gives the view its touches, unless a trace's pairs don't
 * add up to what it says: another tool may have changed the one and kept the other.
 */
void pairs_finish(struct touch_table *table, const uint32_t *nodes, struct view *view);

#endif
