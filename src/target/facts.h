/*
 * What the machine and a process let heaptop do, found out by looking and by trying on a child of our
 * own; for --doctor. Nothing of a foreign process is stopped, written or changed. Any thread, but not
 * while another one forks or traces.
 */
#ifndef HEAPTOP_TARGET_FACTS_H
#define HEAPTOP_TARGET_FACTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct target;

/* The rights and calls heaptop lives on. An errno each: 0 it works. */
struct machine_facts {
	char kernel[66], machine[66];	/* uname's release and machine */
	int trace;		/* PTRACE_SEIZE and INTERRUPT of a child */
	int write;		/* /proc/PID/mem of that child, through page protection */
	int read;		/* process_vm_readv from it */
	int memfd;		/* memfd_create */
	int procmap;		/* ioctl PROCMAP_QUERY */
	int priority;		/* raising our own for the moment of a stop */
	int yama;		/* kernel.yama.ptrace_scope, -1: there is no Yama */
	int memfd_noexec;	/* vm.memfd_noexec, -1: there is none */
	int paranoid;		/* kernel.perf_event_paranoid, -1: there is none */
	int seccomp;		/* of heaptop itself: 0 off, 1 strict, 2 filter */
	bool ptrace_capability;	/* CAP_SYS_PTRACE is in effect */
	bool user_namespace, pid_namespace;	/* not those of the machine */
	bool sees_others;	/* /proc shows processes of others (no hidepid) */
	bool steady_clock;	/* the time stamp counter ticks evenly, on all processors */
};
void machine_facts(struct machine_facts *ret);

struct process_facts {
	uid_t uid;
	char user[64], name[64];	/* sanitised */
	char state;		/* as proc_status has it */
	uint32_t threads;
	pid_t tracer;		/* 0: none */
	int seccomp;		/* the highest mode among its threads */
	bool protected;		/* not dumpable */
	bool shadow_stack;
	char namespaces[64];	/* those it doesn't share with us: "mnt pid", "" none */
	uint64_t room;		/* bytes it may still map under RLIMIT_AS; UINT64_MAX: no limit, or unknown */
};
/* False: there is no such process. */
bool process_facts(pid_t pid, struct process_facts *ret);

/* What its address space is made from, as one number: another one after an exec. 0: not known. */
uint64_t target_image(const struct target *t);

/*
 * A target to look at: memory and mappings can be read, nothing else; it is never stopped, so it may be traced by
 * somebody else. Refusals as in target_check_look. Ended by target_destroy.
 */
struct err *target_observe(pid_t pid, struct target **ret);

#endif
