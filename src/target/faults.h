/*
 * Page faults of a process, sampled by perf_event: where a thread was when it touched a page that wasn't there, and which.
 * Nothing is placed in the process; a plain user may do it with processes of theirs at perf_event_paranoid 2.
 * What the kernel touches for a program (read() into a fresh buffer) isn't seen. The collector thread.
 *
 * One event per thread there is and processor, inherited by the threads that come later; those of a processor share a
 * ring. The kernel chooses the period so that there are at most FAULTS_HZ samples a second of each, every fault
 * where there are few; it counts all, also what was not sampled because there were too many at once.
 */
#ifndef HEAPTOP_TARGET_FAULTS_H
#define HEAPTOP_TARGET_FAULTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/wire.h"

struct err;
struct faults;
struct target;

#define FAULTS_HZ 2000u
#define FAULTS_STACK 8192u	/* bytes of stack a sample */

struct fault {
	uint64_t addr;		/* what was touched */
	uint64_t time;		/* ns of CLOCK_MONOTONIC_RAW */
	pid_t tid;		/* of the thread, in our PID namespace */
	uint64_t period;	/* faults it stands for, before it is set against faults_count */
	struct wire_regs regs;	/* ip: of the instruction that did */
	const uint8_t *stack;	/* from regs.sp on; in the ring, valid during the call */
	size_t stack_bytes;
};

/* ERR_DENIED, ERR_UNSUPPORTED, ERR_BUSY (too many threads and processors) with the reason and what to do. */
struct err *faults_open(struct target *t, struct faults **ret);
void faults_close(struct faults *f);	/* accepts NULL */

/* Hand over the samples there are, by processor, in order of time. */
size_t faults_drain(struct faults *f, void (*fn)(void *ctx, const struct fault *fault), void *ctx);
/* All faults since faults_open, sampled or not. */
uint64_t faults_count(const struct faults *f);

#endif
