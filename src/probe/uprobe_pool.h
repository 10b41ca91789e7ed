/*
 * What heaptop has open in the kernel for uprobes, of all processes it watches: what serves none just now is kept for the
 * next. Opening it takes far longer than most of what a script executes runs: the verifier, and 84 MiB of pages for its maps.
 *
 * Each serves one process at a time. When that has ended, or has executed another program, it is given back: its
 * probes are taken out, which waits for those that run just now, then its counters, addresses, records and control block are
 * emptied, and what threads that live on have in it counts no more (uprobe_ctl.use): so a process sees nothing of the one
 * before it. What can't be emptied is closed. So is what exceeds UPROBE_POOL_SPARE, and the rest with the pool. All is
 * still held by descriptors of heaptop's alone (uprobe_wire.h). The collector thread.
 */
#ifndef HEAPTOP_PROBE_UPROBE_POOL_H
#define HEAPTOP_PROBE_UPROBE_POOL_H

#include <stddef.h>

#include "probe/uprobe_kernel.h"

struct err;
struct uprobe_pool;

#define UPROBE_POOL_SPARE 4u	/* a shell with a pipeline of three */

/* Nothing is opened yet. `best`: as of uprobe_kernel_open. */
struct uprobe_pool *uprobe_pool_create(enum uprobe_way best);
/* All that were opened have been closed. Accepts NULL. */
void uprobe_pool_destroy(struct uprobe_pool *pool);

/* One for a process, a spare one or as uprobe_kernel_open; ways that were refused before aren't tried again. */
struct err *uprobe_pool_open(struct uprobe_pool *pool, const struct uprobe_ctl *init, struct uprobe_kernel **ret);
/* Give it back. Accepts NULL. */
void uprobe_pool_close(struct uprobe_pool *pool, struct uprobe_kernel *k);

/* For tests: how many were opened in the kernel so far. */
size_t uprobe_pool_opened(const struct uprobe_pool *pool);

#endif
