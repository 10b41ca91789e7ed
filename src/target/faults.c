/* Page faults by perf_event; see faults.h. */
#include "target/faults.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "target/cpu.h"
#include "target/faults_kernel.h"
#include "target/impl.h"
#include "target/perfring.h"
#include "target/proc.h"

#define EVENTS_MAX 4096u	/* descriptors */
#define RING_PAGES 512u		/* where that may be locked, else */
#define RING_PAGES_MIN 64u	/* with its header within the 516 KiB that everybody may */
#define RECORD_MAX (FAULTS_STACK + 512u)

struct ring {
	int fd;			/* of the event that owns it, or -1: no event on that processor */
	struct perf_ring ring;
};

struct faults {
	struct faults_kernel *kernel;	/* the program that chooses; NULL: perf_event itself does, by its rings */
	struct faults_seen *told;	/* by processor, with its last record */
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
		perf_ring_unmap(&f->rings[i].ring);
	for (size_t i = 0; i < f->nfds; i++)
		close(f->fds[i]);
	faults_kernel_close(f->kernel);
	free(f->told);
	free(f->rings);
	free(f->fds);
	free(f->record);
	free(f);
}

static int open_event(const struct faults *f, pid_t tid, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		/* told once the page is there */
		.config = PERF_COUNT_SW_PAGE_FAULTS_MIN,
		.sample_type = PERF_SAMPLE_ADDR,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.inherit = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC_RAW,
	};

	if (f->kernel) {
		attr.sample_period = 1;
		attr.sample_type |= PERF_SAMPLE_DATA_PAGE_SIZE;
		attr.disabled = 1;	/* until it has its program */
	} else {
		attr.sample_freq = FAULTS_HZ;
		attr.freq = 1;
		attr.sample_type |= PERF_SAMPLE_TIME | PERF_SAMPLE_TID | PERF_SAMPLE_PERIOD | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		attr.sample_regs_user = cpu_perf_regs;
		attr.sample_stack_user = FAULTS_STACK;
	}
	/* forked children have events of their own if they are watched; an older kernel's are told by their pid */
	attr.inherit_thread = 1;
	int fd = perf_open(&attr, tid, cpu);
	if (fd >= 0 || errno != EINVAL)
		return fd;
	attr.inherit_thread = 0;
	return perf_open(&attr, tid, cpu);
}

static bool map_ring(struct ring *ring, int fd)
{
	ring->fd = fd;
	for (size_t pages = RING_PAGES; pages >= RING_PAGES_MIN; pages /= 8)
		if (!perf_ring_map(&ring->ring, fd, pages))
			return true;
	return false;
}

static bool set_program(const struct faults *f, int fd)
{
	return !ioctl(fd, PERF_EVENT_IOC_SET_BPF, faults_kernel_program(f->kernel)) && !ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
}

static bool set_ring(struct ring *ring, int fd)
{
	return ring->ring.page ? !ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) : map_ring(ring, fd);
}

