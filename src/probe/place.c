/*
 * Putting the agent in, and the parts of taking it out that undo it. The target is stopped all
 * along. Whatever instant heaptop dies at, the target has whole functions: memory first, jumps last and
 * each in one write; until `active` and a lease are set, hooks pass everything through.
 */
#include "probe/placed.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <linux/magic.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/ticks.h"
#include "elf/modules.h"
#include "probe/inside.h"
#include "target/proc.h"
#include "target/target.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif
#ifndef F_SEAL_SHRINK
#define F_SEAL_SHRINK 2
#endif

#define PAGE 4096ull
#define REACH ((2ull << 30) - (64 << 10))
#define GAP_TRIES 16
#define SPARE_THUNKS 32u	/* in each island, for modules that are loaded later */
/*
 * Up to that many threads don't meet at a ring's head. One holds 30,000 exact events and more; what
 * isn't written to takes no memory.
 */
#define NRINGS 32u
#define RING_BYTES (2u << 20)
#define RING_BYTES_LEAST (256u << 10)
#define ENTRY_BYTES 128	/* from there on: what start-up code looks at */
#define TSC_LEARN_NS 5000000ull		/* the TSC's rate is learnt over no less */

extern const uint8_t agent_blob[] __attribute__((visibility("hidden")));
extern const uint8_t agent_blob_end[] __attribute__((visibility("hidden")));

static size_t blob_bytes(void)
{
	return (size_t)(agent_blob_end - agent_blob);
}

static uint64_t page_up(uint64_t n)
{
	return (n + PAGE - 1) & ~(PAGE - 1);
}

uint64_t agent_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t agent_ticks_per_second(const struct agent *a)
{
	uint64_t ns = agent_clock_ns() - a->ns_began;

	if (a->config.ns_per_tick > 0)
		return (uint64_t)(1e9 / a->config.ns_per_tick);
	if (ns < TSC_LEARN_NS) {
		usleep((useconds_t)(TSC_LEARN_NS - ns) / 1000 + 1);
		ns = agent_clock_ns() - a->ns_began;
	}
	return (uint64_t)((double)(ticks_now() - a->ticks_began) * 1e9 / (double)ns);
}

struct err *agent_call(struct target *t, const char *what, long nr, const uint64_t args[6], uint64_t *ret)
{
	int64_t r = 0;
	struct err *err = target_syscall(t, nr, args, &r);

	if (err)
		return err;
	if (r < 0 && r > -4096)
		return err_errno((int)-r, "%s in the target", what);
	if (ret)
		*ret = (uint64_t)r;
	return NULL;
}

static struct err *map_anonymous(struct target *t, const char *what, uint64_t at, uint64_t bytes, int prot,
				 int flags, uint64_t *ret)
{
	const uint64_t args[6] = { at, bytes, (uint64_t)prot, (uint64_t)(MAP_PRIVATE | MAP_ANONYMOUS | flags),
				   (uint64_t)-1, 0 };

	return agent_call(t, what, SYS_mmap, args, ret);
}

static void unmap(struct target *t, uint64_t addr, uint64_t bytes, struct err **err)
{
	const uint64_t args[6] = { addr, bytes };

	if (!addr || !bytes)
		return;
	struct err *e = agent_call(t, "munmap", SYS_munmap, args, NULL);
	if (!*err)
		*err = e;
	else
		err_free(e);
}

void agent_main_stack(struct target *t, uint64_t *ret_lo, uint64_t *ret_hi)
{
	struct proc_stat st;
	struct mapping m;

	/* one question to the kernel; to read the maps takes milliseconds where there are thousands */
	if (!proc_stat(target_pid(t), 0, &st) || !target_mapping_at(t, st.start_stack, &m) ||
	    strcmp(m.path, "[stack]")) {
		target_stack_bounds(t, 0, ret_lo, ret_hi);
		return;
	}
	*ret_lo = m.start;
	*ret_hi = m.end;
	/* above it lie arguments and environment: kilobytes that no copy needs */
	if (st.start_stack < m.end - ENTRY_BYTES)
		*ret_hi = (st.start_stack & ~7ull) + ENTRY_BYTES;
}

