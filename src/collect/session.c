/*
 * One watched process, see session.h: its beginning and end, and keeping up with the target in between. Events
 * go from the probe's drain to intake.c.
 */
#include "collect/watched.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "collect/frames.h"
#include "collect/prefill.h"
#include "collect/record.h"
#include "collect/touching.h"
#include "elf/modules.h"
#include "heap/heap.h"
#include "probe/probe.h"
#include "target/target.h"
#include "unwind/unwind.h"
#include "wire/wire.h"

#define CONTROL_SECONDS 0.1	/* between looks at the auto rate while events come, */
#define USAGE_SECONDS 0.5	/* and else */
#define THREADS_SECONDS 0.25	/* between looks at the list of threads, and at least */
#define THREADS_SHARE 0.01	/* so long that they cost no more than that */
#define THREADS_NAMED 32	/* threads whose names are looked at each time */
#define MODULES_SECONDS 1.0	/* between readings of /proc/PID/maps, at most; */
#define MODULES_SECONDS_MIN 0.05	/* and at least; in between so that they take that */
#define MODULES_SHARE 0.001		/* share of the time */
#define MODULES_MISS_SECONDS 0.001	/* the same after an address no module holds, at first; */
#define MODULES_MISS_MAX 0.1	/* twice as long each time nothing was new, up to that */
#define REFINE_SECONDS 1.0	/* between comparisons of the clocks */
#define EXTEND_SECONDS 0.01	/* between attempts to hook new modules */
#define START_SECONDS 0.3	/* of its processor time: a program's first moments, recorded without loss, see below; */
#define START_MAX 2.0		/* so long by the clock at most, */
#define START_COST 0.3		/* and at most so many seconds of its time that it may cost */
#define START_LOOK 0.01		/* between looks at that */
#define CROWD_SECONDS 0.01	/* a program whose threads crowd the rings runs that long before it is held again */
#define AT_ONCE 4096		/* events a step: a ring would be full in some milliseconds */
#define FEW 64			/* fewer a step may wait for the next look of an idle one: a thousandth of a ring */

uint32_t session_wire_rule(void *session, uint64_t pc)
{
	struct session *s = session;

	return unwinder_wire_rule(s->unwinder, pc);
}

/* ---- keeping up with the target's mappings ---- */

/* For -v: what is new, the first of it by name. */
static void tell_modules(struct session *s)
{
	size_t n = modules_count(s->mods), old = s->known_modules;
	const struct module *first = n > old ? module_get(s->mods, (uint32_t)old + 1) : NULL;

	s->known_modules = n;
	if (n > old + 1)
		log_line("new modules: %s and %zu more", first->name, n - old - 1);
	else
		log_line("%s%s", first ? "new module: " : "modules are gone, or lie elsewhere", first ? first->name : "");
}

/*
 * A library may be loaded at any time, and what it allocates by a malloc of its own isn't seen before that
 * is hooked: so the maps are read as often as is cheap.
 */
static struct err *read_modules(struct session *s, bool *ret_changed)
{
	bool changed = false;
	double began = thread_cpu_seconds();
	struct err *err = target_refresh_modules(s->target, s->mods, &changed);

	*ret_changed = changed;
	s->last_modules = monotonic_seconds();
	double interval = changed ? 0 : (thread_cpu_seconds() - began) / MODULES_SHARE;
	s->modules_interval = interval < MODULES_SECONDS_MIN ? MODULES_SECONDS_MIN
			    : interval < MODULES_SECONDS ? interval : MODULES_SECONDS;
	if (!err && s->placed)
		err = s->probe->ops->update(s->probe, s->target, s->mods, &s->extend);
	if (!err && changed) {
		tell_modules(s);
		unwinder_flush(s->unwinder);
		frames_flush(s->frames);
		if (s->placed && !s->ending) {
			s->probe->ops->reteach(s->probe, session_wire_rule, s);
			/* the same address may be in another module now, as after a plug-in was reloaded: no
			 * stack may go on from one that was told before */
			s->probe->ops->resync(s->probe);
		}
	}
	return err;
}

