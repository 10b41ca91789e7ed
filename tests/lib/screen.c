/* A small terminal for tests; see screen.h. */
#include "screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define PARAMS 16
#define SIZE_MAX_CELLS 2000

struct screen {
	int rows, cols;
	uint32_t *cells;	/* 0: right half of a wide character */
	int y, x;		/* x == cols: the next character wraps */
	int saved_y, saved_x;
	int top, bottom;	/* scroll region, both inside */
	uint32_t last;		/* for REP */

	enum { GROUND, ESCAPE, CHARSET, CSI, STRING, STRING_ESCAPE } state;
	int param[PARAMS];
	int n_param;
	char private;
	uint32_t utf8;
	int utf8_left;

	bool alternate, was_alternate;
	bool hidden;		/* cursor */
	bool mouse[4];		/* 1000, 1002, 1003, 1006 */
	bool keypad, app_cursor;
	bool no_wrap;
	bool paste;
	bool graphics;		/* line drawing in G0, or G1 shifted in */
	bool attributes;	/* SGR other than plain */
};

static int clamp(int v, int low, int high)
{
	return v < low ? low : v > high ? high : v;
}

struct screen *screen_create(int rows, int cols)
{
	struct screen *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	screen_resize(s, rows, cols);
	return s;
}

void screen_destroy(struct screen *s)
{
	if (!s)
		return;
	free(s->cells);
	free(s);
}

static uint32_t *cell(const struct screen *s, int y, int x)
{
	return &s->cells[(size_t)y * (size_t)s->cols + (size_t)x];
}

static void blank(struct screen *s, int y, int from, int to)
{
	for (int x = clamp(from, 0, s->cols); x < clamp(to, 0, s->cols); x++)
		*cell(s, y, x) = ' ';
}

void screen_resize(struct screen *s, int rows, int cols)
{
	rows = clamp(rows, 1, SIZE_MAX_CELLS);
	cols = clamp(cols, 1, SIZE_MAX_CELLS);
	uint32_t *cells = malloc((size_t)rows * (size_t)cols * sizeof(*cells));
	if (!cells)
		abort();
	for (int y = 0; y < rows; y++) {
		for (int x = 0; x < cols; x++) {
			bool old = s->cells && y < s->rows && x < s->cols;
			cells[y * cols + x] = old ? *cell(s, y, x) : ' ';
		}
	}
	free(s->cells);
	s->cells = cells;
	s->rows = rows;
	s->cols = cols;
	s->top = 0;
	s->bottom = rows - 1;
	s->y = clamp(s->y, 0, rows - 1);
	s->x = clamp(s->x, 0, cols);
	s->saved_y = clamp(s->saved_y, 0, rows - 1);
	s->saved_x = clamp(s->saved_x, 0, cols);
}

/* Rows from..to (inside) move up by n, down for n < 0; blanks come in. */
static void scroll(struct screen *s, int from, int to, int n)
{
	size_t row = (size_t)s->cols * sizeof(*s->cells);
	int height = to - from + 1;

	if (height <= 0)
		return;
	n = clamp(n, -height, height);
	if (n > 0) {
		memmove(cell(s, from, 0), cell(s, from, 0) + n * s->cols, row * (size_t)(height - n));
		for (int y = to - n + 1; y <= to; y++)
			blank(s, y, 0, s->cols);
	} else if (n < 0) {
		memmove(cell(s, from, 0) - n * s->cols, cell(s, from, 0), row * (size_t)(height + n));
		for (int y = from; y < from - n; y++)
			blank(s, y, 0, s->cols);
	}
}

static void line_feed(struct screen *s)
{
	if (s->y == s->bottom)
		scroll(s, s->top, s->bottom, 1);
	else if (s->y < s->rows - 1)
		s->y++;
}

static void reverse_line_feed(struct screen *s)
{
	if (s->y == s->top)
		scroll(s, s->top, s->bottom, -1);
	else if (s->y > 0)
		s->y--;
}

static void put(struct screen *s, uint32_t ch)
{
	int width = wcwidth((wchar_t)ch);

	if (width < 1)
		return;
	if (width > s->cols)
		width = s->cols;
	if (s->x + width > s->cols) {
		if (s->no_wrap) {
			s->x = s->cols - width;
		} else {
			s->x = 0;
			line_feed(s);
		}
	}
	*cell(s, s->y, s->x++) = ch;
	while (--width > 0)
		*cell(s, s->y, s->x++) = 0;
	s->last = ch;
}

/* ---- sequences ---- */

static void set_mode(struct screen *s, int mode, bool on)
{
	switch (mode) {
	case 1: s->app_cursor = on; break;
	case 7: s->no_wrap = !on; break;
	case 25: s->hidden = !on; break;
	case 1000: s->mouse[0] = on; break;
	case 1002: s->mouse[1] = on; break;
	case 1003: s->mouse[2] = on; break;
	case 1006: s->mouse[3] = on; break;
	case 2004: s->paste = on; break;
	case 47:
	case 1047:
	case 1049:
		if (s->alternate != on)
			for (int y = 0; y < s->rows; y++)
				blank(s, y, 0, s->cols);
		s->alternate = on;
		s->was_alternate |= on;
		break;
	}
}