/* ---- state ---- */

static void fill_owner(struct wire_ctl *ctl)
{
	struct proc_stat st;

	memset(ctl, 0, sizeof(*ctl));
	ctl->magic = WIRE_CTL_MAGIC;
	ctl->version = WIRE_VERSION;
	ctl->owner = (uint32_t)getpid();
	if (proc_stat(getpid(), 0, &st))
		ctl->owner_start = st.start;
}

static uint64_t rings_and_tags(const struct agent *a)
{
	return a->nrings * a->ring_stride + page_up(sizeof(struct wire_tags));
}

/*
 * A target that may have only so much memory goes on getting its own: we take half of the addresses
 * left at most, and a quarter of the memory.
 */
static struct err *choose_sizes(struct agent *a, struct target *t)
{
	uint64_t addresses, memory, fixed = WIRE_STATE_BYTES + WIRE_RULES_BYTES + page_up(sizeof(struct wire_births));

	target_room(t, &addresses, &memory);
	a->nrings = NRINGS;
	for (a->ring_bytes = RING_BYTES;; a->ring_bytes /= 2) {
		a->ring_stride = a->ring_bytes + PAGE;
		bool fits = fixed + rings_and_tags(a) <= addresses / 2;
		if (fits && a->nrings * a->ring_bytes <= memory / 4)
			return NULL;
		if (a->ring_bytes > RING_BYTES_LEAST)
			continue;
		if (fits)	/* they fill up only as events come in */
			return NULL;
		return err_new(ERR_DENIED, "process %d may have only %" PRIu64 " MB more of address space "
			       "(RLIMIT_AS), %" PRIu64 " MB are needed for heaptop not to be in its way: "
			       "prlimit --as raises it", (int)target_pid(t), addresses >> 20,
			       (2 * (fixed + rings_and_tags(a)) >> 20) + 1);
	}
}

static struct err *map_state(struct agent *a, struct target *t)
{
	struct wire_ctl ctl;

	fill_owner(&ctl);
	/* Most of it is never touched: the last walks of threads that aren't there. */
	struct err *err = map_anonymous(t, "mmap", 0, WIRE_STATE_BYTES, PROT_READ | PROT_WRITE, MAP_NORESERVE,
					&a->state);
	if (err)
		return err;
	/* At once, so that whoever comes after us knows whose memory it is. */
	err = target_write(t, a->state, &ctl, sizeof(ctl));
	if (err)
		return err;
	const uint64_t args[6] = { a->state, WIRE_STATE_BYTES, MADV_WIPEONFORK };
	return err_prefix(agent_call(t, "madvise(MADV_WIPEONFORK)", SYS_madvise, args, NULL),
			  "a forked child could not be kept apart");
}

/* ---- rings ---- */

/*
 * Open the target's descriptor, give the memory its size, and map it; it must be what we asked for. The target can't be
 * made to size it: where its files may not become as large (RLIMIT_FSIZE) it would get SIGXFSZ, which ends it.
 */
static struct err *share_memfd(struct agent *a, struct target *t, uint64_t fd)
{
	char path[64];
	struct stat st;
	struct statfs fs;
	struct rlimit limit;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)target_pid(t), (int)fd);
	CLEANUP_CLOSE int own = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (own < 0)
		return err_errno(errno, "%s", path);
	/* Sealed against shrinking: else reading it here could raise SIGBUS. */
	if (fstat(own, &st) || !S_ISREG(st.st_mode) || st.st_size || fstatfs(own, &fs) || fs.f_type != TMPFS_MAGIC ||
	    fcntl(own, F_ADD_SEALS, F_SEAL_SHRINK))
		return err_new(ERR_OTHER, "%s is not the memory asked for", path);
	/* the same goes for heaptop itself */
	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < a->rings_bytes)
		return err_new(ERR_DENIED, "files of heaptop may not be as large as %" PRIu64 " MB (ulimit -f): "
			       "raise that and start it again",
			       a->rings_bytes >> 20);
	if (ftruncate(own, (off_t)a->rings_bytes))
		return err_errno(errno, "the size of the rings");
	void *m = mmap(NULL, a->rings_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0);
	if (m == MAP_FAILED)
		return err_errno(errno, "mmap of the rings");
	a->shared = m;
	return NULL;
}

