/*
 * One watched process, see session.h. Events go from the probe's drain to intake.c. Here is about getting
 * in, keeping up with the target, and getting out.
 */
#include "collect/session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/ticks.h"
#include "collect/control.h"
#include "collect/frames.h"
#include "collect/intake.h"
#include "collect/prefill.h"
#include "collect/record.h"
#include "elf/modules.h"
#include "heap/heap.h"
#include "heap/view.h"
#include "probe/probe.h"
#include "symbol/names.h"
#include "target/target.h"
#include "unwind/unwind.h"
#include "wire/wire.h"

#define RENEW_SECONDS 0.1	/* between renewals of the lease */
#define CONTROL_SECONDS 0.1	/* between looks at the auto rate while events come, */
#define USAGE_SECONDS 0.5	/* and else */
#define THREADS_SECONDS 0.25	/* between looks at the list of threads, and at least */
#define THREADS_SHARE 0.01	/* so long that they cost no more than that */
#define THREADS_NAMED 32	/* threads whose names are looked at each time */
#define MODULES_SECONDS 1.0	/* between readings of /proc/PID/maps */
#define MODULES_MISS_SECONDS 0.001	/* the same after an address no module holds, at first; */
#define MODULES_MISS_MAX 0.1	/* twice as long each time nothing was new, up to that */
#define PLACE_TRIES 20		/* rounds of "a thread is at an entry point", 10 ms each */
#define START_SECONDS 0.3	/* a program's first moments: recorded without loss, see below */
#define START_COST 0.05		/* seconds of its time that may cost it */
#define START_LOOK 0.01		/* between looks at that */
#define GONE_TRIES 1000		/* times 1 ms, until a program that is ending has ended */
#define EXEC_TRIES 3		/* detaching again after an exec came between */
#define AT_ONCE 4096		/* events a step: a ring would be full in some milliseconds */
#define REMOVE_TRIES 100	/* rounds of "a thread is still inside", 10 ms each */

struct session {
	struct collect_config config;
	struct target *target;
	struct probe *probe;
	struct modules *mods;
	struct names *names;
	struct unwinder *unwinder;
	struct frames *frames;
	struct heap *heap;
	struct recorder *recorder;	/* or NULL */
	struct ticks_clock clock;
	bool placed;		/* the probe is in the target */
	bool ended, detached, paused;
	bool replaced;		/* attached, and it has executed another program since */
	double last_renew, last_usage, last_modules, next_threads;
	double miss_interval;	/* seconds; see refresh_after_miss */
	struct control control;
	uint64_t usage_events;	/* events at the last look at the usage */
	double work;		/* seconds of CPU time spent on events */
	double pause_seconds;	/* the target was stopped to get in */
	double start;		/* hooks were placed, monotonic */
	bool starting;		/* within START_SECONDS of it, and launched with the auto rate */
	double start_looked;

	struct target_usage usage;
	struct probe_stats stats;
	uint64_t views;		/* published; goes on over an exec, which starts a new heap */
	struct intake intake;
	uint64_t taught;	/* rules handed to the agent */

};

static double thread_cpu(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static uint32_t wire_rule_of(void *session, uint64_t pc)
{
	struct session *s = session;

	return unwinder_wire_rule(s->unwinder, pc);
}

/* ---- keeping up with the target's mappings ---- */

static struct err *read_modules(struct session *s, bool *ret_changed)
{
	bool changed = false;
	struct err *err = target_refresh_modules(s->target, s->mods, &changed);

	*ret_changed = changed;
	s->last_modules = monotonic_seconds();
	if (!err && changed) {
		unwinder_flush(s->unwinder);
		frames_flush(s->frames);
		if (s->placed) {
			s->probe->ops->reteach(s->probe, wire_rule_of, s);
			/* the same address may be in another module now, as after a plug-in was reloaded: no
			 * stack may go on from one that was told before */
			s->probe->ops->resync(s->probe);
		}
	}
	return err;
}

static struct err *refresh_modules(struct session *s)
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

	s->taught += s->probe->ops->teach(s->probe, pcs, n, wire_rule_of, s);
}

