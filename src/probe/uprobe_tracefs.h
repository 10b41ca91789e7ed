/*
 * uprobes as events of tracefs, which perf_event may then count and sample. The uprobe PMU would need no entry there, but
 * its events can't be inherited: a target's clone() fails then, since the kernel looks for the path anew, in the
 * target's memory.
 *
 * Entries belong to nobody: they would outlive a heaptop that is killed. So a guard does: a process that waits for heaptop's
 * end, whatever that is, and takes out what is left then. Should it be killed, too, the next heaptop does
 * (the entries' group says whose they are). While a heaptop lives the kernel itself keeps them: an entry in use can't go.
 * Where tracefs isn't mounted it is mounted for us alone, nowhere; that ends with the descriptors.
 */
#ifndef HEAPTOP_PROBE_UPROBE_TRACEFS_H
#define HEAPTOP_PROBE_UPROBE_TRACEFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct tracefs;

/* ERR_DENIED: it takes root; ERR_UNSUPPORTED: the kernel has none. */
struct err *tracefs_open(struct tracefs **ret);
/* Takes out all of them. Accepts NULL. */
void tracefs_close(struct tracefs *t);

/*
 * One more event, for these n > 0 places of the file that `fd` is open on: where they are passed, or where the functions
 * entered there return. *ret: what perf_event knows it by.
 */
struct err *tracefs_event(struct tracefs *t, bool returns, int fd, const uint64_t *offsets, size_t n, uint64_t *ret);
/* Take out all of them; nobody may use them any more. */
void tracefs_clear(struct tracefs *t);

#endif
