/*
 * Looking for addresses of code on the stacks of a stopped target, x86-64.
 */
#include "probe/inside.h"

#include <string.h>

#include "agent/agent.h"
#include "base/err.h"
#include "target/target.h"
#include "wire/wire.h"

#define STACK_LOOK ((uint64_t)256 << 10)	/* bytes of a stack that are looked at */
#define CHUNK (16u << 10)

/* Below the mark lie the frame and the return address into the agent. */
#define MARK_TO_RETURN (AGENT_FRAME_BYTES + 8)

/* How much of it: a thread's control block lies above its frames, on whatever stack they are. */
static size_t stack_look(const struct target_thread *thread, uint64_t sp)
{
	uint64_t up = thread->tp - sp;

	return thread->tp > sp && up < STACK_LOOK ? (size_t)up : STACK_LOOK;
}

static size_t chunk_of(size_t whole, size_t done)
{
	return whole - done < CHUNK ? whole - done : CHUNK;
}

static bool in_ranges(uint64_t addr, const struct code_range *ranges, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (addr >= ranges[i].start && addr < ranges[i].end)
			return true;
	return false;
}

/*
 * The thread's mark, if it has one: a word there tells whether the frame it stands for is
 * still there. Needed beside the look at the stack, as the thread may be on a signal stack.
 */
static bool marked(struct target *t, uint64_t tp, uint64_t state, const struct code_range *ranges, size_t n)
{
	struct wire_slot slots[WIRE_SLOT_PROBES];
	uint64_t at = state + WIRE_STATE_SLOTS + (uint64_t)wire_slot_hash(tp) * sizeof(slots[0]), word;

	if (!tp || target_read_some(t, at, slots, sizeof(slots)) < sizeof(slots))
		return false;
	for (size_t i = 0; i < WIRE_SLOT_PROBES; i++)
		if (slots[i].tp == tp)
			return slots[i].mark &&
			       target_read_some(t, slots[i].mark - MARK_TO_RETURN, &word, sizeof(word)) ==
			       sizeof(word) && in_ranges(word, ranges, n);
	return false;
}

bool inside_ranges(struct target *t, const struct target_thread *thread, uint64_t state,
		   const struct code_range *ranges, size_t n)
{
	uint64_t words[CHUNK / 8], sp = thread->sp & ~7ull;

	if (in_ranges(thread->pc, ranges, n) || (state && marked(t, thread->tp, state, ranges, n)))
		return true;
	size_t look = stack_look(thread, sp);
	for (size_t done = 0; done < look; done += CHUNK) {
		size_t got = target_read_some(t, sp + done, words, chunk_of(look, done));

		for (size_t i = 0; i < got / 8; i++)
			if (in_ranges(words[i], ranges, n))
				return true;
		if (got < sizeof(words))
			break;
	}
	return false;
}

/* In a signal frame rip is followed by eflags (bit 1 always set, 22 bits in use) and cs (0x33). */
bool inside_interrupted(struct target *t, const struct target_thread *thread, const struct code_range *ranges,
			size_t n)
{
	uint64_t words[CHUNK / 8], sp = thread->sp & ~7ull;
	size_t look = stack_look(thread, sp);

	for (size_t done = 0; done < look; done += sizeof(words) - 16) {
		size_t got = target_read_some(t, sp + done, words, chunk_of(look, done));

		for (size_t i = 0; i + 2 < got / 8; i++)
			for (size_t k = 0; k < n; k++)
				if (words[i] > ranges[k].start && words[i] < ranges[k].end &&
				    words[i + 1] & 2 && words[i + 1] < 1u << 22 &&
				    (words[i + 2] & 0xffff) == 0x33)
					return true;
		if (got < sizeof(words))
			break;
	}
	return false;
}
