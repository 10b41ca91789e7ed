/* Getting threads out of code that is about to be changed; see target.h. */
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "target/impl.h"

#define ROUNDS 400
#define FIRST_MOMENT 10e-6	/* seconds, and then a little longer each time, */
#define LAST_MOMENT 1e-3	/* up to that */

static bool is_inside(uint64_t pc, const struct code_range *ranges, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (pc > ranges[i].start && pc < ranges[i].end)
			return true;
	}
	return false;
}

/*
 * A thread inside is let run a moment and stopped again, until it is outside. Not single-stepped:
 * if heaptop were killed then, the trap flag would stay behind and kill the program by SIGTRAP.
 * What it runs into at worst is a lock of a stopped thread, which is outside, too.
 */
struct err *target_step_out(struct target *t, const struct code_range *ranges, size_t n)
{
	double moment = FIRST_MOMENT;

	if (!t->stopped)
		return err_new(ERR_OTHER, "process %d isn't stopped", t->pid);
	for (int round = 0; round < ROUNDS; round++) {
		size_t count, ninside = 0;
		const struct target_thread *threads = target_threads(t, &count);
		CLEANUP_FREE pid_t *inside = xcalloc(count + 1, sizeof(*inside));
		for (size_t i = 0; i < count; i++)
			if (is_inside(threads[i].pc, ranges, n))
				inside[ninside++] = threads[i].tid;
		if (!ninside)
			return NULL;
		struct err *err = target_let_run(t, inside, ninside, moment);
		if (err)
			return err;
		if (moment < LAST_MOMENT)
			moment *= 1.2;
	}
	err_free(target_resume(t));
	return err_new(ERR_BUSY, "process %d: a thread doesn't leave the code that is to be changed: try again",
		       t->pid);
}
