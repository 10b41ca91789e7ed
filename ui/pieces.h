/*
 * A line made of pieces that adapts to its width: long forms with wide gaps where there is room,
 * then short forms, then the least important pieces go. Since each piece has a fixed width whatever its
 * number, the choice depends on the width alone and nothing jumps. Used by header and footer. Pure.
 */
#ifndef HEAPTOP_UI_PIECES_H
#define HEAPTOP_UI_PIECES_H

#include <stddef.h>
#include <stdint.h>

#include "ui/canvas.h"

struct piece {
	char label[2][24];	/* long, short; "" for none */
	char value[2][72];
	style_t label_style, value_style;
	uint8_t rank;		/* 0: never dropped; the highest goes first */
	bool stretch;		/* gives way first: its value is cut, down to 8 columns */
	bool tight;		/* no blank between label and value */
	int id;			/* the caller's */
	/* out: columns it takes, x1 <= x0 when dropped */
	int x0, x1;
};

#define PIECES_MAX 20
struct pieces {
	struct piece list[PIECES_MAX];
	size_t n;
};

/* A new piece at the end, zeroed (the last one again when full). */
struct piece *pieces_add(struct pieces *p, uint8_t rank, style_t label_style, style_t value_style);
void pieces_set(struct piece *piece, const char *label, const char *short_label, const char *value,
		const char *short_value);
void pieces_draw(struct pieces *p, struct canvas *c, int y, int x, int cols, int max_gap);

#endif
