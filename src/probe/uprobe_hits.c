/* uprobes without BPF, every hit told by perf_event; see uprobe_hits.h. */
#include "probe/uprobe_hits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "probe/uprobe_ops.h"
#include "probe/uprobe_rules.h"
#include "probe/uprobe_tids.h"
#include "probe/uprobe_tracefs.h"
#include "target/perfring.h"
#include "target/proc.h"

#define EVENTS_MAX 16384u	/* descriptors */
#define RINGS_BYTES (128u << 20)	/* of all rings, if each has */
#define RING_MAX (64u << 20)	/* at most: some 15,000 returns */
#define RING_MIN (4u << 20)	/* and at least so much */
#define STACK_MAX (4u << 10)	/* bytes of stack that each return takes in the ring, however deep it is */
#define NO_NS_TID 0x80000000u	/* above all thread ids */

struct lane {
	int fd;			/* of the ring's event; -1: a processor that is off */
	struct perf_ring ring;
	const struct perf_event_header *now;	/* the next record, or NULL */
	uint64_t next;		/* where the one after it begins */
	uint64_t head;		/* of this round */
	uint64_t time;		/* of `now` */
	uint64_t *around;	/* PERF_RING_RECORD_MAX */
};

struct caller {
	struct uprobe_caller of;	/* tid: in the target's PID namespace */
	uint32_t tid;		/* in ours; 0: nobody's */
};

struct place {
	uint64_t addr, cookie;
};

struct event {
	int fd;
	bool frees;
	uint64_t lost;		/* told last */
};

struct hits {
	struct uprobe_kernel base;	/* first */
	struct uprobe_ctl ctl;
	struct tracefs *tracefs;
	pid_t pid;		/* 0: nothing attached yet */
	struct lane *lanes;	/* by processor */
	size_t nlanes;
	struct event *events;
	size_t nevents, events_cap;
	bool tells_lost;	/* the kernel counts what an event has lost: Linux 6.0 */
	bool was_full;		/* a ring was, since that was read */
	struct place *places;
	size_t nplaces, places_cap;
	struct tids tids;	/* of threads by ids in our PID namespace */
	struct caller *callers;	/* by their slots */
	bool same_ns;		/* the target's PID namespace is ours */
	char name[16];		/* of the process: for threads that have gone before they were asked */
	uint32_t stack;		/* bytes a return copies */
	struct uprobe_counts counts;
	/* the record that is being looked at */
	uint64_t ns;
	const uint8_t *copy;	/* of the stack */
	size_t copied;
	uint64_t sp;		/* where that begins */
	/* of a round */
	uprobe_record_fn fn;
	void *ctx;
	size_t told;
	bool enough;
	union {
		struct uprobe_record r;
		struct uprobe_thread_record thread;
		struct uprobe_alloc alloc;
		uint8_t bytes[sizeof(struct uprobe_alloc) + STACK_MAX];
	} out;
};

static struct hits *hits_of(struct uprobe_kernel *k)
{
	return (struct hits *)k;
}

/* ---- what the rules ask for ---- */

/* The model knows by itself which blocks it has: all frees are told. */
static bool uprobe_known(const struct uprobe_ctl *k, __u64 addr)
{
	(void)k;
	(void)addr;
	return true;
}

static void uprobe_remember(struct uprobe_ctl *k, __u64 addr)
{
	(void)k;
	(void)addr;
}

static void uprobe_forget(__u64 addr)
{
	(void)addr;
}

/* Where it lies in the part of the stack that came with the record, that is exact; else it is read now. */
static bool uprobe_word(void *env, __u64 addr, __u64 *ret)
{
	const struct hits *h = env;
	struct iovec local = { ret, sizeof(*ret) }, remote = { (void *)(uintptr_t)addr, sizeof(*ret) };

	if (addr >= h->sp && addr - h->sp < h->copied && h->copied - (addr - h->sp) >= sizeof(*ret)) {
		memcpy(ret, h->copy + (addr - h->sp), sizeof(*ret));
		return true;
	}
	return process_vm_readv(h->pid, &local, 1, &remote, 1, 0) == (ssize_t)sizeof(*ret);
}

static void tell(struct hits *h, const struct uprobe_caller *t, uint32_t kind, uint32_t flags, uint64_t addr, size_t bytes,
		 size_t size)
{
	h->out.r = (struct uprobe_record){
		.kind = kind, .flags = flags, .tid = t->tid, .bytes = (uint32_t)bytes, .ns = h->ns, .addr = addr,
	};
	h->told++;
	if (!h->fn(h->ctx, &h->out.r, size))
		h->enough = true;
}

