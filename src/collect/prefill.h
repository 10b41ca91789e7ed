/*
 * The rules of what is on the threads' stacks when heaptop attaches, handed to the agent before its
 * first event: at that moment all threads would ask for theirs at once, and the first touch of a
 * module's CFI takes milliseconds, in which each of their events copies its stack. Collector thread.
 * The order: create, take, walk, teach, destroy.
 */
#ifndef HEAPTOP_COLLECT_PREFILL_H
#define HEAPTOP_COLLECT_PREFILL_H

#include <stddef.h>

#include "probe/probe.h"

struct prefill;
struct target;
struct unwinder;

/* Before the target is stopped, so that it needn't wait for the memory. */
struct prefill *prefill_create(void);
void prefill_destroy(struct prefill *p);	/* accepts NULL */

/* Target stopped: copies of its threads' stacks, as many as target_stacks() takes. */
void prefill_take(struct prefill *p, struct target *t);

/* Find the return addresses on them. The target may run; the unwinder knows its modules. */
void prefill_walk(struct prefill *p, struct unwinder *u);

/* Tell their rules to a probe that has been placed. Returns how many. */
size_t prefill_teach(const struct prefill *p, struct probe *probe, probe_rule_fn rule, void *ctx);

#endif
