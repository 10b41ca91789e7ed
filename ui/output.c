/* The Output pane: the program's terminal with scrollback; see output.h. */
#include "ui/output.h"

#include <langinfo.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/text.h"
#include "target/relay.h"
#include "ui/canvas.h"
#include "ui/key.h"
#include "ui/vt.h"
#include "ui/vt_lines.h"

#define SCROLLBACK (4u << 20)
/* A call of output_pump parses at most this much: a few milliseconds, so that keys act at once. */
#define PUMP_MAX (256u << 10)
/* How long output_last_lines waits for what the program wrote last, milliseconds. */
#define LAST_MS 300
#define LAST_QUIET_MS 30
/* Rows per line of the replay, on average: a program may write megabytes without a newline. */
#define WRAPPED_MAX 16

/* A row of the screen: a vt row wider than the pane takes several. */
struct place {
	uint64_t row;
	size_t part;
};

struct output {
	struct relay *relay;	/* borrowed; NULL: no program of ours */
	struct vt *vt;
	bool ever;		/* the program has a terminal of ours */
	bool closed;		/* it was closed */
	bool typing;
	bool unseen;
	bool follow;		/* the end is shown; else `top` */
	struct place top;
	int rows, cols;		/* as drawn last; 0: never */
	char status[160];
};

struct output *output_create(struct relay *relay, size_t cols)
{
	struct output *o = xcalloc(1, sizeof(*o));

	o->relay = relay;
	o->vt = vt_create(cols, SCROLLBACK);
	o->ever = relay && relay_has_terminal(relay);
	o->follow = true;
	return o;
}

void output_destroy(struct output *o)
{
	if (!o)
		return;
	vt_destroy(o->vt);
	free(o);
}

bool output_pump(struct output *o)
{
	char buf[16384];
	size_t total = 0;

	if (!o->ever || o->closed)
		return false;
	while (total < PUMP_MAX) {
		long n = relay_read(o->relay, buf, sizeof(buf));
		if (n < 0) {
			o->closed = true;
			o->typing = false;
			return true;
		}
		if (n == 0)
			break;
		vt_feed(o->vt, buf, (size_t)n);
		total += (size_t)n;
	}
	if (total)
		o->unseen = true;
	return total > 0;
}

bool output_unseen(const struct output *o)
{
	return o->unseen;
}

/* ---- places ---- */

/* One behind the last row to show: the empty one being written counts only while it is typed into. */
static uint64_t end_row(const struct output *o)
{
	uint64_t end = vt_end(o->vt);

	return !o->typing && !vt_width(o->vt, end - 1) ? end - 1 : end;
}

static size_t parts(const struct output *o, uint64_t row)
{
	size_t width = vt_width(o->vt, row), cols = o->cols > 0 ? (size_t)o->cols : 1;

	return width ? (width + cols - 1) / cols : 1;
}

/* One up; false at the top. */
static bool place_up(const struct output *o, struct place *p)
{
	if (p->part > 0) {
		p->part--;
		return true;
	}
	if (p->row <= vt_first(o->vt))
		return false;
	p->row--;
	p->part = parts(o, p->row) - 1;
	return true;
}

/* One down; false behind the end. */
static bool place_down(const struct output *o, struct place *p)
{
	if (p->row >= end_row(o))
		return false;
	if (++p->part >= parts(o, p->row)) {
		p->row++;
		p->part = 0;
	}
	return true;
}

/* The topmost row on the screen when the end is at its bottom. */
static struct place last_page(const struct output *o)
{
	struct place p = { .row = end_row(o) };

	for (int i = 0; i < o->rows && place_up(o, &p); i++)
		;
	return p;
}

static bool at_or_behind(struct place a, struct place b)
{
	return a.row > b.row || (a.row == b.row && a.part >= b.part);
}

/* Where to begin, however much has come or gone since the last time. */
static struct place begin(struct output *o)
{
	struct place last = last_page(o);

	if (!o->follow) {
		if (o->top.row < vt_first(o->vt))
			o->top = (struct place){ .row = vt_first(o->vt) };
		size_t n = parts(o, o->top.row);
		if (o->top.part >= n)
			o->top.part = n - 1;
		o->follow = at_or_behind(o->top, last);
	}
	return o->follow ? last : o->top;
}

void output_scroll(struct output *o, int lines)
{
	struct place p = begin(o);

	for (; lines > 0 && place_up(o, &p); lines--)
		;
	for (; lines < 0 && place_down(o, &p); lines++)
		;
	o->top = p;
	o->follow = at_or_behind(p, last_page(o));
}

/* ---- drawing ---- */