static struct err *map_memfd(struct agent *a, struct target *t)
{
	static const char name[] = "heaptop";
	uint64_t at = a->state + PAGE - sizeof(name), fd = 0;	/* a string in the target's memory */
	struct err *err = target_write(t, at, name, sizeof(name));
	if (err)
		return err;

	/* Kernels before 6.3 don't know NOEXEC; newer ones may insist on it. */
	uint64_t args[6] = { at, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL };
	err = agent_call(t, "memfd_create", SYS_memfd_create, args, &fd);
	if (err && err->errnum == EINVAL) {
		err_free(err);
		args[1] = MFD_CLOEXEC | MFD_ALLOW_SEALING;
		err = agent_call(t, "memfd_create", SYS_memfd_create, args, &fd);
	}
	if (err)
		return err;
	err = share_memfd(a, t, fd);
	if (!err)
		err = agent_call(t, "mmap", SYS_mmap, (const uint64_t[6]){ a->rings, a->rings_bytes,
				 PROT_READ | PROT_WRITE, MAP_SHARED | (a->rings ? MAP_FIXED : 0), fd, 0 }, &a->rings);
	struct err *closing = agent_call(t, "close", SYS_close, (const uint64_t[6]){ fd }, NULL);
	if (err) {
		err_free(closing);
		return err;
	}
	return closing;
}

struct err *agent_map_rings(struct agent *a, struct target *t)
{
	uint64_t rings = rings_and_tags(a);
	a->rings_bytes = rings + WIRE_RULES_BYTES + page_up(sizeof(struct wire_births));
	struct err *err = NULL;
	if (!a->config.no_memfd) {
		err = map_memfd(a, t);
		if (!err) {
			a->rules = (struct wire_rules *)(a->shared + rings);
			return NULL;
		}
		if (err->code == ERR_GONE)
			return err;
		log_line("rings in private memory: %s", err->text);
		err_free(err);
		if (a->shared)
			munmap(a->shared, a->rings_bytes);
		a->shared = NULL;
	}
	/* Without rules: writing them from outside isn't one store. Every event copies its stack. */
	a->rings_bytes = rings;
	a->copy = xmalloc(a->ring_bytes);
	return map_anonymous(t, "mmap", a->rings, a->rings_bytes, PROT_READ | PROT_WRITE,
			     MAP_NORESERVE | (a->rings ? MAP_FIXED : 0), &a->rings);
}

/* ---- islands ---- */

static bool within_reach(uint64_t from, uint64_t bytes, const struct text *x)
{
	uint64_t lo = from < x->lo ? from : x->lo;
	uint64_t hi = from + bytes > x->hi ? from + bytes : x->hi;

	return hi - lo <= REACH;
}

/* Header and code of the agent as they are in an island. */
static struct err *write_island(struct agent *a, struct target *t, const struct island *is)
{
	CLEANUP_FREE uint8_t *image = xmalloc(blob_bytes());
	struct wire_island head;

	memcpy(image, agent_blob, blob_bytes());
	memcpy(&head, agent_blob, sizeof(head));
	head.bytes = (uint32_t)is->bytes;
	head.ctl = a->state;
	head.state_bytes = WIRE_STATE_BYTES;
	head.rings = a->rings;
	head.rings_bytes = a->rings_bytes;
	head.ring_bytes = a->ring_bytes;
	head.ring_stride = a->ring_stride;
	head.nonce = a->nonce;
	head.nrings = a->nrings;
	head.tags = a->rings + a->nrings * a->ring_stride;
	head.rules = a->rules ? head.tags + page_up(sizeof(struct wire_tags)) : 0;
	memcpy(image, &head, sizeof(head));
	return target_write_text(t, is->addr, image, blob_bytes());
}

