/* Interrupted sleeps; see naps.h. */
#include "target/naps.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "target/cpu.h"

struct nap {
	pid_t tid;
	uint32_t stop;		/* seen last */
	long nr;
	uint64_t pc, sp;	/* the same call, and not one after it */
};

void naps_begin(struct naps *naps)
{
	size_t n = 0;

	for (size_t i = 0; i < naps->n; i++)
		if (naps->items[i].stop == naps->stop)
			naps->items[n++] = naps->items[i];
	naps->n = n;
	naps->stop++;
}

static size_t place_of(const struct naps *naps, pid_t tid)
{
	size_t lo = 0, hi = naps->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (naps->items[mid].tid < tid)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

long naps_call(struct naps *naps, pid_t tid, const struct cpu_regs *regs)
{
	size_t i = place_of(naps, tid);
	bool there = i < naps->n && naps->items[i].tid == tid;
	struct nap nap = { tid, naps->stop, cpu_syscall_number(regs), cpu_pc(regs), cpu_sp(regs) };

	if (cpu_is_restarted(regs)) {
		bool same = there && naps->items[i].pc == nap.pc && naps->items[i].sp == nap.sp;
		nap.nr = same ? naps->items[i].nr : -1;
	}
	if (!there) {
		VEC_GROW(naps->items, naps->n, naps->cap);
		memmove(&naps->items[i + 1], &naps->items[i], (naps->n - i) * sizeof(nap));
		naps->n++;
	}
	naps->items[i] = nap;
	return nap.nr;
}

void naps_deinit(struct naps *naps)
{
	free(naps->items);
	*naps = (struct naps){ 0 };
}
