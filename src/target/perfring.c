/* Rings of perf_event; see perfring.h. */
#include "target/perfring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int perf_open(const struct perf_event_attr *attr, int tid, int cpu)
{
	return (int)syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

int perf_ring_map(struct perf_ring *ring, int fd, size_t pages)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *at = mmap(NULL, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return errno;
	*ring = (struct perf_ring){ .page = at, .data = (const uint8_t *)at + page, .bytes = pages * page };
	return 0;
}

void perf_ring_unmap(struct perf_ring *ring)
{
	if (ring->page)
		munmap(ring->page, ring->bytes + (size_t)sysconf(_SC_PAGESIZE));
	*ring = (struct perf_ring){ 0 };
}

uint64_t perf_ring_head(const struct perf_ring *ring)
{
	return ring->page ? __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE) : 0;
}

/* From anywhere in a ring. */
static void copy_out(void *to, const struct perf_ring *ring, uint64_t at, size_t n)
{
	size_t from = (size_t)at & (ring->bytes - 1), first = ring->bytes - from < n ? ring->bytes - from : n;

	memcpy(to, ring->data + from, first);
	memcpy((uint8_t *)to + first, ring->data, n - first);
}

const struct perf_event_header *perf_ring_record(const struct perf_ring *ring, uint64_t *tail, uint64_t head, void *around,
						 size_t cap)
{
	struct perf_event_header header;
	uint64_t at = *tail;

	if (at >= head || head - at < sizeof(header))
		return NULL;
	copy_out(&header, ring, at, sizeof(header));
	if (header.size < sizeof(header) || header.size % 8 || header.size > head - at)
		return NULL;
	*tail = at + header.size;
	size_t from = (size_t)at & (ring->bytes - 1);
	if (ring->bytes - from >= header.size && from % 8 == 0)
		return (const struct perf_event_header *)(ring->data + from);
	copy_out(around, ring, at, header.size < cap ? header.size : cap);
	return around;
}

void perf_ring_done(struct perf_ring *ring, uint64_t tail)
{
	ring->tail = tail;
	__atomic_store_n(&ring->page->data_tail, tail, __ATOMIC_RELEASE);
}
