/*
 * The second back end: uprobes, for targets that must not be modified or can't be. heaptop places nothing: the kernel
 * runs a BPF program at the allocator's functions (uprobe.bpf.c), or tells of each hit (uprobe_hits.c), and its records
 * become the same events. What is probed is found as for the agent (find.c, nesting.c), but for what only matters to displaced instructions.
 *
 * A function that may throw gets no probe at its return: the return address is the kernel's trampoline then, no
 * unwinder passes it, and the program would be aborted. operator new of the C++ library isn't missed: it calls
 * malloc. Another allocator's is, and said in hooks[].
 */
#include "probe/probe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/ticks.h"
#include "elf/file.h"
#include "probe/placed.h"
#include "probe/uprobe_kernel.h"
#include "probe/uprobe_pool.h"
#include "probe/uprobe_tids.h"
#include "target/facts.h"
#include "target/target.h"

#define READ_MAX 200000u	/* records a round, */
#define READ_BYTES (UPROBE_RING_BYTES / 8)	/* and bytes, where their room is the kernel's again only with the next */
#define KEPT_MAX (64u << 20)	/* and bytes of stacks: as much as a ring has; touched as far as they are used */
#define RECORD_KEPT (sizeof(struct wire_regs) + UPROBE_STACK_MAX)	/* at most */

struct uprobes {
	struct agent a;			/* first: what finding works on; nothing of it is in the target */
	struct uprobe_kernel *kernel;	/* NULL: not open */
	uint64_t rate;
	bool active;
	struct tids *tids;		/* slots belong to threads as in the agent */
	uint64_t no_slot;		/* records of threads without one */
	double ns_per_tick;
	uint64_t last_tsc;
	uint64_t image;			/* target_image() when it was placed */
	/* of a round */
	uint64_t now_ticks, now_ns;
	probe_event_fn fn;
	void *ctx;
	size_t handed, bad;
	size_t read, read_max;		/* bytes */
	uint8_t *kept;			/* registers and stacks of records that pass, for events are looked at later; KEPT_MAX */
	size_t nkept;
	uint64_t copied;
	char where[160];
};

static struct uprobes *uprobes_of(struct probe *p)
{
	return (struct uprobes *)p;
}

/* ---- placing ---- */

/* Is the block's address the result of a function that may throw on the way? */
static uint64_t cookie_of(const struct site *s)
{
	const struct wire_args *args = &s->call.args;
	bool frees = s->call.kind == WIRE_HOOK_FREE || s->call.kind == WIRE_HOOK_RELEASE;

	return (uint64_t)args->size << UPROBE_SIZE | (uint64_t)args->count << UPROBE_COUNT |
	       (uint64_t)args->pointer << UPROBE_POINTER | (uint64_t)args->out << UPROBE_OUT |
	       (uint64_t)args->returns << UPROBE_RETURNS |
	       (uint64_t)!!(args->flags & WIRE_ARGS_INT) << UPROBE_INT |
	       (uint64_t)!!(args->flags & WIRE_ARGS_FREES) << UPROBE_FREES |
	       (uint64_t)s->leads << UPROBE_FRAME | (uint64_t)s->stepped << UPROBE_STEPPED |
	       (uint64_t)frees << UPROBE_IS_FREE | (uint64_t)args->bytes << UPROBE_BYTES;
}

/* Add the sites of one module that aren't attached to yet, those that free or those that allocate. */
static size_t add_points(struct uprobes *u, size_t text, bool frees, struct uprobe_point *points, size_t n)
{
	struct agent *a = &u->a;
	const struct text *x = &a->texts[text];

	for (size_t i = 0; i < a->nsites; i++) {
		struct site *s = &a->sites[i];
		uint64_t cookie = cookie_of(s);

		if (s->text != text || s->patched || !!(cookie >> UPROBE_IS_FREE & 1) != frees)
			continue;
		if (!elf_file_vaddr_to_offset(x->file, s->addr + s->at - x->bias, &points[n].offset))
			continue;
		points[n].addr = s->addr + s->at;
		points[n++].cookie = cookie;
		s->patched = true;
		if (s->stepped)
			log_line("%s at %#lx has no instruction near its entry that the kernel emulates: slow",
				 a->probe.hooks[s->hook].name, (unsigned long)s->addr);
	}
	return n;
}

enum kinds { FREES = 1, ALLOCS = 2 };