/* Why there is nothing to see; one line each. */
static const char *const nothing[] = {
	"No program of heaptop's runs on this screen.",
	"The output of an attached program stays where it goes.",
	NULL
};
static const char *const elsewhere[] = {
	"The program's input and output go elsewhere,",
	"as they were redirected or --io says.",
	NULL
};
static const char *const silent[] = {
	"The program has written nothing yet.",
	NULL
};

static void draw_cells(struct canvas *c, int y, int x, const struct cell *cells, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (cells[i].ch)
			canvas_char(c, y, x + (int)i, cells[i].style, cells[i].ch);
	}
}

void output_draw(struct output *o, struct canvas *c, int y, int x, int rows, int cols)
{
	struct cell cells[VT_COLS_MAX];

	if (rows < 1 || cols < 1)
		return;
	if (rows != o->rows || cols != o->cols) {
		o->rows = rows;
		o->cols = cols;
		vt_set_cols(o->vt, (size_t)cols);
		if (o->ever && !o->closed)
			relay_resize(o->relay, rows, cols);
	}
	o->unseen = false;

	uint64_t end = end_row(o);
	if (end == vt_first(o->vt)) {
		const char *const *text = !o->relay ? nothing : !o->ever ? elsewhere : silent;
		for (int i = 0; text[i] && i < rows; i++)
			canvas_put_cut(c, y + i, x, cols, STYLE_DIM, text[i]);
		return;
	}
	struct place p = begin(o);
	for (int i = 0; i < rows && p.row < end; i++) {
		size_t width = vt_cells(o->vt, p.row, cells, VT_COLS_MAX);
		size_t from = p.part * (size_t)cols;
		size_t n = from < width ? width - from : 0;
		draw_cells(c, y + i, x, cells + from, n < (size_t)cols ? n : (size_t)cols);
		if (o->typing && p.row == vt_end(o->vt) - 1) {
			size_t cursor = vt_cursor(o->vt);
			if (cursor >= from && cursor < from + (size_t)cols) {
				/* a cell that is text in the cursor's style, whatever was there */
				uint32_t ch = cursor < width && cells[cursor].ch ? cells[cursor].ch : ' ';
				canvas_char(c, y + i, x + (int)(cursor - from),
					    STYLE_TEXT | STYLE_SELECTED, ch);
			}
		}
		place_down(o, &p);
	}
}

const char *output_status(struct output *o)
{
	char count[TEXT_NUMBER];

	if (!o->ever) {
		snprintf(o->status, sizeof(o->status), "%s",
			 o->relay ? "the program's output goes elsewhere" : "no program to show");
		return o->status;
	}
	if (o->typing) {
		snprintf(o->status, sizeof(o->status),
			 "keys go to the program, Ctrl-C too; Ctrl-] ends typing");
		return o->status;
	}
	if (vt_addressing(o->vt)) {
		snprintf(o->status, sizeof(o->status), "the program draws its own screen: "
			 "--io=/dev/pts/N gives it another terminal");
		return o->status;
	}
	uint64_t lines = end_row(o) - vt_first(o->vt);
	text_count(count, lines);
	const char *end = o->closed ? "closed" : "I types to the program";
	if (o->follow)
		snprintf(o->status, sizeof(o->status), "%s%s line%s, %s", vt_first(o->vt) ? "the last " : "",
			 count, lines == 1 ? "" : "s", end);
	else
		snprintf(o->status, sizeof(o->status), "%s lines, line %llu at the top, G to the end",
			 count, (unsigned long long)(o->top.row - vt_first(o->vt) + 1));
	return o->status;
}

/* ---- keys ---- */

bool output_set_typing(struct output *o, bool typing)
{
	o->typing = typing && o->ever && !o->closed;
	if (o->typing)
		o->follow = true;
	return o->typing == typing;
}

bool output_typing(const struct output *o)
{
	return o->typing;
}

/* Function keys as xterm sends them, which every terminfo of today knows. */
static const char *key_sequence(uint32_t key)
{
	switch (key) {
	case UKEY_PGUP: return "\033[5~";
	case UKEY_PGDN: return "\033[6~";
	case UKEY_INSERT: return "\033[2~";
	case UKEY_DELETE: return "\033[3~";
	case UKEY_BACKTAB: return "\033[Z";
	case UKEY_BACKSPACE: return "\177";
	case UKEY_F1: return "\033OP";
	case UKEY_F2: return "\033OQ";
	case UKEY_F3: return "\033OR";
	case UKEY_F4: return "\033OS";
	case UKEY_F5: return "\033[15~";
	case UKEY_F6: return "\033[17~";
	case UKEY_F7: return "\033[18~";
	case UKEY_F8: return "\033[19~";
	case UKEY_F9: return "\033[20~";
	case UKEY_F10: return "\033[21~";
	case UKEY_F11: return "\033[23~";
	case UKEY_F12: return "\033[24~";
	default: return NULL;
	}
}

