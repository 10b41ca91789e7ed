/*
 * The watched process: find out whether it may be watched, launch or attach, stop all its
 * threads, read and write its memory, make it call the kernel, let it go. All of it on the one
 * thread that launched or attached (ptrace's rule). Nothing here knows what a hook is.
 *
 * A target is either *stopped* (every thread in a ptrace-stop, ours) or *running*. While it
 * runs, an attached target isn't traced at all; a launched one has its first thread traced
 * (exec and exit events), nothing else; one that is followed has all its threads traced, since any of them may
 * fork (family.c). Order of calls:
 *
 *	target_launch | target_attach	-> stopped
 *	target_resume			-> running
 *	target_stop			-> stopped again
 *	target_poll			while running, often
 *	target_destroy			running only; the process goes on
 *
 * If heaptop is killed at any instant, the target goes on correctly.
 */
#ifndef HEAPTOP_TARGET_TARGET_H
#define HEAPTOP_TARGET_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/wire.h"

struct err;
struct target;
struct modules;

/* May we attach to pid, and if not, why: one line naming the reason and the remedy; NULL: yes.
 * Recognised: no such process, zombie, kernel thread, other user (and not root / CAP_SYS_PTRACE),
 * setuid / not dumpable, ptrace_scope 1-3, already traced (by whom: TracerPid), 32-bit, other
 * architecture, ourselves. Touches nothing. ERR_NOT_FOUND, ERR_DENIED, ERR_BUSY, ERR_UNSUPPORTED. */
struct err *target_check(pid_t pid);

/* May we look at it, which another tracer is no reason against? Otherwise as target_check. */
struct err *target_check_look(pid_t pid);

struct launch_spec {
	char *const *argv;	/* NULL-terminated; argv[0] is looked up in PATH as the shell would */
	int fd[3];		/* descriptors for the child's 0, 1, 2; -1: inherit ours */
	bool new_session;	/* setsid, and TIOCSCTTY on the first of fd[] that is a tty */
	const char *unset_env[4];	/* variables heaptop itself set, to be removed; NULL ends */
	bool follow;		/* its children are traced as well, see target_family */
	void (*forked)(void *ctx, pid_t pid);	/* called once it is there, long before it runs; or NULL */
	void *ctx;		/* for it */
};

/* Exit codes of env(1), nice(1), timeout(1) for a program that didn't start; in *ret_exit. */
#define LAUNCH_FAILED 125
#define LAUNCH_NOT_EXECUTABLE 126
#define LAUNCH_NOT_FOUND 127

/*
 * Start a program and stop it where its libraries are mapped and none of their constructors has
 * run: at ld.so's first consistent r_brk, or at the entry point of a static program. On failure
 * *ret_exit is one of the codes above.
 */
struct err *target_launch(const struct launch_spec *spec, struct target **ret, int *ret_exit);

/* Stop all threads of a running process. Refusals as in target_check. */
struct err *target_attach(pid_t pid, struct target **ret);

/* Release. The process goes on, untraced (a launched one too). Accepts NULL. */
void target_destroy(struct target *t);

/*
 * On failure the target runs. ERR_GONE: it has ended, is about to, or has just done an exec;
 * target_poll tells which. ERR_BUSY: a thread is in an uninterruptible wait; try again.
 */
struct err *target_stop(struct target *t);
/* The same without patience: where a thread is in an uninterruptible wait it is ERR_BUSY after some 20 ms. */
struct err *target_try_stop(struct target *t);
struct err *target_resume(struct target *t);
bool target_is_stopped(const struct target *t);
/* How long the last stop lasted, seconds. */
double target_pause(const struct target *t);

pid_t target_pid(const struct target *t);
/* The pid in the target's own PID namespace (last number of NSpid). */
pid_t target_ns_pid(const struct target *t);
bool target_is_launched(const struct target *t);

enum target_event {
	TARGET_NOTHING,
	TARGET_EXEC,		/* launched only: stopped again as after target_launch; all that was
				 * placed in the old image is gone */
	TARGET_EXITING,		/* launched only: the process is about to end and is held (its first
				 * thread in PTRACE_EVENT_EXIT); memory is still there: drain, then
				 * target_poll again lets it go */
	TARGET_EXITED,		/* gone. target_exit_status tells how */
	TARGET_LEFT,		/* launched only: it executes a program with rights of its own (setuid), which it
				 * wouldn't get while traced, and was let go for that; nothing but its end can be
				 * seen, and that only of the one that was launched */
	TARGET_BORN,		/* the first of a followed child: it has just been forked and is stopped before
				 * its first instruction. One that vfork made, and that has its parent's memory
				 * until then, begins with TARGET_EXEC or TARGET_EXITED instead */
};
/*
 * See what happened, without blocking. Handles signal-delivery and other stops of a launched
 * target's first thread by passing the signal on, group-stops by PTRACE_LISTEN.
 */
