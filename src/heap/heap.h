/*
 * The heap model of one process: which trace holds how much. Fed with allocations and frees
 * in the order of their time; publishes immutable views. Never an event log: memory is bounded
 * by live tracked blocks and distinct traces. One thread: the collector.
 *
 * Sampling weights (design, section 3). A block of s bytes met by sampling at mean interval R
 * stands for w = 1 / (1 - exp(-s/R)) blocks (Horvitz-Thompson: the inverse of the chance that
 * a Poisson process of rate 1/R over the bytes hits the block at least once); R <= 1: w = 1.
 * Weights are applied per block before anything is summed. Sums are integers (bytes; blocks in
 * 1/1024), so that what a free takes away is exactly what the allocation added. The variance of
 * the estimate is summed too: (s*w)^2 * (1 - 1/w) a block, from which standard errors come.
 */
#ifndef HEAPTOP_HEAP_HEAP_H
#define HEAPTOP_HEAP_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap/resident.h"

struct heap;
struct view;
struct view_info;

struct heap_config {
	uint32_t max_traces;	/* beyond this, stacks are merged into FRAME_MERGED; 0: default */
	uint64_t min_size;	/* bytes: blocks and mappings of less are in no sum at all */
	uint32_t max_live;	/* tracked live blocks at most; 0: default. Beyond: counted, not
				 * tracked */
};

/*
 * The ceiling: HEAP_MAX_TRACES traces of 256 bytes (134 MB) and 176 in the newest view (92 MB; views
 * share these, so that each further one that is held costs what changed since, and half a byte a trace),
 * 16 tree nodes a trace of 26 to 40 bytes (335 MB), HEAP_MAX_LIVE blocks of 32 bytes in a table 5/8
 * full (512 MB), HEAP_MAX_RANGES pieces of mappings of 64 (64 MB). When the traces are used up, those without live blocks that were idle longest are merged
 * into one, FRAME_MERGED; if there are none, new stacks go there at once.
 */
#define HEAP_MAX_TRACES (1u << 19)
#define HEAP_MAX_LIVE (10u << 20)
#define HEAP_MAX_RANGES (1u << 20)
#define HEAP_NODES_PER_TRACE 16u

struct heap *heap_create(const struct heap_config *config);
void heap_destroy(struct heap *heap);	/* published views stay valid until unref'ed */

/*
 * An allocation's stack: the `keep` outermost frames of the slot's stack before, and within them
 * `n` frames, frame_addr() values, innermost first. `why`, an unwind_end value, tells whether its
 * outer end is missing.
 */
struct heap_stack {
	const uint64_t *addrs;
	size_t n, keep;
	int why;
};

/*
 * One allocation. slot: the thread's slot index. time: ns since the start. rate: as in probe_event. A live
 * block already at `addr` was freed unseen: it is ended first (counted in view_totals.lost_frees).
 */
void heap_alloc(struct heap *heap, uint64_t addr, uint64_t size, uint64_t rate, uint64_t time,
		uint32_t slot, const struct heap_stack *stack);

/* The slot's events are from here on those of thread tid (in the target's PID namespace). `name`: 16 bytes,
 * untrusted, "" if it isn't known. */
void heap_thread(struct heap *heap, uint32_t slot, uint32_t tid, const char *name, uint64_t time);
/* These threads there are now, ascending; the heap knows none that came later. With n 0
 * the process has ended. */
void heap_threads_present(struct heap *heap, const uint32_t *tids, size_t n);
/* Names may change: number and id of the next thread to look at, 0 if there are none; and what was found. */
uint16_t heap_thread_next(struct heap *heap, uint32_t *ret_tid);
void heap_thread_name(struct heap *heap, uint16_t number, const char *name);

/*
 * From now on views show the blocks of these threads alone: `which` is a list, separated by commas, of ids and
 * of patterns for names (fnmatch(3); a backslash takes a comma, too, for itself), also of threads that come later
 * or get such a name later. What they hold is known
 * at once, since live blocks know their threads; what else they have allocated counts from here on, and their
 * graph begins. NULL: all
 * threads again. Rows of threads, and all that is said of the process itself, stay as they are. Costs a pass
 * over the live blocks; for events of the chosen threads about half as much again, for others nothing.
 */
void heap_choose_threads(struct heap *heap, const char *which);

/* An event of the block at addr is about to come: fetch what isn't in the cache. */
void heap_ahead(const struct heap *heap, uint64_t addr);

/* The frames of the slot's last stack, innermost first, at most max; without what isn't known. */
size_t heap_last_stack(const struct heap *heap, uint32_t slot, uint64_t *ret, size_t max);

