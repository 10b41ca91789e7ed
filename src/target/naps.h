/*
 * Which system call a thread sleeps in. One that was interrupted is gone on with by restart_syscall(2), and a second
 * interruption finds that name and no other, which a seccomp filter that has come meanwhile may kill for. So at every stop
 * it is noted which call each such thread is in, for the next one. The collector thread; no process.
 */
#ifndef HEAPTOP_TARGET_NAPS_H
#define HEAPTOP_TARGET_NAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cpu_regs;

struct naps {
	struct nap *items;	/* by tid */
	size_t n, cap;
	uint32_t stop;		/* number of the one that is going on */
};

/* A stop begins: who wasn't in such a call at the last one is forgotten. */
void naps_begin(struct naps *naps);
/*
 * `regs` are those of an interrupted call that the kernel would go on with (cpu_has_restart). The number of the call it
 * was at first: its own, or as noted when it was interrupted before; -1: that isn't known.
 */
long naps_call(struct naps *naps, pid_t tid, const struct cpu_regs *regs);
void naps_deinit(struct naps *naps);

#endif
