/* Paths of functions; see paths.h. */
#include "export/paths.h"

#include <stdlib.h>

#include "base/mem.h"

/* The children of the path's cell before, of which those up to `at` are done. */
struct level {
	const struct report_cell *const *children;
	size_t n, at;
};

void paths_walk(struct report *report, enum report_value value, paths_visit visit, void *ctx)
{
	struct report_tree *tree = report_tree(report, false);
	struct level *levels = NULL;
	const struct report_cell **path = NULL;
	size_t depth = 0, cap = 0, path_cap = 0;

	if (!tree)
		return;
	VEC_GROW(levels, depth, cap);
	levels[0].at = 0;
	levels[0].children = report_tree_children(tree, report_tree_root(tree), value, &levels[0].n);
	for (depth = 1; depth;) {
		struct level *level = &levels[depth - 1];
		if (level->at == level->n) {
			depth--;
			continue;
		}
		const struct report_cell *cell = level->children[level->at++];
		VEC_GROW(path, depth - 1, path_cap);
		path[depth - 1] = cell;
		if (!visit(ctx, path, depth) || !cell->has_children)
			continue;
		VEC_GROW(levels, depth, cap);
		struct level *below = &levels[depth++];
		below->at = 0;
		below->children = report_tree_children(tree, cell, value, &below->n);
	}
	free(path);
	free(levels);
}
