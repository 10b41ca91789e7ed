/* Side-band records of perf_event; see sideband.h. */
#include "target/sideband.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "target/perfring.h"

#define RING_PAGES 16u	/* of data; with as many processors as they like, below what everybody may lock */

struct ring {
	int fd;			/* -1: a processor that is off */
	struct perf_ring ring;	/* not mapped with it */
};

struct sideband {
	struct ring *rings;	/* by processor */
	size_t n;
};

void sideband_close(struct sideband *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++) {
		perf_ring_unmap(&s->rings[i].ring);
		if (s->rings[i].fd >= 0)
			close(s->rings[i].fd);
	}
	free(s->rings);
	free(s);
}

/* 0 or an errno. */
static int open_ring(struct ring *ring, int cpu)
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

	ring->fd = perf_open(&attr, -1, cpu);
	if (ring->fd < 0)
		return errno == ENODEV ? 0 : errno;
	return perf_ring_map(&ring->ring, ring->fd, RING_PAGES);
}

struct err *sideband_open(struct sideband **ret)
{
	struct sideband *s = xcalloc(1, sizeof(*s));
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int errnum = 0;

	*ret = NULL;
	s->n = cpus > 0 ? (size_t)cpus : 1;
	s->rings = xcalloc(s->n, sizeof(*s->rings));
	for (size_t i = 0; i < s->n; i++)
		s->rings[i].fd = -1;
	for (size_t i = 0; i < s->n && !errnum; i++)
		errnum = open_ring(&s->rings[i], (int)i);
	if (errnum) {
		sideband_close(s);
		return err_errno(errnum, "perf_event doesn't tell what processes map and execute");
	}
	*ret = s;
	return NULL;
}

/*
 * MMAP2: { header; u32 pid, tid; u64 addr, len, pgoff; ... }, COMM: { header; u32 pid, tid; char comm[] }, FORK and EXIT:
 * { header; u32 pid, ppid; u32 tid, ptid; u64 time }: all begin with whom they are about, in our PID namespace.
 * LOST: { header; u64 id, lost }.
 */
unsigned sideband_parse(const struct perf_ring *ring, uint64_t *tail, uint64_t head, pid_t pid)
{
	const struct about {
		struct perf_event_header header;
		uint32_t pid, other;
	} *r;
	uint64_t around[sizeof(*r) / sizeof(uint64_t)];
	unsigned news = 0;

	while ((r = (const struct about *)perf_ring_record(ring, tail, head, around, sizeof(around)))) {
		if (r->header.size < sizeof(*r) || r->header.type == PERF_RECORD_LOST)
			news |= SIDEBAND_ALL;
		else if ((pid_t)r->pid != pid)
			continue;
		else if (r->header.type == PERF_RECORD_MMAP2)
			news |= SIDEBAND_CODE;
		else if (r->header.type == PERF_RECORD_COMM && r->header.misc & PERF_RECORD_MISC_COMM_EXEC)
			news |= SIDEBAND_EXEC;
		else if (r->header.type == PERF_RECORD_FORK || r->header.type == PERF_RECORD_EXIT)
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
		struct perf_ring *ring = &s->rings[i].ring;
		uint64_t head = perf_ring_head(ring), tail = ring->tail;

		if (tail == head)
			continue;
		news |= sideband_parse(ring, &tail, head, pid);
		perf_ring_done(ring, tail);
	}
	return news;
}
