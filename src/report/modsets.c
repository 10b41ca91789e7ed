/* Sets of modules by node; see modsets.h. */
#include "report/modsets.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "heap/tree.h"
#include "report/funcs.h"

void modsets_deinit(struct modsets *sets)
{
	free(sets->of_node);
	free(sets->sets);
	free(sets->slots);
	*sets = (struct modsets){ 0 };
}

static size_t slot_of(const struct modsets *sets, uint32_t up, uint32_t module)
{
	size_t mask = sets->nslots - 1, i = funcs_mix(up, module) & mask;

	for (; sets->slots[i]; i = (i + 1) & mask) {
		const struct modset *set = &sets->sets[sets->slots[i]];
		if (set->up == up && set->module == module)
			break;
	}
	return i;
}

static void slots_grow(struct modsets *sets)
{
	free(sets->slots);
	sets->nslots *= 2;
	sets->slots = xcalloc(sets->nslots, sizeof(*sets->slots));
	for (uint32_t k = 1; k < sets->n; k++)
		sets->slots[slot_of(sets, sets->sets[k].up, sets->sets[k].module)] = k;
}

static uint32_t with(struct modsets *sets, uint32_t set, uint32_t module)
{
	for (uint32_t s = set; s; s = sets->sets[s].up)
		if (sets->sets[s].module == module)
			return set;
	if (sets->sets[set].n == MODSET_MAX)
		return set;
	size_t i = slot_of(sets, set, module);
	if (sets->slots[i])
		return sets->slots[i];
	VEC_GROW(sets->sets, sets->n, sets->cap);
	uint32_t k = (uint32_t)sets->n++;
	sets->sets[k] = (struct modset){ set, module, sets->sets[set].n + 1 };
	sets->slots[i] = k;
	if (sets->n > sets->nslots / 2)
		slots_grow(sets);
	return k;
}

void modsets_take_nodes(struct modsets *sets, const struct tree *tree, uint32_t nnodes)
{
	if (sets->tree != tree) {
		modsets_deinit(sets);
		sets->tree = tree;
		sets->nslots = 256;
		sets->slots = xcalloc(sets->nslots, sizeof(*sets->slots));
		VEC_GROW(sets->sets, sets->n, sets->cap);
		sets->sets[sets->n++] = (struct modset){ 0 };
	}
	if (nnodes > sets->nodes_cap) {
		sets->nodes_cap = nnodes + nnodes / 4;
		sets->of_node = xreallocarray(sets->of_node, sets->nodes_cap, sizeof(*sets->of_node));
	}
	/* parents have smaller ids */
	for (; sets->nnodes < nnodes; sets->nnodes++) {
		struct tree_node node = tree_get(tree, (uint32_t)sets->nnodes);
		uint32_t set = sets->nnodes ? sets->of_node[node.parent] : 0;
		bool pseudo = node.addr <= FRAME_PSEUDO_MAX;
		sets->of_node[sets->nnodes] = sets->nnodes && !pseudo ? with(sets, set, frame_module(node.addr)) : set;
	}
}
