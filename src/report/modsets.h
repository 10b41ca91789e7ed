/*
 * Which modules a stack passes through: for each node of the trace tree the set of the modules of its
 * frames, from the root to it. Paths share few sets, so a set is made once and has a number; all of it is
 * kept as long as the tree is the same, and a new node costs one look-up. Modules are ids (frame_module),
 * known without any name. One thread: the report's.
 */
#ifndef HEAPTOP_REPORT_MODSETS_H
#define HEAPTOP_REPORT_MODSETS_H

#include <stddef.h>
#include <stdint.h>

struct tree;

struct modset {
	uint32_t up;		/* the set without `module`; set 0 is empty */
	uint32_t module;
	uint32_t n;		/* modules in it */
};
#define MODSET_MAX 512u		/* further ones are left out: nothing real has so many on a stack */

struct modsets {
	const struct tree *tree;	/* borrowed: only compared */
	uint32_t *of_node;	/* by node id below nnodes: its set */
	size_t nnodes, nodes_cap;
	struct modset *sets;
	size_t n, cap;
	uint32_t *slots;	/* hash of (up, module): set; 0: free */
	size_t nslots;
};

void modsets_deinit(struct modsets *sets);	/* zeroed is a valid empty one */
/* Nodes below `nnodes` of this tree have their sets from now on. */
void modsets_take_nodes(struct modsets *sets, const struct tree *tree, uint32_t nnodes);

#endif