/* Its name as it is now, ended by a 0. */
static bool read_name(pid_t pid, pid_t tid, char ret[16])
{
	char path[64];

	/* without an allocation: records are read without any */
	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)pid, (int)tid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, ret, 16);
	if (fd >= 0)
		close(fd);
	if (n < 1)
		return false;
	ret[n - 1] = '\0';	/* a newline */
	return true;
}

static void tell_thread(struct hits *h, struct uprobe_caller *t, uint32_t tid, uint64_t sp)
{
	char name[16] = "";

	if (t->told)
		return;
	t->told = 1;
	if (!read_name(h->pid, (pid_t)tid, name))
		memcpy(name, h->name, sizeof(name));
	memcpy(h->out.thread.name, name, sizeof(name));
	tell(h, t, WIRE_THREAD, 0, sp, 0, sizeof(h->out.thread));
}

static bool uprobe_tell_free(void *env, struct uprobe_caller *t, struct uprobe_counts *c, __u64 sp, __u32 kind, __u32 flags,
			     __u64 addr)
{
	tell_thread(env, t, ((const struct caller *)t)->tid, sp);
	tell(env, t, kind, flags, addr, 0, sizeof(struct uprobe_record));
	c->recorded++;
	return true;
}

static bool uprobe_tell_alloc(void *env, const struct uprobe_ctl *k, struct uprobe_caller *t, const struct kernel_regs *g,
			      __u32 flags, __u64 addr)
{
	struct hits *h = env;
	struct uprobe_alloc *r = &h->out.alloc;
	size_t bytes = h->copied < h->stack ? h->copied & ~(size_t)7 : h->stack;

	(void)k;
	tell_thread(h, t, ((const struct caller *)t)->tid, g->sp);
	r->size = t->size;
	r->rate = t->sampled_rate;
	const uint64_t regs[] = { g->ip, g->sp, g->bp, g->bx, g->r12, g->r13, g->r14, g->r15 };
	memset(r->regs, 0, sizeof(r->regs));
	memcpy(r->regs, regs, sizeof(regs));
	memcpy(r->stack, h->copy, bytes);
	tell(h, t, WIRE_ALLOC, flags | (bytes == h->stack ? WIRE_F_CUT : 0), addr, bytes, sizeof(*r) + bytes);
	return true;
}

/* ---- records ---- */

static struct uprobe_caller *caller_of(struct hits *h, uint32_t tid)
{
	struct proc_status status;
	uint32_t slot;

	if (!tids_slot(&h->tids, tid, &slot))
		return NULL;
	struct caller *c = &h->callers[slot];
	if (c->tid == tid)
		return &c->of;
	*c = (struct caller){ .tid = tid, .of.tid = tid };
	/* one that has gone is told apart all the same, from all there are */
	if (!h->same_ns)
		c->of.tid = proc_status(h->pid, (pid_t)tid, &status) ? (uint32_t)status.ns_pid : tid | NO_NS_TID;
	c->of.rng = uprobe_mix(h->ctl.seed + c->of.tid * 0x9e3779b97f4a7c15ull);
	return &c->of;
}

static void ended(struct hits *h, uint32_t tid)
{
	uint32_t slot;

	if (!tids_slot(&h->tids, tid, &slot))
		return;
	h->callers[slot].tid = 0;
	tids_forget(&h->tids, tid);
}

static const struct place *place_at(const struct hits *h, uint64_t addr)
{
	for (size_t i = 0; i < h->nplaces; i++)
		if (h->places[i].addr == addr)
			return &h->places[i];
	return NULL;
}

/*
 * { header; u32 pid, tid; u64 time; u64 abi; u64 regs[]; u64 size; char stack[size]; u64 dyn_size }. An entry is asked for no
 * stack, so its size is 0 and nothing follows.
 */
