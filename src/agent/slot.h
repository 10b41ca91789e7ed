/*
 * The calling thread's slot (wire.h): found, claimed, taken over from a thread that has ended. Any thread,
 * signal handlers too; no locks. System calls only when a thread comes to its slot for the first
 * time, or where nothing else tells which thread this is; none at all where ctl->may_syscall is 0.
 */
#ifndef HEAPTOP_AGENT_SLOT_H
#define HEAPTOP_AGENT_SLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/cpu-x86_64.h"
#include "agent/inside.h"
#include "wire/wire.h"

/* What slot_find does where it isn't plain; its own. */
bool slot_asks(const struct wire_ctl *ctl, struct wire_slot *s, uint64_t tp);
bool slot_renew(struct wire_ctl *ctl, struct wire_slot *s, uint64_t tp);
struct wire_slot *slot_claim(struct wire_ctl *ctl, uint64_t tp);

/*
 * The id that the libc keeps for the running thread, 0: it can't be told. The word lies in the page that fs:0
 * was just read from, so that reading it can't fault whatever made this thread; the first thread's is in the
 * libc's own memory.
 */
static inline uint32_t slot_word(const struct wire_ctl *ctl, uint64_t tp)
{
	uint32_t at = LOAD(ctl->tid_at);

	if (!at || at & 3 || ((tp & (CPU_PAGE - 1)) + at + 4 > CPU_PAGE && tp != LOAD(ctl->main_tp)))
		return 0;
	return LOAD(*(const uint32_t *)(tp + at));
}

/* Whose it is: the calling thread's, or that of one before with the same thread pointer? */
static inline bool slot_is_mine(const struct wire_ctl *ctl, struct wire_slot *s, uint64_t tp)
{
	uint32_t tid = LOAD(s->tid);

	if (LOAD(s->how) == WIRE_TID_WORD)
		return tid && slot_word(ctl, tp) == tid;
	return slot_asks(ctl, s, tp);
}

/* NULL: there is none to be had; counted. */
static inline struct wire_slot *slot_find(struct wire_ctl *ctl)
{
	uint64_t tp = cpu_thread_pointer();
	struct wire_slot *s = (struct wire_slot *)((uint64_t)ctl + WIRE_STATE_SLOTS) + wire_slot_hash(tp);

	if (!tp)
		return NULL;
	for (unsigned i = 0; i < WIRE_SLOT_PROBES && LOAD(s->tp); i++, s++)
		if (LOAD(s->tp) == tp && (slot_is_mine(ctl, s, tp) || slot_renew(ctl, s, tp)))
			return s;
	return slot_claim(ctl, tp);
}

#endif
