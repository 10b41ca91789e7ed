/* Page faults by perf_event; see faults.h. */
#include "target/faults.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "target/cpu.h"
#include "target/impl.h"
#include "target/proc.h"

#define EVENTS_MAX 4096u	/* descriptors */
#define RING_PAGES 512u		/* where that may be locked, else */
#define RING_PAGES_MIN 64u	/* with its header within the 516 KiB that everybody may */
#define RECORD_MAX (FAULTS_STACK + 512u)

struct ring {
	int fd;			/* of the event that owns it, or -1: no event on that processor */
	uint8_t *map;		/* header page, then data */
	size_t bytes;		/* of data, a power of two */
};

struct faults {
	struct ring *rings;	/* by processor */
	size_t nrings;
	int *fds;
	size_t nfds, fds_cap;
	pid_t pid;
	uint64_t *record;	/* one that goes around the ring's end */
};

void faults_close(struct faults *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->nrings; i++)
		if (f->rings[i].map)
			munmap(f->rings[i].map, f->rings[i].bytes + (size_t)sysconf(_SC_PAGESIZE));
	for (size_t i = 0; i < f->nfds; i++)
		close(f->fds[i]);
	free(f->rings);
	free(f->fds);
	free(f->record);
	free(f);
}

static int open_event(pid_t tid, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.sample_freq = FAULTS_HZ,
		.freq = 1,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD |
			       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.sample_regs_user = cpu_perf_regs,
		.sample_stack_user = FAULTS_STACK,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.inherit = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC_RAW,
	};

	/* forked children have events of their own if they are watched; an older kernel's are told by their pid */
	attr.inherit_thread = 1;
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd >= 0 || errno != EINVAL)
		return fd;
	attr.inherit_thread = 0;
	return (int)syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static bool map_ring(struct ring *ring, int fd)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t pages = RING_PAGES; pages >= RING_PAGES_MIN; pages /= 8) {
		void *at = mmap(NULL, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (at == MAP_FAILED)
			continue;
		*ring = (struct ring){ .fd = fd, .map = at, .bytes = pages * page };
		return true;
	}
	return false;
}

/* 0 or an errno. */
static int add_thread(struct faults *f, pid_t tid)
{
	for (size_t cpu = 0; cpu < f->nrings; cpu++) {
		struct ring *ring = &f->rings[cpu];
		if (f->nfds == EVENTS_MAX)
			return EMFILE;
		int fd = open_event(tid, (int)cpu);
		if (fd < 0 && errno == ENODEV)
			continue;	/* a processor that is off */
		if (fd < 0)
			return errno;
		VEC_GROW(f->fds, f->nfds, f->fds_cap);
		f->fds[f->nfds++] = fd;
		if (ring->map ? ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) : !map_ring(ring, fd))
			return errno;
	}
	return 0;
}

/*
 * All there are. One that a thread without events starts just now is missed; to look again would count others, which
 * have inherited theirs, twice.
 */
static int add_threads(struct faults *f)
{
	pid_t *tids = NULL;
	size_t n = proc_tasks(f->pid, &tids);
	int errnum = 0;

	for (size_t i = 0; i < n && (!errnum || errnum == ESRCH); i++)
		errnum = add_thread(f, tids[i]);
	free(tids);
	return errnum != ESRCH && errnum ? errnum : f->nfds ? 0 : ESRCH;
}

static struct err *why_not(int errnum)
{
	switch (errnum) {
	case EACCES:
	case EPERM:
		return err_new(ERR_DENIED, "page faults can't be sampled: perf_event_open isn't permitted "
			       "(/proc/sys/kernel/perf_event_paranoid is above 2, or a container forbids it)");
	case EMFILE:
	case ENFILE:
		return err_new(ERR_BUSY, "page faults can't be sampled: threads times processors are too many; "
			       "start the program with heaptop, or raise the limit of open files");
	case ENOENT:
	case ENOSYS:
	case EOPNOTSUPP:
		return err_new(ERR_UNSUPPORTED, "page faults can't be sampled: the kernel has no perf_event");
	default:
		return err_errno(errnum, "page faults can't be sampled");
	}
}

