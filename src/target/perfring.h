/*
 * Rings of perf_event, mapped: the kernel writes records, we read them without a system call. What is in a header is the
 * kernel's word and yet checked; what lies behind it may be the program's. One thread a ring.
 *
 *	uint64_t head = perf_ring_head(&ring);
 *	while ((record = perf_ring_record(&ring, &ring.tail, head, around, sizeof(around))))
 *		...
 *	perf_ring_done(&ring, head);
 */
#ifndef HEAPTOP_TARGET_PERFRING_H
#define HEAPTOP_TARGET_PERFRING_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

#define PERF_RING_RECORD_MAX 65536u	/* bytes: a record tells its size in 16 bits */

struct perf_ring {
	struct perf_event_mmap_page *page;	/* NULL: none */
	const uint8_t *data;	/* behind it */
	size_t bytes;		/* of data, a power of two */
	uint64_t tail;		/* where the next record begins */
};

/* perf_event_open(2) of one event, closed on exec: a descriptor, or -1 and errno. */
int perf_open(const struct perf_event_attr *attr, int tid, int cpu);

/* Map the ring of an event, with `pages` pages of data, a power of two. 0 or an errno. */
int perf_ring_map(struct perf_ring *ring, int fd, size_t pages);
void perf_ring_unmap(struct perf_ring *ring);	/* one that isn't mapped, too */

/* How far the kernel has written. 0 for one that isn't mapped. */
uint64_t perf_ring_head(const struct perf_ring *ring);
/*
 * The record at *tail, which is then moved behind it; in one piece, so far as it lies around the ring's end its first `cap`
 * bytes in `around` (aligned to 8). Valid until perf_ring_done. NULL: there is none before `head`, or, *tail still being less,
 * something that the kernel doesn't write.
 */
const struct perf_event_header *perf_ring_record(const struct perf_ring *ring, uint64_t *tail, uint64_t head, void *around,
						 size_t cap);
/* The kernel may write over what lies before `tail`. */
void perf_ring_done(struct perf_ring *ring, uint64_t tail);

#endif
