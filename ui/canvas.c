/* The cell grid; see canvas.h. */
#include "ui/canvas.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/mem.h"
#include "base/text.h"
#include "ui/style.h"

/* Our own glyphs: one column in every terminal that has them, and what stands in for them. */
static const struct {
	uint16_t ch;
	char ascii;
} glyphs[] = {
	{ 0x00b1, '~' }, { 0x00b7, '.' }, { 0x00d7, 'x' }, { 0x0394, 'd' },
	{ 0x2022, '*' }, { 0x2026, '~' }, { 0x203a, '>' }, { 0x2190, '<' }, { 0x2191, '^' },
	{ 0x2192, '>' }, { 0x2193, 'v' }, { 0x21bb, '@' }, { 0x2248, '~' }, { 0x2265, '>' },
	{ 0x23f8, '"' }, { 0x25a0, '#' }, { 0x25b2, '^' }, { 0x25b4, '^' }, { 0x25b6, '>' },
	{ 0x25b8, '+' }, { 0x25bc, 'v' }, { 0x25be, '-' }, { 0x275a, '"' },
	{ 0x2500, '-' }, { 0x2502, '|' }, { 0x250a, ':' }, { 0x250c, '+' }, { 0x2510, '+' },
	{ 0x2514, '`' }, { 0x2518, '+' }, { 0x251c, '|' }, { 0x2524, '+' }, { 0x252c, '+' },
	{ 0x2588, '#' }, { 0x258c, '+' }, { 0x2534, '+' }, { 0x253c, '+' }, { 0x2503, '|' }, { 0x258f, '|' },
};

static char glyph_ascii(uint32_t ch)
{
	for (size_t i = 0; i < ARRAY_SIZE(glyphs); i++)
		if (glyphs[i].ch == ch)
			return glyphs[i].ascii;
	return 0;
}

/* What is put for a code point, and its width: 1 or 2. */
static uint32_t normalise(const struct canvas *c, uint32_t ch, int *ret_width)
{
	*ret_width = 1;
	if (ch >= 0x20 && ch < 0x7f)
		return ch;
	if (!c->unicode) {
		char a = ch > 0x7f ? glyph_ascii(ch) : 0;
		return a ? (uint32_t)(unsigned char)a : '?';
	}
	if ((ch >= 0x2800 && ch <= 0x28ff) || (ch >= 0x2500 && ch <= 0x259f) || glyph_ascii(ch))
		return ch;
	int w = ch < 0x20 || (ch >= 0x7f && ch < 0xa0) || ch > 0x10ffff ? -1 : wcwidth((wchar_t)ch);
	if (w == 1 || w == 2) {
		*ret_width = w;
		return ch;
	}
	return 0xb7;
}

/* Next character of a string: its width and what to put; advances *s. */
static uint32_t next_char(const struct canvas *c, const char **s, int *ret_width)
{
	uint32_t ch;
	/* at most 4 bytes are looked at, and none beyond the NUL */
	size_t n = text_utf8_decode(*s, strnlen(*s, 4), &ch);

	if (!n) {
		ch = 0xfffd;
		n = 1;
		*s += n;
		*ret_width = 1;
		return c->unicode ? 0xb7 : '?';
	}
	*s += n;
	return normalise(c, ch, ret_width);
}

static int clamp_size(int n)
{
	return n < 1 ? 1 : n > CANVAS_MAX ? CANVAS_MAX : n;
}

struct canvas *canvas_create(int rows, int cols, bool unicode)
{
	struct canvas *c = xcalloc(1, sizeof(*c));

	c->unicode = unicode;
	canvas_resize(c, rows, cols);
	return c;
}

void canvas_destroy(struct canvas *c)
{
	if (!c)
		return;
	free(c->cells);
	free(c);
}

void canvas_resize(struct canvas *c, int rows, int cols)
{
	c->rows = clamp_size(rows);
	c->cols = clamp_size(cols);
	free(c->cells);
	c->cells = xcalloc((size_t)c->rows * c->cols, sizeof(*c->cells));
	canvas_clear(c);
}

void canvas_clear(struct canvas *c)
{
	size_t n = (size_t)c->rows * c->cols;

	for (size_t i = 0; i < n; i++)
		c->cells[i] = (struct cell){ ' ', STYLE_TEXT };
	canvas_clip_all(c);
}