static struct err *link_text(struct uprobes *u, struct target *t, size_t text, unsigned kinds)
{
	CLEANUP_FREE struct uprobe_point *points = xcalloc(u->a.nsites + 1, sizeof(*points));
	size_t nfrees = kinds & FREES ? add_points(u, text, true, points, 0) : 0;
	size_t n = kinds & ALLOCS ? add_points(u, text, false, points, nfrees) : nfrees;

	if (!n)
		return NULL;
	return uprobe_kernel_attach(u->kernel, target_pid(t), elf_file_fd(u->a.texts[text].file), points, nfrees, n);
}

/* A module with sites that aren't attached to yet; false: none has. *ret_others: another has such, too. */
static bool next_text(const struct uprobes *u, size_t *ret, bool *ret_others)
{
	const struct site *first = NULL;

	*ret_others = false;
	for (size_t i = 0; i < u->a.nsites; i++) {
		const struct site *s = &u->a.sites[i];
		if (s->patched)
			continue;
		if (!first)
			first = s;
		*ret_others |= s->text != first->text;
	}
	*ret = first ? first->text : 0;
	return first;
}

/* Frees first: an allocation that is known must not lose its free, which may be another module's. */
static struct err *link_all(struct uprobes *u, struct target *t)
{
	struct err *err = NULL;
	size_t text;
	bool others;

	if (!next_text(u, &text, &others))
		return NULL;
	if (!others)
		return link_text(u, t, text, FREES | ALLOCS);
	for (unsigned kind = FREES; kind <= ALLOCS; kind++)
		for (size_t i = 0; i < u->a.ntexts && !err; i++)
			err = link_text(u, t, i, kind);
	return err;
}

static struct err *prepare(struct probe *p, struct target *t, const struct modules *mods)
{
	struct uprobes *u = uprobes_of(p);
	struct uprobe_ctl init = {
		.rate = u->rate, .active = u->active, .max_stack = u->a.config.max_stack,
		.seed = ticks_now(), .free_all = u->rate <= 1,
	};
	struct stat st;
	char path[48];

	struct err *err = agent_prepare(p, t, mods);
	if (err || u->kernel)
		return err;
	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)target_pid(t));
	if (stat(path, &st) == 0) {
		init.ns_dev = st.st_dev;
		init.ns_ino = st.st_ino;
	}
	err = uprobe_pool_open(u->a.config.uprobes, &init, &u->kernel);
	if (!err && uprobe_kernel_passes(u->kernel))
		u->kept = xmalloc(KEPT_MAX);
	return err;
}

static struct err *place(struct probe *p, struct target *t)
{
	struct uprobes *u = uprobes_of(p);
	struct err *err = link_all(u, t);

	if (err) {
		uprobe_kernel_detach(u->kernel);
		return err;
	}
	u->image = target_image(t);
	u->a.state = 1;		/* find.c and late.c: something is placed */
	return NULL;
}

static struct err *update(struct probe *p, struct target *t, const struct modules *mods, bool *ret_wanted)
{
	struct uprobes *u = uprobes_of(p);

	*ret_wanted = false;	/* nobody needs to stand still */
	if (!u->kernel)
		return NULL;
	agent_forget_gone(&u->a, mods);
	struct err *err = agent_find(&u->a, t, mods);
	return err ? err : link_all(u, t);
}

static struct err *extend(struct probe *p, struct target *t)
{
	(void)p;
	(void)t;
	return NULL;
}

/* ---- while it runs ---- */

/*
 * Links live as long as heaptop: there is no lease. But they would go on in what the process executes next, and where
 * nothing of ours is in it nothing of ours is missing then: EFAULT says so, as it does of the agent.
 */
static struct err *renew(struct probe *p, struct target *t)
{
	struct uprobes *u = uprobes_of(p);
	uint64_t image = target_image(t);

	if (!u->kernel || !image || image == u->image)
		return NULL;
	if (!u->image) {
		u->image = image;
		return NULL;
	}
	uprobe_kernel_detach(u->kernel);
	return err_errno(EFAULT, "process %d has executed another program", (int)target_pid(t));
}

static struct err *set_rate(struct probe *p, struct target *t, uint64_t rate)
{
	struct uprobes *u = uprobes_of(p);

	(void)t;
	u->rate = rate;
	if (!u->kernel)
		return NULL;
	struct uprobe_ctl *ctl = uprobe_kernel_ctl(u->kernel);
	/* blocks recorded by "every call" aren't in the hash of live ones: from then on every free counts */
	if (rate <= 1)
		__atomic_store_n(&ctl->free_all, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&ctl->rate, rate, __ATOMIC_RELAXED);
	__atomic_store_n(&ctl->generation, ctl->generation + 1, __ATOMIC_RELEASE);
	return NULL;
}

