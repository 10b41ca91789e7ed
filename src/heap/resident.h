/*
 * How much of the live blocks is in memory: page maps (target/pagemap.h) attributed to the blocks that lie on the
 * pages, summed by trace. A pass copies what there is to know of the blocks, sorts it by address and goes
 * through the address space once, a slice of time after the other; what changes meanwhile is seen by the next pass.
 * The collector thread.
 *
 * The estimate. Let block i hold the bytes [addr, addr + size) and b_i of them lie on pages that are resident.
 * Blocks are disjoint, so each byte of a page belongs to one block at most, and the sum of b_i over *all* blocks of
 * the program counts no byte twice: many small blocks on one page share it by overlap, each with its own bytes,
 * and what no block covers (the allocator's headers, rounding, free blocks between) is nobody's. A sampled block
 * stands for w_i = 1 / P(it was sampled) blocks (heap.h), so for any set of traces
 *
 *	R = sum over sampled i of  w_i b_i,	E[R] = sum over all i of b_i	(Horvitz-Thompson)
 *
 * whether blocks share pages or not: b_i is fixed by where the block lies, not by who else was sampled. On a single
 * page w_i b_i may well exceed the page; cutting that off would make the estimate too small. Since b_i <= size_i,
 * R <= live holds for each trace, exactly, and R = live where all has been touched. Var(R) is estimated by
 * sum of (w_i b_i)^2 (1 - 1 / w_i), as that of live bytes. Swapped bytes likewise. What neither is was never
 * touched: live - resident - swapped.
 *
 * A block inside another one (of an allocator that gets its memory from a hooked one, or in a mapping with --mmap)
 * has its bytes to itself: they are taken from the outer one, so that pages still count once. That
 * holds for the blocks that are known, so what a sampled inner one stands for is counted for the outer one
 * as well, as it is in the live bytes of both.
 *
 * More than RESIDENT_MAX blocks are thinned: of those smaller than RESIDENT_KEEP every k-th is looked at, chosen by a
 * hash of its address, and stands for k of them: the same estimate with k w_i in place of w_i, bounded by
 * the trace's live bytes.
 */
#ifndef HEAPTOP_HEAP_RESIDENT_H
#define HEAPTOP_HEAP_RESIDENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/pagemap.h"

#define RESIDENT_MAX (1u << 19)		/* blocks a pass, 48 bytes each while it lasts */
#define RESIDENT_KEEP (64u << 10)	/* bytes; larger ones are never thinned */

struct live;
struct ranges;
struct resident;
struct traces;
struct weights;

/*
 * As pagemap_runs: the runs in [start, end), ascending. Asked for [0, 0) at the end of a pass: an error says then that what
 * it was told isn't to be believed.
 */
typedef int (*resident_runs_fn)(void *ctx, uint64_t start, uint64_t end, struct page_run *ret, size_t max,
				size_t *ret_n, uint64_t *ret_next);

/* Sums of the last whole pass; all zero before the first. */
struct resident_totals {
	uint64_t anon, file;		/* resident bytes on pages of the process alone, and on others; estimated */
	uint64_t swapped;
	double variance;		/* of anon + file, bytes^2 */
	uint64_t blocks;		/* looked at */
	uint32_t thinned;		/* k; 1: all of them were */
	uint64_t passes;
};

struct resident *resident_create(void);
void resident_destroy(struct resident *r);	/* accepts NULL */

/* What a pass takes in. */
struct resident_source {
	const struct live *live;
	const struct ranges *ranges;
	struct weights *weights;
	const struct traces *traces;
	bool (*chosen)(void *ctx, uint16_t thread);	/* is it one of a second set? NULL: there is none */
	void *ctx;
	uint32_t max;			/* blocks; 0: RESIDENT_MAX */
};

/* Begin a pass: some 20 ns a block. One that isn't finished is given up. */
void resident_begin(struct resident *r, const struct resident_source *source);
/*
 * Go on with it for about that many seconds; true: it is over, and the sums below are new. An error of `runs` ends
 * it as well, with *ret_errnum set and the sums as before. Without a pass: true.
 */
bool resident_step(struct resident *r, struct weights *weights, resident_runs_fn runs, void *ctx, double seconds,
		   int *ret_errnum);
bool resident_busy(const struct resident *r);

/* By index of trace, for indices below n; a record of another node has nothing (it was given away since). */
struct resident_sum {
	uint64_t bytes, swapped;
	uint64_t chosen_bytes, chosen_swapped;	/* of them in blocks of the second set */
	uint32_t node;
};
const struct resident_sum *resident_sums(const struct resident *r, size_t *ret_n);
const struct resident_totals *resident_totals(const struct resident *r);

#endif
