/*
 * /proc/PID: small text files read whole, and the few fields of them that this folder needs.
 * The contents are the kernel's, but names in them are the target's: bounded, never trusted.
 * A process or thread that has gone is a plain "false". Any thread.
 */
#ifndef HEAPTOP_TARGET_PROC_H
#define HEAPTOP_TARGET_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The whole file /proc/PID/NAME (tid 0) or /proc/PID/task/TID/NAME, NUL-terminated; the caller
 * frees it. NULL with errno set; EFBIG above `max` bytes. ret_len may be NULL.
 */
char *proc_read(pid_t pid, pid_t tid, const char *name, size_t max, size_t *ret_len);

struct proc_status {
	char name[64];		/* sanitised */
	char state;		/* R S D T t Z X I */
	pid_t tgid, ppid, tracer;
	pid_t ns_pid;		/* last number of NSpid, else the pid itself */
	uid_t uid[4];		/* real, effective, saved, filesystem */
	gid_t gid[4];
	uint32_t threads;
	int seccomp;		/* 0 off, 1 strict, 2 filter */
	bool kthread;
	bool has_mm;		/* has memory of its own: not a kernel thread, not a zombie */
	bool shadow_stack;	/* x86 user shadow stacks are on */
	uint64_t signals;	/* pending for this thread alone, bit n-1: signal n */
	uint64_t shared_signals;/* pending for the process */
	uint64_t blocked;
};
bool proc_status(pid_t pid, pid_t tid, struct proc_status *ret);

struct proc_stat {
	char state;
	uint32_t flags;		/* PF_*, see PROC_PF_ below */
	uint64_t ticks;		/* user + system time, clock ticks */
	uint64_t start;		/* start time since boot, clock ticks: tells a reused pid */
	uint32_t threads;
	uint64_t start_stack;	/* main thread's stack pointer at the program's entry, 0 if we may not know */
	uint64_t start_brk;	/* where the heap begins, the same */
};
bool proc_stat(pid_t pid, pid_t tid, struct proc_stat *ret);

#define PROC_PF_EXITING 0x00000004u
#define PROC_PF_KTHREAD 0x00200000u

/* The thread ids of a process, ascending; the caller frees. 0 threads: it is gone. */
size_t proc_tasks(pid_t pid, pid_t **ret);

/* The command line, arguments joined by blanks, sanitised; "[name]" if there is none; never NULL. */
char *proc_command(pid_t pid);

#endif
