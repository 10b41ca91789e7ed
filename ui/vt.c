/*
 * From bytes to rows; see vt.h. The sequences follow ECMA-48 and xterm's ctlseqs: an escape
 * sequence is ESC, intermediates 0x20-0x2f, a final 0x30-0x7e; a control sequence is ESC [,
 * parameters 0x30-0x3f, intermediates, a final 0x40-0x7e; OSC, DCS, APC, PM and SOS strings
 * end with BEL or ESC \. Controls inside a control sequence act at once, CAN and SUB abort
 * everything. Bytes 0x80-0x9f are never controls, since they are parts of UTF-8.
 */
#include "ui/vt.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "ui/vt_lines.h"

#define REPLACEMENT 0xb7	/* · */
#define PARAMS_MAX 32
/* A string that never ends must not swallow the program's output for ever; sixel pictures are long. */
#define STRING_MAX (1u << 20)

enum state {
	GROUND,
	ESCAPE,			/* after ESC */
	ESCAPE_MORE,		/* after ESC and an intermediate */
	CSI,
	STRING,
};

/* SGR as it stands. */
struct pen {
	uint8_t fg, bg;		/* as in style_ansi: 0 default, 1-16 */
	bool bold, dim, underline, reverse;
};

struct vt {
	struct vt_lines lines;

	struct cell row[VT_COLS_MAX];	/* the row being written */
	size_t width;		/* cells of it in use */
	size_t col;		/* cursor; == cols: behind the last cell, the next character wraps */
	size_t cols;
	struct pen pen;
	style_t style;		/* the pen's */

	enum state state;
	char utf8[4];		/* an unfinished character */
	size_t n_utf8;
	uint32_t param[PARAMS_MAX];
	uint32_t sub;		/* bit i: parameter i was separated by ':' from the one before */
	size_t n_param;		/* the one being read is param[n_param - 1] */
	bool too_many;
	char private;		/* '?', '>', '=', '<' or 0 */
	char intermediate;	/* the last one, or 0 */
	size_t n_string;

	bool alternate;
	bool addressed;
	bool app_cursor;
};

struct vt *vt_create(size_t cols, size_t max_bytes)
{
	struct vt *vt = xcalloc(1, sizeof(*vt));

	vt_lines_init(&vt->lines, max_bytes);
	vt_set_cols(vt, cols);
	return vt;
}

void vt_destroy(struct vt *vt)
{
	if (!vt)
		return;
	vt_lines_deinit(&vt->lines);
	free(vt);
}

void vt_set_cols(struct vt *vt, size_t cols)
{
	/* 2: a wide character must fit */
	vt->cols = cols < 2 ? 2 : cols > VT_COLS_MAX ? VT_COLS_MAX : cols;
	if (vt->col > vt->cols)
		vt->col = vt->cols;
}

/* ---- the row being written ---- */

static bool is_blank(const struct cell *cell)
{
	return cell->ch == ' ' && cell->style == STYLE_TEXT;
}

static size_t trimmed(const struct vt *vt)
{
	size_t n = vt->width;

	while (n && is_blank(&vt->row[n - 1]))
		n--;
	return n;
}

static void end_row(struct vt *vt, bool wrapped)
{
	vt_lines_push(&vt->lines, vt->row, wrapped ? vt->width : trimmed(vt), wrapped);
	vt->width = 0;
	vt->col = 0;
}

/* Before the cursor jumps to another row: what is written so far stays readable. */
static void jump(struct vt *vt)
{
	if (trimmed(vt))
		end_row(vt, false);
	vt->width = 0;
	vt->col = 0;
}

/* A blank as erasing leaves it: with the pen's ground, as xterm does (bce). */
static struct cell erased(const struct vt *vt)
{
	struct cell cell = { .ch = ' ', .style = STYLE_TEXT };

	if (vt->pen.bg)
		cell.style = style_ansi(0, vt->pen.bg, false, false, false, false);
	return cell;
}

/* The row reaches at least up to column n; no half of a wide character is left at the edges of [from, to). */
static void open_gap(struct vt *vt, size_t from, size_t to)
{
	while (vt->width < from)
		vt->row[vt->width++] = (struct cell){ .ch = ' ', .style = STYLE_TEXT };
	if (from < vt->width && from > 0 && vt->row[from].ch == 0)
		vt->row[from - 1].ch = ' ';
	if (to < vt->width && vt->row[to].ch == 0)
		vt->row[to].ch = ' ';
}