static size_t drain(struct session *s, bool last)
{
	if (!s->placed)
		return 0;
	double began = thread_cpu();
	size_t n = s->probe->ops->drain(s->probe, s->target, last, intake_event, &s->intake);
	intake_flush(&s->intake);
	if (s->intake.resync)
		s->probe->ops->resync(s->probe);
	s->intake.resync = false;
	s->work += thread_cpu() - began;
	return n;
}

/* ---- getting in ---- */

/* Stop the target again and again until `again` is no longer true, letting it run in between. */
static struct err *let_run_a_moment(struct session *s)
{
	struct err *err = target_resume(s->target);

	if (err)
		return err;
	nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	return target_stop(s->target);
}

/* A heaptop that was killed left its hooks: take them out first, or we would hook the hooks. */
static struct err *clean_leftovers(struct session *s)
{
	for (int i = 0; i < REMOVE_TRIES; i++) {
		size_t found = 0;
		bool again = false;
		struct err *err = probe_agent_cleanup(s->target, s->mods, &found, &again);
		if (err)
			return err;
		if (found)
			log_line("%zu hooks of an earlier heaptop taken out", found);
		if (!again)
			return NULL;
		err = let_run_a_moment(s);
		if (err)
			return err;
	}
	log_line("memory of an earlier heaptop stays mapped: a thread was always inside");
	return NULL;
}

static struct err *no_allocator(struct session *s)
{
	for (size_t i = 0; i < s->probe->nhooks; i++) {
		if (s->probe->hooks[i].hooked)
			return NULL;
	}
	const char *why = s->probe->nhooks ? s->probe->hooks[0].reason : NULL;
	return err_new(ERR_UNSUPPORTED, "process %d has no allocator heaptop can hook%s%s: "
		       "no module defines malloc in its symbol tables", (int)target_pid(s->target),
		       why ? ": " : "", why ? why : "");
}

/* Target stopped, its modules known, probe prepared. */
static struct err *place(struct session *s)
{
	struct err *err = s->probe->ops->place(s->probe, s->target);

	/* a signal handler had interrupted a thread at an entry point: it goes on in a moment */
	for (int i = 0; err && err->code == ERR_BUSY && i < PLACE_TRIES; i++) {
		err_free(err);
		err = let_run_a_moment(s);
		if (!err)
			err = s->probe->ops->place(s->probe, s->target);
	}
	if (err)
		return err;
	err = no_allocator(s);
	if (err) {
		bool again = false;
		err_free(s->probe->ops->remove(s->probe, s->target, &again));
		return err;
	}
	s->placed = true;
	s->start = monotonic_seconds();
	s->starting = s->control.on && !s->config.pid;
	if (s->paused)
		err = s->probe->ops->set_active(s->probe, s->target, false);
	return err;
}

static struct err *hook_stopped_image(struct session *s)
{
	struct err *err = refresh_modules(s);

	if (!err)
		err = s->probe->ops->prepare(s->probe, s->target, s->mods);
	if (!err)
		err = place(s);
	return err;
}

static struct err *get_in_launched(struct session *s, int *ret_exit)
{
	struct err *err = target_launch(&s->config.launch, &s->target, ret_exit);

	if (err)
		return err;
	*ret_exit = LAUNCH_FAILED;
	err = hook_stopped_image(s);
	if (!err)
		err = target_resume(s->target);
	if (err) {
		/* nothing of the program has run yet: it isn't started without its profiler */
		kill(target_pid(s->target), SIGKILL);
	}
	return err;
}

static struct err *get_in_attached(struct session *s, int *ret_exit)
{
	*ret_exit = 1;
	struct err *err = target_check(s->config.pid);
	if (err)
		return err;
	struct prefill *prefill = prefill_create();
	err = target_attach(s->config.pid, &s->target);
	if (err) {
		prefill_destroy(prefill);
		return err;
	}
	prefill_take(prefill, s->target);
	/* symbols are looked up while the target runs; the second stop only places the hooks */
	err = target_resume(s->target);
	if (!err)
		err = refresh_modules(s);
	if (!err) {
		prefill_walk(prefill, s->unwinder);
		err = s->probe->ops->prepare(s->probe, s->target, s->mods);
	}
	if (!err)
		err = target_stop(s->target);
	if (err) {
		prefill_destroy(prefill);
		return err;
	}
	err = clean_leftovers(s);
	if (!err)
		err = place(s);
	struct err *resumed = target_resume(s->target);
	s->pause_seconds = target_pause(s->target);
	if (!err)
		log_line("%zu rules handed over in advance",
			 prefill_teach(prefill, s->probe, wire_rule_of, s));
	prefill_destroy(prefill);
	if (err) {
		err_free(resumed);
		return err;
	}
	return resumed;
}