struct err *session_refresh_modules(struct session *s)
{
	bool changed;

	return read_modules(s, &changed);
}

/*
 * A stack that led outside all known modules: a library may just have been loaded. Looked at once,
 * but less and less often in a program whose addresses belong to no module anyway.
 */
static bool refresh_after_miss(void *ctx, const uint64_t *pcs, size_t n)
{
	struct session *s = ctx;
	bool missed = false, changed = false;

	for (size_t i = 0; i < n && !missed; i++)
		missed = !frame_module(frames_addr(s->frames, pcs[i]));
	if (!missed || s->ended || monotonic_seconds() - s->last_modules < s->miss_interval)
		return false;
	err_free(read_modules(s, &changed));
	s->miss_interval = changed ? MODULES_MISS_SECONDS : s->miss_interval * 2;
	if (s->miss_interval > MODULES_MISS_MAX)
		s->miss_interval = MODULES_MISS_MAX;
	return changed;
}

static void teach(void *ctx, const uint64_t *pcs, size_t n)
{
	struct session *s = ctx;

	s->taught += s->probe->ops->teach(s->probe, pcs, n, session_wire_rule, s);
}

/* In another PID namespace its id is another one out here: its name comes with the list of threads. */
static bool thread_name(void *ctx, uint32_t tid, char name[16])
{
	struct session *s = ctx;

	return target_ns_pid(s->target) == target_pid(s->target) && target_thread_name(s->target, (pid_t)tid, name);
}

static void thread_born(void *ctx, const struct target_thread *thread)
{
	struct session *s = ctx;

	if (s->placed)
		s->probe->ops->born(s->probe, s->target, thread);
}

static void thread_ended(void *ctx, const struct target_thread *thread)
{
	struct session *s = ctx;

	if (s->placed)
		s->probe->ops->ended(s->probe, thread);
}

void session_watch_births(struct session *s)
{
	const struct target_births births = { thread_born, thread_ended, s };

	target_tell_births(s->target, &births);
}

/* Where it can't be it is said, and all else goes on. */
void session_open_faults(struct session *s)
{
	struct err *err = s->config.faults ? touching_open(s->target, s->faults_code, &s->touching) : NULL;

	free(s->faults_why);
	s->faults_why = err ? xstrdup(err->text) : NULL;
	if (err)
		log_line("%s", err->text);
	err_free(err);
}

struct touching_of session_touching_of(struct session *s)
{
	return (struct touching_of){
		.heap = s->heap,
		.unwinder = s->unwinder,
		.frames = s->frames,
		.clock = &s->clock,
		.missed = refresh_after_miss,
		.ctx = s,
	};
}

static size_t drain_events(struct session *s, bool last)
{
	if (!s->placed)
		return 0;
	double began = thread_cpu_seconds();
	size_t n = s->probe->ops->drain(s->probe, s->target, last, intake_event, &s->intake);
	intake_flush(&s->intake);
	if (s->intake.resync)
		s->probe->ops->resync(s->probe);
	s->intake.resync = false;
	s->work += thread_cpu_seconds() - began;
	return n;
}

/* Page faults first: what is heard of a block after one was touched is told by times, what is heard before isn't. */
size_t session_drain(struct session *s, bool last)
{
	const struct touching_of of = session_touching_of(s);
	size_t n = s->touching ? touching_take(s->touching, &of) : 0;

	n += drain_events(s, last);
	if (s->touching)
		touching_settle(s->touching, &of, monotonic_seconds(), last);
	return n;
}

/* ---- beginning and end ---- */

struct probe_config session_probe_config(const struct session *s)
{
	return (struct probe_config){
		.rate = s->control.rate,
		.exact = s->config.exact,
		.mmap = s->config.mmap,
		/* Many programs do most of their allocating when they start, and short ones nothing
		 * else: those moments are recorded whole, at the price of some waiting. With the auto
		 * rate a running process is never made to wait. */
		.raise = s->control.on && s->attached,
		.max_stack = s->config.max_stack,
		.uprobes = s->uprobes,
		.ns_per_tick = s->clock.ns_per_tick,
		.named = s->config.named,
		.leaving = s->config.leaving,
	};
}