enum target_event target_poll(struct target *t);
/* Descriptor that becomes readable when a process ends (pidfd), for poll(2); or -1. A launched
 * target also raises SIGCHLD in heaptop on every event. */
int target_pidfd(const struct target *t);

/*
 * All targets of the collector thread. The children of one launched with `follow`, and theirs, become targets
 * by themselves; they count as launched. Targets join after they were launched or attached to, and leave it when
 * they are destroyed.
 */
struct target_family;
struct target_family *target_family_create(void);
/* What is still traced is let go. Its targets have been destroyed. */
void target_family_destroy(struct target_family *f);	/* accepts NULL */
void target_family_join(struct target_family *f, struct target *t);
/*
 * A target with something to report: target_poll() takes it, one report a call. It may be one never
 * seen before, whose first event is TARGET_BORN; its owner is from then on the caller. NULL: there is
 * nothing (more). Targets that are only attached to are asked with target_poll() besides.
 */
struct target *target_family_news(struct target_family *f);
/* Pid of the process that forked it; 0: none, it was launched or attached to. */
pid_t target_parent(const struct target *t);

/* wait(2) status once TARGET_EXITED was seen, launched targets only; -1 unknown. */
int target_exit_status(const struct target *t);
/* The shell's code: the exit code, or 128 + signal. */
int target_exit_code(const struct target *t);

/* ---- memory; both states; addresses are the target's ---- */
/* Exactly len bytes or an error (ERR_GONE if the process has ended). process_vm_readv. */
struct err *target_read(struct target *t, uint64_t addr, void *buf, size_t len);
/* As many of len bytes as can be read from addr on; 0 if none. */
size_t target_read_some(struct target *t, uint64_t addr, void *buf, size_t len);
/* To the program that it was when it was attached to, launched or forked, or last came to TARGET_EXEC: what it has
 * executed since isn't touched, and errnum is EFAULT then, as at any fault. While it is stopped page protection is obeyed. */
struct err *target_write(struct target *t, uint64_t addr, const void *buf, size_t len);
/* One write(2) to /proc/PID/mem, through page protection; stopped only. */
struct err *target_write_text(struct target *t, uint64_t addr, const void *buf, size_t len);

/*
 * Read /proc/PID/maps and update `mods` (files through /proc/PID/root, /proc/PID/map_files or
 * /proc/PID/exe if that fails; the vdso from memory). ERR_GONE. What it needs is kept with the
 * target, 64 bytes per executable mapping, their paths, and 32 KiB: where nothing has changed,
 * nothing is allocated.
 */
struct err *target_refresh_modules(struct target *t, struct modules *mods, bool *ret_changed);

/* Visit every mapping of /proc/PID/maps in order until fn returns false. m->path lives as long as
 * the call of fn. */
struct mapping;
struct err *target_each_mapping(struct target *t, bool (*fn)(void *ctx, const struct mapping *m),
				void *ctx);

/*
 * The mapping that holds addr; false if there is none, or the process has gone. One ioctl where the
 * kernel has it (Linux 6.11), else maps is read: with many questions see target_has_query first, and
 * ask them all in one target_each_mapping. ret->path lives until the next call of this function,
 * of target_has_query or target_stack_bounds for this target.
 */
bool target_mapping_at(struct target *t, uint64_t addr, struct mapping *ret);
bool target_has_query(struct target *t);

/* ---- threads; stopped only ---- */
struct target_thread {
	pid_t tid;
	uint64_t pc, sp, tp;	/* program counter, stack pointer, thread pointer (fs base) */
};
/*
 * Threads that are traced from their birth on (of a launched program that is followed): `born` is called before one
 * executes its first instruction, `ended` with the same words once it is no more. From within any call here
 * that waits for the target. NULL: nobody is told.
 */
struct target_births {
	void (*born)(void *ctx, const struct target_thread *thread);
	void (*ended)(void *ctx, const struct target_thread *thread);
	void *ctx;
};
void target_tell_births(struct target *t, const struct target_births *births);