/* An island for a module and, if there is a place, for all modules not far from it. */
static struct err *new_island(struct agent *a, struct target *t, const struct text *x, size_t nsites)
{
	uint64_t first = (blob_bytes() + 63) & ~63ull;
	uint64_t bytes = page_up(first + (nsites + SPARE_THUNKS) * HOOK_THUNK_MAX), addr = 0;
	uint64_t lo = x->lo, hi = x->hi;

	for (size_t i = 0; i < a->ntexts; i++) {
		const struct text *y = &a->texts[i];
		uint64_t l = y->lo < lo ? y->lo : lo, h = y->hi > hi ? y->hi : hi;

		if (h - l < REACH / 2) {
			lo = l;
			hi = h;
		}
	}
	for (unsigned try = 0; try < GAP_TRIES; try++) {
		uint64_t gap = target_find_gap(t, lo, hi, bytes);

		if (!gap)
			gap = target_find_gap(t, lo = x->lo, hi = x->hi, bytes);
		if (!gap)
			break;
		struct err *err = map_anonymous(t, "mmap of executable memory", gap, bytes, PROT_READ | PROT_EXEC,
						MAP_FIXED_NOREPLACE, &addr);
		if (err && err->errnum != EEXIST)
			return err;
		err_free(err);
		if (err)
			continue;	/* another process that shares the memory was quicker */
		size_t nplaces = (bytes - first) / HOOK_THUNK_MAX;
		VEC_GROW(a->islands, a->nislands, a->islands_cap);
		a->islands[a->nislands++] = (struct island){
			.addr = addr,
			.bytes = bytes,
			.first = first,
			.nplaces = nplaces,
			.taken = xcalloc(nplaces, sizeof(bool)),
		};
		/* At once, for whoever comes after us if we die now. */
		if (addr == gap)
			return write_island(a, t, &a->islands[a->nislands - 1]);
		return err_new(ERR_OTHER, "the kernel put executable memory elsewhere");
	}
	return err_new(ERR_OTHER, "no free memory within 2 GiB of %#lx", (unsigned long)x->lo);
}

static size_t free_place(const struct island *is)
{
	size_t i = 0;

	while (i < is->nplaces && is->taken[i])
		i++;
	return i;
}

/* A free place for a thunk, in an island there is or in a new one. */
static struct err *find_place(struct agent *a, struct target *t, const struct text *x, size_t nsites,
			      struct island **ret, size_t *ret_place)
{
	for (size_t i = 0; i < a->nislands; i++) {
		struct island *is = &a->islands[i];

		*ret = is;
		*ret_place = free_place(is);
		if (*ret_place < is->nplaces && within_reach(is->addr, is->bytes, x))
			return NULL;
	}
	struct err *err = new_island(a, t, x, nsites);
	if (!err) {
		*ret = &a->islands[a->nislands - 1];
		*ret_place = 0;
	}
	return err;
}

static struct err *build_thunk(struct agent *a, struct target *t, struct site *s, size_t nsites)
{
	struct probe_hook *h = &a->probe.hooks[s->hook];
	uint8_t thunk[HOOK_THUNK_MAX];
	struct wire_island entries;
	struct island *is;
	size_t place;
	struct err *err = find_place(a, t, &a->texts[s->text], nsites, &is, &place);

	if (err)
		return err;
	uint64_t at = is->addr + is->first + place * HOOK_THUNK_MAX;
	memcpy(&entries, agent_blob, sizeof(entries));
	s->call.index = (uint32_t)s->hook;
	if (!hook_thunk(&s->plan, at, is->addr + entries.entry[s->call.kind], &s->call, thunk, &s->jump_to)) {
		s->hookable = h->hooked = false;
		snprintf(h->reason, sizeof(h->reason), "its first instructions refer too far away");
		return NULL;
	}
	is->taken[place] = true;
	s->thunk = at;
	return target_write_text(t, at, thunk, sizeof(thunk));
}

