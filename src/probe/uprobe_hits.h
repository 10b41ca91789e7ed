/*
 * uprobes without BPF: perf_event tells of each hit, and which calls count, which are sampled and which return belongs to
 * which entry is decided here, by the same rules (uprobe_rules.h). It costs the target several times as much, sampled or
 * not: each return copies registers and stack. Reached through uprobe_kernel.h. The collector thread.
 *
 * Kernel-side state, all of it, and how long it lives:
 *
 *   entries	events in tracefs, which are nobody's: see uprobe_tracefs.h for what takes them out
 *   events	one per such entry, thread there is and processor, inherited by threads that come later; a descriptor each
 *   rings	one a processor, each of an event that counts nothing, so that they can be read when all others have gone
 *
 * Probes are shared by all events at one place, and hits are told by addresses: so nothing more is kept.
 *
 * A ring that is full loses records: frees are counted as such, entries and returns as dropped (a call is two; without Linux
 * 6.0 frees are, too), and marks of calls that were entered before that aren't believed any more.
 */
#ifndef HEAPTOP_PROBE_UPROBE_HITS_H
#define HEAPTOP_PROBE_UPROBE_HITS_H

#include <stdint.h>

struct kernel_regs;

/* The registers that perf_event is asked for, and what comes. One file a processor. */
extern const uint64_t uprobe_perf_regs;
void uprobe_from_perf(const uint64_t *values, struct kernel_regs *ret);

#endif
