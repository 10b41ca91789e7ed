/*
 * Graphs from numbers: the header's live graph and the small trend in a row. Braille has 2 values a
 * cell and 4 levels a row; ASCII has one value a cell and a ramp of 10 levels in the topmost row
 * a column reaches. Newest at the right. Pure.
 */
#ifndef HEAPTOP_UI_GRAPH_H
#define HEAPTOP_UI_GRAPH_H

#include <stddef.h>
#include <stdint.h>

#include "ui/canvas.h"

enum graph_kind { GRAPH_BRAILLE, GRAPH_BLOCK, GRAPH_ASCII };

/* The kind for a canvas: the one asked for (canvas->graph), as far as its characters go. */
enum graph_kind graph_kind_for(const struct canvas *c);
/* By name, as in settings; -1: there is none. */
int graph_kind_parse(const char *name);
const char *graph_kind_name(enum graph_kind kind);

/* Values a column of cells shows. */
int graph_per_cell(enum graph_kind kind);

/*
 * The last rows x cols cells' worth of `values` (n of them, oldest first); `max` is the top edge (0:
 * an empty graph). Values are never cut to zero height: anything above 0 shows at least the
 * lowest level.
 */
void graph_draw(struct canvas *c, int y, int x, int rows, int cols, enum graph_kind kind,
		style_t style, const uint64_t *values, size_t n, uint64_t max);

#endif
