/* See graph.h. */
#include "ui/graph.h"

#include <string.h>

#include "base/mem.h"

static const char *const names[] = { [GRAPH_BRAILLE] = "braille", [GRAPH_BLOCK] = "block", [GRAPH_ASCII] = "ascii" };

enum graph_kind graph_kind_for(const struct canvas *c)
{
	return !c->unicode ? GRAPH_ASCII : (enum graph_kind)c->graph;
}

int graph_kind_parse(const char *name)
{
	for (int i = 0; i < (int)ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], name))
			return i;
	return -1;
}

const char *graph_kind_name(enum graph_kind kind)
{
	return names[kind];
}

int graph_per_cell(enum graph_kind kind)
{
	return kind == GRAPH_BRAILLE ? 2 : 1;
}

/* Height of a value in levels, of `levels` in all. */
static int height(uint64_t value, uint64_t max, int levels)
{
	if (!value || !max)
		return 0;
	if (value >= max)
		return levels;
	/* double: value * levels may not fit */
	int h = (int)((double)value / (double)max * levels + 0.5);
	return h < 1 ? 1 : h > levels ? levels : h;
}

/* Dots of one braille column filled from below to level 0-4: left dots 1 2 3 7, right 4 5 6 8. */
static uint32_t braille(int left, int right)
{
	static const uint8_t l[5] = { 0, 0x40, 0x44, 0x46, 0x47 };
	static const uint8_t r[5] = { 0, 0x80, 0xa0, 0xb0, 0xb8 };

	return 0x2800 + (l[left] | r[right]);
}

static int part(int h, int row_base, int levels)
{
	int v = h - row_base;

	return v < 0 ? 0 : v > levels ? levels : v;
}

void graph_draw(struct canvas *c, int y, int x, int rows, int cols, enum graph_kind kind,
		style_t style, const uint64_t *values, size_t n, uint64_t max)
{
	static const char ramp[] = " .:-=+*#%@";
	int per_cell = graph_per_cell(kind);
	int levels = kind == GRAPH_BRAILLE ? 4 : kind == GRAPH_BLOCK ? 8 : 9;

	if (rows <= 0 || cols <= 0)
		return;
	size_t slots = (size_t)cols * per_cell;
	if (n > slots) {
		values += n - slots;
		n = slots;
	}
	for (int cx = 0; cx < cols; cx++) {
		int h[2] = { 0, 0 };
		for (int k = 0; k < per_cell; k++) {
			size_t slot = (size_t)cx * per_cell + k;
			if (slot >= slots - n)
				h[k] = height(values[slot - (slots - n)], max, levels * rows);
		}
		for (int row = 0; row < rows; row++) {
			int base = (rows - 1 - row) * levels;
			int a = part(h[0], base, levels), b = part(h[1], base, levels);
			uint32_t ch;
			if (kind == GRAPH_BRAILLE)
				ch = a || b ? braille(a, b) : ' ';
			else if (kind == GRAPH_BLOCK)
				ch = a ? 0x2580 + a : ' ';
			else
				ch = ramp[a];
			canvas_char(c, y + row, x + cx, style, ch);
		}
	}
}
