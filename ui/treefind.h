/*
 * Searching the call tree: which cells match, in the order of the tree, and how much of the value
 * they hold together (a match below a match isn't counted twice). For Tree and Flame. The walk is
 * bounded, so that a key is answered at once whatever the tree; `cut` says that it ended early.
 */
#ifndef HEAPTOP_UI_TREEFIND_H
#define HEAPTOP_UI_TREEFIND_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/screen.h"

struct tree_matches {
	const struct report_cell **cells;
	size_t n, cap;
	size_t cursor;		/* matches that come before the cursor's cell */
	bool on_cursor;		/* the cursor's cell is match [cursor] */
	double value;		/* held by all of them */
	bool cut;
};

void tree_matches_deinit(struct tree_matches *m);
/* All matches of ui->find in the tree below `root`; cursor: key of the cell under the cursor. */
void tree_matches_read(struct tree_matches *m, const struct ui *ui, struct report_tree *tree,
		       const struct report_cell *root, uint64_t cursor);
/* The match to go to (see view_ops.find), NULL if there is none; also writes ui->find.summary. */
const struct report_cell *tree_matches_pick(const struct tree_matches *m, struct ui *ui,
					    int direction, double whole);
/* Function name, place and numbers of a cell as a selection. */
void cell_selection(struct report_tree *tree, const struct report_cell *cell, struct selection *ret);

#endif
