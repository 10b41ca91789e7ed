/* The BPF program's ring of records; see uprobe_ring.h. */
#include "probe/uprobe_ring.h"

#include <errno.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Pages of the map: the reader's position, which is ours to write; the kernel's; the data, twice. */
int uprobe_ring_map(struct uprobe_ring *ring, int map, size_t bytes)
{
	size_t page = page_bytes();
	void *ours = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);

	*ring = (struct uprobe_ring){ 0 };
	if (ours == MAP_FAILED)
		return errno;
	void *theirs = mmap(NULL, page + 2 * bytes, PROT_READ, MAP_SHARED, map, (off_t)page);
	if (theirs == MAP_FAILED) {
		int errnum = errno;
		munmap(ours, page);
		return errnum;
	}
	*ring = (struct uprobe_ring){
		.consumed = ours, .produced = theirs, .data = (const uint8_t *)theirs + page, .bytes = bytes,
	};
	ring->next = *ring->consumed;
	return 0;
}

void uprobe_ring_unmap(struct uprobe_ring *ring)
{
	if (!ring->consumed)
		return;
	munmap((void *)ring->produced, page_bytes() + 2 * ring->bytes);
	munmap(ring->consumed, page_bytes());
	*ring = (struct uprobe_ring){ 0 };
}

/* { u32 length, with two bits; u32 the kernel's; data }, padded to 8 bytes. */
const void *uprobe_ring_next(struct uprobe_ring *ring, size_t *ret_size)
{
	unsigned long produced = __atomic_load_n(ring->produced, __ATOMIC_ACQUIRE);

	while (ring->next < produced) {
		const uint8_t *at = ring->data + (ring->next & (ring->bytes - 1));
		uint32_t head = __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);
		size_t size = head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
		size_t all = (BPF_RINGBUF_HDR_SZ + size + 7) & ~(size_t)7;

		if (head & BPF_RINGBUF_BUSY_BIT)
			return NULL;
		if (all > produced - ring->next) {	/* not what the kernel writes */
			ring->next = produced;
			return NULL;
		}
		ring->next += all;
		if (head & BPF_RINGBUF_DISCARD_BIT)
			continue;
		*ret_size = size;
		return at + BPF_RINGBUF_HDR_SZ;
	}
	return NULL;
}

void uprobe_ring_done(struct uprobe_ring *ring)
{
	__atomic_store_n(ring->consumed, ring->next, __ATOMIC_RELEASE);
}

void uprobe_ring_skip(struct uprobe_ring *ring)
{
	ring->next = __atomic_load_n(ring->produced, __ATOMIC_ACQUIRE);
	uprobe_ring_done(ring);
}
