/*
 * What all threads are doing, as copies of their registers and the inner part of their stacks, to
 * be looked at when they run again. The target waits meanwhile, so it is bounded, asks for no maps,
 * and is a single system call for all stacks that end where their threads' pointers say, as glibc and
 * musl have them. Where that isn't so, one by one: a copy that passes the stack's end holds
 * some bytes of what lies behind it, which no walk gets to see.
 */
#include <sys/uio.h>

#include "base/err.h"
#include "target/cpu.h"
#include "target/impl.h"

#define TOP_MAX (1ull << 30)	/* a thread pointer further away is on top of something else */

/* Registers, and how much of each stack is wanted: together, as in iovs, or 0 there: for itself. */
static size_t look(struct target *t, struct target_stack *stacks, struct iovec *iovs, size_t max,
		   size_t each)
{
	size_t n = 0;

	for (size_t i = 0; i < t->nthreads && n < max; i++) {
		struct target_stack *s = &stacks[n];
		struct cpu_regs regs;

		if (t->threads[i].state != THREAD_STOPPED)
			continue;
		struct err *err = cpu_regs_get(t->threads[i].tid, &regs);
		if (err) {	/* killed meanwhile */
			err_free(err);
			continue;
		}
		s->tid = t->threads[i].tid;
		cpu_wire_regs(&regs, &s->regs);
		uint64_t top = cpu_tp(&regs) - s->regs.sp;
		s->len = top < each ? top : each;
		iovs[n++] = (struct iovec){ (void *)(uintptr_t)s->regs.sp, top < TOP_MAX ? s->len : 0 };
	}
	return n;
}

size_t target_stacks(struct target *t, struct target_stack *ret, uint8_t *bytes, size_t room)
{
	struct iovec iovs[TARGET_STACKS_MAX];
	size_t max = t->nthreads < TARGET_STACKS_MAX ? t->nthreads : TARGET_STACKS_MAX, together = 0;

	if (!t->stopped || !max)
		return 0;
	size_t each = room / max < TARGET_STACK_BYTES ? room / max : TARGET_STACK_BYTES;
	size_t n = look(t, ret, iovs, max, each);
	for (size_t i = 0; i < n; i++)
		together += iovs[i].iov_len;
	struct iovec local = { bytes, together };
	bool all = together && process_vm_readv(t->live, &local, 1, iovs, n, 0) == (ssize_t)together;
	uint8_t *single = bytes + together;
	for (size_t i = 0; i < n; i++) {
		uint8_t **at = iovs[i].iov_len ? &bytes : &single, *to = *at;
		*at += ret[i].len;
		ret[i].bytes = to;
		if (!all || !iovs[i].iov_len)
			ret[i].len = target_read_some(t, ret[i].regs.sp, to, ret[i].len);
	}
	return n;
}
