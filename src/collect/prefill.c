/* Stacks at the moment of attaching, walked for their addresses; see prefill.h. */
#include "collect/prefill.h"

#include <stdlib.h>
#include <string.h>

#include "base/ending.h"
#include "base/mem.h"
#include "target/target.h"
#include "unwind/unwind.h"

#define BYTES (1u << 20)	/* of all stacks */
#define FRAMES_MAX (WIRE_MAX_FRAMES * 2)
#define PCS_MAX 4096u		/* told while the target waits: well under a millisecond */

struct prefill {
	struct target_stack stacks[TARGET_STACKS_MAX];
	size_t nstacks;
	uint8_t *bytes;		/* theirs */
	uint64_t *pcs;		/* sorted, each once */
	size_t npcs, cap;
};

/* Touched here: in some virtual machines a page's first touch takes 5 us and more. */
struct prefill *prefill_create(void)
{
	struct prefill *p = xmalloc(sizeof(*p));

	memset(p, 0, sizeof(*p));
	p->bytes = xmalloc(BYTES);
	memset(p->bytes, 0, BYTES);
	return p;
}

void prefill_take(struct prefill *p, struct target *t)
{
	p->nstacks = target_stacks(t, p->stacks, p->bytes, BYTES);
}

void prefill_destroy(struct prefill *p)
{
	if (!p)
		return;
	free(p->bytes);
	free(p->pcs);
	free(p);
}

static int compare_pcs(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void unite(struct prefill *p)
{
	size_t n = 0;

	qsort(p->pcs, p->npcs, sizeof(p->pcs[0]), compare_pcs);
	for (size_t i = 0; i < p->npcs; i++)
		if (!n || p->pcs[n - 1] != p->pcs[i])
			p->pcs[n++] = p->pcs[i];
	p->npcs = n;
}

void prefill_walk(struct prefill *p, struct unwinder *u)
{
	uint64_t frames[FRAMES_MAX];

	for (size_t i = 0; i < p->nstacks && p->npcs < PCS_MAX && !ending_broken_off(); i++) {
		struct target_stack *s = &p->stacks[i];
		struct stack_copy copy = { .addr = s->regs.sp, .bytes = s->bytes, .len = s->len };
		enum unwind_end why;

		/* The instruction to be executed next, in the unwinder's convention; nobody returns there. */
		s->regs.ip++;
		size_t n = unwinder_walk(u, &s->regs, &copy, frames, FRAMES_MAX, &why);
		for (size_t k = 1; k < n; k++) {
			VEC_GROW(p->pcs, p->npcs, p->cap);
			p->pcs[p->npcs++] = frames[k];
		}
		/* threads mostly do the same: what is kept stays small */
		if (n > 1)
			unite(p);
	}
	p->nstacks = 0;
}

size_t prefill_teach(const struct prefill *p, struct probe *probe, probe_rule_fn rule, void *ctx)
{
	return probe->ops->teach(probe, p->pcs, p->npcs < PCS_MAX ? p->npcs : PCS_MAX, rule, ctx);
}