/* A BPF program can't wait: a full ring always drops, and counts. */
static struct err *set_raise(struct probe *p, struct target *t, bool raise)
{
	(void)p;
	(void)t;
	(void)raise;
	return NULL;
}

static struct err *set_active(struct probe *p, struct target *t, bool active)
{
	struct uprobes *u = uprobes_of(p);

	(void)t;
	u->active = active;
	if (u->kernel)
		__atomic_store_n(&uprobe_kernel_ctl(u->kernel)->active, active, __ATOMIC_RELAXED);
	return NULL;
}

/* ---- records to events ---- */

static void present(struct probe *p, struct target *t, const uint32_t *tids, size_t n)
{
	(void)t;
	/* the last records of one that is gone may still be in the ring: then it gets another slot, which is as good */
	tids_keep(uprobes_of(p)->tids, tids, n);
}

static uint64_t to_ticks(struct uprobes *u, uint64_t ns)
{
	uint64_t ago = u->now_ns > ns ? (uint64_t)((double)(u->now_ns - ns) / u->ns_per_tick) : 0;
	uint64_t tsc = ago < u->now_ticks ? u->now_ticks - ago : 0;

	/* stamped before its place in the ring was taken: two processors may differ by that */
	if (tsc < u->last_tsc)
		tsc = u->last_tsc;
	u->last_tsc = tsc;
	return tsc;
}

_Static_assert(sizeof(((struct uprobe_alloc *)0)->regs) == sizeof(struct wire_regs), "the same registers");

/* An allocation's registers and stack, in memory of ours. */
static void keep(struct uprobes *u, struct probe_event *e)
{
	uint8_t *to = u->kept + u->nkept;

	memcpy(to, e->regs, sizeof(*e->regs));
	memcpy(to + sizeof(*e->regs), e->stack, e->stack_bytes);
	e->regs = (const struct wire_regs *)to;
	e->stack = to + sizeof(*e->regs);
	u->nkept += sizeof(*e->regs) + e->stack_bytes;
}

/* An event of it, unless there is none. */
static void take_record(struct uprobes *u, const struct uprobe_record *r, size_t size)
{
	struct probe_event e = { .kind = (enum wire_kind)r->kind, .flags = r->flags, .addr = r->addr };

	if (!tids_slot(u->tids, r->tid, &e.slot)) {
		u->no_slot++;
		return;
	}
	e.tsc = to_ticks(u, r->ns);
	if (e.kind == WIRE_THREAD && size >= sizeof(struct uprobe_thread_record)) {
		e.addr = r->tid;
		e.sp = r->addr;
		e.name = ((const struct uprobe_thread_record *)r)->name;
	} else if (e.kind == WIRE_ALLOC && size >= sizeof(struct uprobe_alloc) &&
		   r->bytes <= size - sizeof(struct uprobe_alloc) && r->bytes <= UPROBE_STACK_MAX && r->bytes % 8 == 0) {
		const struct uprobe_alloc *alloc = (const struct uprobe_alloc *)r;

		e.size = alloc->size;
		e.rate = alloc->rate;
		e.regs = (const struct wire_regs *)alloc->regs;
		e.stack = alloc->stack;
		e.stack_bytes = r->bytes;
		if (u->kept)
			keep(u, &e);
		u->copied++;
	} else if (e.kind != WIRE_FREE && e.kind != WIRE_UNFREE) {
		u->bad++;
		return;
	}
	u->handed++;
	u->fn(u->ctx, &e);
}

/* False: enough for this round, or no room for another one's stack. */
static bool on_record(void *ctx, const struct uprobe_record *r, size_t size)
{
	struct uprobes *u = ctx;

	take_record(u, r, size);
	u->read += size;
	return u->read < u->read_max && u->nkept + RECORD_KEPT <= KEPT_MAX;
}

static size_t drain(struct probe *p, struct target *t, bool last, probe_event_fn fn, void *ctx)
{
	struct uprobes *u = uprobes_of(p);
	struct timespec ts;

	(void)t;
	if (!u->kernel)
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	u->now_ticks = ticks_now();
	u->now_ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	u->fn = fn;
	u->ctx = ctx;
	u->handed = 0;
	u->nkept = 0;
	u->read = 0;
	u->read_max = last || u->kept ? SIZE_MAX : READ_BYTES;
	u->a.probe.more = uprobe_kernel_read(u->kernel, READ_MAX, on_record, u) + 2 >= READ_MAX ||
			  u->nkept + RECORD_KEPT > KEPT_MAX;
	return u->handed;
}

