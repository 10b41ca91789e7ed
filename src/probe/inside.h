/*
 * Is a thread of a stopped target somewhere it would miss if it were gone or changed: in the
 * agent's memory, now or when a function or a signal handler returns. Judged from registers,
 * marks in the slots and stacks: errs on the side of "inside". The collector thread.
 */
#ifndef HEAPTOP_PROBE_INSIDE_H
#define HEAPTOP_PROBE_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct code_range;
struct target;
struct target_thread;

/* `state`: address of the wire_ctl, 0: unknown. */
bool inside_ranges(struct target *t, const struct target_thread *thread, uint64_t state,
		   const struct code_range *ranges, size_t n);

/*
 * Has a signal handler, still running, interrupted this thread strictly inside one of the
 * ranges? Its registers lie in the signal frame, where nobody can step them on.
 */
bool inside_interrupted(struct target *t, const struct target_thread *thread,
			const struct code_range *ranges, size_t n);

#endif
