/*
 * What the agent is told of the target's threads: where their libc keeps their ids, and which have ended,
 * where it can't ask the kernel itself. It decides about its slots alone (wire.h).
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "probe/placed.h"
#include "target/target.h"

#define TCB_LOOK 4096u		/* bytes from the thread pointer on; glibc 2.36: 720, musl 1.2: 48 */
#define COMPARE_MAX 16u		/* other threads that must have theirs at the same place */

static bool has_at(struct target *t, uint64_t tp, uint32_t at, uint32_t tid)
{
	uint32_t word;

	return target_read_some(t, tp + at, &word, sizeof(word)) == sizeof(word) && word == tid;
}

/*
 * A word behind the first thread's pointer that is its id, and in the others is theirs. Even if it is something
 * else that merely looks like it, no harm is done: the agent compares it with what the kernel says.
 */
static uint32_t find_tid_at(struct target *t, uint64_t tp, uint32_t tid, const struct target_thread *others, size_t n)
{
	uint32_t words[TCB_LOOK / 4];
	size_t got = target_read_some(t, tp, words, sizeof(words)) / sizeof(words[0]);

	for (uint32_t i = 2; i < got; i++) {
		bool fits = words[i] == tid;
		for (size_t k = 0; k < n && fits; k++)
			fits = !others[k].tp || others[k].tp == tp ||
			       has_at(t, others[k].tp, i * 4, (uint32_t)others[k].tid);
		if (fits)
			return i * 4;
	}
	return 0;
}

void agent_know_threads(struct agent *a, struct target *t, struct wire_ctl *ctl)
{
	size_t n;
	const struct target_thread *threads = target_threads(t, &n);
	bool same = target_ns_pid(t) == target_pid(t);	/* ids are the same inside and outside */

	for (size_t i = 0; i < n; i++)
		if (threads[i].tid == target_pid(t))
			ctl->main_tp = threads[i].tp;
	if (ctl->main_tp)
		ctl->tid_at = find_tid_at(t, ctl->main_tp, (uint32_t)target_ns_pid(t), threads,
					  !same ? 0 : n < COMPARE_MAX ? n : COMPARE_MAX);
	a->tid_at = ctl->tid_at;
	a->may_ask = ctl->may_syscall;
}

/* A static program's first thread has no thread pointer when it is hooked, but soon. */
static void know_late(struct agent *a, struct target *t, const struct wire_slot *slots)
{
	uint32_t pid = (uint32_t)target_ns_pid(t);

	for (uint32_t i = 0; i < WIRE_SLOTS && !a->tid_at; i++) {
		if (!slots[i].tp || slots[i].tid != pid)
			continue;
		a->tid_at = find_tid_at(t, slots[i].tp, pid, NULL, 0);
		if (!a->tid_at)
			return;
		err_free(target_write(t, CTL(a, main_tp), &slots[i].tp, sizeof(slots[i].tp)));
		err_free(target_write(t, CTL(a, tid_at), &a->tid_at, sizeof(a->tid_at)));
	}
}

static int compare_tids(const void *pa, const void *pb)
{
	uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;

	return a < b ? -1 : a > b;
}

void agent_present(struct probe *p, struct target *t, const uint32_t *tids, size_t n)
{
	struct agent *a = agent_of(p);
	const struct wire_slot *slots = a->table;

	/* as they were before the list was made: a thread that came since isn't missing in it */
	if (!slots || !a->state)
		return;
	if (!a->tid_at)
		know_late(a, t, slots);
	if (a->may_ask)
		return;
	for (uint32_t i = 0; i < WIRE_SLOTS; i++) {
		uint32_t tid = slots[i].tid;

		if (!slots[i].tp || !tid || tid >= WIRE_TID_TAKEN || slots[i].gone == tid)
			continue;
		if (bsearch(&tid, tids, n, sizeof(tid), compare_tids)) {
			a->absent[i] = 0;
			continue;
		}
		/* a reading of /proc may miss a thread when others end meanwhile: twice in a row */
		if (a->absent[i] == tid)
			err_free(target_write(t, agent_slot_address(a, i) + offsetof(struct wire_slot, gone), &tid,
					      sizeof(tid)));
		a->absent[i] = tid;
	}
}