/* One free; unknown addresses are ignored (unsampled or older blocks). by_realloc: keep what is
 * needed to undo it for this slot until the slot's next event. */
void heap_free(struct heap *heap, uint64_t addr, uint64_t time, uint32_t slot, bool by_realloc);
/* The realloc failed: undo this slot's last heap_free(by_realloc) of addr. */
void heap_unfree(struct heap *heap, uint64_t addr, uint32_t slot);

/*
 * Mappings: ranges of addresses, a live table of their own, so that a block may lie in one. heap_map: a new
 * one replaces what was there. heap_unmap: any part of any of them goes; it is kept for this slot until
 * its next heap_map or heap_unmap. Then heap_move (mremap) makes that a mapping at another place, of
 * another size, by another stack, if there was any of it; what was only partly known stays so. Or heap_ununmap
 * undoes it: the call has failed. A mapping counts as one block, until the last of it has gone.
 */
void heap_map(struct heap *heap, uint64_t addr, uint64_t bytes, uint64_t time, uint32_t slot,
	      const struct heap_stack *stack);
void heap_unmap(struct heap *heap, uint64_t addr, uint64_t bytes, uint64_t time, uint32_t slot);
void heap_move(struct heap *heap, uint64_t addr, uint64_t bytes, uint64_t time, uint32_t slot,
	       const struct heap_stack *stack);
void heap_ununmap(struct heap *heap, uint32_t slot);

/*
 * Look which of the live blocks' bytes are in memory (resident.h), a slice after the other: begin, then step until
 * it returns true; the traces have their new figures then. *ret_errnum is what `runs` has failed with, or 0.
 */
void heap_resident_begin(struct heap *heap);
bool heap_resident_step(struct heap *heap, resident_runs_fn runs, void *ctx, double seconds, int *ret_errnum);
const struct resident_totals *heap_resident_totals(const struct heap *heap);

/*
 * Page faults, sampled: that stack was the first to touch so many bytes of pages, in the block there. Counted beside all
 * else: it changes no other figure of any trace. Told twice. heap_hit as soon as it is known, before the events that
 * came after it: blocks that end meanwhile take it with them (hits.h). When all events up to then are in,
 * heap_find_hits looks for the rest among the live blocks (2 to 5 ns a block), and heap_fault counts the `hit`th that
 * is still waiting, which heap_drop_hits ends.
 */
struct heap_fault {
	size_t hit;
	uint64_t bytes, time;	/* time: ns since the start */
	bool chosen;		/* of a thread for which heap_chooses */
	double variance;	/* of bytes; 0: counted, not estimated */
};
void heap_hit(struct heap *heap, uint64_t addr, uint64_t time);
void heap_find_hits(struct heap *heap);
void heap_fault(struct heap *heap, const struct heap_fault *fault, const struct heap_stack *stack);
void heap_drop_hits(struct heap *heap, size_t n);
/* Is there a choice of threads? And is that one chosen, which need not have allocated? `name`: 16 bytes, untrusted. */
bool heap_has_choice(const struct heap *heap);
bool heap_chooses(const struct heap *heap, uint32_t tid, const char *name);

/*
 * Publish: compute rates since the last publish and freeze a view. `info` is copied (its strings
 * too). The caller owns the reference returned.
 */
struct view *heap_publish(struct heap *heap, const struct view_info *info, uint64_t time);

/*
 * Say in the view that is published next, at that time and before anything else happens, what its live blocks are like:
 * view->classes, and each trace's old_bytes. `now`: by a pass over the live table, whatever it takes, and with what the
 * traces held before (view->series); else the pass is
 * left out, and what is known since an earlier view is given again (or nothing), if the passes took their share of
 * the time (CLASSES_SHARE) or the live blocks are too many (CLASSES_MAX_LIVE).
 */
void heap_classify(struct heap *heap, uint64_t time, bool now);
/* The classes of no view are wanted any more. */
void heap_forget_classes(struct heap *heap);

/*
 * Current totals without publishing: tracked live blocks; since the start, estimated: bytes
 * allocated, allocations, frees of tracked blocks (of others nothing is known).
 */
uint64_t heap_live_samples(const struct heap *heap);
uint64_t heap_alloc_bytes(const struct heap *heap);
uint64_t heap_alloc_calls(const struct heap *heap);
uint64_t heap_free_calls(const struct heap *heap);

/* The weight of a block: bytes and blocks (1/1024) it stands for, and its variance (bytes^2). */
struct heap_weight {
	uint64_t bytes, blocks_q10;
	double variance;
};
struct heap_weight heap_weigh(uint64_t size, uint64_t rate);

#endif
