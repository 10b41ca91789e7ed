/*
 * Who touches new memory: page faults (target/faults.h), unwound and counted in the heap's traces as bytes of pages
 * first touched. The collector thread.
 *
 * A sample stands for period faults. What the kernel didn't sample, because there were too many at once, it has
 * counted all the same: some times a second the samples since are scaled to that count. Each fault is as many bytes
 * as the page is that lies at its address then: 4 KiB, or 2 MiB of a huge one. Pages of files, and of code, are
 * left out.
 */
#ifndef HEAPTOP_COLLECT_TOUCHING_H
#define HEAPTOP_COLLECT_TOUCHING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct frames;
struct heap;
struct target;
struct touching;
struct unwinder;

/* The target is stopped, or runs; its modules are known. Borrows it. */
struct err *touching_open(struct target *t, struct touching **ret);
void touching_close(struct touching *g);	/* accepts NULL */

/* Whose addresses they are. `missed`: as of intake, may read the modules again. */
struct touching_of {
	struct heap *heap;
	struct unwinder *unwinder;
	struct frames *frames;
	bool (*missed)(void *ctx, const uint64_t *pcs, size_t n);
	void *ctx;
};
/* Take in what there is, and count it if it is time to, or `last`. time: ns since the start, now: monotonic seconds.
 * Returns the number of samples. */
size_t touching_step(struct touching *g, const struct touching_of *of, uint64_t time, double now, bool last);

#endif