static struct probe *make_probe(const struct session *s)
{
	const struct probe_config config = session_probe_config(s);

	return s->config.uprobe ? probe_uprobe_create(&config) : probe_agent_create(&config);
}

static struct heap *new_heap(const struct session *s)
{
	struct heap *heap = heap_create(&(struct heap_config){ .min_size = s->config.min_size });

	if (s->config.thread)
		heap_choose_threads(heap, s->config.thread);
	return heap;
}

/* A uprobe costs what it costs, sampled or not, and what the kernel records can't wait for room: begun with samples. */
static uint64_t first_rate(const struct collect_config *config)
{
	if (config->exact)
		return 1;
	return config->uprobe && config->auto_rate && config->rate <= 1 ? PROBE_UPROBE_RATE : config->rate;
}

/* `mods` becomes the session's, `target` may be NULL for now. */
static struct session *create(const struct collect_config *config, const struct session_place *place,
			      struct modules *mods, struct target *target)
{
	struct session *s = xcalloc(1, sizeof(*s));

	s->config = *config;
	s->target = target;
	control_init(&s->control, config->budget, first_rate(config), config->auto_rate && !config->exact);
	s->paused = config->paused;
	s->miss_interval = MODULES_MISS_SECONDS;
	s->mods = mods;
	s->uprobes = place->uprobes;
	s->told.sideband = place->sideband;
	s->unwinder = unwinder_create(s->mods);
	s->frames = frames_create(s->mods, place->modules);
	s->heap = new_heap(s);
	residence_init(&s->residence, false);
	residence_want(&s->residence, !config->no_res);
	s->faults_code = place->faults_code;
	s->clock = *place->clock;
	s->clock.ticks0 = ticks_now();
	s->clock.ns0 += (uint64_t)((double)(s->clock.ticks0 - place->clock->ticks0) * s->clock.ns_per_tick);
	s->probe = make_probe(s);
	s->intake = (struct intake){
		.heap = s->heap,
		.frames = s->frames,
		.unwinder = s->unwinder,
		.clock = &s->clock,
		.missed = refresh_after_miss,
		.teach = teach,
		.thread_name = thread_name,
		.ctx = s,
	};
	return s;
}

struct err *session_open(const struct collect_config *config, const struct session_place *place, pid_t pid,
			 struct session **ret, int *ret_exit)
{
	struct session *s = create(config, place, modules_create(), NULL);

	s->attached = pid != 0;
	residence_init(&s->residence, s->attached);
	residence_want(&s->residence, !config->no_res);
	*ret_exit = pid ? 1 : LAUNCH_FAILED;
	struct err *err = config->record ? recorder_create(config->record, &s->recorder) : NULL;
	s->intake.recorder = s->recorder;
	if (!err)
		err = pid ? session_enter_attached(s, pid, ret_exit) : session_enter_launched(s, ret_exit);
	if (err) {
		s->placed = false;
		session_close(s);
		return err;
	}
	*ret = s;
	return NULL;
}

struct err *session_begin(struct session *s, const struct session_place *place)
{
	struct err *err = s->prefill ? session_enter_prepared(s) : NULL;

	if (err) {
		s->placed = false;
		session_close(s);
		return err;
	}
	target_family_join(place->family, s->target);
	/* a launched one has them since before it ran */
	if (s->attached)
		session_open_faults(s);
	return NULL;
}

/* Without the target, which stays the caller's. */
static void close_without(struct session *s)
{
	target_tell_births(s->target, NULL);
	s->target = NULL;
	session_close(s);
}

struct err *session_open_forked(struct session *parent, const struct session_place *place, struct target *t,
				struct session **ret)
{
	bool inherited;
	struct session *s = create(&parent->config, place, modules_copy(parent->mods), t);

	s->child = true;
	/* as it is in the parent now */
	s->paused = parent->paused;
	control_init(&s->control, s->config.budget, parent->control.on ? s->config.rate : parent->control.rate,
		     parent->control.on);
	struct err *err = session_enter_forked(s, parent, &inherited);
	if (err || !inherited) {
		close_without(s);
		*ret = NULL;
		return err;
	}
	session_open_faults(s);
	*ret = s;
	return NULL;
}

