/*
 * Inside of target/: the target and its threads as the files of this folder share them. Who
 * writes what: stop.c the threads, launch.c and event.c the end of the process, remote.c its
 * own part.
 */
#ifndef HEAPTOP_TARGET_IMPL_H
#define HEAPTOP_TARGET_IMPL_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/cpu.h"
#include "target/naps.h"
#include "target/remote.h"
#include "target/target.h"

enum thread_state {
	THREAD_RUNNING,	/* traced, but running */
	THREAD_STOPPED,	/* in a ptrace-stop, ours */
	THREAD_LEAVING,	/* to be let go as soon as it can be: it didn't stop in time */
};

struct thread {
	pid_t tid;
	enum thread_state state;
	bool watched;		/* stays traced while the target runs: exec and exit events */
	bool group_stop;	/* stopped by SIGSTOP and the like, not only by us */
	bool fresh;		/* traced from its birth on, its first stop not yet seen */
	struct target_thread birth;	/* as told then; tid 0: it wasn't */
};

/* What maps.c keeps from one reading to the next. */
struct mapping;
struct maps {
	char *text;		/* the text passes through it; NULL: in use, or not needed yet */
	struct mapping *kept;	/* of the last refresh */
	size_t cap_kept;
	char *paths;		/* of `kept`, one after the other */
	size_t cap_paths;
	char *path;		/* of the last target_mapping_at */
	int fd;			/* /proc/PID/maps, for single look-ups; -1: not open */
	bool no_query;		/* the kernel has no PROCMAP_QUERY; a test may pretend so */
};

struct target {
	pid_t pid, ns_pid;
	uint64_t start;		/* start time: tells a reused pid; 0 unknown */
	bool launched;
	bool follow;		/* its threads and children are traced from their birth on */
	struct target_family *family;	/* or NULL */
	bool many_threads;	/* more than it would be cheap to be told of: new ones aren't traced */
	unsigned births;	/* threads since */
	double births_since;
	struct target_births tell;	/* of threads; born NULL: nobody */
	pid_t parent;		/* who forked it; 0: launched or attached to */
	bool born;		/* a child whose first stop is to come */
	bool vforked;		/* who made it waits until it has executed something, or ended */
	bool shares;		/* made by vfork: has its parent's memory until it executes something */
	int first_status;	/* its first stop, if that came before its parent's word; else 0 */
	pid_t reported;		/* the thread target_poll shall look at */
	bool stopped;
	bool exited;
	bool exec_pending;	/* the first thread is in PTRACE_EVENT_EXEC, not yet handled */
	bool patient;		/* while it is started: however long it takes */
	bool left;		/* let go at an exec that tracing would have spoiled; see rights.c */
	bool first_left;	/* launched: the first thread has ended, others went on */
	pid_t exit_held;	/* thread in PTRACE_EVENT_EXIT of an ending process, else 0 */
	bool ended;		/* TARGET_EXITING was returned once */
	int status;		/* of wait(2), -1 unknown */
	int pidfd;		/* -1: none */
	pid_t live;		/* a thread through which memory is reached: the first, unless it left */
	int mem;		/* /proc/PID/mem, -1: not open */
	char *command;

	struct thread *threads;	/* by tid; running: the watched and the leaving ones only */
	size_t nthreads, cap_threads;
	struct target_thread *view;	/* for target_threads; valid while stopped */
	size_t nview;
	bool view_valid;
	struct naps naps;

	struct maps maps;

	double stop_began, pause;	/* CLOCK_MONOTONIC seconds */
	bool raised;			/* our scheduling was raised for the stop */
	int old_policy, old_nice;
	struct sched_param old_param;

	/* remote.c */
	struct cpu_way way;		/* in the target's code; back 0: not looked for yet */
	bool no_direct;			/* a test may pretend that no direct one is there */
	pid_t caller;			/* thread for remote calls, 0: not chosen */
	uint64_t caller_lo;		/* lowest byte of its stack's mapping */
	pid_t filter_look;		/* thread last looked at for a seccomp filter, 0: none yet */
	pid_t restarts;			/* the caller, if a system call of its own is to be restarted; or 0 */
	struct cpu_regs restart_regs;	/* what it had then, */
	struct cpu_regs restart_safe;	/* and has since the first remote call */
};

double target_now(void);
void target_sleep(double seconds);
struct err *target_gone(const struct target *t);

/* stop.c */
struct thread *target_thread(struct target *t, pid_t tid);
struct thread *target_add_thread(struct target *t, pid_t tid);
void target_drop_thread(struct target *t, pid_t tid);
/*
 * Options of the threads we trace. In a launched program any thread may turn out to be the one that
 * does an exec, so all have the same there. Never PTRACE_O_EXITKILL.
 */