/* All threads, array owned by the target and valid until it is resumed. */
const struct target_thread *target_threads(struct target *t, size_t *ret_n);

/* What a thread is doing: its registers, and its stack from the stack pointer on. */
struct target_stack {
	pid_t tid;
	struct wire_regs regs;	/* ip: the instruction it executes next, not a return address */
	const uint8_t *bytes;	/* in the caller's buffer */
	size_t len;		/* 0: can't be read */
};
#define TARGET_STACKS_MAX 256u
#define TARGET_STACK_BYTES (16u << 10)
/*
 * Those of the first TARGET_STACKS_MAX threads into ret[], which has room for that many; the
 * stacks share `room` bytes, and get TARGET_STACK_BYTES each at most. Returns the number. Some
 * microseconds a thread, if the buffer has been touched before.
 */
size_t target_stacks(struct target *t, struct target_stack *ret, uint8_t *bytes, size_t room);

struct code_range {
	uint64_t start, end;
};
/*
 * See that no thread's PC lies strictly inside one of the ranges (start < pc < end): such
 * threads are let run a moment and stopped again until they are out (not single-stepped: a trap
 * flag left behind by a killed heaptop would kill them). Threads may end and new ones appear
 * meanwhile. ERR_BUSY if one won't leave, and then, as after any other error, the target runs.
 * A thread blocked in a system call is outside by definition of ranges: they hold no syscall.
 */
struct err *target_step_out(struct target *t, const struct code_range *ranges, size_t n);
/*
 * Stopped: let these threads run for so many seconds, at least, while all others stand still, and stop them again. After
 * an error the target runs.
 */
struct err *target_let_run(struct target *t, const pid_t *tids, size_t n, double seconds);

/* ---- remote system calls; stopped only ---- */
/*
 * Make the target do system call nr(args) on a suitable thread, without harm if heaptop is
 * killed at any instant (see remote.h). *ret is the kernel's return value, -errno on failure;
 * the struct err is for failures to make the call at all (also: seccomp filter active and
 * the call not known to be allowed -> ERR_DENIED, nothing was done).
 */
struct err *target_syscall(struct target *t, long nr, const uint64_t args[6], int64_t *ret);
/*
 * Look for the code that target_syscall goes through; both states. It takes some milliseconds where a
 * program has no C library beside it: done before a stop, it is not done in it. ERR_UNSUPPORTED: there
 * is none, and target_syscall would fail so.
 */
struct err *target_find_way(struct target *t);
/*
 * seccomp mode 2 (filter) or 1 is on for any thread; both states. Of many threads, `looks` others beside the
 * first are looked at, each time the next ones: some 20 us each. A filter may come at any time.
 */
bool target_has_seccomp(struct target *t, size_t looks);
/* Gap of `bytes` (page-rounded) wholly within +-2 GiB - 64 KiB of both lo and hi; 0 if there is none. */
uint64_t target_find_gap(struct target *t, uint64_t lo, uint64_t hi, uint64_t bytes);

/* ---- /proc facts; both states ---- */
struct target_id {
	uint32_t ns;		/* a thread's id in the target's own PID namespace */
	pid_t tid;		/* and in ours */
};
/* Those of all threads, by `ns`; the caller frees. A thread may be missing when others end meanwhile. Some
 * microseconds a thread where the namespaces differ. */
size_t target_ids(struct target *t, struct target_id **ret);
/* A thread's name now, ended by a 0, as the target has set it: untrusted. False: it is gone. */
bool target_thread_name(struct target *t, pid_t tid, char ret[16]);
struct target_usage {
	uint64_t rss;		/* bytes, from statm */
	double cpu;		/* user + system seconds so far */
	uint32_t threads;
};
bool target_usage(struct target *t, struct target_usage *ret);
/* How many bytes more of addresses (RLIMIT_AS) and of memory (cgroups) it may have; UINT64_MAX: no limit
 * is known. */
void target_room(struct target *t, uint64_t *ret_addresses, uint64_t *ret_memory);
/* Command line, sanitised, arguments joined by blanks; owned by the target. */
const char *target_command(const struct target *t);
/* The main thread's stack: its mapping "[stack]"; false if unknown. Any other: the mapping that
 * holds addr. */
bool target_stack_bounds(struct target *t, uint64_t addr, uint64_t *ret_lo, uint64_t *ret_hi);

#endif
