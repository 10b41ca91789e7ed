/*
 * What heaptop and its BPF program for page faults (faults.bpf.c) say to each other. Plain fixed-width fields; compiled for
 * both sides.
 *
 * Kernel-side state, all of it; each piece is held by a descriptor of heaptop's and nothing is pinned, so it goes with
 * heaptop, however that ends:
 *
 *	ctl	array of one: written before the program runs
 *	cpus	one a processor, mapped into heaptop: the program writes, heaptop reads without a system call
 *	ring	records, mapped into heaptop
 *	program	hangs on the events of perf_event, which tell it of each fault
 */
#ifndef HEAPTOP_TARGET_FAULTS_WIRE_H
#define HEAPTOP_TARGET_FAULTS_WIRE_H

#define FAULTS_HZ 2000u		/* samples a second and processor aimed at, at most */
#define FAULTS_STACK 8192u	/* bytes of stack a sample, at most */
#define FAULTS_PAGE 4096u
#define FAULTS_RING_BYTES (4u << 20)	/* a power of two; more where there are more than four processors, */
#define FAULTS_RING_MAX (64u << 20)	/* up to this */

struct faults_ctl {
	unsigned long long ns_dev, ns_ino;	/* of heaptop's PID namespace */
};

/* What has come on a processor. */
struct faults_seen {
	unsigned long long small, large;	/* faults, of pages of FAULTS_PAGE and of larger ones */
	unsigned long long large_pages;		/* the latter in pages of FAULTS_PAGE */
};

struct faults_cpu {
	struct faults_seen seen;
	/* the program's own: how many small faults a sample stands for, */
	unsigned long long every, next;	/* now, and with the next that are told off; */
	unsigned long long left, at;	/* of those told off now: to come, and how many there are then when one is sampled */
	unsigned long long jiffy, since, before;	/* when the window was looked at, began (ns); seen.small then */
	unsigned long long room;	/* samples until `next` is doubled within the window */
	unsigned long long pad[5];
};

struct faults_record {
	unsigned long long time;	/* CLOCK_MONOTONIC, ns: the one clock that costs nothing before it is needed */
	unsigned long long addr;
	unsigned long long every;	/* small faults that it stands for; a large one: 1 */
	struct faults_seen seen;	/* on this processor, it included */
	unsigned int cpu, tid;		/* tid: in heaptop's PID namespace */
	unsigned int bytes;		/* of stack */
	unsigned int pages;		/* of FAULTS_PAGE, that came with it */
	unsigned long long regs[14];	/* struct wire_regs */
	unsigned char stack[];		/* from its sp on */
};

#endif
