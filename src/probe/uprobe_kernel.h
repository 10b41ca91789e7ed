/*
 * Everything heaptop keeps in the kernel for one process watched by uprobes, whichever way: by BPF (uprobe_libbpf.c;
 * uprobe_wire.h tells what that is and how long it lives), or without (uprobe_hits.h). The collector thread.
 */
#ifndef HEAPTOP_PROBE_UPROBE_KERNEL_H
#define HEAPTOP_PROBE_UPROBE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "probe/uprobe_wire.h"

struct err;
struct uprobe_kernel;

/* How functions are attached to, the best first. */
enum uprobe_way {
	UPROBE_WAY_SESSION,	/* one program at entry and return, which skips the return of what isn't sampled: Linux 6.13 */
	UPROBE_WAY_MULTI,	/* one at each entry and one at each return: Linux 6.6 */
	UPROBE_WAY_HITS,	/* no program: perf_event tells of each hit */
	UPROBE_WAYS
};
/* "BPF session uprobes" */
const char *uprobe_way_name(enum uprobe_way way);

/*
 * Load maps and programs, or what stands for them; `init` is what the control block begins with. `best`: the first way to
 * try. Costs tens of milliseconds, most of them the kernel's verifier. ERR_DENIED: a right is missing; ERR_UNSUPPORTED:
 * the kernel has no way. Both texts name the remedy.
 */
struct err *uprobe_kernel_open(const struct uprobe_ctl *init, enum uprobe_way best, struct uprobe_kernel **ret);
/* Takes out all probes, too. Accepts NULL. */
void uprobe_kernel_close(struct uprobe_kernel *k);

enum uprobe_way uprobe_kernel_way(const struct uprobe_kernel *k);
/* Why not a better one: "no BPF session uprobes, which take Linux 6.13: Invalid argument"; "" if there is none. */
const char *uprobe_kernel_why(const struct uprobe_kernel *k);

/* Written by heaptop at any time, a field at a time; the program reads it with every call. */
struct uprobe_ctl *uprobe_kernel_ctl(struct uprobe_kernel *k);

struct uprobe_point {
	uint64_t offset;	/* in the file */
	uint64_t addr;		/* in the process */
	uint64_t cookie;	/* enum uprobe_cookie */
};
/*
 * Probe these places of a file in the process `pid` alone, one after the other: the first `nfrees` are of functions that
 * free, the others of such that allocate. The file is the one that `fd` is open on, and may have no name any more.
 * To take out what one call has put in takes the kernel some tens of milliseconds, however many places that are.
 */
struct err *uprobe_kernel_attach(struct uprobe_kernel *k, pid_t pid, int fd, const struct uprobe_point *points, size_t nfrees,
				 size_t n);
/* Take out all probes; the rest stays to be read. */
void uprobe_kernel_detach(struct uprobe_kernel *k);

/*
 * Hand over the records there are, in the order they were written, which is one that keeps causes before their
 * effects; `max` at most. Their sizes are checked, nothing else. Where they pass (uprobe_kernel_passes) each is there for its
 * call only; else until the next uprobe_kernel_read: only then the kernel may write there again, so what is read at once should
 * be a part of the ring. A call that returns false is the last. Returns the number.
 */
typedef bool (*uprobe_record_fn)(void *ctx, const struct uprobe_record *r, size_t size);
size_t uprobe_kernel_read(struct uprobe_kernel *k, size_t max, uprobe_record_fn fn, void *ctx);

bool uprobe_kernel_passes(const struct uprobe_kernel *k);

/* Sums over all processors. */
void uprobe_kernel_counts(struct uprobe_kernel *k, struct uprobe_counts *ret);
/* What so many hits cost the target, ns, by measurement (tests/bench). */
uint64_t uprobe_kernel_cost(const struct uprobe_kernel *k, const struct uprobe_counts *counts);

#endif