static void put(struct vt *vt, uint32_t ch, size_t width)
{
	if (vt->col + width > vt->cols) {
		/* a row narrowed under the cursor keeps what it has */
		end_row(vt, true);
	}
	open_gap(vt, vt->col, vt->col + width);
	for (size_t i = 0; i < width; i++)
		vt->row[vt->col++] = (struct cell){ .ch = i ? 0 : ch, .style = vt->style };
	if (vt->width < vt->col)
		vt->width = vt->col;
}

/* The column to act on: behind the last cell counts as on it. */
static size_t column(const struct vt *vt)
{
	return vt->col < vt->cols ? vt->col : vt->cols - 1;
}

static void move_to(struct vt *vt, size_t col)
{
	vt->col = col < vt->cols ? col : vt->cols - 1;
}

static void erase(struct vt *vt, size_t from, size_t to)
{
	struct cell blank = erased(vt);

	if (to > vt->width && is_blank(&blank)) {
		/* nothing but plain blanks up to the end: the row just becomes shorter */
		if (from < vt->width) {
			open_gap(vt, from, vt->width);
			vt->width = from;
		}
		return;
	}
	open_gap(vt, from, to);
	for (size_t i = from; i < to; i++)
		vt->row[i] = blank;
	if (vt->width < to)
		vt->width = to;
}

static void insert_blanks(struct vt *vt, size_t n)
{
	size_t at = column(vt);

	if (n > vt->cols - at)
		n = vt->cols - at;
	if (at >= vt->width)
		return;
	open_gap(vt, at, at);
	size_t width = vt->width + n < vt->cols ? vt->width + n : vt->cols;
	if (width < at + n)
		width = at + n;
	/* a row may be longer than a narrowed terminal: what is beyond goes */
	memmove(vt->row + at + n, vt->row + at, (width - at - n) * sizeof(vt->row[0]));
	struct cell blank = erased(vt);
	for (size_t i = at; i < at + n; i++)
		vt->row[i] = blank;
	/* the cut at the right edge may have left the first half of a wide character */
	if (width < vt->width + n && vt->row[width - 1].ch && vt_char_width(vt->row[width - 1].ch) == 2)
		vt->row[width - 1].ch = ' ';
	vt->width = width;
}

static void delete_chars(struct vt *vt, size_t n)
{
	size_t at = column(vt);

	if (at >= vt->width)
		return;
	if (n > vt->width - at)
		n = vt->width - at;
	open_gap(vt, at, at + n);
	memmove(vt->row + at, vt->row + at + n, (vt->width - at - n) * sizeof(vt->row[0]));
	vt->width -= n;
}

/* ---- colours ---- */

/* The nearest of the 16 ANSI colours (xterm's values) to one of 24 bits, as style_ansi wants it. */
static uint8_t nearest(unsigned r, unsigned g, unsigned b)
{
	static const uint8_t palette[16][3] = {
		{ 0, 0, 0 }, { 205, 0, 0 }, { 0, 205, 0 }, { 205, 205, 0 },
		{ 0, 0, 238 }, { 205, 0, 205 }, { 0, 205, 205 }, { 229, 229, 229 },
		{ 127, 127, 127 }, { 255, 0, 0 }, { 0, 255, 0 }, { 255, 255, 0 },
		{ 92, 92, 255 }, { 255, 0, 255 }, { 0, 255, 255 }, { 255, 255, 255 },
	};
	unsigned best = 0;
	long best_distance = 1L << 40;

	for (unsigned i = 0; i < 16; i++) {
		long dr = (long)r - palette[i][0], dg = (long)g - palette[i][1];
		long db = (long)b - palette[i][2];
		/* the eye sees green best, blue least */
		long distance = 3 * dr * dr + 6 * dg * dg + db * db;
		if (distance < best_distance) {
			best_distance = distance;
			best = i;
		}
	}
	return (uint8_t)(best + 1);
}

static uint8_t indexed(unsigned i)
{
	if (i < 16)
		return (uint8_t)(i + 1);
	if (i > 255)
		return 0;
	if (i >= 232)
		return nearest(8 + (i - 232) * 10, 8 + (i - 232) * 10, 8 + (i - 232) * 10);
	/* 6 x 6 x 6: 0, 95, 135, 175, 215, 255 */
	unsigned c = i - 16, level[3] = { c / 36, c / 6 % 6, c % 6 };
	for (int k = 0; k < 3; k++)
		level[k] = level[k] ? 55 + level[k] * 40 : 0;
	return nearest(level[0], level[1], level[2]);
}

static unsigned channel(uint32_t v)
{
	return v < 255 ? v : 255;
}

