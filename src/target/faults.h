/*
 * Page faults of a process, sampled by perf_event: where a thread was when it touched a page that wasn't there, and which.
 * Nothing is placed in the process; a plain user may do it with processes of theirs at perf_event_paranoid 2.
 * What the kernel touches for a program (read() into a fresh buffer) isn't seen. The collector thread.
 *
 * One event per thread there is and processor, inherited by the threads that come later. Where BPF is permitted, a program in
 * the kernel sees each fault and chooses (faults.bpf.c): pages larger than the smallest are told of one by one, of small ones
 * as many as FAULTS_HZ; both kinds are counted. Else the kernel chooses a period so that there are at most FAULTS_HZ samples a second
 * of each event, whatever size pages are, and slowly: a few huge ones after many small may be missed, or one of them stand for
 * hundreds. Either way all is told of where there is little, and all is counted.
 *
 * What comes back from a file or from swap (a major fault) isn't new and no sample.
 */
#ifndef HEAPTOP_TARGET_FAULTS_H
#define HEAPTOP_TARGET_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/faults_wire.h"
#include "wire/wire.h"

struct err;
struct faults;
struct faults_code;	/* faults_kernel.h */
struct target;

/* Samples of a kind stand for the faults of that kind. */
enum fault_kind {
	FAULT_SMALL,		/* or of any size, where that isn't known */
	FAULT_LARGE,
	FAULT_KINDS
};

struct fault {
	uint64_t addr;		/* what was touched */
	uint64_t time;		/* ns of CLOCK_MONOTONIC_RAW */
	pid_t tid;		/* of the thread, in our PID namespace */
	enum fault_kind kind;
	uint64_t units;		/* of faults_counts that it stands for, before it is set against these: pages of
				 * FAULTS_PAGE where sizes are known, else faults */
	uint64_t pages;		/* of FAULTS_PAGE that came with it; 0: not known */
	struct wire_regs regs;	/* ip: of the instruction that did */
	const uint8_t *stack;	/* from regs.sp on; in the ring, valid during the call */
	size_t stack_bytes;
};

/*
 * `code` (faults_kernel.h): borrowed for the call. ERR_DENIED, ERR_UNSUPPORTED, ERR_BUSY (too many threads and processors) with
 * the reason and what to do.
 */
struct err *faults_open(struct target *t, struct faults_code *code, struct faults **ret);
void faults_close(struct faults *f);	/* accepts NULL */

/* Hand over the samples there are, by processor, in order of time. */
size_t faults_drain(struct faults *f, void (*fn)(void *ctx, const struct fault *fault), void *ctx);

/*
 * All since faults_open, sampled or not. Where sizes are known: up to the last sample of each processor that was handed over, so
 * that the two tell of the same; `last`: all there is.
 */
struct faults_counts {
	uint64_t faults;
	uint64_t units[FAULT_KINDS];
};
struct faults_counts faults_count(const struct faults *f, bool last);

#endif