static int param(const struct screen *s, int i)
{
	return i < s->n_param && s->param[i] > 0 ? s->param[i] : 1;
}

static void move_cells(struct screen *s, int n)
{
	/* n > 0: delete at the cursor, n < 0: insert */
	int x = clamp(s->x, 0, s->cols - 1), left = s->cols - x;
	uint32_t *at = cell(s, s->y, x);

	n = clamp(n, -left, left);
	if (n > 0) {
		memmove(at, at + n, (size_t)(left - n) * sizeof(*at));
		blank(s, s->y, s->cols - n, s->cols);
	} else {
		memmove(at - n, at, (size_t)(left + n) * sizeof(*at));
		blank(s, s->y, x, x - n);
	}
}

static void erase_display(struct screen *s)
{
	int from = s->param[0] == 0 ? s->y + 1 : 0;
	int to = s->param[0] == 1 ? s->y : s->rows;

	for (int y = from; y < to; y++)
		blank(s, y, 0, s->cols);
	if (s->param[0] == 0)
		blank(s, s->y, s->x, s->cols);
	else if (s->param[0] == 1)
		blank(s, s->y, 0, s->x + 1);
}

static void erase_line(struct screen *s)
{
	blank(s, s->y, s->param[0] ? 0 : s->x, s->param[0] == 1 ? s->x + 1 : s->cols);
}

static void control_sequence(struct screen *s, char final)
{
	int n = param(s, 0);

	if (s->private) {
		if (s->private == '?' && (final == 'h' || final == 'l'))
			for (int i = 0; i < s->n_param; i++)
				set_mode(s, s->param[i], final == 'h');
		return;
	}
	switch (final) {
	case 'A': s->y = clamp(s->y - n, 0, s->rows - 1); break;
	case 'B': s->y = clamp(s->y + n, 0, s->rows - 1); break;
	case 'C': s->x = clamp(s->x + n, 0, s->cols - 1); break;
	case 'D': s->x = clamp(s->x - n, 0, s->cols - 1); break;
	case 'G': s->x = clamp(n - 1, 0, s->cols - 1); break;
	case 'd': s->y = clamp(n - 1, 0, s->rows - 1); break;
	case 'H':
	case 'f':
		s->y = clamp(n - 1, 0, s->rows - 1);
		s->x = clamp(param(s, 1) - 1, 0, s->cols - 1);
		break;
	case 'J': erase_display(s); break;
	case 'K': erase_line(s); break;
	case 'X': blank(s, s->y, s->x, s->x + n); break;
	case 'P': move_cells(s, n); break;
	case '@': move_cells(s, -n); break;
	case 'L':
	case 'M':
		if (s->y >= s->top && s->y <= s->bottom)
			scroll(s, s->y, s->bottom, final == 'M' ? n : -n);
		break;
	case 'S': scroll(s, s->top, s->bottom, n); break;
	case 'T': scroll(s, s->top, s->bottom, -n); break;
	case 'b':
		for (n = clamp(n, 0, s->cols); n > 0 && s->last; n--)
			put(s, s->last);
		break;
	case 'r':
		s->top = clamp(n - 1, 0, s->rows - 1);
		s->bottom = s->n_param > 1 && s->param[1] ? clamp(s->param[1] - 1, 0, s->rows - 1)
							 : s->rows - 1;
		if (s->top >= s->bottom) {
			s->top = 0;
			s->bottom = s->rows - 1;
		}
		s->y = s->x = 0;
		break;
	case 'm':
		/* the last parameter tells: programs reset and then set, or just reset */
		for (int i = 0; i < s->n_param; i++) {
			if (s->param[i] == 0)
				s->attributes = false;
			else if (s->param[i] != 39 && s->param[i] != 49 && s->param[i] != 10)
				s->attributes = true;
		}
		break;
	}
}

static void after_escape(struct screen *s, unsigned char c)
{
	s->state = GROUND;
	switch (c) {
	case '[':
		s->state = CSI;
		s->n_param = 1;
		memset(s->param, 0, sizeof(s->param));
		s->private = 0;
		break;
	case ']':
	case 'P':
	case '_':
	case '^':
		s->state = STRING;
		break;
	case '(':
	case ')':
		s->state = CHARSET;
		s->private = (char)c;
		break;
	case '7':
		s->saved_y = s->y;
		s->saved_x = s->x;
		break;
	case '8':
		s->y = s->saved_y;
		s->x = s->saved_x;
		break;
	case '=': s->keypad = true; break;
	case '>': s->keypad = false; break;
	case 'D': line_feed(s); break;
	case 'E': s->x = 0; line_feed(s); break;
	case 'M': reverse_line_feed(s); break;
	}
}

static void in_control_sequence(struct screen *s, unsigned char c)
{
	if (c >= '0' && c <= '9') {
		int *p = &s->param[s->n_param - 1];
		if (*p < 100000)
			*p = *p * 10 + (c - '0');
	} else if (c == ';' || c == ':') {
		if (s->n_param < PARAMS)
			s->n_param++;
	} else if (c >= '<' && c <= '?') {
		s->private = (char)c;
	} else if (c >= 0x40) {
		s->state = GROUND;
		control_sequence(s, (char)c);
	}
}