static struct probe *make_probe(const struct session *s)
{
	return probe_agent_create(&(struct probe_config){
		.rate = s->control.rate,
		.exact = s->config.exact,
		/* Many programs do most of their allocating when they start, and short ones nothing
		 * else: those moments are recorded whole, at the price of some waiting. With the auto
		 * rate a running process is never made to wait. */
		.raise = s->control.on && s->config.pid,
		.max_stack = s->config.max_stack,
	});
}

static struct heap *new_heap(const struct session *s)
{
	struct heap *heap = heap_create(&(struct heap_config){ 0 });

	if (s->config.thread)
		heap_choose_threads(heap, s->config.thread);
	return heap;
}

struct err *session_open(const struct collect_config *config, struct session **ret, int *ret_exit)
{
	struct session *s = xcalloc(1, sizeof(*s));

	s->config = *config;
	control_init(&s->control, config->budget, config->exact ? 1 : config->rate,
		     config->auto_rate && !config->exact);
	s->paused = config->paused;
	s->miss_interval = MODULES_MISS_SECONDS;
	s->mods = modules_create();
	s->unwinder = unwinder_create(s->mods);
	s->frames = frames_create(s->mods);
	s->heap = new_heap(s);
	s->probe = make_probe(s);
	ticks_clock_init(&s->clock);
	*ret_exit = config->pid ? 1 : LAUNCH_FAILED;
	struct err *err = config->record ? recorder_create(config->record, &s->recorder) : NULL;
	s->intake = (struct intake){
		.heap = s->heap,
		.frames = s->frames,
		.unwinder = s->unwinder,
		.recorder = s->recorder,
		.clock = &s->clock,
		.missed = refresh_after_miss,
		.teach = teach,
		.ctx = s,
	};
	if (!err)
		err = config->pid ? get_in_attached(s, ret_exit) : get_in_launched(s, ret_exit);
	if (err) {
		s->placed = false;
		session_close(s);
		return err;
	}
	s->names = names_create(s->mods);
	*ret = s;
	return NULL;
}

void session_close(struct session *s)
{
	if (!s)
		return;
	names_destroy(s->names);
	s->probe->ops->destroy(s->probe);
	target_destroy(s->target);
	heap_destroy(s->heap);
	recorder_destroy(s->recorder);
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
	};
	control_measure(&s->control, &counts, s->clock.ns_per_tick, last);
	if (s->placed && !s->starting && !last)
		control_decide(&s->control, &counts, s->clock.ns_per_tick, s->stats.rate, s->probe,
			       s->target);
}

