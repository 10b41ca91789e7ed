/*
 * Inside of a session, as its files share it: session.c keeps up with the target, enter.c gets in, leave.c
 * gets out.
 */
#ifndef HEAPTOP_COLLECT_WATCHED_H
#define HEAPTOP_COLLECT_WATCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ticks.h"
#include "collect/collect.h"
#include "collect/control.h"
#include "collect/intake.h"
#include "collect/residence.h"
#include "collect/told.h"
#include "collect/session.h"
#include "collect/touching.h"
#include "probe/probe.h"
#include "target/target.h"

struct frames;
struct heap;
struct modules;
struct prefill;
struct recorder;
struct unwinder;
struct uprobe_pool;

#define RENEW_SECONDS 0.1	/* between renewals of the lease */

struct session {
	struct collect_config config;
	struct target *target;
	struct probe *probe;
	struct uprobe_pool *uprobes;	/* shared by all sessions, or NULL */
	struct modules *mods;		/* the process's own: where they lie in it */
	struct unwinder *unwinder;
	struct frames *frames;
	struct heap *heap;
	struct recorder *recorder;	/* or NULL */
	struct prefill *prefill;	/* attached, hooks still to be placed; else NULL */
	struct ticks_clock clock;
	bool attached;		/* to a process that ran already; else launched, or the child of one */
	bool child;		/* of a launched one */
	bool placed;		/* the probe is in the target */
	bool ending;		/* it is held on its way out: nothing of it will be used again */
	bool ended, detached, paused;
	bool hushed;		/* see session_hush */
	bool leaving;		/* what it executes from now on isn't hooked any more; */
	bool executed;		/* it has executed something since */
	bool left;		/* it has executed a program with rights of its own, unwatched */
	bool replaced;		/* attached, and it has executed another program since */
	double last_renew, last_usage, last_modules, next_threads;
	size_t known_modules;	/* the log has told of */
	double modules_interval;	/* seconds, see session.c */
	bool extend;		/* the probe has found something to hook in new modules */
	double last_extend, last_refine;
	double miss_interval;	/* seconds; see refresh_after_miss */
	struct control control;
	struct residence residence;
	struct touching *touching;	/* or NULL: page faults aren't sampled */
	struct faults_code *faults_code;	/* borrowed: what they are sampled by */
	struct told told;
	struct touching_counts faults_before;	/* of those closed since */
	char *faults_why;		/* why they can't be, or NULL */
	uint64_t usage_events;	/* events at the last look at the usage */
	double work;		/* seconds of CPU time spent on events */
	double pause_seconds;	/* the target was stopped to get in */
	double start;		/* hooks were placed, monotonic */
	bool starting;		/* in its first moments, and launched with the auto rate */
	double start_looked;
	double crowd_held;	/* when it was last held to make room */
	double start_cpu;	/* seconds of processor time it had used by then */

	struct target_usage usage;
	struct probe_stats stats;
	uint64_t views;		/* published; goes on over an exec, which starts a new heap */
	struct intake intake;
	uint64_t taught;	/* rules handed to the agent */
};

/* session.c */
struct err *session_refresh_modules(struct session *s);
size_t session_drain(struct session *s, bool last);
/* From here on the probe is told of threads that come and go. */
void session_watch_births(struct session *s);
/* Page faults are sampled from now on, if they are wanted and can be. The target is stopped, or runs. */
void session_open_faults(struct session *s);
struct touching_of session_touching_of(struct session *s);
uint32_t session_wire_rule(void *session, uint64_t pc);	/* a probe_rule_fn */
struct probe_config session_probe_config(const struct session *s);

/* enter.c */
/* Let the target, which is stopped, run for a moment: 10 ms, and longer the more `rounds` there were before, up to 160. */
#define SESSION_REMOVE_TRIES 24	/* such rounds until all threads have been seen outside the agent: 3 seconds and more */
struct err *session_let_run(struct session *s, int rounds);
/* Launch, and place the hooks; the target runs. */
struct err *session_enter_launched(struct session *s, int *ret_exit);
/* Attach, and look up all that is needed, which may take seconds; the target runs. Then place the hooks. */
struct err *session_enter_attached(struct session *s, pid_t pid, int *ret_exit);
struct err *session_enter_prepared(struct session *s);
/* Place the hooks in an image that hasn't run yet; the target stays stopped. */
struct err *session_enter_image(struct session *s);
/* Take over what a child has inherited of the parent's hooks; it stays stopped. *ret false: nothing. */
struct err *session_enter_forked(struct session *s, const struct session *parent, bool *ret);

#endif