struct err *agent_build_thunks(struct agent *a, struct target *t, bool late)
{
	for (size_t i = 0; i < a->nsites; i++) {
		struct site *s = &a->sites[i];
		struct probe_hook *h = &a->probe.hooks[s->hook];

		if (s->thunk)
			continue;
		struct err *err = build_thunk(a, t, s, a->nsites - i);
		if (err && (!late || err->code == ERR_GONE))
			return err;
		if (err) {
			s->hookable = h->hooked = false;
			snprintf(h->reason, sizeof(h->reason), "%s", err->text);
		}
		err_free(err);
		if (!h->hooked)
			log_line("%s at %#lx not hooked: %s", h->name, (unsigned long)h->addr, h->reason);
	}
	agent_tidy(a);
	return NULL;
}

/* ---- control block ---- */

struct err *agent_write_control(struct agent *a, struct target *t)
{
	uint64_t words[2];
	uint32_t max = a->config.max_stack ? a->config.max_stack : WIRE_MAX_STACK;

	agent_main_stack(t, &a->main_lo, &a->main_hi);
	if (getrandom(words, sizeof(words), 0) != sizeof(words))
		words[0] = words[1] = ticks_now() * 0x9e3779b97f4a7c15ull;
	a->lease = ticks_now() + 2 * agent_ticks_per_second(a);
	struct wire_ctl ctl;
	fill_owner(&ctl);
	ctl.active = 1;
	ctl.lease = a->lease;
	ctl.rate = a->config.exact ? 1 : a->config.rate;
	ctl.free_all = a->config.exact;
	ctl.wait = a->waits = !a->config.raise;
	ctl.raise = a->config.raise;
	ctl.pid = (uint32_t)target_ns_pid(t);
	ctl.may_syscall = 0;	/* until agent_watch_filter has looked, while the target runs again */
	agent_note_placed(a, t);
	ctl.max_stack = max < WIRE_MAX_STACK ? max & ~7u : WIRE_MAX_STACK;
	ctl.main_stack_lo = a->main_lo;
	ctl.main_stack_hi = a->main_hi;
	ctl.seed = words[0];
	ctl.break_at = a->break_at;
	agent_know_threads(a, t, &ctl);
	struct err *err = agent_preset_bounds(a, t, &ctl.slots_used);
	if (err)
		return err;
	a->active = true;
	return target_write(t, a->state, &ctl, sizeof(ctl));
}

/* ---- text ---- */

/* A signal handler that returns into the middle of what we write would crash. */
static struct err *no_handler_within(struct target *t, const struct code_range *windows, size_t n)
{
	size_t nthreads;
	const struct target_thread *threads = target_threads(t, &nthreads);

	for (size_t i = 0; i < nthreads; i++)
		if (inside_interrupted(t, &threads[i], windows, n))
			return err_new(ERR_BUSY, "a signal handler has interrupted thread %d at the entry of the "
				       "allocator: try again", (int)threads[i].tid);
	return NULL;
}

struct err *agent_patch_text(struct agent *a, struct target *t)
{
	CLEANUP_FREE struct code_range *windows = xcalloc(a->nsites + 1, sizeof(*windows));
	size_t n = 0;