/* Parameters of the group that begins at i: itself and those tied to it by ':'. */
static size_t group_len(const struct vt *vt, size_t i)
{
	size_t n = 1;

	while (i + n < vt->n_param && (vt->sub >> (i + n) & 1))
		n++;
	return n;
}

/*
 * 38, 48 or 58 at i: "38;5;I", "38;2;R;G;B", "38:5:I", "38:2:R:G:B", "38:2:SPACE:R:G:B".
 * Returns the parameters used; *ret is the colour, 0 if it is malformed.
 */
static size_t extended_colour(const struct vt *vt, size_t i, uint8_t *ret)
{
	size_t n = group_len(vt, i);
	const uint32_t *p = vt->param + i;

	*ret = 0;
	if (n == 1) {
		size_t left = vt->n_param - i;
		if (left >= 3 && p[1] == 5) {
			*ret = indexed(p[2]);
			return 3;
		}
		if (left >= 5 && p[1] == 2) {
			*ret = nearest(channel(p[2]), channel(p[3]), channel(p[4]));
			return 5;
		}
		return left;	/* there is no telling what the rest means */
	}
	if (n >= 3 && p[1] == 5)
		*ret = indexed(p[2]);
	else if (n >= 6 && p[1] == 2)
		*ret = nearest(channel(p[3]), channel(p[4]), channel(p[5]));
	else if (n == 5 && p[1] == 2)
		*ret = nearest(channel(p[2]), channel(p[3]), channel(p[4]));
	return n;
}

static void select_rendition(struct vt *vt)
{
	struct pen *pen = &vt->pen;

	for (size_t i = 0; i < vt->n_param;) {
		uint32_t p = vt->param[i];
		size_t used = group_len(vt, i);
		uint8_t ignored;

		switch (p) {
		case 0: memset(pen, 0, sizeof(*pen)); break;
		case 1: pen->bold = true; break;
		case 2: pen->dim = true; break;
		case 4: pen->underline = used == 1 || vt->param[i + 1] != 0; break;
		case 7: pen->reverse = true; break;
		case 21: pen->underline = true; break;
		case 22: pen->bold = pen->dim = false; break;
		case 24: pen->underline = false; break;
		case 27: pen->reverse = false; break;
		case 38: used = extended_colour(vt, i, &pen->fg); break;
		case 39: pen->fg = 0; break;
		case 48: used = extended_colour(vt, i, &pen->bg); break;
		case 49: pen->bg = 0; break;
		case 58: used = extended_colour(vt, i, &ignored); break;
		default:
			if (p >= 30 && p <= 37)
				pen->fg = (uint8_t)(p - 30 + 1);
			else if (p >= 40 && p <= 47)
				pen->bg = (uint8_t)(p - 40 + 1);
			else if (p >= 90 && p <= 97)
				pen->fg = (uint8_t)(p - 90 + 9);
			else if (p >= 100 && p <= 107)
				pen->bg = (uint8_t)(p - 100 + 9);
		}
		i += used;
	}
	bool plain = !pen->fg && !pen->bg && !pen->bold && !pen->dim && !pen->underline
		     && !pen->reverse;
	vt->style = plain ? STYLE_TEXT : style_ansi(pen->fg, pen->bg, pen->bold, pen->dim,
						    pen->underline, pen->reverse);
}

/* ---- control sequences ---- */

/* A count: absent and 0 mean 1. */
static size_t count(const struct vt *vt, size_t i)
{
	return i < vt->n_param && vt->param[i] ? vt->param[i] : 1;
}

static void private_mode(struct vt *vt, bool on)
{
	for (size_t i = 0; i < vt->n_param; i++) {
		switch (vt->param[i]) {
		case 1:
			vt->app_cursor = on;
			break;
		case 47:
		case 1047:
		case 1049:
			jump(vt);
			vt->alternate = on;
			vt->addressed = false;
			break;
		}
	}
}