static void stats(struct probe *p, struct target *t, struct probe_stats *ret)
{
	struct uprobes *u = uprobes_of(p);
	struct uprobe_counts c;

	(void)t;
	memset(ret, 0, sizeof(*ret));
	ret->rate = u->rate;
	if (!u->kernel)
		return;
	uprobe_kernel_counts(u->kernel, &c);
	ret->recorded = c.recorded;
	ret->dropped = c.dropped;
	ret->lost = c.lost;
	ret->nested = c.nested;
	ret->no_slot = u->no_slot;
	ret->bad = u->bad;
	ret->copied = u->copied;
	ret->free_all = uprobe_kernel_ctl(u->kernel)->free_all;
	ret->cycles = (uint64_t)((double)uprobe_kernel_cost(u->kernel, &c) / u->ns_per_tick);
	ret->threads = tids_count(u->tids);
}

/* Stacks are copied, never walked in the kernel: there are no rules to tell. */
static size_t teach(struct probe *p, const uint64_t *pcs, size_t n, probe_rule_fn rule, void *ctx)
{
	(void)p;
	(void)pcs;
	(void)n;
	(void)rule;
	(void)ctx;
	return 0;
}

static void resync(struct probe *p)
{
	(void)p;
}

static void reteach(struct probe *p, probe_rule_fn rule, void *ctx)
{
	(void)p;
	(void)rule;
	(void)ctx;
}

/* Threads need nothing from us: their storage is made at their first call. */
static void born(struct probe *p, struct target *t, const struct target_thread *thread)
{
	(void)p;
	(void)t;
	(void)thread;
}

static void ended(struct probe *p, const struct target_thread *thread)
{
	(void)p;
	(void)thread;
}

/* ---- out again ---- */

static struct err *take_out(struct probe *p, struct target *t, bool *ret_again)
{
	struct uprobes *u = uprobes_of(p);

	(void)t;
	*ret_again = false;
	if (u->kernel)
		uprobe_kernel_detach(u->kernel);
	for (size_t i = 0; i < u->a.nsites; i++)
		u->a.sites[i].patched = false;
	return NULL;
}

static const char *where(struct probe *p)
{
	struct uprobes *u = uprobes_of(p);

	if (!u->kernel)
		return "uprobes";
	const char *why = uprobe_kernel_why(u->kernel);
	snprintf(u->where, sizeof(u->where), "%s%s%s%s", uprobe_way_name(uprobe_kernel_way(u->kernel)), *why ? " (" : "",
		 why, *why ? ")" : "");
	return u->where;
}

static void destroy(struct probe *p)
{
	struct uprobes *u = uprobes_of(p);

	uprobe_pool_close(u->a.config.uprobes, u->kernel);
	free(u->tids);
	free(u->kept);
	agent_free_found(&u->a);
	free(u);
}

static const struct probe_ops uprobe_ops = {
	.name = "uprobe",
	.prepare = prepare,
	.place = place,
	.renew = renew,
	.set_rate = set_rate,
	.set_raise = set_raise,
	.set_active = set_active,
	.drain = drain,
	.stats = stats,
	.teach = teach,
	.resync = resync,
	.present = present,
	.born = born,
	.ended = ended,
	.reteach = reteach,
	.update = update,
	.extend = extend,
	.remove = take_out,
	.verify = agent_verify,
	.where = where,
	.destroy = destroy,
};

struct probe *probe_uprobe_create(const struct probe_config *config)
{
	struct uprobes *u = xcalloc(1, sizeof(*u));

	u->a.probe.ops = &uprobe_ops;
	agent_init_finding(&u->a, config);
	u->a.by_uprobes = true;
	u->rate = config->exact ? 1 : config->rate;
	u->active = true;
	u->tids = xcalloc(1, sizeof(*u->tids));
	u->ns_per_tick = config->ns_per_tick;
	if (u->ns_per_tick <= 0) {
		struct ticks_clock clock;
		ticks_clock_init(&clock);
		u->ns_per_tick = clock.ns_per_tick;
	}
	if (!u->a.config.max_stack || u->a.config.max_stack > UPROBE_STACK_MAX)
		u->a.config.max_stack = UPROBE_STACK_MAX;
	return &u->a.probe;
}
