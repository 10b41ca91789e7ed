/* From events to the model; see intake.h. */
#include "collect/intake.h"

#include <string.h>

#include "base/mem.h"
#include "base/ticks.h"
#include "collect/frames.h"
#include "collect/record.h"
#include "heap/heap.h"
#include "probe/probe.h"

/* Is the stack that this one is told by its difference to the last one of its slot that came? */
static bool follows(struct intake *in, const struct probe_event *e)
{
	bool ret = !e->keep || (!in->broken[e->slot] && (uint8_t)(in->seqs[e->slot] + 1) == e->seq);

	in->seqs[e->slot] = e->seq;
	in->broken[e->slot] = !ret;
	return ret;
}

/* The frames told, and those found in the copy of the stack behind them. */
static size_t walk_copy(struct intake *in, const struct probe_event *e, enum unwind_end *why)
{
	size_t n = e->nframes;
	const struct stack_copy stack = {
		.addr = e->regs->sp,
		.bytes = e->stack,
		.len = e->stack_bytes,
	};

	memcpy(in->pcs, e->frames, n * sizeof(in->pcs[0]));
	return n + unwinder_walk(in->unwinder, e->regs, &stack, in->pcs + n, ARRAY_SIZE(in->pcs) - n, why);
}

static size_t copied_stack(struct intake *in, const struct probe_event *e, enum unwind_end *why)
{
	size_t n = walk_copy(in, e, why);

	if (in->missed(in->ctx, in->pcs, n))
		n = walk_copy(in, e, why);
	in->teach(in->ctx, in->pcs, n);
	return n;
}

static void on_alloc(struct intake *in, const struct probe_event *e)
{
	struct heap_stack stack = { .addrs = in->addrs, .n = e->nframes, .keep = e->keep, .why = UNWIND_END_ROOT };
	const uint64_t *pcs = e->frames;

	if (!follows(in, e)) {
		stack.why = UNWIND_END_LOST;
		stack.keep = 0;
		in->resync = true;
	} else if (!(e->flags & WIRE_F_WALKED)) {
		enum unwind_end why = UNWIND_END_BAD;

		stack.n = copied_stack(in, e, &why);
		stack.why = why;
		pcs = in->pcs;
	}
	for (size_t i = 0; i < stack.n; i++)
		in->addrs[i] = frames_addr(in->frames, pcs[i]);
	in->allocs++;
	in->ends[stack.why]++;
	in->stacks_complete += stack.why == UNWIND_END_ROOT;
	uint64_t time = ticks_to_ns(in->clock, e->tsc);
	if (!(e->flags & WIRE_F_RANGE))
		heap_alloc(in->heap, e->addr, e->size, e->rate, time, e->slot, &stack);
	else if (e->flags & WIRE_F_REALLOC)
		heap_move(in->heap, e->addr, e->size, time, e->slot, &stack);
	else
		heap_map(in->heap, e->addr, e->size, time, e->slot, &stack);
	if (in->recorder)
		recorder_stack(in->recorder, in->addrs,
			       heap_last_stack(in->heap, e->slot, in->addrs, ARRAY_SIZE(in->addrs)));
}

static void on_thread(struct intake *in, const struct probe_event *e)
{
	char name[16] = "";
	const char *told = e->name;

	if (!*told && in->thread_name && in->thread_name(in->ctx, (uint32_t)e->addr, name))
		told = name;
	heap_thread(in->heap, e->slot, (uint32_t)e->addr, told, ticks_to_ns(in->clock, e->tsc));
}

static void take_in(struct intake *in, const struct probe_event *e)
{
	in->events += e->kind != WIRE_THREAD;
	switch (e->kind) {
	case WIRE_THREAD:
		on_thread(in, e);
		break;
	case WIRE_ALLOC:
		on_alloc(in, e);
		break;
	case WIRE_FREE:
		heap_free(in->heap, e->addr, ticks_to_ns(in->clock, e->tsc), e->slot,
			  e->flags & WIRE_F_REALLOC);
		break;
	case WIRE_UNFREE:
		if (e->flags & WIRE_F_RANGE)
			heap_ununmap(in->heap, e->slot);
		else
			heap_unfree(in->heap, e->addr, e->slot);
		break;
	case WIRE_UNMAP:
		heap_unmap(in->heap, e->addr, e->size, ticks_to_ns(in->clock, e->tsc), e->slot);
		break;
	case WIRE_VOID:
		break;
	}
}

void intake_event(void *ctx, const struct probe_event *e)
{
	struct intake *in = ctx;

	heap_ahead(in->heap, e->addr);
	if (in->nahead == INTAKE_AHEAD) {
		take_in(in, &in->ahead[in->first]);
		in->ahead[in->first] = *e;
		in->first = (in->first + 1) % INTAKE_AHEAD;
	} else {
		in->ahead[(in->first + in->nahead++) % INTAKE_AHEAD] = *e;
	}
}

void intake_flush(struct intake *in)
{
	for (; in->nahead; in->nahead--) {
		take_in(in, &in->ahead[in->first]);
		in->first = (in->first + 1) % INTAKE_AHEAD;
	}
}

void intake_reset(struct intake *in)
{
	in->events = in->allocs = in->stacks_complete = 0;
	memset(in->ends, 0, sizeof(in->ends));
	in->resync = false;
}