#define TARGET_OPTIONS PTRACE_O_TRACESYSGOOD
#define TARGET_WATCH_OPTIONS (TARGET_OPTIONS | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT)
/* Those of a thread of a running target; where it is followed also to be told of children and threads. */
long target_options(const struct target *t, pid_t tid);
/* A thread of the running target, seized and watched. False if it is no longer there. */
bool target_watch(struct target *t, pid_t tid);
/* Our own scheduling, where permitted, for moments in which each delay counts. */
void target_raise_priority(struct target *t);
void target_restore_priority(struct target *t);
/* The leaving threads that have stopped meanwhile are let go. */
void target_let_go(struct target *t);
struct target *target_new(pid_t pid);
/* A process that `parent` has forked, about to be stopped for the first time. */
struct target *target_new_child(const struct target *parent, pid_t pid, bool shares);
void target_delete(struct target *t);

/* event.c: kinds of stops, from a wait(2) status */
enum stop_kind {
	STOP_DEAD,	/* exited or killed: not a stop */
	STOP_TRAP,	/* PTRACE_EVENT_STOP of PTRACE_INTERRUPT or SIGCONT */
	STOP_GROUP,	/* PTRACE_EVENT_STOP of a stopped process */
	STOP_EXEC,
	STOP_EXIT,
	STOP_SYSCALL,
	STOP_SIGNAL,	/* about to get *ret_sig */
	STOP_OTHER,
};
enum stop_kind target_stop_kind(int status, int *ret_sig);
/*
 * A thread in PTRACE_EVENT_EXIT: if its whole process ends, it is held (t->exit_held) and true is
 * returned; otherwise it goes its way, and the others are watched in its place from now on.
 */
bool target_at_exit(struct target *t, pid_t tid);
/*
 * waitpid(tid, ret_status, __WALL), for any thread of ours: tid, or -1 with errno. A first thread that was killed has
 * nothing to report while others of its process have, so that the plain call would wait for ever.
 */
pid_t target_wait(struct target *t, pid_t tid, int *ret_status);
/* waitpid(tid, ret_status, __WALL), but 0 if it has nothing to report until that moment of target_now(). */
pid_t target_wait_until(pid_t tid, double until, int *ret_status);
/* The process is gone; its wait status or -1. */
void target_set_exited(struct target *t, int status);

/* family.c */
/* `tid` stands in the event of having made a child or a thread. Lists may move. */
void target_forked(struct target *t, pid_t tid, int event);
/* A thread that is traced from its birth on has come to its first stop, taken already. */
void target_greet(struct target *t, struct thread *th);
/* It is no more: dropped, and told. */
void target_thread_ended(struct target *t, pid_t tid);
/* tid is traced by us from its birth on, though nobody told us yet: it is watched from now on. */
bool target_adopt_thread(struct target *t, pid_t tid);
/* Children that their parents wait for go on, since those can't be stopped before. */
void target_let_sharers_run(struct target_family *f);
void target_family_leave(struct target *t);

/*
 * start.c: from PTRACE_EVENT_EXEC to where no constructor has run; the first thread is stopped. Nobody else's reports
 * are taken meanwhile: unless `patient`, one that stands still on its way (stopped by a signal, or waiting for a
 * file) is stopped where it is after START_PATIENCE seconds.
 */
struct err *target_run_to_start(struct target *t, bool patient);

/* remote.c */
/* Is this thread, which we have stopped, under seccomp? Less than a microsecond with CAP_SYS_ADMIN, else some 20. */
bool target_stopped_has_seccomp(struct target *t, pid_t tid);

/* rights.c */
/* Just executed, and without the rights its file gives, because we trace it. */
bool target_has_lost_rights(struct target *t);
/* Out of execve(2) and stopped: it does that again, and is let go. */
struct err *target_execute_untraced(struct target *t);

/* mem.c */
struct err *target_open_mem(struct target *t);
void target_close_mem(struct target *t);
/* Another thread to reach memory through, after `live` proved dead. False if none is left. */
bool target_find_live(struct target *t);

/* maps.c */
/* Also after an exec: the descriptor belongs to the address space of now. */
void target_close_maps(struct target *t);
void target_free_maps(struct target *t);
/* The file of a mapping; a descriptor or -1. ctx is the target. */
int target_open_mapping(void *ctx, const struct mapping *m);

/* check.c: why PTRACE_SEIZE of tid failed with errnum. */
struct err *target_seize_error(pid_t pid, pid_t tid, int errnum);
/* Is its program one for this build? ERR_UNSUPPORTED. */
struct err *target_check_architecture(pid_t pid);
/* CAP_SYS_PTRACE. */
bool target_may_trace_all(void);
/* Not dumpable: only the capability helps. */
struct proc_status;
bool target_is_protected(pid_t pid, const struct proc_status *status);
/* The user's name, sanitised, or "uid 1000". */
void target_user_name(uid_t uid, char *buf, size_t size);
/* target_check without asking the kernel in ways that leave a line in its log. */
struct err *target_check_quiet(pid_t pid);

#endif
