/*
 * Who touches new memory: page faults (target/faults.h), unwound and counted in the heap's traces as bytes of pages
 * first touched, with the block they lie in (heap/hits.h). The collector thread.
 *
 * A sample stands for some faults of its kind (target/faults.h), all of which the kernel has counted: some times a second
 * the samples since are scaled to that count. Each fault is as many bytes as the page that came with it; where the
 * kernel doesn't tell that, as the page that lies at its address then: 4 KiB, or 2 MiB of a huge one. Pages of
 * files, and of code, are left out.
 *
 * Blocks are known by events of the probe, faults by another way. So faults are taken in before the events of a round,
 * with the time they came at, and counted only when a later settling has seen what came with them.
 */
#ifndef HEAPTOP_COLLECT_TOUCHING_H
#define HEAPTOP_COLLECT_TOUCHING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct faults_code;
struct frames;
struct heap;
struct target;
struct ticks_clock;
struct touching;
struct unwinder;

/* The target is stopped, or runs; its modules are known. Borrows it; `code` (target/faults_kernel.h) for the call. */
struct err *touching_open(struct target *t, struct faults_code *code, struct touching **ret);
/* What hasn't been settled is forgotten, also by `heap`, which it was taken in for. */
void touching_close(struct touching *g, struct heap *heap);	/* accepts NULL */

/* Whose addresses they are. `missed`: as of intake, may read the modules again. */
struct touching_of {
	struct heap *heap;
	struct unwinder *unwinder;
	struct frames *frames;
	const struct ticks_clock *clock;	/* of the heap's times */
	bool (*missed)(void *ctx, const uint64_t *pcs, size_t n);
	void *ctx;
};
/* Take in what there is; before the events of a round. Returns the number of samples. */
size_t touching_take(struct touching *g, const struct touching_of *of);
/* Count them, if it is time to, or all that is there: `last`. After the events. now: monotonic seconds. */
void touching_settle(struct touching *g, const struct touching_of *of, double now, bool last);

/* Samples taken, and faults counted, since it was opened, up to the last settling: what it costs the target (rate.h). */
struct touching_counts {
	uint64_t samples, faults;
};
struct touching_counts touching_counts(const struct touching *g);	/* accepts NULL */

#endif