static void on_sample(struct hits *h, const uint64_t *record, size_t bytes)
{
	size_t nregs = (size_t)__builtin_popcountll(uprobe_perf_regs), words = bytes / 8, at = 4 + nregs;
	struct kernel_regs g;

	if (words <= at || (pid_t)(uint32_t)record[1] != h->pid || record[3] != PERF_SAMPLE_REGS_ABI_64)
		return;
	uint64_t size = record[at++];
	if (size > STACK_MAX || size % 8 || at + size / 8 + (size != 0) > words)
		return;
	uprobe_from_perf(&record[4], &g);
	const struct place *place = size ? NULL : place_at(h, g.ip);
	if (size)
		h->counts.returns++;
	else if (place && UPROBE_BITS(place->cookie, UPROBE_STEPPED, 1))
		h->counts.stepped++;
	else
		h->counts.hits++;
	struct uprobe_caller *t = h->ctl.active ? caller_of(h, (uint32_t)(record[1] >> 32)) : NULL;
	if (!t) {
		h->counts.dropped += h->ctl.active;
		return;
	}
	h->ns = record[2];
	h->sp = g.sp;
	h->copy = (const uint8_t *)&record[at];
	uint64_t filled = size ? record[at + size / 8] : 0;
	h->copied = filled < size ? filled : size;
	if (place)
		uprobe_entry(h, &h->ctl, t, &h->counts, &g, place->cookie);
	else if (size)
		uprobe_return(h, &h->ctl, t, &h->counts, &g, g.ax);
}

/*
 * The ring had no room before this record. An entry whose return was lost would make all deeper calls of its thread look
 * like calls within it.
 */
static void on_lost(struct hits *h, uint64_t n)
{
	if (!h->tells_lost)
		h->counts.dropped += n;
	for (uint32_t i = 0; i < h->tids.used; i++)
		h->callers[i].of.mark = 0;
}

/* EXIT: { header; u32 pid, ppid; u32 tid, ptid; u64 time }, LOST: { header; u64 id, lost }. */
static void on_record(struct hits *h, const struct perf_event_header *header)
{
	const uint64_t *record = (const uint64_t *)header;
	size_t words = header->size / 8;

	if (header->type == PERF_RECORD_SAMPLE)
		on_sample(h, record, header->size);
	else if (header->type == PERF_RECORD_LOST && words > 2)
		on_lost(h, record[2]);
	else if (header->type == PERF_RECORD_EXIT && words > 3 && (pid_t)(uint32_t)record[1] == h->pid)
		ended(h, (uint32_t)record[2]);
}

/* Those lost since the last time. A record in the ring tells it only once there is another one, and not whose they were. */
static void count_lost(struct hits *h)
{
	uint64_t told[2];	/* the event's count, and what is asked for */

	h->was_full = false;
	for (size_t i = 0; h->tells_lost && i < h->nevents; i++) {
		struct event *e = &h->events[i];

		if (read(e->fd, told, sizeof(told)) != sizeof(told))
			continue;
		*(e->frees ? &h->counts.lost : &h->counts.dropped) += told[1] - e->lost;
		e->lost = told[1];
	}
}

/* Look at a lane's next record. One that tells no time comes where it lies. */
static void advance(struct hits *h, struct lane *l)
{
	if (l->now)
		perf_ring_done(&l->ring, l->next);
	l->next = l->ring.tail;
	l->now = perf_ring_record(&l->ring, &l->next, l->head, l->around, PERF_RING_RECORD_MAX);
	if (!l->now) {
		if (l->next != l->head) {	/* not what the kernel writes */
			h->counts.dropped++;
			perf_ring_done(&l->ring, l->head);
		}
		return;
	}
	const uint64_t *record = (const uint64_t *)l->now;
	if (l->now->type == PERF_RECORD_SAMPLE && l->now->size > 2 * sizeof(*record))
		l->time = record[2];
	else if ((l->now->type == PERF_RECORD_EXIT || l->now->type == PERF_RECORD_FORK) &&
		 l->now->size > 3 * sizeof(*record))
		l->time = record[3];
}

/*
 * Of all processors by time, up to when we began to look: what an event depends on was in its ring before the event was
 * stamped, so what is stamped before and comes later has nobody waiting for it (wire.h says it of the agent's rings).
 */