struct err *session_open_image(const struct collect_config *config, const struct session_place *place,
			       struct target *t, struct session **ret)
{
	struct session *s = create(config, place, modules_create(), t);

	*ret = NULL;
	s->child = true;
	struct err *err = session_enter_image(s);
	if (err) {
		s->placed = false;
		close_without(s);
		return err;
	}
	session_open_faults(s);
	*ret = s;
	return NULL;
}

void session_close(struct session *s)
{
	if (!s)
		return;
	s->probe->ops->destroy(s->probe);
	target_destroy(s->target);
	residence_deinit(&s->residence);
	touching_close(s->touching, s->heap);
	free(s->faults_why);
	told_deinit(&s->told);
	heap_destroy(s->heap);
	recorder_destroy(s->recorder);
	prefill_destroy(s->prefill);
	frames_destroy(s->frames);
	unwinder_destroy(s->unwinder);
	modules_destroy(s->mods);
	free(s);
}

/* ---- while it runs ---- */

/* What the target uses, what the agent counts, what of it is overhead. */
static void measure(struct session *s, double now, bool last)
{
	target_usage(s->target, &s->usage);
	if (s->placed)
		s->probe->ops->stats(s->probe, s->target, &s->stats);
	s->last_usage = now;
	s->usage_events = s->intake.events;
	struct touching_counts faults = touching_counts(s->touching);
	struct control_counts counts = {
		.time = now,
		.cpu = s->usage.cpu,
		.work = s->work,
		.cycles = s->stats.cycles,
		.events = s->intake.events,
		.allocs = s->intake.allocs,
		.alloc_calls = heap_alloc_calls(s->heap),
		.free_calls = heap_free_calls(s->heap),
		.alloc_bytes = heap_alloc_bytes(s->heap),
		.live_samples = heap_live_samples(s->heap),
		.faults = s->faults_before.faults + faults.faults,
		.fault_samples = s->faults_before.samples + faults.samples,
		.scan_share = (double)s->residence.memory.scan_share,
	};
	control_measure(&s->control, &counts, s->clock.ns_per_tick, last);
	if (s->placed && !s->starting && !last)
		control_decide(&s->control, &counts, s->clock.ns_per_tick, s->stats.rate, s->probe,
			       s->target);
}

/* The first moments, recorded without loss, are over: after a while, or when they have cost enough. */
static void see_start_through(struct session *s, double now)
{
	if (now - s->start <= START_MAX) {
		if (!s->placed || now - s->start_looked < START_LOOK)
			return;
		s->start_looked = now;
		target_usage(s->target, &s->usage);
		s->probe->ops->stats(s->probe, s->target, &s->stats);
		if (s->usage.cpu - s->start_cpu <= START_SECONDS &&
		    (double)(s->stats.cycles + s->stats.waited) * s->clock.ns_per_tick < START_COST * 1e9)
			return;
	}
	s->starting = false;
	if (s->placed)
		err_free(s->probe->ops->set_raise(s->probe, s->target, s->control.on));
}

/* After what was to be done while it stood still, which ended with `err`: it goes on, if it doesn't already. The first error. */
static struct err *let_go(struct session *s, struct err *err)
{
	struct err *resumed = target_is_stopped(s->target) ? session_resume(s) : NULL;

	if (!err)
		return resumed;
	err_free(resumed);
	return err;
}

/*
 * New modules have entry points: one short stop. If a thread is just at one of them, again later, as long as
 * the probe has something to hook.
 */
static void hook_new_modules(struct session *s)
{
	struct err *err = target_stop(s->target);

	if (!err)
		err = s->probe->ops->extend(s->probe, s->target);
	err = let_go(s, err);
	if (!err || err->code != ERR_BUSY)
		s->extend = false;
	if (err)
		log_line("new modules not hooked: %s", err->text);
	else
		log_line("new modules hooked; the program was held for %.1f ms",
			 target_pause(s->target) * 1e3);
	err_free(err);
}