static int clamp(int v, int lo, int hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

void canvas_clip(struct canvas *c, int y, int x, int rows, int cols)
{
	/* in 64 bits: any coordinates are allowed */
	int64_t y1 = (int64_t)y + (rows < 0 ? 0 : rows), x1 = (int64_t)x + (cols < 0 ? 0 : cols);

	c->clip_y0 = clamp(y, 0, c->rows);
	c->clip_x0 = clamp(x, 0, c->cols);
	c->clip_y1 = y1 > c->rows ? c->rows : clamp((int)y1, c->clip_y0, c->rows);
	c->clip_x1 = x1 > c->cols ? c->cols : clamp((int)x1, c->clip_x0, c->cols);
}

void canvas_clip_all(struct canvas *c)
{
	c->clip_y0 = c->clip_x0 = 0;
	c->clip_y1 = c->rows;
	c->clip_x1 = c->cols;
}

static struct cell *visible(struct canvas *c, int y, int x)
{
	if (y < c->clip_y0 || y >= c->clip_y1 || x < c->clip_x0 || x >= c->clip_x1)
		return NULL;
	return &c->cells[(size_t)y * c->cols + x];
}

/* A cell is about to be overwritten: the other half of a wide character there becomes a blank. */
static void unhalve(struct canvas *c, int y, int x)
{
	struct cell *row = &c->cells[(size_t)y * c->cols];

	if (!row[x].ch && x > 0)
		row[x - 1].ch = ' ';
	if (x + 1 < c->cols && !row[x + 1].ch)
		row[x + 1].ch = ' ';
}

static void put_cell(struct canvas *c, int y, int x, style_t style, uint32_t ch, int width)
{
	struct cell *cell = visible(c, y, x);

	if (width == 2) {
		struct cell *right = visible(c, y, x < INT32_MAX ? x + 1 : x);
		if (!cell || !right) {
			/* only half of it would show */
			if (cell)
				put_cell(c, y, x, style, ' ', 1);
			if (right)
				put_cell(c, y, x + 1, style, ' ', 1);
			return;
		}
		unhalve(c, y, x);
		unhalve(c, y, x + 1);
		*cell = (struct cell){ ch, style };
		*right = (struct cell){ 0, style };
		return;
	}
	if (!cell)
		return;
	unhalve(c, y, x);
	*cell = (struct cell){ ch, style };
}

int canvas_char(struct canvas *c, int y, int x, style_t style, uint32_t ch)
{
	int width;

	ch = normalise(c, ch, &width);
	put_cell(c, y, x, style, ch, width);
	return width;
}

int canvas_put_max(struct canvas *c, int y, int x, int max, style_t style, const char *text)
{
	int64_t end = (int64_t)x + (max < 0 ? 0 : max);

	while (*text && x < end) {
		int width;
		uint32_t ch = next_char(c, &text, &width);
		if (x + (int64_t)width > end)
			break;
		if (x >= c->clip_x1)	/* the rest can't be seen, but its width counts */
			;
		else
			put_cell(c, y, x, style, ch, width);
		x += width;
	}
	return x;
}

int canvas_put(struct canvas *c, int y, int x, style_t style, const char *text)
{
	/* names have tens of thousands of characters: far more than any screen, far less than this */
	return canvas_put_max(c, y, x, 1 << 24, style, text);
}

void canvas_fill(struct canvas *c, int y, int x, int n, style_t style, uint32_t ch)
{
	int width;
	int64_t end = (int64_t)x + (n < 0 ? 0 : n);

	ch = normalise(c, ch, &width);
	if (width != 1)
		ch = ' ';
	if (x < c->clip_x0)
		x = c->clip_x0;
	for (; x < end && x < c->clip_x1; x++)
		put_cell(c, y, x, style, ch, 1);
}

#define PLACE_MIN 7	/* columns worth showing of one that is cut */
#define MODULE_MIN 6	/* the same: most names begin with "lib" */

int canvas_put_place(struct canvas *c, int y, int x, int end, style_t style, const char *place)
{
	int room = end - x - 2, w = canvas_width(c, place);

	if (!*place || room < (w < PLACE_MIN ? w : PLACE_MIN))
		return x;
	x = canvas_put(c, y, x, style, "  ");
	if (w > room) {
		const char *s = place;

		while (*s && w > room - 1) {
			int width;
			next_char(c, &s, &width);
			w -= width;
		}
		x += canvas_char(c, y, x, style, 0x2026);
		place = s;
	}
	return canvas_put(c, y, x, style, place);
}

void canvas_put_module(struct canvas *c, int y, int x, int end, style_t style, const char *module)
{
	int room = end - x - 2, w = canvas_width(c, module);

	if (room >= (w < MODULE_MIN ? w : MODULE_MIN))
		canvas_put_cut(c, y, x + 2, room, style, module);
}

void canvas_put_cut(struct canvas *c, int y, int x, int width, style_t style, const char *text)
{
	if (width <= 0)
		return;
	size_t whole = strlen(text);
	if (canvas_fit(c, text, width) >= whole) {
		int end = canvas_put_max(c, y, x, width, style, text);
		canvas_fill(c, y, end, x + width - end, style, ' ');
		return;
	}
	int end = canvas_put_max(c, y, x, width - 1, style, text);
	/* shortened names have ellipses of their own: never two in a row */
	const struct cell *last = end > x ? canvas_at(c, y, end - 1) : NULL;
	canvas_char(c, y, end, style, last && last->ch == 0x2026 ? ' ' : 0x2026);
	canvas_fill(c, y, end + 1, x + width - end - 1, style, ' ');
}

void canvas_put_right(struct canvas *c, int y, int x, int width, style_t style, const char *text)
{
	if (width <= 0)
		return;
	int w = canvas_width(c, text);
	while (w > width) {
		int gone;
		next_char(c, &text, &gone);
		w -= gone;
	}
	canvas_fill(c, y, x, width - w, style, ' ');
	canvas_put_max(c, y, x + width - w, w, style, text);
}

int canvas_printf(struct canvas *c, int y, int x, style_t style, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	char *text = xvasprintf(fmt, ap);
	va_end(ap);
	x = canvas_put(c, y, x, style, text);
	free(text);
	return x;
}

void canvas_restyle(struct canvas *c, int y, int x, int n, style_t clear, style_t set)
{
	int64_t end = (int64_t)x + (n < 0 ? 0 : n);

	if (x < c->clip_x0)
		x = c->clip_x0;
	for (; x < end; x++) {
		struct cell *cell = visible(c, y, x);
		if (!cell)
			break;
		cell->style = (cell->style & ~clear) | set;
	}
}

int canvas_width(const struct canvas *c, const char *text)
{
	int sum = 0;

	while (*text && sum < 1 << 24) {
		int width;
		next_char(c, &text, &width);
		sum += width;
	}
	return sum;
}

size_t canvas_fit(const struct canvas *c, const char *text, int cols)
{
	const char *s = text;
	int sum = 0;

	while (*s) {
		const char *before = s;
		int width;
		next_char(c, &s, &width);
		sum += width;
		if (sum > cols)
			return before - text;
	}
	return s - text;
}

const struct cell *canvas_at(const struct canvas *c, int y, int x)
{
	if (y < 0 || y >= c->rows || x < 0 || x >= c->cols)
		return NULL;
	return &c->cells[(size_t)y * c->cols + x];
}

static size_t utf8_encode(char *out, uint32_t ch)
{
	if (ch < 0x80) {
		out[0] = ch;
		return 1;
	}
	if (ch < 0x800) {
		out[0] = 0xc0 | ch >> 6;
		out[1] = 0x80 | (ch & 0x3f);
		return 2;
	}
	if (ch < 0x10000) {
		out[0] = 0xe0 | ch >> 12;
		out[1] = 0x80 | (ch >> 6 & 0x3f);
		out[2] = 0x80 | (ch & 0x3f);
		return 3;
	}
	out[0] = 0xf0 | ch >> 18;
	out[1] = 0x80 | (ch >> 12 & 0x3f);
	out[2] = 0x80 | (ch >> 6 & 0x3f);
	out[3] = 0x80 | (ch & 0x3f);
	return 4;
}

static size_t row_text(const struct canvas *c, int y, char *out)
{
	size_t n = 0, end = 0;

	for (int x = 0; x < c->cols; x++) {
		uint32_t ch = c->cells[(size_t)y * c->cols + x].ch;
		if (!ch)
			continue;
		n += utf8_encode(out + n, ch);
		if (ch != ' ')
			end = n;
	}
	return end;
}

char *canvas_dump(const struct canvas *c)
{
	char *text = xmalloc((size_t)c->rows * (c->cols * 4 + 1) + 1);
	size_t n = 0;

	for (int y = 0; y < c->rows; y++) {
		n += row_text(c, y, text + n);
		text[n++] = '\n';
	}
	text[n] = '\0';
	return text;
}

char *canvas_dump_styles(const struct canvas *c)
{
	char *text = xmalloc((size_t)c->rows * (c->cols + 1) + 1);
	size_t n = 0;

	for (int y = 0; y < c->rows; y++) {
		size_t end = n;
		for (int x = 0; x < c->cols; x++) {
			text[n++] = style_letter(c->cells[(size_t)y * c->cols + x].style);
			if (text[n - 1] != '.')
				end = n;
		}
		n = end;
		text[n++] = '\n';
	}
	text[n] = '\0';
	return text;
}

bool canvas_contains(const struct canvas *c, const char *text)
{
	CLEANUP_FREE char *row = xmalloc((size_t)c->cols * 4 + 1);

	for (int y = 0; y < c->rows; y++) {
		row[row_text(c, y, row)] = '\0';
		if (strstr(row, text))
			return true;
	}
	return false;
}