static void control_sequence(struct vt *vt, char final)
{
	size_t at = column(vt);

	if (vt->intermediate)
		return;
	if (vt->private) {
		if (vt->private == '?' && (final == 'h' || final == 'l'))
			private_mode(vt, final == 'h');
		return;
	}
	switch (final) {
	case 'm':
		select_rendition(vt);
		break;
	case 'K':
		/* the cursor stays, even behind the last cell */
		if (vt->param[0] == 0)
			erase(vt, at, vt->cols);
		else if (vt->param[0] == 1)
			erase(vt, 0, at + 1);
		else if (vt->param[0] == 2)
			erase(vt, 0, vt->cols);
		break;
	case 'J':
		if (vt->param[0] == 0)
			erase(vt, at, vt->cols);
		else if (vt->param[0] >= 2)
			jump(vt);
		break;
	case 'C':
	case 'a':
		move_to(vt, at + count(vt, 0));
		break;
	case 'D':
		move_to(vt, at - (count(vt, 0) < at ? count(vt, 0) : at));
		break;
	case 'G':
	case '`':
		move_to(vt, count(vt, 0) - 1);
		break;
	case '@':
		insert_blanks(vt, count(vt, 0));
		break;
	case 'P':
		delete_chars(vt, count(vt, 0));
		break;
	case 'X': {
		size_t n = count(vt, 0);
		erase(vt, at, n < vt->cols - at ? at + n : vt->cols);
		break;
	}
	case 'H':
	case 'f':
		/* home comes with every "clear"; that alone isn't a screen program */
		if (count(vt, 0) > 1 || count(vt, 1) > 1)
			vt->addressed = true;
		jump(vt);
		break;
	case 'A':
	case 'B':
	case 'E':
	case 'F':
	case 'L':
	case 'M':
	case 'S':
	case 'T':
	case 'd':
	case 'e':
		vt->addressed = true;
		jump(vt);
		break;
	}
}

static void begin_control_sequence(struct vt *vt)
{
	vt->state = CSI;
	memset(vt->param, 0, sizeof(vt->param));
	vt->n_param = 1;
	vt->sub = 0;
	vt->too_many = false;
	vt->private = 0;
	vt->intermediate = 0;
}

static void in_control_sequence(struct vt *vt, unsigned char c)
{
	if (c >= '0' && c <= '9') {
		uint32_t *p = &vt->param[vt->n_param - 1];
		if (!vt->too_many && *p < 100000)
			*p = *p * 10 + (c - '0');
	} else if (c == ';' || c == ':') {
		if (vt->n_param == PARAMS_MAX)
			vt->too_many = true;
		else if (c == ':')
			vt->sub |= 1u << vt->n_param++;
		else
			vt->n_param++;
	} else if (c >= '<' && c <= '?') {
		vt->private = (char)c;
	} else if (c >= 0x20 && c <= 0x2f) {
		vt->intermediate = (char)c;
	} else {
		vt->state = GROUND;
		if (c >= 0x40 && c <= 0x7e)
			control_sequence(vt, (char)c);
	}
}

static void after_escape(struct vt *vt, unsigned char c)
{
	vt->state = GROUND;
	switch (c) {
	case '[':
		begin_control_sequence(vt);
		break;
	case ']':
	case 'P':
	case 'X':
	case '^':
	case '_':
		vt->state = STRING;
		vt->n_string = 0;
		break;
	case 'D':
	case 'E':
		end_row(vt, false);
		break;
	case 'M':
		vt->addressed = true;
		jump(vt);
		break;
	case 'c':
		jump(vt);
		memset(&vt->pen, 0, sizeof(vt->pen));
		vt->style = STYLE_TEXT;
		vt->alternate = vt->addressed = vt->app_cursor = false;
		break;
	default:
		if (c >= 0x20 && c <= 0x2f)
			vt->state = ESCAPE_MORE;
	}
}

/* C0 controls but ESC; they act inside control sequences too. */
static void control(struct vt *vt, unsigned char c)
{
	switch (c) {
	case '\r':
		vt->col = 0;
		break;
	case '\n':
	case '\v':
	case '\f':
		/* to the row's start, though a terminal keeps the column: raw mode text stays readable */
		end_row(vt, false);
		break;
	case '\b':
		vt->col = column(vt);
		if (vt->col)
			vt->col--;
		break;
	case '\t':
		move_to(vt, (column(vt) / 8 + 1) * 8);
		break;
	case 0x18:
	case 0x1a:
		vt->state = GROUND;
		break;
	}
}

/* ---- bytes ---- */

static void character(struct vt *vt, uint32_t ch)
{
	if (ch >= 0x80 && ch < 0xa0)
		return;		/* C1: a control, nothing to show */
	int width = vt_char_width(ch);
	if (width)
		put(vt, ch, (size_t)width);
	else
		put(vt, REPLACEMENT, 1);
}

static size_t utf8_length(unsigned char lead)
{
	return lead >= 0xf0 && lead <= 0xf4 ? 4 : lead >= 0xe0 && lead <= 0xef ? 3
		: lead >= 0xc2 && lead <= 0xdf ? 2 : 0;
}

