/*
 * heaptop's half of the rule table that the agent walks by (wire.h). It lies in shared memory, and each
 * rule is one store, so the target need not be stopped. Nothing is read back from there.
 */
#include "probe/placed.h"

static void store(struct agent *a, uint32_t at, uint64_t pc, uint32_t rule)
{
	uint64_t word = rule ? wire_rule_key(wire_rule_hash(pc)) | rule : 0;

	a->taught[at] = (struct taught){ rule ? pc : 0, rule };
	__atomic_store_n(&a->rules->words[at], word, __ATOMIC_RELAXED);
}

/* Where the rule for pc is or may go. */
static uint32_t place_for(struct agent *a, uint64_t pc, bool *ret_known)
{
	uint64_t hash = wire_rule_hash(pc);
	uint32_t line = wire_rule_line(hash), way = wire_rule_way(hash), free_at = ~0u;

	for (uint32_t i = 0; i < WIRE_RULE_WAYS; i++) {
		uint32_t at = line + (way + i) % WIRE_RULE_WAYS;

		*ret_known = a->taught[at].pc == pc;
		if (*ret_known)
			return at;
		if (!a->taught[at].pc && free_at == ~0u)
			free_at = at;
	}
	return free_at != ~0u ? free_at : line + a->next_victim++ % WIRE_RULE_WAYS;
}

size_t agent_teach(struct probe *p, const uint64_t *pcs, size_t n, probe_rule_fn rule, void *ctx)
{
	struct agent *a = agent_of(p);
	size_t ret = 0;

	for (size_t i = 0; a->rules && i < n; i++) {
		bool known;

		if (!pcs[i] || pcs[i] >> WIRE_PC_BITS)
			continue;
		uint32_t at = place_for(a, pcs[i], &known);
		if (known)
			continue;
		uint32_t r = rule(ctx, pcs[i]);
		if (!r)
			continue;
		store(a, at, pcs[i], r);
		ret++;
	}
	return ret;
}

/* A walk of another generation isn't continued: the next event of each thread tells all its frames. */
void agent_resync(struct probe *p)
{
	struct agent *a = agent_of(p);

	if (a->rules)
		__atomic_fetch_add(&a->rules->generation, 1, __ATOMIC_RELEASE);
}

/*
 * The generation goes up after the words have changed: a walk that still saw an old one is kept
 * by the agent under the old generation, and not used again.
 */
void agent_reteach(struct probe *p, probe_rule_fn rule, void *ctx)
{
	struct agent *a = agent_of(p);
	bool changed = false;

	for (uint32_t at = 0; a->rules && at < WIRE_RULE_WORDS; at++) {
		uint64_t pc = a->taught[at].pc;

		if (!pc)
			continue;
		uint32_t r = rule(ctx, pc);
		if (r == a->taught[at].rule)
			continue;
		store(a, at, pc, r);
		changed = true;
	}
	if (changed)
		agent_resync(p);
}