static size_t hits_read(struct uprobe_kernel *base, size_t max, uprobe_record_fn fn, void *ctx)
{
	struct hits *h = hits_of(base);
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	const uint64_t now = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	h->fn = fn;
	h->ctx = ctx;
	h->told = 0;
	h->enough = false;
	for (size_t i = 0; i < h->nlanes; i++) {
		h->lanes[i].now = NULL;
		h->lanes[i].head = perf_ring_head(&h->lanes[i].ring);
		if (!h->lanes[i].ring.page)
			continue;
		/* what had no room is smaller than this: it shows here */
		if (h->lanes[i].head - h->lanes[i].ring.tail > h->lanes[i].ring.bytes - 2 * STACK_MAX)
			h->was_full = true;
		advance(h, &h->lanes[i]);
	}
	if (h->was_full)
		count_lost(h);
	while (h->told + 2 < max && !h->enough) {	/* one makes three at most */
		struct lane *first = NULL;

		for (size_t i = 0; i < h->nlanes; i++)
			if (h->lanes[i].now && h->lanes[i].time <= now && (!first || h->lanes[i].time < first->time))
				first = &h->lanes[i];
		if (!first)
			break;
		on_record(h, first->now);
		advance(h, first);
	}
	return h->told;
}

static void hits_counts(struct uprobe_kernel *base, struct uprobe_counts *ret)
{
	*ret = hits_of(base)->counts;
}

/* ---- events ---- */

static const struct perf_event_attr common = {
	.size = sizeof(struct perf_event_attr),
	.exclude_kernel = 1,
	.exclude_hv = 1,
	.use_clockid = 1,
	.clockid = CLOCK_MONOTONIC,
};

/* One that counts nothing, of our own thread: 0 or an errno. */
static int open_lane(struct lane *l, int cpu, size_t bytes)
{
	struct perf_event_attr attr = common;

	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_DUMMY;
	l->fd = perf_open(&attr, 0, cpu);
	if (l->fd < 0)
		return errno == ENODEV ? 0 : errno;
	int errnum = EPERM;
	for (; errnum && bytes >= (64u << 10); bytes /= 4)
		errnum = perf_ring_map(&l->ring, l->fd, bytes / (size_t)sysconf(_SC_PAGESIZE));
	l->around = xmalloc(PERF_RING_RECORD_MAX);
	return errnum;
}

/* On one thread and all processors: 0 or an errno. */
static int open_events(struct hits *h, pid_t tid, uint64_t event, bool returns, bool frees)
{
	struct perf_event_attr attr = common;

	attr.type = PERF_TYPE_TRACEPOINT;
	attr.config = event;
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	attr.sample_regs_user = uprobe_perf_regs;
	attr.sample_stack_user = returns ? h->stack : 0;
	attr.inherit = 1;
	attr.inherit_thread = 1;	/* an older kernel's forked children are told by their pid */
	attr.task = 1;
	attr.read_format = h->tells_lost ? PERF_FORMAT_LOST : 0;
	for (size_t cpu = 0; cpu < h->nlanes; cpu++) {
		if (!h->lanes[cpu].ring.page)
			continue;
		if (h->nevents == EVENTS_MAX)
			return EMFILE;
		int fd = perf_open(&attr, tid, (int)cpu);
		if (fd < 0 && errno == EINVAL && h->tells_lost) {
			h->tells_lost = false;
			attr.read_format = 0;
			fd = perf_open(&attr, tid, (int)cpu);
		}
		if (fd < 0 && errno == EINVAL) {
			attr.inherit_thread = 0;
			fd = perf_open(&attr, tid, (int)cpu);
		}
		if (fd < 0)
			return errno;
		VEC_GROW(h->events, h->nevents, h->events_cap);
		h->events[h->nevents++] = (struct event){ fd, frees, 0 };
		if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, h->lanes[cpu].fd))
			return errno;
	}
	return 0;
}

/*
 * On all threads there are. One that a thread without events starts just now is missed; to look again would count others,
 * which have inherited theirs, twice.
 */
static struct err *open_threads(struct hits *h, uint64_t event, bool returns, bool frees)
{
	pid_t *tids = NULL;
	size_t n = proc_tasks(h->pid, &tids);
	size_t opened = h->nevents;
	int errnum = n ? 0 : ESRCH;

	for (size_t i = 0; i < n && (!errnum || errnum == ESRCH); i++)
		errnum = open_events(h, tids[i], event, returns, frees);
	free(tids);
	if (errnum == ESRCH && h->nevents > opened)
		errnum = 0;	/* some have ended meanwhile */
	if (errnum == EMFILE || errnum == ENFILE)
		return err_new(ERR_BUSY, "uprobes without BPF take an event per thread and processor, which are too many; start "
			       "the program with heaptop, or raise the limit of open files");
	return errnum ? err_errno(errnum, "perf_event doesn't take uprobes of tracefs") : NULL;
}