/* Who is there, and under what name. */
static void look_at_threads(struct session *s, double now)
{
	struct target_id *ids = NULL;

	if (s->placed)
		s->probe->ops->stats(s->probe, s->target, &s->stats);
	size_t n = target_ids(s->target, &ids);
	CLEANUP_FREE uint32_t *tids = xcalloc(n + 1, sizeof(*tids));
	for (size_t i = 0; i < n; i++)
		tids[i] = ids[i].ns;
	if (n)
		heap_threads_present(s->heap, tids, n);
	if (n && s->placed)
		s->probe->ops->present(s->probe, s->target, tids, n);
	uint16_t first = 0;
	for (int i = 0; i < THREADS_NAMED; i++) {
		uint32_t tid, low = 0, high = (uint32_t)n;
		char name[16];
		uint16_t number = heap_thread_next(s->heap, &tid);

		if (!number || number == first)
			break;
		if (!first)
			first = number;
		while (low < high) {
			uint32_t mid = low + (high - low) / 2;
			if (ids[mid].ns < tid)
				low = mid + 1;
			else
				high = mid;
		}
		if (low < n && ids[low].ns == tid && target_thread_name(s->target, ids[low].tid, name))
			heap_thread_name(s->heap, number, name);
	}
	free(ids);
	double cost = (monotonic_seconds() - now) / THREADS_SHARE;
	s->next_threads = now + (cost > THREADS_SECONDS ? cost : THREADS_SECONDS);
}

static struct residence_of residence_of(const struct session *s)
{
	return (struct residence_of){
		.target = s->target,
		.heap = s->heap,
		.probe = s->placed ? s->probe : NULL,
		.events = s->intake.events,
		.rss = s->usage.rss,
	};
}

static void look_after(struct session *s)
{
	double now = monotonic_seconds();

	told_step(&s->told, now);
	if (s->placed && told_due(&s->told, SIDEBAND_EXEC, now, now - s->last_renew, RENEW_SECONDS)) {
		/* ERR_GONE here is seen by target_poll too */
		struct err *err = s->probe->ops->renew(s->probe, s->target);
		/* an attached process isn't traced: its exec shows by the agent's memory being gone */
		if (err && err->errnum == EFAULT && s->attached)
			s->replaced = true;
		err_free(err);
		s->last_renew = now;
	}
	if (s->starting)
		see_start_through(s, now);
	/* a quiet target isn't looked at more often than the screen needs */
	bool busy = s->control.on && s->intake.events != s->usage_events;
	if (now - s->last_usage >= (busy ? CONTROL_SECONDS : USAGE_SECONDS))
		measure(s, now, false);
	if (told_due(&s->told, SIDEBAND_THREADS, now, now - s->next_threads + THREADS_SECONDS, THREADS_SECONDS))
		look_at_threads(s, now);
	const struct residence_of of = residence_of(s);
	residence_step(&s->residence, &of, now);
	if (told_due(&s->told, SIDEBAND_CODE, now, now - s->last_modules, s->modules_interval))
		err_free(session_refresh_modules(s));
	if (now - s->last_refine >= REFINE_SECONDS) {
		ticks_clock_refine(&s->clock);
		s->last_refine = now;
	}
	if (s->extend && now - s->last_extend >= EXTEND_SECONDS) {
		hook_new_modules(s);
		s->last_extend = now;
	}
}

