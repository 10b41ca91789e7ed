/*
 * The BPF program's ring of records, mapped: read without a system call, and what has been read stays where it is until the
 * reader says that it is done. libbpf's reader gives each record's room back as soon as it has handed it over, and where the
 * ring is full the kernel writes there at once. One thread.
 *
 *	while ((record = uprobe_ring_next(&ring, &size)))
 *		...
 *	uprobe_ring_done(&ring);
 */
#ifndef HEAPTOP_PROBE_UPROBE_RING_H
#define HEAPTOP_PROBE_UPROBE_RING_H

#include <stddef.h>
#include <stdint.h>

struct uprobe_ring {
	unsigned long *consumed;	/* a page; the kernel may write over what lies before that position. NULL: not mapped */
	const unsigned long *produced;	/* a page; and has written up to this one */
	const uint8_t *data;		/* behind it, twice: no record lies around the end */
	size_t bytes;			/* of the ring, a power of two */
	unsigned long next;		/* where the next record to be read begins */
};

/* Map a BPF_MAP_TYPE_RINGBUF of so many bytes, whose descriptor may be closed then. 0 or an errno. */
int uprobe_ring_map(struct uprobe_ring *ring, int map, size_t bytes);
void uprobe_ring_unmap(struct uprobe_ring *ring);	/* one that isn't mapped, too */

/* The next record, there until uprobe_ring_done; NULL: none is there that has been written to its end. */
const void *uprobe_ring_next(struct uprobe_ring *ring, size_t *ret_size);
/* The room of all that have been read is the kernel's again. */
void uprobe_ring_done(struct uprobe_ring *ring);
/* The same of all there are, read or not; nobody writes any more. */
void uprobe_ring_skip(struct uprobe_ring *ring);

#endif
