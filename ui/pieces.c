/* See pieces.h. */
#include "ui/pieces.h"

#include <stdio.h>
#include <string.h>

struct piece *pieces_add(struct pieces *p, uint8_t rank, style_t label_style, style_t value_style)
{
	struct piece *piece = &p->list[p->n < PIECES_MAX ? p->n++ : PIECES_MAX - 1];

	memset(piece, 0, sizeof(*piece));
	piece->rank = rank;
	piece->label_style = label_style;
	piece->value_style = value_style;
	return piece;
}

/* Copy without cutting a UTF-8 sequence in two. */
static void copy(char *to, size_t size, const char *from)
{
	size_t n = strlen(from);

	if (n >= size) {
		n = size - 1;
		while (n && ((unsigned char)from[n] & 0xc0) == 0x80)
			n--;
	}
	memcpy(to, from, n);
	to[n] = '\0';
}

void pieces_set(struct piece *piece, const char *label, const char *short_label, const char *value,
		const char *short_value)
{
	copy(piece->label[0], sizeof(piece->label[0]), label);
	copy(piece->label[1], sizeof(piece->label[1]), short_label ? short_label : label);
	copy(piece->value[0], sizeof(piece->value[0]), value);
	copy(piece->value[1], sizeof(piece->value[1]), short_value ? short_value : value);
}

static int label_width(const struct piece *piece, const struct canvas *c, int form)
{
	int w = canvas_width(c, piece->label[form]);

	return w && piece->value[form][0] && !piece->tight ? w + 1 : w;
}

static int piece_width(const struct piece *piece, const struct canvas *c, int form, int least)
{
	int w = canvas_width(c, piece->value[form]);

	if (piece->stretch && w > least)
		w = least;
	return label_width(piece, c, form) + w;
}

#define STRETCH_MIN 8

static int total(const struct pieces *p, const struct canvas *c, int form, int gap, int stretch,
		 const bool *gone)
{
	int sum = 0, n = 0;

	for (size_t i = 0; i < p->n; i++) {
		if (gone[i])
			continue;
		sum += piece_width(&p->list[i], c, form, stretch);
		n++;
	}
	return n ? sum + (n - 1) * gap : 0;
}

void pieces_draw(struct pieces *p, struct canvas *c, int y, int x, int cols, int max_gap)
{
	bool gone[PIECES_MAX] = { false };
	/* generous first: long forms with room for 24 columns of what stretches */
	static const struct { int form, gap, stretch; } ways[] = {
		{ 0, 3, 24 }, { 0, 2, 16 }, { 1, 2, 12 }, { 1, 1, STRETCH_MIN },
	};
	size_t way = max_gap < 3 ? 1 : 0;

	while (way < 3 && total(p, c, ways[way].form, ways[way].gap, ways[way].stretch, gone) > cols)
		way++;
	int form = ways[way].form, gap = ways[way].gap < max_gap ? ways[way].gap : max_gap;
	for (;;) {
		if (total(p, c, form, gap, STRETCH_MIN, gone) <= cols)
			break;
		size_t worst = p->n;
		for (size_t i = 0; i < p->n; i++)
			if (!gone[i] && p->list[i].rank &&
			    (worst == p->n || p->list[i].rank >= p->list[worst].rank))
				worst = i;
		if (worst == p->n)
			break;
		gone[worst] = true;
	}
	/* what is left over goes to the pieces that stretch */
	int spare = cols - total(p, c, form, gap, 0, gone);

	canvas_clip(c, y, x, 1, cols);
	int at = x;
	bool first = true;
	for (size_t i = 0; i < p->n; i++) {
		struct piece *piece = &p->list[i];
		piece->x0 = piece->x1 = 0;
		if (gone[i])
			continue;
		if (!first)
			at += gap;
		first = false;
		piece->x0 = at;
		int label_end = canvas_put(c, y, at, piece->label_style, piece->label[form]);
		at += label_width(piece, c, form);
		if (at > label_end)
			canvas_fill(c, y, label_end, at - label_end, piece->label_style & ~STYLE_UNDERLINED, ' ');
		int w = canvas_width(c, piece->value[form]);
		if (piece->stretch) {
			w = w < spare ? w : spare > 0 ? spare : 0;
			spare -= w;
			canvas_put_cut(c, y, at, w, piece->value_style, piece->value[form]);
		} else {
			canvas_put(c, y, at, piece->value_style, piece->value[form]);
		}
		at += w;
		piece->x1 = at;
	}
	canvas_clip_all(c);
}