/* The program has replaced itself: what was measured belongs to an image that is gone. */
static struct err *on_exec(struct session *s)
{
	session_drain(s, true);
	if (s->leaving) {
		/* nothing of ours is in it, and what was measured stays to be seen */
		s->placed = s->extend = false;
		s->executed = true;
		return target_resume(s->target);
	}
	s->probe->ops->destroy(s->probe);
	s->placed = s->extend = false;
	heap_destroy(s->heap);
	s->heap = new_heap(s);
	residence_deinit(&s->residence);
	residence_init(&s->residence, false);
	residence_want(&s->residence, !s->config.no_res);
	/* a rate chosen by hand stays */
	control_init(&s->control, s->config.budget, s->control.on ? s->config.rate : s->control.rate,
		     s->control.on);
	s->probe = make_probe(s);
	s->intake.heap = s->heap;
	intake_reset(&s->intake);
	memset(&s->stats, 0, sizeof(s->stats));
	s->usage_events = 0;
	log_line("the program has executed %s: starting afresh", target_command(s->target));
	struct err *err = session_enter_image(s);
	if (err) {
		/* a program without malloc, or 32-bit: it goes on, unwatched */
		log_line("not hooked: %s", err->text);
		err_free(err);
	}
	return session_resume(s);
}

/* What was recorded before stays to be seen; hooks and rings have gone with the old image. */
static void on_left(struct session *s)
{
	session_drain(s, true);
	s->placed = false;
	s->left = true;
	log_line("process %d executes a program with rights of its own: it runs unwatched",
		 (int)target_pid(s->target));
}

/* No further than it was written to when it ended: a child that has its rings mapped may go on writing for ever. */
static void on_end(struct session *s)
{
	do
		session_drain(s, true);
	while (s->placed && s->probe->more);
	if (s->placed)
		s->probe->ops->stats(s->probe, s->target, &s->stats);
	heap_threads_present(s->heap, NULL, 0);
	s->ended = true;
}

enum session_step session_news(struct session *s, struct err **ret_err)
{
	for (;;) {
		switch (target_poll(s->target)) {
		case TARGET_EXEC:
			*ret_err = on_exec(s);
			return *ret_err ? SESSION_BROKEN : SESSION_BUSY;
		case TARGET_EXITING:
			s->ending = true;
			err_free(session_refresh_modules(s));
			session_drain(s, true);
			measure(s, monotonic_seconds(), true);
			const struct residence_of of = residence_of(s);
			residence_finish(&s->residence, &of, monotonic_seconds());
			continue;	/* which lets it go */
		case TARGET_EXITED:
			on_end(s);
			return SESSION_ENDED;
		case TARGET_LEFT:
			on_left(s);
			if (!s->child)
				continue;	/* its exit code is ours */
			s->ended = true;
			return SESSION_ENDED;
		case TARGET_BORN:
		case TARGET_NOTHING:
			return SESSION_IDLE;
		}
	}
}

/*
 * Threads that wait for room without a system call, which a filter might punish, take heaptop's processors. Where they
 * are many the program, which doesn't get on anyway, stands still while room is made; what is learned of its
 * stacks meanwhile saves most of it the next time.
 */
static size_t drain_crowd(struct session *s)
{
	size_t n = 0;
	struct err *err = target_try_stop(s->target);

	/* a thread that waits in the kernel, for a file or a vforked child, mustn't keep all others from their work */
	s->probe->unheld = err != NULL;
	if (!err)
		do
			n += session_drain(s, false);
		while (s->probe->more);
	err = let_go(s, err);
	/* what has become of it, session_news tells */
	err_free(err);
	s->crowd_held = monotonic_seconds();
	return n;
}

/* Who was held within a record gets a moment to finish it: all later ones wait for that. */
static bool is_crowd(const struct session *s)
{
	return s->placed && s->probe->ops->crowded && monotonic_seconds() - s->crowd_held > CROWD_SECONDS &&
	       s->probe->ops->crowded(s->probe, s->target);
}

enum session_step session_step(struct session *s, struct err **ret_err)
{
	uint64_t taught = s->taught;
	size_t n = is_crowd(s) ? drain_crowd(s) : session_drain(s, false);

	look_after(s);
	if (s->replaced) {
		log_line("process %d has executed another program: what was watched is gone",
			 (int)target_pid(s->target));
		on_end(s);
		return SESSION_ENDED;
	}
	enum session_step step = session_news(s, ret_err);
	if (step != SESSION_IDLE)
		return step;
	if (s->taught != taught || n >= AT_ONCE)
		return SESSION_AT_ONCE;
	return n >= FEW || s->starting ? SESSION_BUSY : SESSION_IDLE;
}
