/*
 * Beside a program that keeps all processors busy with many threads heaptop gets as much of them as one of these.
 * While it gets in, when the rings fill fastest, and out, the collector's thread alone is preferred to them
 * moderately, where that is permitted (CAP_SYS_NICE, RLIMIT_NICE). The target's priority is never touched: not
 * to be used before a fork that becomes a target.
 */
#ifndef HEAPTOP_COLLECT_HASTE_H
#define HEAPTOP_COLLECT_HASTE_H

#include <stdbool.h>
#include <sys/types.h>

struct haste {
	pid_t tid;
	bool on;
	int old;	/* nice value before */
};

/* The calling thread is to be preferred at times. */
void haste_init(struct haste *h);
/* From any thread, one at a time. Twice is as once; without the right nothing happens. */
void haste_begin(struct haste *h);
void haste_end(struct haste *h);

#endif
