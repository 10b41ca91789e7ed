/*
 * Getting in: what a killed heaptop has left is taken out, the hooks are placed, and the target goes on. See
 * watched.h.
 */
#include "collect/watched.h"

#include <signal.h>
#include <time.h>

#include "base/ending.h"
#include "base/err.h"
#include "base/log.h"
#include "collect/prefill.h"
#include "elf/modules.h"
#include "probe/probe.h"
#include "target/facts.h"
#include "target/target.h"

#define LONGER_ROUNDS 4
#define PLACE_TRIES 20		/* rounds of "a thread is at an entry point", 10 ms each */

struct err *session_let_run(struct session *s, int rounds)
{
	struct err *err = target_resume(s->target);

	if (err)
		return err;
	/* where many threads share few processors each takes long to get on, and a stop takes longer than that */
	nanosleep(&(struct timespec){ .tv_nsec = 10000000L << (rounds < LONGER_ROUNDS ? rounds : LONGER_ROUNDS) }, NULL);
	return target_stop(s->target);
}

static void renew(struct session *s)
{
	if (!s->placed)
		return;
	/* an error is seen by the next step, too */
	err_free(s->probe->ops->renew(s->probe, s->target));
	s->last_renew = monotonic_seconds();
}

void session_keep(struct session *s)
{
	if (monotonic_seconds() - s->last_renew < RENEW_SECONDS)
		return;
	session_drain(s, false);
	renew(s);
}

struct err *session_resume(struct session *s)
{
	renew(s);
	return target_resume(s->target);
}

/* A heaptop that was killed left its hooks: take them out first, or we would hook the hooks. */
static struct err *clean_leftovers(struct session *s)
{
	for (int i = 0; i < SESSION_REMOVE_TRIES; i++) {
		size_t found = 0;
		bool again = false;
		struct err *err = probe_agent_cleanup(s->target, s->mods, &found, &again);
		if (err)
			return err;
		if (found)
			log_line("%zu hooks of an earlier heaptop taken out", found);
		if (!again)
			return NULL;
		err = session_let_run(s, i);
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
		       "no module defines malloc in its symbol tables; --alloc and --free name another", (int)target_pid(s->target),
		       why ? ": " : "", why ? why : "");
}

/* Target stopped, its modules known, probe prepared. */
static struct err *place(struct session *s)
{
	struct err *err = s->probe->ops->place(s->probe, s->target);

	/* a signal handler had interrupted a thread at an entry point: it goes on in a moment */
	for (int i = 0; err && err->code == ERR_BUSY && i < PLACE_TRIES; i++) {
		err_free(err);
		err = session_let_run(s, 0);
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
	session_watch_births(s);
	/* the lease has just been given; most that programs execute is over before there is something to measure */
	s->start = s->last_renew = monotonic_seconds();
	if (s->child)
		s->last_usage = s->start;
	s->starting = s->control.on && !s->attached && !s->config.uprobe;
	target_usage(s->target, &s->usage);
	s->start_cpu = s->usage.cpu;
	if (s->paused)
		err = s->probe->ops->set_active(s->probe, s->target, false);
	return err;
}

/* The modules are known and looked through, as far as heaptop wasn't told to end meanwhile. */
static struct err *look_up(struct session *s)
{
	told_watch(&s->told, target_pid(s->target));
	struct err *err = session_refresh_modules(s);

	if (!err && s->prefill && !ending_broken_off())
		prefill_walk(s->prefill, s->unwinder);
	if (!err && !ending_broken_off())
		err = s->probe->ops->prepare(s->probe, s->target, s->mods);
	if (!ending_broken_off())
		return err;
	err_free(err);
	return err_new(ERR_INTERRUPTED, "interrupted before process %d was watched", (int)target_pid(s->target));
}

struct err *session_enter_image(struct session *s)
{
	struct err *err = look_up(s);

	if (!err)
		err = place(s);
	return err;
}

struct err *session_enter_launched(struct session *s, int *ret_exit)
{
	struct launch_spec spec = s->config.launch;

	spec.follow = s->config.follow;
	struct err *err = target_launch(&spec, &s->target, ret_exit);

	if (err)
		return err;
	*ret_exit = LAUNCH_FAILED;
	err = session_enter_image(s);
	if (!err) {
		session_open_faults(s);
		err = session_resume(s);
	}
	if (err) {
		/* nothing of the program has run yet: it isn't started without its profiler */
		kill(target_pid(s->target), SIGKILL);
	}
	return err;
}

/* Uprobes take nothing from the process, not even a moment. */
static struct err *enter_observed(struct session *s, pid_t pid)
{
	struct err *err = target_observe(pid, &s->target);

	return err ? err : session_enter_image(s);
}

struct err *session_enter_attached(struct session *s, pid_t pid, int *ret_exit)
{
	*ret_exit = 1;
	if (s->config.uprobe)
		return enter_observed(s, pid);
	struct err *err = target_check(pid);
	if (err)
		return err;
	s->prefill = prefill_create();
	err = target_attach(pid, &s->target);
	if (err)
		return err;
	prefill_take(s->prefill, s->target);
	/* symbols are looked up while the target runs; the second stop only places the hooks */
	err = target_resume(s->target);
	s->pause_seconds = target_pause(s->target);
	if (!err)
		err = look_up(s);
	return err ? err : target_find_way(s->target);
}

struct err *session_enter_prepared(struct session *s)
{
	double first = s->pause_seconds;
	struct err *err = target_stop(s->target);

	if (err)
		return err;
	err = clean_leftovers(s);
	if (!err)
		err = place(s);
	struct err *resumed = session_resume(s);
	s->pause_seconds = target_pause(s->target);
	log_line("the program stood still for %.2f ms, and for %.2f ms while hooks were placed", first * 1e3,
		 s->pause_seconds * 1e3);
	if (!err)
		log_line("%zu rules handed over in advance",
			 prefill_teach(s->prefill, s->probe, session_wire_rule, s));
	prefill_destroy(s->prefill);
	s->prefill = NULL;
	if (err) {
		err_free(resumed);
		return err;
	}
	return resumed;
}

/* A process that was forked from one that is watched: everything is in it but rings of its own. */
struct err *session_enter_forked(struct session *s, const struct session *parent, bool *ret)
{
	const struct probe_config config = session_probe_config(s);
	struct probe *probe = NULL;

	*ret = false;
	if (!parent->placed)
		return NULL;
	if (s->config.uprobe) {
		*ret = true;
		return session_enter_image(s);
	}
	struct err *err = probe_agent_inherit(parent->probe, s->target, &config, &probe);
	if (err || !probe)
		return err;
	s->probe->ops->destroy(s->probe);
	s->probe = probe;
	s->placed = *ret = true;
	session_watch_births(s);
	s->start = s->last_renew = s->last_usage = monotonic_seconds();
	s->starting = s->control.on;
	target_usage(s->target, &s->usage);
	s->start_cpu = s->usage.cpu;
	s->last_modules = parent->last_modules;
	if (s->paused)
		err = probe->ops->set_active(probe, s->target, false);
	return err;
}
