/*
 * heaptop's half of the rule table that the agent walks by (wire.h). It lies in shared memory, and each
 * rule is one store, so the target need not be stopped.
 *
 * The agent writes there as well: a word that says PENDING, where it found a way free, when it has sent
 * a stack for want of a rule. Nothing is believed of that. An answer takes the place `taught` has for
 * it, and all else that carries its key in that line goes; and since a question can get lost (its
 * event was dropped), words that aren't as `taught` has them are set right again from time to time,
 * and the agent asks anew.
 */
#include "base/mem.h"
#include "probe/placed.h"

#define FORGET_STEPS 16u	/* calls of agent_forget_pending() that see the whole table */

static const uint32_t rule_copy = WIRE_RULE_COPY;	/* wire_rule(): nothing in its other bits */

static uint64_t word_for(uint64_t pc, uint32_t rule)
{
	return rule ? wire_rule_key(wire_rule_hash(pc)) | rule : 0;
}

static void set_word(struct agent *a, uint32_t at, uint64_t word)
{
	__atomic_store_n(&a->rules->words[at], word, __ATOMIC_RELAXED);
}

static uint64_t get_word(const struct agent *a, uint32_t at)
{
	return __atomic_load_n(&a->rules->words[at], __ATOMIC_RELAXED);
}

static void store(struct agent *a, uint32_t at, uint64_t pc, uint32_t rule)
{
	a->taught[at] = (struct taught){ rule ? pc : 0, rule };
	set_word(a, at, word_for(pc, rule));
}

/* Make a word what it was set to. One that was free holds a question, or whatever. */
static void set_right(struct agent *a, uint32_t at)
{
	uint64_t word = word_for(a->taught[at].pc, a->taught[at].rule);

	if (get_word(a, at) != word)
		set_word(a, at, word);
}

/*
 * The question about pc has been answered, at `at`, and isn't to be found elsewhere. The agent looks for
 * a free way and then writes there: what was stored in between is written over.
 */
static void clear_questions(struct agent *a, uint64_t pc, uint32_t at)
{
	uint64_t hash = wire_rule_hash(pc), key = wire_rule_key(hash);
	uint32_t line = wire_rule_line(hash);

	for (uint32_t i = line; i < line + WIRE_RULE_WAYS; i++)
		if (i == at || (get_word(a, i) ^ key) >> WIRE_RULE_BITS == 0)
			set_right(a, i);
}

/*
 * Where the rule for pc is or may go. In a full line an address without a rule gives way first: it
 * only saves the agent a question.
 */
static uint32_t place_for(struct agent *a, uint64_t pc, bool *ret_known)
{
	uint64_t hash = wire_rule_hash(pc);
	uint32_t line = wire_rule_line(hash), way = wire_rule_way(hash), free_at = ~0u, copy_at = ~0u;

	for (uint32_t i = 0; i < WIRE_RULE_WAYS; i++) {
		uint32_t at = line + (way + i) % WIRE_RULE_WAYS;

		*ret_known = a->taught[at].pc == pc;
		if (*ret_known)
			return at;
		if (!a->taught[at].pc && free_at == ~0u)
			free_at = at;
		if (a->taught[at].rule == rule_copy && copy_at == ~0u)
			copy_at = at;
	}
	if (free_at != ~0u)
		return free_at;
	return copy_at != ~0u ? copy_at : line + a->next_victim++ % WIRE_RULE_WAYS;
}

/*
 * An address that had no rule may have got one since: a guess that has proved right. No complete
 * walk went through it before, so the generation stays.
 */
size_t agent_teach(struct probe *p, const uint64_t *pcs, size_t n, probe_rule_fn rule, void *ctx)
{
	struct agent *a = agent_of(p);
	size_t ret = 0;

	if (a->rules && !a->taught)
		a->taught = xcalloc(WIRE_RULE_WORDS, sizeof(*a->taught));
	for (size_t i = 0; a->rules && i < n; i++) {
		bool known;

		if (!pcs[i] || pcs[i] >> WIRE_PC_BITS)
			continue;
		uint32_t at = place_for(a, pcs[i], &known);
		if (!known || a->taught[at].rule == rule_copy) {
			uint32_t r = rule(ctx, pcs[i]);
			if (!r)
				r = rule_copy;
			if (!known || r != rule_copy) {
				store(a, at, pcs[i], r);
				ret++;
			}
		}
		clear_questions(a, pcs[i], at);
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
 * by the agent under the old generation, and not used again. What has lost its rule is forgotten, as
 * nobody may ever ask for it again.
 */
void agent_reteach(struct probe *p, probe_rule_fn rule, void *ctx)
{
	struct agent *a = agent_of(p);
	bool changed = false;

	for (uint32_t at = 0; a->taught && at < WIRE_RULE_WORDS; at++) {
		const struct taught old = a->taught[at];
		uint32_t r = old.pc ? rule(ctx, old.pc) : 0;

		if (old.rule == rule_copy && !r)
			r = rule_copy;
		if (r == old.rule) {
			set_right(a, at);
			continue;
		}
		store(a, at, old.pc, r);
		changed |= old.rule != rule_copy;
	}
	if (changed)
		agent_resync(p);
}

void agent_forget_pending(struct agent *a)
{
	uint32_t at = a->next_forget++ % FORGET_STEPS * (WIRE_RULE_WORDS / FORGET_STEPS);

	for (uint32_t i = 0; a->taught && i < WIRE_RULE_WORDS / FORGET_STEPS; i++)
		set_right(a, at + i);
}