	for (size_t i = 0; i < a->nsites; i++) {
		const struct hook_plan *p = &a->sites[i].plan;
		if (!a->sites[i].patched)
			windows[n++] = (struct code_range){ p->addr, p->addr + p->displaced };
	}
	struct err *err = target_step_out(t, windows, n);
	if (!err)
		err = no_handler_within(t, windows, n);
	for (size_t i = 0; i < a->nsites && !err; i++) {
		struct site *s = &a->sites[i];
		uint8_t jump[HOOK_PATCH], now[HOOK_WINDOW];

		if (s->patched)
			continue;
		/* Once more what is there: time has passed since it was looked at. */
		if (target_read_some(t, s->plan.addr, now, s->plan.displaced) < s->plan.displaced ||
		    memcmp(now, s->plan.code, s->plan.displaced) ||
		    !hook_jump(s->plan.addr, s->jump_to, jump)) {
			struct probe_hook *h = &a->probe.hooks[s->hook];
			s->hookable = h->hooked = false;
			snprintf(h->reason, sizeof(h->reason), "its code has changed meanwhile");
			continue;
		}
		s->patched = true;
		err = target_write_text(t, s->plan.addr, jump, sizeof(jump));
	}
	if (!err)
		agent_tidy(a);
	return err;
}

struct err *agent_restore_text(struct agent *a, struct target *t)
{
	struct err *err = NULL;

	for (size_t i = 0; i < a->nsites; i++) {
		struct site *s = &a->sites[i];
		uint8_t jump[HOOK_PATCH], now[HOOK_PATCH];

		if (!s->patched || !hook_jump(s->plan.addr, s->jump_to, jump))
			continue;
		/* Unmapped since (dlclose), or changed by somebody else: not ours to write to. */
		struct err *e = target_read(t, s->plan.addr, now, sizeof(now));
		if (e && e->code == ERR_GONE)
			return e;
		bool ours = !e && !memcmp(now, jump, sizeof(jump));
		err_free(e);
		if (ours) {
			e = target_write_text(t, s->plan.addr, s->plan.code, HOOK_PATCH);
			if (e && !err)
				err = e;
			else
				err_free(e);
			if (e)
				continue;
		}
		s->patched = false;
	}
	return err;
}

struct err *agent_unmap(struct agent *a, struct target *t)
{
	struct err *err = NULL;

	if (a->others) {
		for (size_t i = 0; i < a->nislands; i++)
			free(a->islands[i].taken);
		a->nislands = 0;
		a->state = a->rings = 0;
		return NULL;
	}
	for (size_t i = 0; i < a->nislands; i++) {
		unmap(t, a->islands[i].addr, a->islands[i].bytes, &err);
		free(a->islands[i].taken);
	}
	a->nislands = 0;
	unmap(t, a->state, WIRE_STATE_BYTES, &err);
	unmap(t, a->rings, a->rings_bytes, &err);
	a->state = 0;
	a->rings = 0;
	return err;
}

struct err *agent_place(struct probe *p, struct target *t)
{
	struct agent *a = agent_of(p);

	if (getrandom(&a->nonce, sizeof(a->nonce), 0) != sizeof(a->nonce))
		a->nonce = ticks_now() * 0x9e3779b97f4a7c15ull;
	struct err *err = choose_sizes(a, t);
	if (!err)
		err = map_state(a, t);
	if (!err)
		err = agent_map_rings(a, t);
	if (!err)
		err = agent_build_thunks(a, t, false);
	if (!err)
		err = agent_write_control(a, t);
	if (!err)
		err = agent_patch_text(a, t);
	if (!err) {
		const struct ring_reader_config config = { a->nrings, a->ring_bytes, a->nonce };
		a->reader = ring_reader_create(&config);
		p->outlives = a->shared;
		return NULL;
	}
	/* after a target_step_out in vain it runs */
	struct err *undo = target_stop(t);
	if (!undo)
		undo = agent_restore_text(a, t);
	if (!undo)
		undo = agent_unmap(a, t);
	if (a->shared)
		munmap(a->shared, a->rings_bytes);
	a->shared = NULL;
	a->rules = NULL;
	free(a->taught);
	a->taught = NULL;
	free(a->born);
	a->born = NULL;
	free(a->copy);
	a->copy = NULL;
	for (size_t i = 0; i < a->nsites; i++)
		a->sites[i].thunk = 0;
	if (undo && undo->code != ERR_GONE)
		log_line("after a failed start: %s", undo->text);
	err_free(undo);
	return err_prefix(err, "placing the agent");
}
