/* Side-band records of perf_event; see sideband.h. */
#include "target/sideband.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
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
	struct sideband_watched *watched;	/* ascending by pid */
	size_t nwatched, watched_cap;
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
	free(s->watched);
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
static unsigned news_of(const struct perf_event_header *header)
{
	if (header->type == PERF_RECORD_MMAP2)
		return SIDEBAND_CODE;
	if (header->type == PERF_RECORD_COMM && header->misc & PERF_RECORD_MISC_COMM_EXEC)
		return SIDEBAND_EXEC;
	return header->type == PERF_RECORD_FORK || header->type == PERF_RECORD_EXIT ? SIDEBAND_THREADS : 0;
}

static void add_all(struct sideband_watched *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		list[i].news = SIDEBAND_ALL;
}

/* Where it is, or would be. */
static size_t place_of(const struct sideband_watched *list, size_t n, pid_t pid)
{
	size_t low = 0;

	while (low < n) {
		size_t mid = low + (n - low) / 2;
		if (list[mid].pid < pid)
			low = mid + 1;
		else
			n = mid;
	}
	return low;
}

static struct sideband_watched *find(struct sideband_watched *list, size_t n, pid_t pid)
{
	size_t at = place_of(list, n, pid);

	return at < n && list[at].pid == pid ? &list[at] : NULL;
}

void sideband_parse(const struct perf_ring *ring, uint64_t *tail, uint64_t head, struct sideband_watched *list, size_t n)
{
	const struct about {
		struct perf_event_header header;
		uint32_t pid, other;
	} *r;
	uint64_t around[sizeof(*r) / sizeof(uint64_t)];

	while ((r = (const struct about *)perf_ring_record(ring, tail, head, around, sizeof(around)))) {
		if (r->header.size < sizeof(*r) || r->header.type == PERF_RECORD_LOST) {
			add_all(list, n);
			continue;
		}
		struct sideband_watched *w = find(list, n, (pid_t)r->pid);
		if (w)
			w->news |= news_of(&r->header);
	}
	if (*tail != head) {
		*tail = head;
		add_all(list, n);
	}
}

static void read_all(struct sideband *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct perf_ring *ring = &s->rings[i].ring;
		uint64_t head = perf_ring_head(ring), tail = ring->tail;

		if (tail == head)
			continue;
		sideband_parse(ring, &tail, head, s->watched, s->nwatched);
		perf_ring_done(ring, tail);
	}
}

void sideband_watch(struct sideband *s, pid_t pid)
{
	size_t at = place_of(s->watched, s->nwatched, pid);

	if (at < s->nwatched && s->watched[at].pid == pid)
		return;
	/* what is there already is no news to it, and may be about another that had its pid */
	read_all(s);
	VEC_GROW(s->watched, s->nwatched, s->watched_cap);
	memmove(&s->watched[at + 1], &s->watched[at], (s->nwatched++ - at) * sizeof(*s->watched));
	s->watched[at] = (struct sideband_watched){ pid, 0 };
}

void sideband_unwatch(struct sideband *s, pid_t pid)
{
	struct sideband_watched *w = find(s->watched, s->nwatched, pid);

	if (w)
		memmove(w, w + 1, (size_t)(&s->watched[s->nwatched--] - (w + 1)) * sizeof(*w));
}

unsigned sideband_take(struct sideband *s, pid_t pid)
{
	read_all(s);
	struct sideband_watched *w = find(s->watched, s->nwatched, pid);
	unsigned news = w ? w->news : 0;

	if (w)
		w->news = 0;
	return news;
}
