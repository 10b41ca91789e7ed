/* Side-band records of perf_event; see sideband.h. */
#include "target/sideband.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"

#define RING_PAGES 16u	/* of data; with as many processors as they like, below what everybody may lock */

struct ring {
	int fd;			/* -1: a processor that is off */
	uint8_t *map;		/* header page, then data; NULL with it */
};

struct sideband {
	struct ring *rings;	/* by processor */
	size_t n;
	size_t page;
};

void sideband_close(struct sideband *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++) {
		if (s->rings[i].map)
			munmap(s->rings[i].map, (RING_PAGES + 1) * s->page);
		if (s->rings[i].fd >= 0)
			close(s->rings[i].fd);
	}
	free(s->rings);
	free(s);
}

/* 0 or an errno. */
static int open_ring(const struct sideband *s, struct ring *ring, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
	};

	ring->fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (ring->fd < 0)
		return errno == ENODEV ? 0 : errno;
	void *map = mmap(NULL, (RING_PAGES + 1) * s->page, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	if (map == MAP_FAILED)
		return errno;
	ring->map = map;
	return 0;
}

struct err *sideband_open(struct sideband **ret)
{
	struct sideband *s = xcalloc(1, sizeof(*s));
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int errnum = 0;

	*ret = NULL;
	s->page = (size_t)sysconf(_SC_PAGESIZE);
	s->n = cpus > 0 ? (size_t)cpus : 1;
	s->rings = xcalloc(s->n, sizeof(*s->rings));
	for (size_t i = 0; i < s->n; i++)
		s->rings[i].fd = -1;
	for (size_t i = 0; i < s->n && !errnum; i++)
		errnum = open_ring(s, &s->rings[i], (int)i);
	if (errnum) {
		sideband_close(s);
		return err_errno(errnum, "perf_event doesn't tell what processes map and execute");
	}
	*ret = s;
	return NULL;
}

/* From anywhere in a ring. */
static void copy_out(void *to, const uint8_t *ring, size_t size, uint64_t at, size_t n)
{
	size_t from = (size_t)at & (size - 1), first = size - from < n ? size - from : n;

	memcpy(to, ring + from, first);
	memcpy((uint8_t *)to + first, ring, n - first);
}

/*
 * MMAP2: { header; u32 pid, tid; u64 addr, len, pgoff; ... }, COMM: { header; u32 pid, tid; char comm[] }, FORK and EXIT:
 * { header; u32 pid, ppid; u32 tid, ptid; u64 time }: all begin with whom they are about, in our PID namespace.
 * LOST: { header; u64 id, lost }.
 */
unsigned sideband_parse(const uint8_t *ring, size_t size, uint64_t *tail, uint64_t head, pid_t pid)
{
	struct {
		struct perf_event_header header;
		uint32_t pid, other;
	} r;
	unsigned news = 0;

	while (*tail < head && head - *tail >= sizeof(r)) {
		copy_out(&r, ring, size, *tail, sizeof(r));
		if (r.header.size < sizeof(r) || r.header.size > head - *tail)
			break;	/* not what the kernel writes */
		*tail += r.header.size;
		if (r.header.type == PERF_RECORD_LOST)
			news |= SIDEBAND_ALL;
		else if ((pid_t)r.pid != pid)
			continue;
		else if (r.header.type == PERF_RECORD_MMAP2)
			news |= SIDEBAND_CODE;
		else if (r.header.type == PERF_RECORD_COMM && r.header.misc & PERF_RECORD_MISC_COMM_EXEC)
			news |= SIDEBAND_EXEC;
		else if (r.header.type == PERF_RECORD_FORK || r.header.type == PERF_RECORD_EXIT)
			news |= SIDEBAND_THREADS;
	}
	if (*tail != head) {
		*tail = head;
		news |= SIDEBAND_ALL;
	}
	return news;
}

unsigned sideband_take(struct sideband *s, pid_t pid)
{
	unsigned news = 0;

	for (size_t i = 0; i < s->n; i++) {
		struct perf_event_mmap_page *page = (struct perf_event_mmap_page *)s->rings[i].map;
		if (!page)
			continue;
		uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), tail = page->data_tail;
		if (tail == head)
			continue;
		news |= sideband_parse(s->rings[i].map + s->page, RING_PAGES * s->page, &tail, head, pid);
		__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
	}
	return news;
}