/* A byte from 0x80 up in the ground state: part of a character, or no UTF-8. */
static void utf8_byte(struct vt *vt, unsigned char c)
{
	vt->utf8[vt->n_utf8++] = (char)c;
	while (vt->n_utf8) {
		uint32_t ch;
		size_t used = text_utf8_decode(vt->utf8, vt->n_utf8, &ch);
		if (!used) {
			bool part = utf8_length((unsigned char)vt->utf8[0]) > vt->n_utf8;
			for (size_t i = 1; i < vt->n_utf8; i++)
				part = part && ((unsigned char)vt->utf8[i] & 0xc0) == 0x80;
			if (part)
				return;
			/* one replacement a byte, so it doesn't matter where a read was cut */
			ch = REPLACEMENT;
			used = 1;
		}
		memmove(vt->utf8, vt->utf8 + used, vt->n_utf8 - used);
		vt->n_utf8 -= used;
		character(vt, ch);
	}
}

static void end_utf8(struct vt *vt)
{
	size_t n = vt->n_utf8;

	vt->n_utf8 = 0;
	while (n--)
		put(vt, REPLACEMENT, 1);
}

static void byte(struct vt *vt, unsigned char c)
{
	if (vt->n_utf8 && c < 0x80)
		end_utf8(vt);
	if (c == 0x1b) {
		vt->state = ESCAPE;
		return;
	}
	if (vt->state == STRING) {
		if (c == 0x07 || c == 0x18 || c == 0x1a || ++vt->n_string > STRING_MAX)
			vt->state = GROUND;
		return;
	}
	if (c < 0x20) {
		control(vt, c);
		return;
	}
	if (c == 0x7f)
		return;
	if (c >= 0x80)
		vt->state = GROUND;	/* not in any sequence: it was none */

	switch (vt->state) {
	case GROUND:
		if (c < 0x80)
			put(vt, c, 1);
		else
			utf8_byte(vt, c);
		break;
	case ESCAPE:
		after_escape(vt, c);
		break;
	case ESCAPE_MORE:
		if (c >= 0x30)
			vt->state = GROUND;
		break;
	case CSI:
		in_control_sequence(vt, c);
		break;
	case STRING:
		break;
	}
}

void vt_feed(struct vt *vt, const void *buf, size_t len)
{
	const unsigned char *p = buf;

	for (size_t i = 0; i < len; i++)
		byte(vt, p[i]);
}

/* ---- reading ---- */

uint64_t vt_first(const struct vt *vt)
{
	return vt->lines.dropped;
}

uint64_t vt_end(const struct vt *vt)
{
	return vt->lines.dropped + vt->lines.n + 1;
}

static bool finished(const struct vt *vt, uint64_t row, size_t *ret)
{
	if (row < vt->lines.dropped || row - vt->lines.dropped >= vt->lines.n)
		return false;
	*ret = (size_t)(row - vt->lines.dropped);
	return true;
}

size_t vt_width(const struct vt *vt, uint64_t row)
{
	size_t k;

	if (finished(vt, row, &k))
		return vt_lines_width(&vt->lines, k);
	return row + 1 == vt_end(vt) ? trimmed(vt) : 0;
}

size_t vt_cells(const struct vt *vt, uint64_t row, struct cell *cells, size_t max)
{
	size_t k;

	if (finished(vt, row, &k))
		return vt_lines_cells(&vt->lines, k, cells, max);
	size_t n = vt_width(vt, row);
	if (n > max)
		n = max;
	if (n)
		memcpy(cells, vt->row, n * sizeof(*cells));
	return n;
}

bool vt_wrapped(const struct vt *vt, uint64_t row)
{
	size_t k;

	return finished(vt, row, &k) && vt_lines_wrapped(&vt->lines, k);
}

char *vt_text(const struct vt *vt, uint64_t row)
{
	size_t n = vt_width(vt, row);
	CLEANUP_FREE struct cell *cells = xcalloc(n, sizeof(*cells));
	char *text = xmalloc(n * 4 + 1), *end = text;

	n = vt_cells(vt, row, cells, n);
	for (size_t i = 0; i < n; i++) {
		char utf8[4];
		if (!cells[i].ch)
			continue;
		size_t len = vt_encode(cells[i].ch, utf8);
		memcpy(end, utf8, len);
		end += len;
	}
	*end = '\0';
	return text;
}

size_t vt_cursor(const struct vt *vt)
{
	return column(vt);
}

bool vt_addressing(const struct vt *vt)
{
	return vt->alternate || vt->addressed;
}

bool vt_app_cursor(const struct vt *vt)
{
	return vt->app_cursor;
}

size_t vt_bytes(const struct vt *vt)
{
	return vt->lines.bytes;
}
