/*
 * What heaptop and its BPF program (uprobe.bpf.c) say to each other: the control block, the counters, what a
 * call's cookie means, records. Plain fixed-width fields; compiled for both sides.
 *
 * Kernel-side state, all of it, and how long it lives; without BPF uprobe_hits.h tells. Every piece is held by one
 * descriptor of heaptop's and nothing is pinned, so the kernel takes all of it back when heaptop ends, however it ends:
 *
 *   ctl       array of one, mapped into heaptop: heaptop writes, the program reads
 *   counts    one per processor, read at once by one look-up
 *   threads   task storage: made at a thread's first call, goes with the thread
 *   live      hash of sampled blocks' addresses, all its memory taken beforehand
 *   ring      records, mapped into heaptop: read without a system call
 *   programs  one per way of attaching
 *   links     one for all places of a file, or one for its returns and one for its entries
 *
 * All but the links are opened together and serve one process, then, emptied, another (uprobe_pool.h): they live until the
 * pool closes them. Links are a process's: they are closed before anything is emptied.
 */
#ifndef HEAPTOP_PROBE_UPROBE_WIRE_H
#define HEAPTOP_PROBE_UPROBE_WIRE_H

#include "target/kernel_regs.h"

#define UPROBE_LIVE_MAX (1u << 18)	/* sampled blocks alive; with more, every free is reported */
#define UPROBE_RING_BYTES (64u << 20)
#define UPROBE_STACK_MAX (16u << 10)	/* bytes of stack a record copies at most */

struct uprobe_ctl {
	unsigned long long rate;	/* mean bytes between samples; 0 and 1: every call */
	unsigned long long generation;	/* + 1 when rate changes: threads draw anew at their next call */
	unsigned long long seed;
	unsigned long long ns_dev, ns_ino;	/* the target's PID namespace */
	unsigned int active;		/* 0: nothing is recorded */
	unsigned int free_all;		/* 1: every free is reported; the program sets it when `live` is full */
	unsigned int max_stack;		/* <= UPROBE_STACK_MAX */
	unsigned int use;		/* which process of those served one after the other, from 1: what a thread has of another is void */
};

struct uprobe_counts {
	unsigned long long hits;	/* probes run, by their cost: at instructions the kernel emulates, */
	unsigned long long stepped;	/* at such that it steps over, */
	unsigned long long returns;	/* and at returns */
	unsigned long long recorded, dropped, lost, nested;
};

/*
 * A probe's cookie: what its function's arguments mean, as struct wire_args. Arguments are counted from 1, 3 bits each.
 */
enum uprobe_cookie {
	UPROBE_SIZE = 0, UPROBE_COUNT = 3, UPROBE_POINTER = 6, UPROBE_OUT = 9,	/* shifts */
	UPROBE_RETURNS = 12,		/* enum wire_returns, 2 bits */
	UPROBE_INT = 14, UPROBE_FREES = 15,	/* WIRE_ARGS_ flags */
	UPROBE_FRAME = 16,		/* it may call other probed ones: always a probe at its return, too */
	UPROBE_STEPPED = 17,
	UPROBE_IS_FREE = 18,
	UPROBE_BYTES = 32,		/* size where no argument says it, 32 bits */
};

/* A record: this; behind an allocation's, struct uprobe_alloc's rest. Numbers of kind and flags as in wire.h. */
struct uprobe_record {
	unsigned int kind, flags;
	unsigned int tid;		/* in the target's PID namespace */
	unsigned int bytes;		/* of stack */
	unsigned long long ns;		/* CLOCK_MONOTONIC */
	unsigned long long addr;	/* of the block; of a thread: on its stack */
};

struct uprobe_thread_record {
	struct uprobe_record r;
	char name[16];
};

struct uprobe_alloc {
	struct uprobe_record r;
	unsigned long long size, rate;
	unsigned long long regs[14];	/* struct wire_regs */
	unsigned char stack[];		/* r.bytes from its sp on */
};

#endif