static bool is_same_ns(const struct uprobe_ctl *ctl)
{
	struct stat st;

	return !ctl->ns_ino || (stat("/proc/self/ns/pid", &st) == 0 && st.st_dev == ctl->ns_dev && st.st_ino == ctl->ns_ino);
}

static void first_attach(struct hits *h, pid_t pid)
{
	h->pid = pid;
	h->same_ns = is_same_ns(&h->ctl);
	read_name(pid, pid, h->name);
}

/* All of functions that allocate, or all of such that free. */
static struct err *attach_kind(struct hits *h, int fd, const struct uprobe_point *points, size_t n, bool frees)
{
	CLEANUP_FREE uint64_t *offsets = xcalloc(n + 1, sizeof(*offsets));
	struct err *err = NULL;

	for (size_t i = 0; i < n; i++) {
		offsets[i] = points[i].offset;
		VEC_GROW(h->places, h->nplaces, h->places_cap);
		h->places[h->nplaces++] = (struct place){ points[i].addr, points[i].cookie };
	}
	/* returns first: an entry without one would wait for it */
	for (int returns = !frees; returns >= 0 && !err && n; returns--) {
		uint64_t event;

		err = tracefs_event(h->tracefs, returns, fd, offsets, n, &event);
		if (!err)
			err = open_threads(h, event, returns, frees);
	}
	return err;
}

static struct err *hits_attach(struct uprobe_kernel *base, pid_t pid, int fd, const struct uprobe_point *points, size_t nfrees,
			       size_t n)
{
	struct hits *h = hits_of(base);

	if (!h->pid)
		first_attach(h, pid);
	struct err *err = attach_kind(h, fd, points, nfrees, true);
	return err ? err : attach_kind(h, fd, points + nfrees, n - nfrees, false);
}

static void hits_detach(struct uprobe_kernel *base)
{
	struct hits *h = hits_of(base);

	count_lost(h);
	for (size_t i = 0; i < h->nevents; i++)
		close(h->events[i].fd);
	h->nevents = 0;
	if (h->tracefs)
		tracefs_clear(h->tracefs);
}

static void hits_close(struct uprobe_kernel *base)
{
	struct hits *h = hits_of(base);

	hits_detach(base);
	tracefs_close(h->tracefs);
	for (size_t i = 0; i < h->nlanes; i++) {
		perf_ring_unmap(&h->lanes[i].ring);
		if (h->lanes[i].fd >= 0)
			close(h->lanes[i].fd);
		free(h->lanes[i].around);
	}
	free(h->lanes);
	free(h->events);
	free(h->places);
	free(h->callers);
	free(h);
}

static struct err *open_lanes(struct hits *h)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	size_t bytes = RING_MAX;
	int errnum = 0;

	h->nlanes = cpus > 0 ? (size_t)cpus : 1;
	h->lanes = xcalloc(h->nlanes, sizeof(*h->lanes));
	for (size_t i = 0; i < h->nlanes; i++)
		h->lanes[i].fd = -1;
	while (bytes > RING_MIN && bytes * h->nlanes > RINGS_BYTES)
		bytes /= 2;
	for (size_t i = 0; i < h->nlanes && !errnum; i++)
		errnum = open_lane(&h->lanes[i], (int)i, bytes);
	return errnum ? err_errno(errnum, "--probe=uprobe: perf_event has no room for its records") : NULL;
}

static struct err *hits_open(const struct uprobe_ctl *init, enum uprobe_way way, struct uprobe_kernel **ret)
{
	struct hits *h = xcalloc(1, sizeof(*h));

	(void)way;
	h->ctl = *init;
	h->ctl.free_all = 1;
	h->tells_lost = true;
	h->base.ctl = &h->ctl;
	h->stack = init->max_stack && init->max_stack < STACK_MAX ? init->max_stack & ~7u : STACK_MAX;
	h->callers = xcalloc(WIRE_SLOTS, sizeof(*h->callers));
	/* whether it can be had is known before anything is placed */
	struct err *err = tracefs_open(&h->tracefs);
	if (!err)
		err = open_lanes(h);
	if (err) {
		hits_close(&h->base);
		return err;
	}
	*ret = &h->base;
	return NULL;
}

const struct uprobe_ops uprobe_hits_ops = {
	.open = hits_open,
	.attach = hits_attach,
	.detach = hits_detach,
	.read = hits_read,
	.counts = hits_counts,
	.close = hits_close,
	.passes = true,
	.hit_ns = 1300,
	.stepped_ns = 13300,
	.return_ns = 1700,
};
