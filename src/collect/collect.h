/*
 * The collector: one thread that makes every ptrace call, drains the probe, unwinds, feeds the
 * heap model and publishes views. Others give it commands and read views; nothing else.
 */
#ifndef HEAPTOP_COLLECT_COLLECT_H
#define HEAPTOP_COLLECT_COLLECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/target.h"

struct err;
struct names;
struct modules;
struct view;
struct collector;

struct collect_config {
	pid_t pid;			/* attach to this, or 0: launch */
	struct launch_spec launch;	/* copied except argv, which must outlive the collector */
	uint64_t rate;			/* with auto_rate: where to begin */
	bool auto_rate, exact;
	double budget;			/* auto: overhead aimed at, fraction of the target's CPU time */
	double refresh;			/* seconds between views */
	bool paused;			/* start with collection off */
	uint32_t max_stack;
	const char *thread;		/* only blocks of these (heap_choose_threads), or NULL: all */
	const char *record;		/* file for the stream of stacks (record.h), or NULL */
};

/* Start the thread and wait until the target runs hooked, or failed; then *ret_exit is the
 * exit code for main (125-127 launch, 1 attach). */
struct err *collector_start(const struct collect_config *config, struct collector **ret,
			    int *ret_exit);

/* Newest view, with a reference for the caller; NULL before the first. Any thread. */
struct view *collector_view(struct collector *c);
/* Becomes readable (an eventfd; read 8 bytes to reset) when a view was published or the state changed. */
int collector_fd(const struct collector *c);
/* Publish a fresh view at once and wait for it (snapshots, the last batch frame). Caller's reference. */
struct view *collector_view_now(struct collector *c);

enum collect_state {
	COLLECT_RUNNING,
	COLLECT_EXITED,		/* the program has ended; everything up to its end is in the view */
	COLLECT_DETACHED,
	COLLECT_FAILED,		/* collector_message() says why */
};
enum collect_state collector_state(const struct collector *c);
/* Exit code of a launched program (shell's convention), -1 if not known. */
int collector_exit_code(const struct collector *c);
/* Text for the user of what detaching found ("hooks removed, text identical"), or of the failure. */
const char *collector_message(const struct collector *c);

struct names *collector_names(const struct collector *c);
const struct modules *collector_modules(const struct collector *c);

/* Commands; asynchronous, any thread. */
void collector_pause(struct collector *c, bool paused);
void collector_set_rate(struct collector *c, uint64_t rate);	/* 0: auto */
void collector_set_refresh(struct collector *c, double seconds);
void collector_kill(struct collector *c, int sig);		/* signal the target */
/* Wait until the program has ended and its last view is there; false after `seconds`. */
bool collector_wait_end(struct collector *c, double seconds);
/* Take everything out, check it, and let the target go on; waits until done (or 10 s). */
struct err *collector_detach(struct collector *c);

/* Detach if that hasn't been done, stop the thread, free everything; names, modules and the
 * collector's own view end with it. Accepts NULL. */
void collector_destroy(struct collector *c);

#endif