/* 0 or an errno. */
static int add_thread(struct faults *f, pid_t tid)
{
	for (size_t cpu = 0; cpu < f->nrings; cpu++) {
		if (f->nfds == EVENTS_MAX)
			return EMFILE;
		int fd = open_event(f, tid, (int)cpu);
		if (fd < 0 && errno == ENODEV)
			continue;	/* a processor that is off */
		if (fd < 0)
			return errno;
		VEC_GROW(f->fds, f->nfds, f->fds_cap);
		f->fds[f->nfds++] = fd;
		if (!(f->kernel ? set_program(f, fd) : set_ring(&f->rings[cpu], fd)))
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

static struct faults *create(pid_t pid, struct faults_kernel *kernel)
{
	struct faults *f = xcalloc(1, sizeof(*f));
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	f->pid = pid;
	f->kernel = kernel;
	f->told = xcalloc(kernel ? faults_kernel_cpus(kernel) : 1, sizeof(*f->told));
	f->nrings = cpus > 0 ? (size_t)cpus : 1;
	f->rings = xcalloc(f->nrings, sizeof(*f->rings));
	f->record = xmalloc(RECORD_MAX);
	return f;
}

struct err *faults_open(struct target *t, struct faults_code *code, struct faults **ret)
{
	struct faults_kernel *kernel;
	struct err *refused = faults_kernel_open(code, t->pid, &kernel);
	struct faults *f = create(t->pid, kernel);

	if (refused)
		log_line("page faults are sampled whatever size their pages are: %s", refused->text);
	err_free(refused);
	int errnum = add_threads(f);
	if (errnum && f->kernel && errnum != ESRCH && errnum != EMFILE && errnum != ENFILE) {
		log_line("page faults are sampled whatever size their pages are: %s", strerror(errnum));
		faults_close(f);
		f = create(t->pid, NULL);
		errnum = add_threads(f);
	}
	if (errnum) {
		faults_close(f);
		return why_not(errnum);
	}
	*ret = f;
	/* for its children, which begin while they are opened */
	if (f->kernel)
		faults_code_prepare(code);
	return NULL;
}

static struct faults_counts counts_of(const struct faults_seen *seen)
{
	return (struct faults_counts){
		.faults = seen->small + seen->large,
		.units = { [FAULT_SMALL] = seen->small, [FAULT_LARGE] = seen->large_pages },
	};
}

struct faults_counts faults_count(const struct faults *f, bool last)
{
	struct faults_counts ret = { 0 };
	uint64_t n;

	if (f->kernel && last) {
		struct faults_seen seen = faults_kernel_seen(f->kernel);
		return counts_of(&seen);
	}
	if (f->kernel) {
		struct faults_seen sum = { 0 };
		for (size_t i = 0; i < faults_kernel_cpus(f->kernel); i++) {
			sum.small += f->told[i].small;
			sum.large += f->told[i].large;
			sum.large_pages += f->told[i].large_pages;
		}
		return counts_of(&sum);
	}
	for (size_t i = 0; i < f->nfds; i++)
		if (read(f->fds[i], &n, sizeof(n)) == sizeof(n))
			ret.faults += n;
	ret.units[FAULT_SMALL] = ret.faults;
	return ret;
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
	ret->units = record[at++];
	ret->kind = FAULT_SMALL;
	ret->pages = 0;
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

static size_t drain_ring(struct faults *f, struct perf_ring *ring, void (*fn)(void *, const struct fault *), void *ctx)
{
	const struct perf_event_header *header;
	uint64_t head = perf_ring_head(ring);
	struct fault fault;
	size_t n = 0;

	if (!ring->page)
		return 0;
	while ((header = perf_ring_record(ring, &ring->tail, head, f->record, RECORD_MAX))) {
		if (header->type != PERF_RECORD_SAMPLE || header->size > RECORD_MAX ||
		    !parse(f, (const uint64_t *)header, header->size, &fault))
			continue;
		fn(ctx, &fault);
		n++;
	}
	perf_ring_done(ring, head);	/* also where something isn't what the kernel writes */
	return n;
}

/* ---- by the program ---- */

struct draining {
	struct faults *f;
	void (*fn)(void *ctx, const struct fault *fault);
	void *ctx;
	uint64_t raw_ahead;	/* of CLOCK_MONOTONIC, ns; wraps */
	size_t n;
};

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The two differ by what the time service has corrected: hardly more by the time records are read. Of a few readings the one
 * least disturbed. */
static uint64_t raw_ahead(void)
{
	uint64_t best = UINT64_MAX, ret = 0;

	for (int i = 0; i < 3; i++) {
		uint64_t before = clock_ns(CLOCK_MONOTONIC), raw = clock_ns(CLOCK_MONOTONIC_RAW);
		uint64_t took = clock_ns(CLOCK_MONOTONIC) - before;
		if (took < best) {
			best = took;
			ret = raw - before - took / 2;
		}
	}
	return ret;
}

static void on_record(void *ctx, const struct faults_record *r)
{
	struct draining *d = ctx;
	struct fault fault = {
		.addr = r->addr, .time = r->time + d->raw_ahead, .tid = (pid_t)r->tid,
		.kind = r->pages > 1 ? FAULT_LARGE : FAULT_SMALL,
		.units = r->pages * r->every,
		.pages = r->pages,
		.stack = r->stack, .stack_bytes = r->bytes,
	};

	_Static_assert(sizeof(fault.regs) == sizeof(r->regs), "as wire_regs");
	memcpy(&fault.regs, r->regs, sizeof(fault.regs));
	d->f->told[r->cpu] = r->seen;
	d->fn(d->ctx, &fault);
	d->n++;
}

size_t faults_drain(struct faults *f, void (*fn)(void *ctx, const struct fault *fault), void *ctx)
{
	struct draining d = { .f = f, .fn = fn, .ctx = ctx };
	size_t n = 0;

	if (f->kernel) {
		d.raw_ahead = raw_ahead();
		faults_kernel_read(f->kernel, on_record, &d);
		return d.n;
	}
	for (size_t i = 0; i < f->nrings; i++)
		n += drain_ring(f, &f->rings[i].ring, fn, ctx);
	return n;
}
