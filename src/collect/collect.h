/*
 * The collector: one thread that makes every ptrace call, drains the probes, unwinds, feeds the
 * heap models and publishes views. Others give it commands and read views; nothing else.
 *
 * It watches one process or several: those it was told to attach to, or the program it launched and
 * what that forks and executes. Each has a heap and a view of its own. Frames in all of them name modules of
 * one table (collector_modules), so the same place in the code is the same frame in each process, and
 * there is a view of all their heaps together, the sum. With one process that is the process's own view.
 */
#ifndef HEAPTOP_COLLECT_COLLECT_H
#define HEAPTOP_COLLECT_COLLECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "heap/view.h"
#include "target/target.h"

struct err;
struct named_list;
struct names;
struct modules;
struct view;
struct collector;

struct collect_config {
	const pid_t *pids;		/* attach to these; */
	size_t npids;			/* 0: launch */
	struct launch_spec launch;	/* copied except argv, which must outlive the collector */
	bool follow;			/* launched: watch its children and theirs as well */
	uint64_t rate;			/* with auto_rate: where to begin */
	bool auto_rate, exact;
	bool mmap;			/* mappings count, too */
	bool uprobe;			/* nothing is placed in the program: probe_uprobe_create(); */
	unsigned uprobe_way;		/* the best that is tried, an enum uprobe_way */
	bool faults;			/* page faults are sampled */
	bool no_res;			/* what is resident isn't looked at */
	uint64_t min_size;		/* bytes: smaller blocks don't count */
	double budget;			/* auto: overhead aimed at, fraction of the target's CPU time */
	double refresh;			/* seconds between views */
	bool paused;			/* start with collection off */
	double delay_start;		/* with paused: seconds until it goes on, unless it is set otherwise before; 0: never */
	uint32_t max_stack;
	const bool *leaving;		/* the collector's own, see probe_config */
	const struct named_list *named;	/* entry points the user named, or NULL; outlives the collector */
	const char *thread;		/* only blocks of these (heap_choose_threads), or NULL: all */
	const char *record;		/* file for the stream of stacks (record.h), or NULL */
};

/*
 * Start the thread and wait until the target runs hooked, or failed; then *ret_exit is the
 * exit code for main (125-127 launch, 1 attach). Of several processes to attach to, one that can't be is
 * told in collector_refusals(); it is an error only if none can.
 */
struct err *collector_start(const struct collect_config *config, struct collector **ret,
			    int *ret_exit);
/* One line for each process that couldn't be attached to, each ended by a newline; "" if there is none. */
const char *collector_refusals(const struct collector *c);

/* ---- views; any thread; with a reference for the caller ---- */

/* The newest sum; NULL before the first. */
struct view *collector_view(struct collector *c);
/* Becomes readable (an eventfd; read 8 bytes to reset) when a view was published or the state changed. */
int collector_fd(const struct collector *c);
/*
 * Publish fresh views at once and wait for them (snapshots, the last batch frame): the sum; those of the
 * processes, of the same moment, are there as well then. Older ones after ten seconds without an answer.
 */
struct view *collector_view_now(struct collector *c);
/* The same, with what its live blocks are like: view->classes, fresh. */
struct view *collector_view_whole(struct collector *c);

/*
 * A process that is or was watched, or several that have ended: beyond COLLECT_KEPT ended ones, those
 * that ended first are merged with the others of the same program, and their heaps added up. A process that only
 * forks and executes is one process, with the heap of the program it executed last.
 */
struct collect_process {
	uint32_t id;		/* 1, 2, 3 …, never used again; merged ones: that of the first */
	uint32_t parent;	/* id of the process that forked it; 0: heaptop launched or attached to it */
	pid_t pid;		/* 0: merged */
	uint32_t merged;	/* processes it stands for, mostly 1 */
	char *command;		/* sanitised; merged: the program's name */
	enum view_state state;	/* VIEW_DETACHED: it went on unwatched, see `why` */
	char *why;		/* why it isn't watched any more, or "" */
	int exit_code;		/* state VIEW_EXITED: the shell's convention; -1 not known */
	double start;		/* seconds since the collector's, of its fork or attaching */
	struct trace_stats s;	/* totals of its newest view */
	uint64_t rss;		/* bytes; 0 once it has ended */
	uint32_t threads;
};
#define COLLECT_KEPT 64u

/* Of the newest views, by id: a parent comes before its children, the program launched first. Immutable. */
struct process_list {
	int refs;		/* atomic */
	size_t n;
	struct collect_process p[];
};
struct process_list *collector_processes(struct collector *c);	/* never NULL after the start */
void process_list_unref(struct process_list *list);		/* accepts NULL */

/*
 * The newest view of one process; COLLECT_SUM: of all that there are and were, as collector_view. NULL: no
 * such id (any more), or nothing published yet. In the sum: bytes and blocks add up, those that a process held at
 * its end too; peaks add up as well, though the processes needn't have had them at the same moment.
 */
#define COLLECT_SUM 0u
struct view *collector_process_view(struct collector *c, uint32_t id);

enum collect_state {
	COLLECT_RUNNING,
	COLLECT_EXITED,		/* the program launched, or all attached to, have ended; everything up to
				 * their end is in the views. Children that outlive it were let go. */
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
/* Views say what the live blocks are like, as often as that takes its share of the time; or don't any more. */
void collector_want_classes(struct collector *c, bool want);
/* heap_choose_threads in all processes; a view that is so soon follows. Children
 * that have ended stay as they are. */
void collector_choose_threads(struct collector *c, const char *which);
/* Page faults are sampled from now on in all processes, where that can be (view_info.faults, .faults_why), or no more; what
 * they have told stays. What is resident is looked at, or no more. */
void collector_want_faults(struct collector *c, bool want);
void collector_want_res(struct collector *c, bool want);
/*
 * Signal a process; COLLECT_SUM: the first one, and by SIGKILL all of a launched program. Signals are sent in the order
 * of the calls; one that can't be sent is told in the log and by collector_refused, one to a process that is no
 * longer watched is none.
 */
void collector_kill(struct collector *c, uint32_t id, int sig);
/* Why the last signal that couldn't be sent couldn't, once, the caller frees; NULL: nothing new. collector_fd tells of it. */
char *collector_refused(struct collector *c);
/* Wait until the program has ended and its last view is there; false after `seconds`. */
bool collector_wait_end(struct collector *c, double seconds);
/*
 * The end is near: nothing more is recorded, and the collector's thread is preferred to the program's from now on, where
 * that is permitted.
 */
void collector_hurry(struct collector *c);
/* Take everything out, check it, and let the target go on; waits until done (or 10 s). */
struct err *collector_detach(struct collector *c);

/* Detach if that hasn't been done, stop the thread, free everything; names, modules and the
 * collector's own view end with it. Accepts NULL. */
void collector_destroy(struct collector *c);

#endif