static void in_ground(struct screen *s, unsigned char c)
{
	if (s->utf8_left && (c & 0xc0) == 0x80) {
		s->utf8 = s->utf8 << 6 | (c & 0x3f);
		if (--s->utf8_left == 0)
			put(s, s->utf8);
		return;
	}
	s->utf8_left = 0;
	if (c >= 0xf0) {
		s->utf8 = c & 7;
		s->utf8_left = 3;
	} else if (c >= 0xe0) {
		s->utf8 = c & 15;
		s->utf8_left = 2;
	} else if (c >= 0xc0) {
		s->utf8 = c & 31;
		s->utf8_left = 1;
	} else if (c >= 0x20 && c < 0x7f) {
		put(s, c);
	}
}

static void control(struct screen *s, unsigned char c)
{
	switch (c) {
	case '\r': s->x = 0; break;
	case '\n': line_feed(s); break;
	case '\b': s->x = clamp(s->x - 1, 0, s->cols - 1); break;
	case '\t': s->x = clamp((s->x / 8 + 1) * 8, 0, s->cols - 1); break;
	case 14: s->graphics = true; break;
	case 15: s->graphics = false; break;
	}
}

void screen_feed(struct screen *s, const void *buf, size_t len)
{
	const unsigned char *p = buf;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = p[i];
		if (s->state == STRING) {
			s->state = c == 7 ? GROUND : c == 27 ? STRING_ESCAPE : STRING;
		} else if (s->state == STRING_ESCAPE) {
			s->state = GROUND;
		} else if (c == 27) {
			s->state = ESCAPE;
		} else if (c < 0x20) {
			control(s, c);
		} else if (s->state == ESCAPE) {
			after_escape(s, c);
		} else if (s->state == CHARSET) {
			s->state = GROUND;
			if (s->private == '(')
				s->graphics = c == '0';
		} else if (s->state == CSI) {
			in_control_sequence(s, c);
		} else {
			in_ground(s, c);
		}
	}
}

/* ---- looking ---- */

static size_t row_text(const struct screen *s, int y, char *buf)
{
	char *end = buf;

	for (int x = 0; x < s->cols; x++) {
		uint32_t ch = *cell(s, y, x);
		if (ch == 0)
			continue;
		if (ch < 0x80) {
			*end++ = (char)ch;
		} else if (ch < 0x800) {
			*end++ = (char)(0xc0 | ch >> 6);
			*end++ = (char)(0x80 | (ch & 0x3f));
		} else if (ch < 0x10000) {
			*end++ = (char)(0xe0 | ch >> 12);
			*end++ = (char)(0x80 | (ch >> 6 & 0x3f));
			*end++ = (char)(0x80 | (ch & 0x3f));
		} else {
			*end++ = (char)(0xf0 | (ch >> 18 & 7));
			*end++ = (char)(0x80 | (ch >> 12 & 0x3f));
			*end++ = (char)(0x80 | (ch >> 6 & 0x3f));
			*end++ = (char)(0x80 | (ch & 0x3f));
		}
	}
	while (end > buf && end[-1] == ' ')
		end--;
	*end = '\0';
	return (size_t)(end - buf);
}

char *screen_dump(const struct screen *s)
{
	char *ret = malloc((size_t)s->rows * ((size_t)s->cols * 4 + 2) + 1);
	size_t n = 0;

	if (!ret)
		abort();
	for (int y = 0; y < s->rows; y++) {
		n += row_text(s, y, ret + n);
		ret[n++] = '\n';
	}
	ret[n] = '\0';
	return ret;
}

bool screen_contains(const struct screen *s, const char *text)
{
	char *row = malloc((size_t)s->cols * 4 + 1);
	bool found = false;

	if (!row)
		abort();
	for (int y = 0; y < s->rows && !found; y++) {
		row_text(s, y, row);
		found = strstr(row, text) != NULL;
	}
	free(row);
	return found;
}

const char *screen_left_over(const struct screen *s)
{
	if (s->alternate)
		return "still on the alternate screen (no rmcup)";
	if (s->hidden)
		return "the cursor is hidden (no cnorm)";
	if (s->mouse[0] || s->mouse[1] || s->mouse[2] || s->mouse[3])
		return "mouse reports are on";
	if (s->keypad || s->app_cursor)
		return "the keypad is in application mode (no rmkx)";
	if (s->no_wrap)
		return "automatic margins are off";
	if (s->paste)
		return "bracketed paste is on";
	if (s->graphics)
		return "the line drawing characters are on";
	if (s->attributes)
		return "colours or attributes are on (no sgr0)";
	if (s->top != 0 || s->bottom != s->rows - 1)
		return "a scroll region is set";
	if (s->state != GROUND)
		return "an escape sequence is unfinished";
	return NULL;
}

bool screen_was_alternate(const struct screen *s)
{
	return s->was_alternate;
}
