/*
 * Threads that are traced from their birth on: what the agent must know of each is written down before it runs
 * its first instruction (struct wire_births), so that the agent needs no system call for it. The table lies in
 * memory that the target can write to: what is in it is known from a copy of ours.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "elf/modules.h"
#include "probe/placed.h"
#include "target/target.h"

/* The entry for a thread pointer: its own, else the nearest whose thread has ended or that is empty; or none. */
static struct wire_birth *find_entry(struct wire_birth *ours, uint64_t tp)
{
	struct wire_birth *b = &ours[wire_slot_hash(tp)], *free = NULL;

	for (unsigned i = 0; i < WIRE_SLOT_PROBES; i++, b++) {
		if (b->tp == tp)
			return b;
		if (!free && (!b->tp || b->ended))
			free = b;
		if (!b->tp)
			break;
	}
	return free;
}

/* In the agent's memory, next to its rules, which say whether there is any. */
static struct wire_birth *in_target(const struct agent *a, const struct wire_birth *ours)
{
	struct wire_births *births = (struct wire_births *)((uint8_t *)a->rules + WIRE_RULES_BYTES);

	return &births->of[ours - a->born];
}

/*
 * Its own stack ends at its thread pointer, if that lies in the mapping that it begins to run on: glibc and musl
 * place the TCB on top of the stack.
 */
void agent_born(struct probe *p, struct target *t, const struct target_thread *thread)
{
	struct agent *a = agent_of(p);
	uint64_t tp = thread->tp;
	struct mapping m;

	/* its id in another PID namespace isn't known here */
	if (!a->rules || !tp || target_ns_pid(t) != target_pid(t))
		return;
	if (!a->born)
		a->born = xcalloc(WIRE_SLOTS, sizeof(*a->born));
	struct wire_birth *ours = find_entry(a->born, tp);
	if (!ours)
		return;
	bool known = !(tp & 7) && tp > thread->sp && target_has_query(t) &&
		     target_mapping_at(t, thread->sp, &m) && tp <= m.end;
	*ours = (struct wire_birth){ .tp = tp, .stack_lo = known ? m.start : 0, .tid = (uint32_t)thread->tid };
	struct wire_birth *to = in_target(a, ours);
	__atomic_store_n(&to->tid, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&to->ended, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&to->stack_lo, ours->stack_lo, __ATOMIC_RELEASE);
	__atomic_store_n(&to->tp, tp, __ATOMIC_RELEASE);
	__atomic_store_n(&to->tid, ours->tid, __ATOMIC_RELEASE);
}

void agent_ended(struct probe *p, const struct target_thread *thread)
{
	struct agent *a = agent_of(p);
	struct wire_birth *ours = a->born && thread->tp ? find_entry(a->born, thread->tp) : NULL;

	/* another thread may have its thread pointer by now */
	if (!ours || ours->tp != thread->tp || ours->tid != (uint32_t)thread->tid)
		return;
	ours->ended = 1;
	__atomic_store_n(&in_target(a, ours)->ended, 1, __ATOMIC_RELEASE);
}