struct err *faults_open(struct target *t, struct faults **ret)
{
	struct faults *f = xcalloc(1, sizeof(*f));
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	f->pid = t->pid;
	f->nrings = cpus > 0 ? (size_t)cpus : 1;
	f->rings = xcalloc(f->nrings, sizeof(*f->rings));
	f->record = xmalloc(RECORD_MAX);
	int errnum = add_threads(f);
	if (errnum) {
		faults_close(f);
		return why_not(errnum);
	}
	*ret = f;
	return NULL;
}

uint64_t faults_count(const struct faults *f)
{
	uint64_t sum = 0, n;

	for (size_t i = 0; i < f->nfds; i++)
		if (read(f->fds[i], &n, sizeof(n)) == sizeof(n))
			sum += n;
	return sum;
}

/*
 * { header; u32 pid, tid; u64 time; u64 addr; u64 period; u64 abi; u64 regs[]; u64 size; char stack[size]; u64 dyn_size }: the
 * kernel's words, but what lies in them is the program's.
 */
static bool parse(const struct faults *f, const uint64_t *record, size_t bytes, struct fault *ret)
{
	size_t nregs = (size_t)__builtin_popcountll(cpu_perf_regs), words = bytes / 8, at = 1;

	if (words < 6 + nregs + 2 || (pid_t)(uint32_t)record[at] != f->pid)
		return false;
	ret->tid = (pid_t)(record[at++] >> 32);
	ret->time = record[at++];
	ret->addr = record[at++];
	ret->period = record[at++];
	if (record[at++] != PERF_SAMPLE_REGS_ABI_64)
		return false;
	cpu_perf_wire_regs(&record[at], &ret->regs);
	at += nregs;
	uint64_t size = record[at++];
	if (size > FAULTS_STACK || size % 8 || at + size / 8 + (size != 0) > words)
		return false;
	ret->stack = (const uint8_t *)&record[at];
	uint64_t filled = size ? record[at + size / 8] : 0;
	ret->stack_bytes = filled < size ? filled : size;
	return true;
}

static size_t drain_ring(struct faults *f, struct ring *ring, void (*fn)(void *, const struct fault *), void *ctx)
{
	struct perf_event_mmap_page *page = (struct perf_event_mmap_page *)ring->map;
	const uint8_t *data = ring->map + sysconf(_SC_PAGESIZE);
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), tail = page->data_tail;
	size_t n = 0;

	while (tail < head) {
		struct perf_event_header header;
		struct fault fault;
		memcpy(&header, data + (tail & (ring->bytes - 1)), sizeof(header));
		if (header.size < sizeof(header) || header.size % 8 || header.size > head - tail) {
			tail = head;	/* not what the kernel writes */
			break;
		}
		if (header.type == PERF_RECORD_SAMPLE && header.size <= RECORD_MAX) {
			size_t from = tail & (ring->bytes - 1), first = ring->bytes - from;
			const uint64_t *record = (const uint64_t *)(data + from);
			if (first < header.size) {
				memcpy(f->record, data + from, first);
				memcpy((uint8_t *)f->record + first, data, header.size - first);
				record = f->record;
			}
			if (parse(f, record, header.size, &fault)) {
				fn(ctx, &fault);
				n++;
			}
		}
		tail += header.size;
	}
	__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
	return n;
}

size_t faults_drain(struct faults *f, void (*fn)(void *ctx, const struct fault *fault), void *ctx)
{
	size_t n = 0;

	for (size_t i = 0; i < f->nrings; i++)
		if (f->rings[i].map)
			n += drain_ring(f, &f->rings[i], fn, ctx);
	return n;
}
