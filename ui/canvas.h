/*
 * The drawing surface: a grid of cells, each a code point and a style. Every screen draws on one;
 * tty.c brings it to the terminal, script.c dumps it as text. Pure memory, no curses, so that layout
 * can be tested without a terminal. One thread.
 *
 * Positions are absolute, (0,0) is the top left corner; everything outside the clip rectangle is
 * dropped, any coordinates and any bytes are allowed. Foreign text is safe here: what isn't valid
 * UTF-8, is a control character or has no definite width (wcwidth other than 1 or 2) becomes one `·`
 * ('?' in ASCII). A wide character fills two cells; where only half of one is left, a blank takes its place.
 *
 * Our own glyphs (graph, guides, markers) are all one column wide and have a one-column ASCII
 * stand-in that the canvas puts when `unicode` is off, so the layout is the same both ways.
 */
#ifndef HEAPTOP_UI_CANVAS_H
#define HEAPTOP_UI_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A style: what the text *is*; style.c decides how that looks. The low byte is the element, the
 * bits above modify it. With STYLE_ANSI set the rest is a literal terminal attribute set (the
 * program's own output); make those with style_ansi().
 */
typedef uint16_t style_t;

enum style_id {
	STYLE_TEXT,
	STYLE_TITLE,		/* the program's name in the header */
	STYLE_LABEL,		/* "Live", "RSS": what a number is */
	STYLE_NUMBER,
	STYLE_DIM,		/* secondary: paths, hints, uncertain rows */
	STYLE_GOOD,		/* running */
	STYLE_WARN,
	STYLE_BAD,		/* drops, errors */
	STYLE_GREW, STYLE_SHRANK,
	STYLE_FROZEN,		/* reverse: the display stands still */
	STYLE_GRAPH, STYLE_GRAPH_SCALE,
	STYLE_TAB, STYLE_TAB_ACTIVE,
	STYLE_HEADING, STYLE_HEADING_SORT,
	STYLE_GUIDE,		/* lines of the tree */
	STYLE_KEY, STYLE_KEY_TEXT,	/* footer */
	STYLE_STATUS,
	STYLE_PROMPT,
	STYLE_BOX,		/* dialogs, menus: frame and ground */
	STYLE_CODE_MAIN,	/* names by module, on the plain ground */
	STYLE_CODE_0, STYLE_CODE_1, STYLE_CODE_2, STYLE_CODE_3, STYLE_CODE_4, STYLE_CODE_5,
	STYLE_CODE_SYSTEM, STYLE_CODE_UNKNOWN,
	STYLE_FLAME_MAIN,	/* the same on coloured ground; same order as STYLE_CODE_* */
	STYLE_FLAME_0, STYLE_FLAME_1, STYLE_FLAME_2, STYLE_FLAME_3, STYLE_FLAME_4, STYLE_FLAME_5,
	STYLE_FLAME_SYSTEM, STYLE_FLAME_UNKNOWN,
	STYLE_IDS
};

#define STYLE_ID_MASK	0x00ff
#define STYLE_SELECTED	0x0100	/* under the cursor */
#define STYLE_MATCH	0x0200	/* found by / */
#define STYLE_FADED	0x0400	/* not found, ancestor of a zoom, too few samples */
#define STYLE_STRONG	0x0800
#define STYLE_UNDERLINED 0x1000
#define STYLE_ANSI	0x8000

/* fg and bg: 0 the terminal's default, 1-16 the ANSI colours 0-15. */
static inline style_t style_ansi(unsigned fg, unsigned bg, bool bold, bool dim, bool underline,
				 bool reverse)
{
	return STYLE_ANSI | (fg & 31 ? (fg - 1) % 16 + 1 : 0) | (bg & 31 ? (bg - 1) % 16 + 1 : 0) << 5
		| bold << 10 | dim << 11 | underline << 12 | reverse << 13;
}
static inline unsigned style_ansi_fg(style_t s) { return s & 31; }
static inline unsigned style_ansi_bg(style_t s) { return s >> 5 & 31; }
static inline bool style_ansi_bold(style_t s) { return s >> 10 & 1; }
static inline bool style_ansi_dim(style_t s) { return s >> 11 & 1; }
static inline bool style_ansi_underline(style_t s) { return s >> 12 & 1; }
static inline bool style_ansi_reverse(style_t s) { return s >> 13 & 1; }

struct cell {
	uint32_t ch;		/* code point; 0: the right half of a wide character */
	style_t style;
};

struct canvas {
	int rows, cols;		/* both >= 1 */
	bool unicode;		/* off: only ASCII reaches the cells */
	uint8_t graph;		/* enum graph_kind: how graphs are drawn (graph_kind_for) */
	struct cell *cells;	/* rows * cols */
	int clip_y0, clip_x0, clip_y1, clip_x1;	/* half open, always inside the canvas */
};

#define CANVAS_MAX 2000		/* rows or columns: larger sizes are cut to it */

struct canvas *canvas_create(int rows, int cols, bool unicode);
void canvas_destroy(struct canvas *c);	/* accepts NULL */
/* Another size; the contents are lost, the clip is the whole canvas again. */
void canvas_resize(struct canvas *c, int rows, int cols);
/* Blank cells everywhere, the clip is the whole canvas again. */
void canvas_clear(struct canvas *c);

/* Draw only inside this rectangle (cut to the canvas) from now on; canvas_clip_all: anywhere. */
void canvas_clip(struct canvas *c, int y, int x, int rows, int cols);
void canvas_clip_all(struct canvas *c);

/* One character (one of our own glyphs or foreign); returns its width. */
int canvas_char(struct canvas *c, int y, int x, style_t style, uint32_t ch);
/* Text; returns the column after it, whether it was visible or not. */
int canvas_put(struct canvas *c, int y, int x, style_t style, const char *text);
/* At most `max` columns of it; returns the column after what was put. */
int canvas_put_max(struct canvas *c, int y, int x, int max, style_t style, const char *text);
/* Where something is, whose end says most ("queue.h:41"), two columns behind `x` and up to `end`: its beginning gives way,
 * and all of it where too little would be left. Returns the column after it. */
int canvas_put_place(struct canvas *c, int y, int x, int end, style_t style, const char *place);
/* A module's name, two columns behind `x` and up to `end`: its end gives way, and all of it where too little would be left. */
void canvas_put_module(struct canvas *c, int y, int x, int end, style_t style, const char *module);
/* Exactly `width` columns: cut with an ellipsis at the right if it is longer, padded with blanks. */
void canvas_put_cut(struct canvas *c, int y, int x, int width, style_t style, const char *text);
/* Right aligned in `width` columns that end before column x + width; too long: the left is cut. */
void canvas_put_right(struct canvas *c, int y, int x, int width, style_t style, const char *text);
int canvas_printf(struct canvas *c, int y, int x, style_t style, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
/* n times one character. */
void canvas_fill(struct canvas *c, int y, int x, int n, style_t style, uint32_t ch);
/* Change the style of cells that are there already: (style & ~clear) | set. */
void canvas_restyle(struct canvas *c, int y, int x, int n, style_t clear, style_t set);

/* Columns a text takes (as canvas_put would put it). */
int canvas_width(const struct canvas *c, const char *text);
/* Bytes of `text` that fit into `cols` columns. */
size_t canvas_fit(const struct canvas *c, const char *text, int cols);

/* The cell, NULL outside. */
const struct cell *canvas_at(const struct canvas *c, int y, int x);

/* Everything as text, a line a row, trailing blanks cut; the caller frees. */
char *canvas_dump(const struct canvas *c);
/* The style layer: a letter a cell (style_letter), '.' for plain text, trailing dots cut. */
char *canvas_dump_styles(const struct canvas *c);
/* Is the text on the screen, in one row? */
bool canvas_contains(const struct canvas *c, const char *text);

#endif
