/*
 * The walk, see walk.h. First what is left of the last walk is checked, from the outside: each
 * word that it loaded is compared with what it was, and none of these loads waits for another. Then
 * the stack is walked from the inside, frame by frame, until it arrives at a frame from which
 * on everything is known to be as before:
 *
 *	frame[0]  frame[1]  ...  frame[v]  ...		the last walk: up to v unchanged
 *					 <- [0] [1] ...	new frames, collected at the array's end
 *
 * That is exact: where a walk goes on from a frame is decided by its pc, sp and, if a frame further
 * out has its CFA or its caller's frame pointer by it, its bp; by the rules, whose
 * generation is the same; and by the words loaded. Code that uses the frame pointer as any other
 * register saves ever new values of it: `from` tells which of those matter to nobody.
 */
#include "agent/walk.h"

#include <stdbool.h>

#include "agent/inside.h"

#define FROM_NOBODY 0	/* wire_walk_frame.from */
#define FROM_INNER 1
#define FROM_UNSURE 2
#define BY_BP (1ull << 63)	/* in a new frame's pc: its rule is based on the frame pointer */

static inline uint32_t find_rule(const struct wire_rules *rules, uint64_t pc)
{
	uint64_t hash = wire_rule_hash(pc), key = wire_rule_key(hash);
	const uint64_t *line = rules->words + wire_rule_line(hash);
	uint32_t way = wire_rule_way(hash);

	for (unsigned i = 0; i < WIRE_RULE_WAYS; i++) {
		uint64_t rule = LOAD(line[(way + i) % WIRE_RULE_WAYS]) ^ key;
		if (rule >> WIRE_RULE_BITS == 0)
			return (uint32_t)rule;
	}
	return WIRE_RULE_NONE;
}

uint32_t agent_rule(const struct wire_rules *rules, uint64_t pc)
{
	return find_rule(rules, pc);
}

