/*
 * What the agent must know of each thread's stack, before it may read there: where it ends. A thread's own
 * stack has its TCB on top; both come and go together.
 */
#include <stddef.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/ticks.h"
#include "elf/modules.h"
#include "probe/placed.h"
#include "target/target.h"

#define ASK_INTERVAL_NS 20000000ull	/* between looks at all maps */
#define QUERY_INTERVAL_NS 1000000ull	/* where the kernel answers single questions */
#define ASK_MAX 256u
#define MANY_THREADS 128u

void agent_ask_bounds(struct agent *a, uint32_t slot, uint64_t sp)
{
	if (a->nasked == ASK_MAX)
		return;
	for (size_t i = 0; i < a->nasked; i++)
		if (a->asked[i].slot == slot) {
			a->asked[i] = (struct asked){ slot, a->tids[slot], sp };
			return;
		}
	VEC_GROW(a->asked, a->nasked, a->asked_cap);
	a->asked[a->nasked++] = (struct asked){ slot, a->tids[slot], sp };
}

/*
 * One thread whose stack pointer lay in a mapping. Its stack is taken to end at its thread pointer, if
 * that lies in the same mapping: a TCB at the top belongs to the stack below, and both go
 * together. Other stacks (fibers, signal stacks) stay unknown; the agent copies them with
 * process_vm_readv, which can't fault.
 */
static struct err *tell_bounds(struct agent *a, struct target *t, const struct asked *q,
			       const struct mapping *m)
{
	uint64_t at = agent_slot_address(a, q->slot), tp = 0, lo = m->start;
	struct err *err;

	if (!strcmp(m->path, "[stack]")) {
		if (m->start >= a->main_lo)
			return NULL;
		a->main_lo = m->start;	/* it has grown */
		return target_write(t, CTL(a, main_stack_lo), &a->main_lo, sizeof(a->main_lo));
	}
	err = target_read(t, at, &tp, sizeof(tp));
	if (err || tp <= q->sp || tp > m->end || tp & 7)
		return err;
	/* For which thread last: it means nothing before. Should the slot have passed on, it means nothing at all. */
	err = target_write(t, at + offsetof(struct wire_slot, stack_lo), &lo, sizeof(lo));
	if (!err)
		err = target_write(t, at + offsetof(struct wire_slot, stack_hi), &tp, sizeof(tp));
	if (!err)
		err = target_write(t, at + offsetof(struct wire_slot, stack_tid), &q->tid, sizeof(q->tid));
	return err;
}

struct lookup {
	struct agent *a;
	struct target *t;
	struct err *err;
};

static bool look_up(void *ctx, const struct mapping *m)
{
	struct lookup *l = ctx;

	for (size_t i = 0; i < l->a->nasked && !l->err; i++) {
		const struct asked *q = &l->a->asked[i];
		if (q->sp >= m->start && q->sp < m->end)
			l->err = tell_bounds(l->a, l->t, q, m);
	}
	return !l->err;
}

void agent_answer_bounds(struct agent *a, struct target *t, uint64_t now_ns)
{
	struct lookup l = { .a = a, .t = t };
	struct mapping m;

	if (!a->nasked || now_ns - a->asked_ns < (target_has_query(t) ? QUERY_INTERVAL_NS : ASK_INTERVAL_NS))
		return;
	a->asked_ns = now_ns;
	/* one by one where that is cheap, else all of them in one reading of maps */
	if (target_has_query(t)) {
		for (size_t i = 0; i < a->nasked && !l.err; i++)
			if (target_mapping_at(t, a->asked[i].sp, &m))
				l.err = tell_bounds(a, t, &a->asked[i], &m);
	} else {
		err_free(target_each_mapping(t, look_up, &l));
	}
	err_free(l.err);
	a->nasked = 0;
}

/* A slot as the agent would have claimed it, for a thread that has one to come; it finds out itself who it is. */
static void preset_slot(struct wire_slot *slots, const struct target_thread *thread, uint64_t lo, uint32_t tid,
			uint32_t ring)
{
	struct wire_slot *s = &slots[wire_slot_hash(thread->tp)];

	for (unsigned i = 0; i < WIRE_SLOT_PROBES; i++, s++) {
		if (s->tp)
			continue;
		*s = (struct wire_slot){
			.tp = thread->tp,
			.rng = (ticks_now() * 0x9e3779b97f4a7c15ull ^ thread->tp) | 1,
			.stack_lo = lo,
			.stack_hi = thread->tp,
			.stack_tid = tid,
			.ring = ring,
		};
		return;
	}
}

struct err *agent_preset_bounds(struct agent *a, struct target *t, uint32_t *ret_used)
{
	size_t n;
	const struct target_thread *threads = target_threads(t, &n);
	uint32_t used = 0;
	bool same = target_ns_pid(t) == target_pid(t);

	*ret_used = 0;
	if (!target_has_query(t))
		return NULL;	/* the maps would have to be read once more while it is stopped */
	CLEANUP_FREE struct wire_slot *slots = xcalloc(WIRE_SLOTS, sizeof(*slots));
	for (size_t i = 0; i < n; i++) {
		struct mapping m;
		uint64_t tp = threads[i].tp, sp = threads[i].sp;

		/* on another stack just now (a signal's, a fiber's), or the main thread: it will ask */
		if (!tp || tp & 7 || tp <= sp || !target_mapping_at(t, sp, &m) || tp > m.end ||
		    !strcmp(m.path, "[stack]"))
			continue;
		/* in another PID namespace its id isn't known here: it will ask */
		preset_slot(slots, &threads[i], m.start, same ? (uint32_t)threads[i].tid : 0, wire_ring_of(used++, a->nrings));
	}
	*ret_used = used;
	struct err *err = NULL;
	/* the whole table costs less than a call for each of many */
	if (used > MANY_THREADS)
		return target_write(t, agent_slot_address(a, 0), slots, WIRE_SLOTS * sizeof(*slots));
	for (uint32_t i = 0; used && i < WIRE_SLOTS && !err; i++)
		if (slots[i].tp)
			err = target_write(t, agent_slot_address(a, i), &slots[i], sizeof(slots[i]));
	return err;
}
