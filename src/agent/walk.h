/*
 * A walk up the stack of the calling thread by the rules heaptop has written down (wire.h).
 * Reads nothing but the words between sp and the end of the stack. The thread's own last
 * walk is kept in *w: what of it still holds isn't walked again.
 */
#ifndef HEAPTOP_AGENT_WALK_H
#define HEAPTOP_AGENT_WALK_H

#include <stdint.h>

#include "wire/wire.h"

/* How a walk went: `n` return addresses, innermost first at w->frame[first], first - 1, ... */
struct walk {
	uint64_t seq;		/* w->seq as long as the frames are those of this walk */
	uint16_t n;
	uint16_t first;
	uint16_t keep;		/* so many of them, the outermost, are those of the walk before; */
	uint8_t told;		/* and that one's frames were sent: keep is 0 if they weren't */
	uint8_t complete;	/* else pc, sp, bp are of the next frame, which has no rule: */
	uint64_t pc, sp, bp;
	uint32_t count;		/* wire_walk.count when the event began */
	uint32_t why;		/* WIRE_RULE_NONE, PENDING, or COPY: no rule to be had, too many frames; WALK_OUT:
				 * the next word lies outside. WIRE_RULE_END if it is complete */
};
#define WALK_OUT 0xffu
_Static_assert(WIRE_MAX_FRAMES <= UINT16_MAX, "counts fit");

/*
 * From the frame pc, sp, bp outwards; the words in [sp, end) are readable. A signal handler that
 * allocates while this runs, on a stack of its own, walks with the same *w: compare seq after
 * the frames have been copied.
 */
void agent_walk(struct wire_walk *w, const struct wire_rules *rules, uint64_t end, struct walk *walk);

/* The rule for return address pc; WIRE_RULE_NONE if there is no word for it. */
uint32_t agent_rule(const struct wire_rules *rules, uint64_t pc);
/* Write that heaptop has been asked for the rule of pc, unless something is there already. */
void agent_ask(struct wire_rules *rules, uint64_t pc);
/* heaptop hasn't answered in time: from now on it isn't waited for. */
void agent_give_up(struct wire_rules *rules, uint64_t pc);

#endif
