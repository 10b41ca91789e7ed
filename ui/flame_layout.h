/*
 * The geometry of the flame (icicle) screen: which frame lies where. Pure: the tree comes through
 * callbacks, so that the layout is tested without a report.
 *
 * Each frame has an exact (real) interval [a, b) of the width; a child's is cut out of its parent's
 * at *cumulative* values, and columns are those edges rounded: x = floor(edge + 0.5). Rounded
 * widths are never summed, so nothing drifts, and since rounding is monotone no frame ever
 * leaves its parent or overlaps its neighbour. Children narrower than one column are gathered: a
 * run of them is one FLAME_GAP over its cumulative interval (dropped if that rounds to nothing).
 *
 * Siblings keep the order in which they were first drawn (largest first), so that a live flame
 * stands still; one moves forward only when it is more than 20% larger than the one before it.
 */
#ifndef HEAPTOP_UI_FLAME_LAYOUT_H
#define HEAPTOP_UI_FLAME_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/keymap.h"

struct flame_source {
	void *ctx;
	/* Children of a node, largest first; *ret_n 0: none. The array stays valid during the layout. */
	const void *const *(*children)(void *ctx, const void *node, size_t *ret_n);
	double (*value)(void *ctx, const void *node);
	uint64_t (*key)(void *ctx, const void *node);
};

struct flame_frame {
	const void *node;	/* gap: the first of its run */
	uint64_t key;		/* node's key; gap: one of its own, from its parent's */
	int level;		/* 0: the zoom's first ancestor (the root) */
	int x0, x1;		/* columns [x0, x1), x1 > x0 */
	size_t parent;		/* index of the frame above, SIZE_MAX for the root */
	uint32_t count;		/* 1; gap: how many lie in it */
	bool gap;
	bool ancestor;		/* above the zoomed frame: full width, dimmed */
	double value;		/* gap: of all in it */
};

struct flame_layout {
	struct flame_frame *frames;	/* by level, then from left to right */
	size_t n, cap;
	size_t *levels;			/* index of each level's first frame; nlevels + 1 of them */
	size_t nlevels, cap_levels;
	bool cut;			/* frames below the bounds were left out */
};

#define FLAME_LEVELS 1024		/* levels laid out at most */
#define FLAME_FRAMES 200000

void flame_layout_deinit(struct flame_layout *l);

/*
 * Lay out `width` columns. zoom: nodes from the root (first) to the zoomed one, nzoom >= 1. order:
 * siblings' places from one call to the next (key -> place); NULL: always by size.
 */
void flame_layout(struct flame_layout *l, const struct flame_source *source,
		  const void *const *zoom, size_t nzoom, int width, struct keymap *order);

/* Frame at a column of a level, SIZE_MAX if none. */
size_t flame_at(const struct flame_layout *l, int level, int x);
/* Frame with that key, SIZE_MAX if none. */
size_t flame_find(const struct flame_layout *l, uint64_t key);

#endif