/* The final byte of a cursor key, which comes behind ESC [ or ESC O. */
static char cursor_key(uint32_t key)
{
	switch (key) {
	case UKEY_UP: return 'A';
	case UKEY_DOWN: return 'B';
	case UKEY_RIGHT: return 'C';
	case UKEY_LEFT: return 'D';
	case UKEY_END: return 'F';
	case UKEY_HOME: return 'H';
	default: return 0;
	}
}

static bool type_key(struct output *o, uint32_t key)
{
	char buf[4];

	if (key == KEY_CTRL_(']')) {
		o->typing = false;
		return true;
	}
	const char *sequence = key_sequence(key);
	if (sequence) {
		relay_type(o->relay, sequence, strlen(sequence));
		return true;
	}
	char final = cursor_key(key);
	if (final) {
		buf[0] = '\033';
		buf[1] = vt_app_cursor(o->vt) ? 'O' : '[';
		buf[2] = final;
		relay_type(o->relay, buf, 3);
		return true;
	}
	if (key > 0x10ffff)
		return false;
	relay_type(o->relay, buf, vt_encode(key, buf));
	return true;
}

bool output_key(struct output *o, uint32_t key)
{
	int page = o->rows > 1 ? o->rows - 1 : 1;

	if (o->typing)
		return type_key(o, key);
	switch (key) {
	case UKEY_UP:
	case 'k':
		output_scroll(o, 1);
		return true;
	case UKEY_DOWN:
	case 'j':
		output_scroll(o, -1);
		return true;
	case UKEY_PGUP:
	case KEY_CTRL_('B'):
		output_scroll(o, page);
		return true;
	case UKEY_PGDN:
	case KEY_CTRL_('F'):
		output_scroll(o, -page);
		return true;
	case KEY_CTRL_('U'):
		output_scroll(o, (page + 1) / 2);
		return true;
	case KEY_CTRL_('D'):
		output_scroll(o, -(page + 1) / 2);
		return true;
	case UKEY_HOME:
	case 'g':
		o->top = (struct place){ .row = vt_first(o->vt) };
		o->follow = at_or_behind(o->top, last_page(o));
		return true;
	case UKEY_END:
	case 'G':
		o->follow = true;
		return true;
	default:
		return false;
	}
}

/* ---- after the screen has closed ---- */

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The program may have ended a moment ago: its last lines are on their way through the relay. */
static void pump_last(struct output *o)
{
	long end = now_ms() + LAST_MS;

	while (o->ever && !o->closed && now_ms() < end) {
		if (output_pump(o))
			continue;
		struct pollfd fd = { .fd = relay_fd(o->relay), .events = POLLIN };
		if (poll(&fd, 1, LAST_QUIET_MS) <= 0)
			break;
	}
}

/*
 * For a terminal in this locale: elsewhere than in UTF-8 a byte from 0x80 up may be a control, so
 * there what isn't ASCII becomes '?'.
 */
static void fit_charset(char *text)
{
	if (!strcmp(nl_langinfo(CODESET), "UTF-8"))
		return;
	char *to = text;
	for (const char *from = text; *from; from++) {
		if (!(*from & 0x80))
			*to++ = *from;
		else if ((*from & 0xc0) == 0xc0)
			*to++ = '?';
	}
	*to = '\0';
}

char **output_last_lines(struct output *o, size_t max, size_t *ret_n)
{
	pump_last(o);
	uint64_t first = vt_first(o->vt), end = vt_end(o->vt);
	while (end > first && !vt_width(o->vt, end - 1))
		end--;

	/* back to where `max` whole lines begin; rows that were wrapped belong to the one before */
	uint64_t start = end;
	size_t n = 0;
	while (start > first && end - start < max * WRAPPED_MAX) {
		if (start == end || !vt_wrapped(o->vt, start - 1)) {
			if (n == max)
				break;
			n++;
		}
		start--;
	}
	char **lines = xcalloc(n, sizeof(*lines));
	size_t k = 0;
	for (uint64_t row = start; row < end; row++) {
		char *text = vt_text(o->vt, row);
		if (row > start && vt_wrapped(o->vt, row - 1)) {
			char *joined = xasprintf("%s%s", lines[k - 1], text);
			free(lines[k - 1]);
			free(text);
			lines[k - 1] = joined;
		} else {
			lines[k++] = text;
		}
	}
	for (size_t i = 0; i < k; i++)
		fit_charset(lines[i]);
	*ret_n = k;
	return lines;
}