/* The first moments, recorded without loss, are over: after a while, or when they have cost enough. */
static void see_start_through(struct session *s, double now)
{
	if (now - s->start <= START_SECONDS) {
		if (!s->placed || now - s->start_looked < START_LOOK)
			return;
		s->start_looked = now;
		s->probe->ops->stats(s->probe, s->target, &s->stats);
		if ((double)(s->stats.cycles + s->stats.waited) * s->clock.ns_per_tick < START_COST * 1e9)
			return;
	}
	s->starting = false;
	if (s->placed)
		err_free(s->probe->ops->set_raise(s->probe, s->target, s->control.on));
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
	for (int i = 0; i < THREADS_NAMED; i++) {
		uint32_t tid, low = 0, high = (uint32_t)n;
		char name[16];
		uint16_t number = heap_thread_next(s->heap, &tid);

		if (!number)
			break;
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

static void look_after(struct session *s)
{
	double now = monotonic_seconds();

	if (now - s->last_renew >= RENEW_SECONDS && s->placed) {
		/* ERR_GONE here is seen by target_poll too */
		struct err *err = s->probe->ops->renew(s->probe, s->target);
		/* an attached process isn't traced: its exec shows by the agent's memory being gone */
		if (err && err->errnum == EFAULT && !target_is_launched(s->target))
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
	if (now >= s->next_threads)
		look_at_threads(s, now);
	if (now - s->last_modules >= MODULES_SECONDS) {
		err_free(refresh_modules(s));
		ticks_clock_refine(&s->clock);
	}
}

/* The program has replaced itself: what was measured belongs to an image that is gone. */
static struct err *on_exec(struct session *s)
{
	drain(s, true);
	s->probe->ops->destroy(s->probe);
	s->placed = false;
	heap_destroy(s->heap);
	s->heap = new_heap(s);
	/* a rate chosen by hand stays */
	control_init(&s->control, s->config.budget, s->control.on ? s->config.rate : s->control.rate,
		     s->control.on);
	s->probe = make_probe(s);
	s->intake.heap = s->heap;
	intake_reset(&s->intake);
	memset(&s->stats, 0, sizeof(s->stats));
	s->usage_events = 0;
	log_line("the program has executed %s: starting afresh", target_command(s->target));
	struct err *err = hook_stopped_image(s);
	if (err) {
		/* a program without malloc, or 32-bit: it goes on, unwatched */
		log_line("not hooked: %s", err->text);
		err_free(err);
	}
	return target_resume(s->target);
}

static void on_end(struct session *s)
{
	while (drain(s, true))
		;
	if (s->placed)
		s->probe->ops->stats(s->probe, s->target, &s->stats);
	heap_threads_present(s->heap, NULL, 0);
	s->ended = true;
}

enum session_step session_step(struct session *s, struct err **ret_err)
{
	uint64_t taught = s->taught;
	size_t n = drain(s, false);

	look_after(s);
	if (s->replaced) {
		log_line("process %d has executed another program: what was watched is gone",
			 (int)target_pid(s->target));
		on_end(s);
		return SESSION_ENDED;
	}
	switch (target_poll(s->target)) {
	case TARGET_EXEC:
		*ret_err = on_exec(s);
		return *ret_err ? SESSION_BROKEN : SESSION_BUSY;
	case TARGET_EXITING:
		err_free(refresh_modules(s));
		drain(s, true);
		measure(s, monotonic_seconds(), true);
		return SESSION_BUSY;
	case TARGET_EXITED:
		on_end(s);
		return SESSION_ENDED;
	case TARGET_NOTHING:
		break;
	}
	if (s->taught != taught || n >= AT_ONCE)
		return SESSION_AT_ONCE;
	return n || s->starting ? SESSION_BUSY : SESSION_IDLE;
}

/* ---- seeing ---- */

static enum view_state view_state(const struct session *s)
{
	if (s->ended)
		return VIEW_EXITED;
	if (s->detached)
		return VIEW_DETACHED;
	return s->paused ? VIEW_PAUSED : VIEW_RUNNING;
}

struct view *session_publish(struct session *s)
{
	size_t nhooks = s->probe->nhooks, nun = 0;
	struct view_unhooked *un = xcalloc(nhooks, sizeof(*un));

	for (size_t i = 0; i < nhooks; i++) {
		struct probe_hook *h = &s->probe->hooks[i];
		if (h->hooked)
			continue;
		const struct module *mod = module_get(s->mods, h->module);
		un[nun++] = (struct view_unhooked){
			h->name, mod ? mod->name : (char *)"", h->reason,
		};
	}
	struct view_info info = {
		.pid = target_pid(s->target),
		.command = (char *)target_command(s->target),
		.state = view_state(s),
		.exit_code = s->ended ? target_exit_code(s->target) : -1,
		.attached = !target_is_launched(s->target),
		.exact = s->config.exact,
		.auto_rate = s->control.on,
		.rate = s->control.rate,
		.overhead = s->control.overhead,
		.events = s->intake.events,
		.dropped = s->stats.dropped + s->stats.abandoned + s->stats.bad,
		.gap = s->stats.gap,
		.stacks = s->intake.allocs,
		.stacks_complete = s->intake.stacks_complete,
		.walked = s->stats.walked,
		.copied = s->stats.copied,
		.untracked = s->stats.no_slot,
		.rss = s->usage.rss,
		.threads = s->usage.threads,
		.pause = (float)s->pause_seconds,
		.nhooks = (uint32_t)(nhooks - nun),
		.unhooked = un,
		.nunhooked = nun,
	};
	_Static_assert(ARRAY_SIZE(info.ends) >= UNWIND_END_COUNT, "every end has its counter");
	memcpy(info.ends, s->intake.ends, sizeof(s->intake.ends));
	struct view *view = heap_publish(s->heap, &info, ticks_to_ns(&s->clock, ticks_now()));
	free(un);
	view->seq = ++s->views;
	return view;
}

/* ---- getting out ---- */

static struct err *take_out(struct session *s, bool *ret_left)
{
	bool again = true;

	*ret_left = false;
	for (int i = 0; again && i < REMOVE_TRIES; i++) {
		if (i) {
			struct err *err = let_run_a_moment(s);
			if (err)
				return err;
		}
		struct err *err = s->probe->ops->remove(s->probe, s->target, &again);
		if (err)
			return err;
	}
	*ret_left = again;
	return NULL;
}

/* It can't be stopped because it is ending, or has executed another program: see it through. */
static struct err *see_through(struct session *s, struct err *gone)
{
	if (gone->code != ERR_GONE)
		return gone;
	for (int i = 0; i < GONE_TRIES; i++) {
		struct err *err = NULL;
		switch (session_step(s, &err)) {
		case SESSION_ENDED:
			err_free(gone);
			return NULL;
		case SESSION_BROKEN:
			err_free(gone);
			return err;
		case SESSION_IDLE:
		case SESSION_BUSY:
		case SESSION_AT_ONCE:
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		}
	}
	return gone;
}

static struct err *take_out_and_release(struct session *s, char **ret_message)
{
	struct err *err = target_stop(s->target);

	if (err)
		return err;
	drain(s, true);
	bool left = false;
	if (s->placed) {
		s->probe->ops->stats(s->probe, s->target, &s->stats);
		err = take_out(s, &left);
		if (!err)
			err = s->probe->ops->verify(s->probe, s->target);
	}
	struct err *resumed = target_resume(s->target);
	if (err) {
		err_free(resumed);
		return err;
	}
	s->placed = false;
	s->detached = true;
	*ret_message = xasprintf("detached from %d: hooks removed, its code is identical to its "
				 "files%s", (int)target_pid(s->target),
				 left ? "; a thread was always inside, so some unused memory stays mapped"
				 : "");
	return resumed;
}

struct err *session_detach(struct session *s, char **ret_message)
{
	struct err *err = NULL;

	*ret_message = NULL;
	for (int i = 0; !s->ended && !s->detached && i < EXEC_TRIES; i++) {
		err_free(err);
		err = take_out_and_release(s, ret_message);
		if (err)
			err = see_through(s, err);
		if (err && err->code != ERR_GONE)
			break;
	}
	if (err && (s->ended || s->detached)) {
		err_free(err);
		err = NULL;
	}
	return err;
}

/* ---- commands ---- */

void session_pause(struct session *s, bool paused)
{
	s->paused = paused;
	if (s->placed && !s->ended)
		err_free(s->probe->ops->set_active(s->probe, s->target, !paused));
}

void session_set_rate(struct session *s, uint64_t rate)
{
	if (s->config.exact || !s->placed || s->ended)
		return;
	/* first: the agent mustn't raise a rate given by hand */
	err_free(s->probe->ops->set_raise(s->probe, s->target, !rate && !s->starting));
	control_set(&s->control, rate, s->probe, s->target);
}

void session_signal(struct session *s, int sig)
{
	if (!s->ended)
		kill(target_pid(s->target), sig);
}

int session_pidfd(const struct session *s)
{
	return s->ended ? -1 : target_pidfd(s->target);
}

bool session_replaced(const struct session *s)
{
	return s->replaced;
}

int session_exit_code(const struct session *s)
{
	return s->ended && target_is_launched(s->target) ? target_exit_code(s->target) : -1;
}

pid_t session_pid(const struct session *s)
{
	return target_pid(s->target);
}

const struct modules *session_modules(const struct session *s)
{
	return s->mods;
}

struct names *session_names(const struct session *s)
{
	return s->names;
}
