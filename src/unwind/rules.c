/*
 * The table behind rules.h: insertion, growth, revalidation after a flush.
 */
#include "unwind/rules.h"

#include <string.h>
#include <stdlib.h>

#include "base/mem.h"
#include "elf/modules.h"
#include "unwind/derive.h"

static const struct rule rule_none = { .kind = RULE_NONE };

static size_t slot_count(const struct rules *t)
{
	return (size_t)1 << (64 - t->shift);
}

static void alloc_slots(struct rules *t, unsigned log2)
{
	size_t n = (size_t)1 << log2;

	/* One slot more than used, so that they can start on a cache line. */
	t->memory = xcalloc(n + 1, sizeof(struct rule));
	t->slots = (struct rule *)(((uintptr_t)t->memory + 63) & ~(uintptr_t)63);
	t->shift = 64 - log2;
	t->count = 0;
}

void rules_init(struct rules *t, const struct modules *mods)
{
	*t = (struct rules){ .generation = 1, .mods = mods };
	alloc_slots(t, RULES_MIN_LOG2);
}

void rules_deinit(struct rules *t)
{
	free(t->memory);
	*t = (struct rules){ 0 };
}

static void forget_all(struct rules *t)
{
	memset(t->slots, 0, slot_count(t) * sizeof(*t->slots));
	t->count = 0;
	t->generation = 1;
}

void rules_flush(struct rules *t)
{
	if (++t->generation == 0)
		forget_all(t);
}

/* The slot that holds pc, or the empty one where it belongs. */
static struct rule *find_slot(struct rules *t, uint64_t pc)
{
	size_t mask = slot_count(t) - 1;
	size_t i = rules_hash(t, pc);

	while (t->slots[i].pc && t->slots[i].pc != pc)
		i = (i + 1) & mask;
	return &t->slots[i];
}

/* Half full: twice as many slots, without the rules no flush has confirmed. */
static void make_room(struct rules *t)
{
	if (t->count < slot_count(t) / 2)
		return;
	if (64 - t->shift >= RULES_MAX_LOG2) {
		forget_all(t);
		return;
	}

	struct rules old = *t;
	alloc_slots(t, 64 - old.shift + 1);
	for (size_t i = 0; i < slot_count(&old); i++) {
		const struct rule *r = &old.slots[i];
		if (!r->pc || r->generation != t->generation)
			continue;
		*find_slot(t, r->pc) = *r;
		t->count++;
	}
	free(old.memory);
}

const struct rule *rules_get(struct rules *t, uint64_t pc, bool *ret_derived)
{
	const struct module *mod = pc ? modules_find(t->mods, pc) : NULL;

	*ret_derived = false;
	/* Not cached: garbage on a stack would push the useful rules out. */
	if (!mod)
		return &rule_none;

	struct rule *r = find_slot(t, pc);
	uint64_t place = mod->file ? mod->bias : modules_range_start(t->mods, pc);
	if (r->pc && r->module == mod->id && r->place == place) {
		r->generation = t->generation;
		return r;
	}
	if (!r->pc) {
		make_room(t);
		r = find_slot(t, pc);
		t->count++;
	}
	*r = (struct rule){
		.pc = pc,
		.place = place,
		.module = mod->id,
		.generation = t->generation,
	};
	derive_rule(mod, pc, r);
	*ret_derived = true;
	return r;
}

void rules_held(struct rules *t, uint64_t pc)
{
	struct rule *r = find_slot(t, pc);

	if (r->pc && r->kind == RULE_FP)
		r->held = true;
}