static bool swap_word(uint64_t *word, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void agent_ask(struct wire_rules *rules, uint64_t pc)
{
	uint64_t hash = wire_rule_hash(pc), *line = rules->words + wire_rule_line(hash);
	uint32_t way = wire_rule_way(hash);

	if (find_rule(rules, pc) != WIRE_RULE_NONE)
		return;
	for (unsigned i = 0; i < WIRE_RULE_WAYS; i++)
		if (swap_word(&line[(way + i) % WIRE_RULE_WAYS], 0,
			      wire_rule_key(hash) | wire_rule(WIRE_RULE_PENDING, 0, 0)))
			return;
}

void agent_give_up(struct wire_rules *rules, uint64_t pc)
{
	uint64_t hash = wire_rule_hash(pc), *line = rules->words + wire_rule_line(hash);
	uint64_t key = wire_rule_key(hash);

	for (unsigned i = 0; i < WIRE_RULE_WAYS; i++)
		swap_word(&line[i], key | wire_rule(WIRE_RULE_PENDING, 0, 0), key | wire_rule(WIRE_RULE_COPY, 0, 0));
}

/* The words at lo .. lo + span + 7 can be read. */
struct bounds {
	uint64_t lo, span;
};

static inline bool load(struct bounds b, uint64_t addr, uint64_t *ret)
{
	if (addr - b.lo > b.span)
		return false;
	*ret = *(const uint64_t *)addr;
	return true;
}

/* How many frames of the last walk, counted from the outermost, were reached by words that are
 * still the same. */
static inline unsigned still_there(const struct wire_walk *w, struct bounds b, unsigned n)
{
	for (unsigned v = 0; v < n; v++) {
		const struct wire_walk_frame *f = &w->frame[v];
		uint64_t word, from = LOAD(f->from);

		if (!load(b, LOAD(f->sp) - 8, &word) || word != f->pc)
			return v;
		if (from > FROM_INNER && (!load(b, from, &word) || word != f->bp))
			return v;
	}
	return n;
}

/* Of the frame that *walk is at, to its caller. *ret_from: where the frame pointer was found. */
static inline bool step(struct bounds b, uint32_t rule, struct walk *walk, uint64_t *ret_from)
{
	uint64_t cfa, pc, bp = walk->bp, from = FROM_INNER;

	switch (wire_rule_kind(rule)) {
	case WIRE_RULE_SP:
		cfa = walk->sp + 8ull * wire_rule_offset(rule);
		break;
	case WIRE_RULE_BP:
		cfa = walk->bp + 8ull * wire_rule_offset(rule);
		break;
	case WIRE_RULE_DEREF:
		if (!load(b, walk->bp + 8 * (uint64_t)(int64_t)(int16_t)wire_rule_offset(rule), &cfa) ||
		    (wire_rule_bp(rule) && !load(b, walk->bp, &bp)))
			return false;
		from = FROM_UNSURE;
		break;
	default:
		return false;
	}
	if (cfa <= walk->sp || !load(b, cfa - 8, &pc))
		return false;
	if (from == FROM_INNER && wire_rule_bp(rule)) {
		from = cfa - 8ull * wire_rule_bp(rule);
		if (!load(b, from, &bp))
			return false;
	}
	walk->pc = pc;
	walk->sp = cfa;
	walk->bp = bp;
	*ret_from = from;
	return true;
}

/*
 * The m new frames from the array's end to behind the s old ones. Frame pointers matter where a
 * frame is based on them, and before that as far as they are handed on unchanged.
 */
static inline void keep(struct wire_walk *w, unsigned s, unsigned m, bool needed, uint64_t from)
{
	const struct wire_walk_frame *f = &w->frame[WIRE_MAX_FRAMES - m];
	struct wire_walk_frame *to = &w->frame[s];

	for (; m; m--, f++, to++) {
		uint64_t pc = f->pc;

		needed = pc & BY_BP || (from == FROM_INNER && needed);
		from = f->from;
		to->pc = pc & ~BY_BP;
		to->sp = f->sp;
		to->bp = f->bp;
		to->from = needed || from == FROM_UNSURE ? from : FROM_NOBODY;
	}
}

void agent_walk(struct wire_walk *w, const struct wire_rules *rules, uint64_t end, struct walk *walk)
{
	struct bounds b = { walk->sp, end - walk->sp - 8 };
	uint64_t generation = __atomic_load_n(&rules->generation, __ATOMIC_ACQUIRE), from = FROM_INNER;
	unsigned n = w->generation == generation ? LOAD(w->n) : 0, m = 0;

	walk->told = w->sent == w->seq;
	walk->seq = ++w->seq;
	walk->complete = 0;
	walk->keep = 0;
	walk->why = WIRE_RULE_COPY;
	walk->first = WIRE_MAX_FRAMES - 1;
	walk->n = 0;
	w->n = 0;
	BARRIER();
	if (end - walk->sp < 8) {
		walk->why = WALK_OUT;
		return;
	}
	if (n > WIRE_MAX_FRAMES)
		n = 0;
	unsigned v = still_there(w, b, n);
	/* The next one's own words have changed, but a walk may still arrive there. */
	int k = (int)(v < n ? v : n - 1);
	bool needed = false;

	for (;;) {
		while (k >= 0 && w->frame[k].sp < walk->sp)
			k--;
		if (k >= 0) {
			const struct wire_walk_frame *f = &w->frame[k];
			if (f->sp == walk->sp && f->pc == walk->pc &&
			    (f->from == FROM_NOBODY || f->bp == walk->bp)) {
				needed = f->from != FROM_NOBODY;
				break;
			}
		}
		uint32_t rule = walk->pc >> WIRE_PC_BITS ? WIRE_RULE_NONE : find_rule(rules, walk->pc);
		int at = (int)(WIRE_MAX_FRAMES - 1 - m);
		if (at <= k)
			k = -1;		/* no room for both: the last walk gives way */
		enum wire_rule_kind kind = wire_rule_kind(rule);
		if (at < 0 || (walk->pc && (!rule || kind >= WIRE_RULE_COPY))) {
			walk->n = (uint16_t)m;
			walk->why = at < 0 ? WIRE_RULE_COPY : kind;
			return;
		}
		struct wire_walk_frame *f = &w->frame[at];
		f->pc = walk->pc | (kind == WIRE_RULE_BP || kind == WIRE_RULE_DEREF ? BY_BP : 0);
		f->sp = walk->sp;
		f->bp = walk->bp;
		f->from = from;
		if (!walk->pc || kind == WIRE_RULE_END) {
			w->zero = !walk->pc;
			m++;
			k = -1;
			break;
		}
		if (!step(b, rule, walk, &from)) {
			walk->n = (uint16_t)m;
			walk->why = WALK_OUT;
			return;
		}
		m++;
	}
	keep(w, (unsigned)(k + 1), m, needed, from);
	n = (unsigned)(k + 1) + m;
	walk->first = (uint16_t)(n - 1);
	walk->n = (uint16_t)(n - w->zero);
	walk->keep = (uint16_t)(walk->told && k >= 0 ? (uint32_t)(k + 1) - w->zero : 0);
	walk->complete = 1;
	walk->why = WIRE_RULE_END;
	w->generation = generation;
	BARRIER();
	w->n = n;
}
