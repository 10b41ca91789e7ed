/*
 * One watched process on the collector thread: target + probe + unwinder + model, from getting in
 * to being out again. The steps, in order: one of the session_open, session_step as often as possible (at
 * least every 20 ms) and session_news at once when the target's family says so, session_detach or the
 * target's own end, session_close.
 */
#ifndef HEAPTOP_COLLECT_SESSION_H
#define HEAPTOP_COLLECT_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "collect/collect.h"

struct err;
struct faults_code;
struct modules;
struct session;
struct sideband;
struct target;
struct target_family;
struct ticks_clock;
struct uprobe_pool;
struct view;

/* What the sessions of one collector share; outlives them. */
struct session_place {
	struct modules *modules;	/* of all processes: what frames are told by */
	struct target_family *family;
	const struct ticks_clock *clock;
	struct uprobe_pool *uprobes;	/* or NULL: they are watched by agents */
	struct sideband *sideband;	/* or NULL: they are polled */
	struct faults_code *faults_code;	/* target/faults_kernel.h */
};

/*
 * Launch (pid 0) or attach, then begin to watch. What takes long at attaching, the look-ups in the program's files,
 * is done by session_open() alone, so of several processes all are opened before the first is begun: one that is
 * watched waits for heaptop to take what it records. session_begin() closes the session if it fails.
 */
struct err *session_open(const struct collect_config *config, const struct session_place *place, pid_t pid,
			 struct session **ret, int *ret_exit);
struct err *session_begin(struct session *s, const struct session_place *place);
/*
 * A child of a launched program, stopped; it stays so. Forked: with the parent's hooks, from now on for itself;
 * *ret NULL without an error: there are none in it, or it runs in its parent's memory. Or a new image that
 * hasn't run yet: with hooks of its own. The target becomes the session's, or after an error and with NULL
 * stays the caller's.
 */
struct err *session_open_forked(struct session *parent, const struct session_place *place, struct target *t,
				struct session **ret);
struct err *session_open_image(const struct collect_config *config, const struct session_place *place,
			       struct target *t, struct session **ret);
/* Between calls that take long: what it has recorded is taken in, and its lease renewed. */
void session_keep(struct session *s);
/*
 * Let the target, which is stopped, go on. Placing hooks may have taken as long as the lease lasts, where heaptop
 * gets little of a busy machine: it begins now.
 */
struct err *session_resume(struct session *s);
/* Accepts NULL. The target must have been detached from or have ended; views live on. */
void session_close(struct session *s);

enum session_step {
	SESSION_IDLE,		/* nothing came, or only a few events */
	SESSION_BUSY,		/* many events came: step again soon */
	SESSION_AT_ONCE,	/* step again at once: very many came; or the agent has been told rules, and
				 * more questions are on their way, each with a copy of the stack */
	SESSION_ENDED,		/* the program has ended and everything it recorded is in the model */
	SESSION_BROKEN,		/* *ret_err says why; the target was let go */
};
enum session_step session_step(struct session *s, struct err **ret_err);
/* What the target has to report, and nothing else: it waits for us. IDLE, BUSY, ENDED or BROKEN. */
enum session_step session_news(struct session *s, struct err **ret_err);

/* What is wanted of classes.h in views. */
enum session_classes {
	SESSION_CLASSES_NONE,
	SESSION_CLASSES_SOME,	/* as often as their share of the time allows */
	SESSION_CLASSES_NOW,	/* of this very view */
};
struct view *session_publish(struct session *s, enum session_classes classes);
/* Remove every hook and let the target go on. *ret_message: what was found, for the user (malloc'ed). */
struct err *session_detach(struct session *s, char **ret_message);
/* It isn't watched any more, however it came to that: its next view says so. */
void session_give_up(struct session *s);

void session_pause(struct session *s, bool paused);
/*
 * heaptop is about to leave: nothing more is recorded, so that it has the less to do beside a busy program, and what the last
 * view doesn't have nobody will see.
 */
void session_hush(struct session *s);
void session_set_rate(struct session *s, uint64_t rate);	/* 0: auto */
/* heap_choose_threads, now and for what is executed later; `which` must live as long. */
void session_choose_threads(struct session *s, const char *which);
/* Page faults are sampled from now on, or no more; what is resident is looked at, or no more. */
void session_want_faults(struct session *s, bool want);
void session_want_res(struct session *s, bool want);
struct err *session_signal(struct session *s, int sig);	/* an error is in the log, too */

/* For poll(2): becomes readable when the process ends; -1 if there is none. */
int session_pidfd(const struct session *s);
int session_exit_code(const struct session *s);
/* The process goes on unwatched though nobody has detached from it: "has executed ...", else NULL. */
const char *session_why(const struct session *s);
struct target *session_target(const struct session *s);
/* Seconds of CPU time it has used, when last looked at. */
double session_cpu(const struct session *s);

#endif
