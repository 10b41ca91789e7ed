/*
 * ncurses behind tty.h. newterm on /dev/tty (initscr would exit on failure, and 0 and 1 may be
 * files); raw mode, so that Ctrl-C and Ctrl-Z are keys like others; signals come through
 * restore.c's pipe, since ncurses' own handlers would run on whatever thread the kernel picks.
 */
#define NCURSES_WIDECHAR 1
#include "ui/tty.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <curses.h>
#include <term.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "ui/restore.h"
#include "ui/style.h"
#include "ui/theme.h"
#include "ui/terminfo.h"
#include "ui/ui.h"

struct tty {
	int fd;
	FILE *in, *out;
	SCREEN *screen;
	struct termios shell;
	enum style_depth depth;
	const struct theme *theme;	/* borrowed, NULL: none */
	bool unicode, rgb, default_colors;
	bool mouse, mouse_before;
	struct cell *shown;	/* what the terminal has, rows * cols */
	int rows, cols;
};

/* Load the terminal's description into cur_term; ours if there is none here. False: neither. */
static bool describe(const char *name, int fd)
{
	int status;

	if (setupterm(name, fd, &status) == OK)
		return true;
	if (!terminfo_may_replace(name))
		return false;
	terminfo_begin();
	bool fine = setupterm(TERMINFO_NAME, fd, &status) == OK;
	terminfo_end();
	return fine;
}

/* The same for a whole screen. */
static SCREEN *new_screen(FILE *out, FILE *in)
{
	const char *name = getenv("TERM");
	SCREEN *screen = newterm(name, out, in);

	if (screen || !terminfo_may_replace(name))
		return screen;
	log_line("TERM=%.40s is not known here: a terminal like all others is assumed", name);
	terminfo_begin();
	screen = newterm(TERMINFO_NAME, out, in);
	terminfo_end();
	return screen;
}

/* *ret_colors of the terminal, and *ret_size, which may be NULL. */
static struct err *look_at_terminal(int *ret_colors, struct winsize *ret_size)
{
	CLEANUP_CLOSE int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	const char *name = getenv("TERM");

	if (fd < 0)
		return err_errno(errno, "no terminal for the screen: /dev/tty");
	if (!name || !*name)
		return err_new(ERR_UNSUPPORTED, "TERM is not set: no screen");
	if (!describe(name, fd))
		return err_new(ERR_UNSUPPORTED, "TERM=%.40s is not known here: no screen", name);
	bool fine = cursor_address && *cursor_address;
	*ret_colors = max_colors > 0 ? max_colors : 0;
	del_curterm(cur_term);
	if (!fine)
		return err_new(ERR_UNSUPPORTED, "TERM=%.40s can't place the cursor: no screen", name);
	if (ret_size && ioctl(fd, TIOCGWINSZ, ret_size))
		*ret_size = (struct winsize){ 0 };
	return NULL;
}

struct err *tty_available(void)
{
	int colors;

	return look_at_terminal(&colors, NULL);
}

struct err *tty_facts(struct ui_terminal *ret)
{
	struct winsize size = { 0 };

	*ret = (struct ui_terminal){ 0 };
	struct err *err = look_at_terminal(&ret->colors, &size);
	if (err)
		return err;
	snprintf(ret->name, sizeof(ret->name), "%s", getenv("TERM"));
	ret->height = size.ws_row;
	ret->width = size.ws_col;
	ret->utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	return NULL;
}

/* ---- the bytes that undo the screen ---- */

static struct {
	char bytes[256];
	size_t len;
} undo;

static int undo_char(int c)
{
	if (undo.len < sizeof(undo.bytes))
		undo.bytes[undo.len++] = (char)c;
	return c;
}

static void undo_string(const char *s)
{
	if (s && s != (char *)-1)
		tputs(s, 1, undo_char);
}

static void build_undo(int rows)
{
	static const char mouse_off[] = "\033[?1006l\033[?1000l";

	undo.len = 0;
	/* only to a terminal that has a mouse at all; others might print it */
	if (tigetstr("kmous") && tigetstr("kmous") != (char *)-1)
		for (const char *s = mouse_off; *s; s++)
			undo_char(*s);
	undo_string(exit_attribute_mode);
	if (!exit_ca_mode && cursor_address)
		undo_string(tiparm(cursor_address, rows - 1, 0));
	undo_string(keypad_local);
	undo_string(exit_ca_mode);
	undo_string(cursor_normal);
}

/* ---- opening, closing ---- */

/* Keys that terminals send in other ways than their description says. */
static void define_keys(void)
{
	static const struct {
		const char *bytes;
		int key;
	} keys[] = {
		{ "\033[H", KEY_HOME }, { "\033OH", KEY_HOME }, { "\033[1~", KEY_HOME }, { "\033[7~", KEY_HOME },
		{ "\033[F", KEY_END }, { "\033OF", KEY_END }, { "\033[4~", KEY_END }, { "\033[8~", KEY_END },
		{ "\033[5~", KEY_PPAGE }, { "\033[6~", KEY_NPAGE }, { "\033[3~", KEY_DC },
		{ "\033[A", KEY_UP }, { "\033[B", KEY_DOWN }, { "\033[C", KEY_RIGHT }, { "\033[D", KEY_LEFT },
		{ "\033OA", KEY_UP }, { "\033OB", KEY_DOWN }, { "\033OC", KEY_RIGHT }, { "\033OD", KEY_LEFT },
		{ "\033OP", KEY_F(1) }, { "\033OQ", KEY_F(2) }, { "\033OR", KEY_F(3) }, { "\033OS", KEY_F(4) },
		{ "\033[11~", KEY_F(1) }, { "\033[12~", KEY_F(2) }, { "\033[13~", KEY_F(3) },
		{ "\033[14~", KEY_F(4) }, { "\033[15~", KEY_F(5) }, { "\033[17~", KEY_F(6) },
		{ "\033[21~", KEY_F(10) }, { "\033[Z", KEY_BTAB },
	};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (key_defined(keys[i].bytes) <= 0)
			define_key(keys[i].bytes, keys[i].key);
}

static void read_size(struct tty *t)
{
	struct winsize ws;

	if (!ioctl(t->fd, TIOCGWINSZ, &ws) && ws.ws_row > 0 && ws.ws_col > 0 &&
	    (ws.ws_row != LINES || ws.ws_col != COLS))
		resizeterm(ws.ws_row < CANVAS_MAX ? ws.ws_row : CANVAS_MAX,
			   ws.ws_col < CANVAS_MAX ? ws.ws_col : CANVAS_MAX);
	getmaxyx(stdscr, t->rows, t->cols);
	if (t->rows < 1)
		t->rows = 1;
	if (t->cols < 1)
		t->cols = 1;
	free(t->shown);
	t->shown = xcalloc((size_t)t->rows * t->cols, sizeof(*t->shown));
}

static void start_colors(struct tty *t, bool no_color)
{
	const char *env = getenv("NO_COLOR");

	t->depth = STYLE_DEPTH_MONO;
	if (no_color || (env && *env) || !has_colors() || start_color() != OK)
		return;
	t->default_colors = use_default_colors() == OK;
	t->depth = COLORS >= 256 ? STYLE_DEPTH_256 : COLORS >= 16 ? STYLE_DEPTH_16 : COLORS >= 8 ? STYLE_DEPTH_8 : STYLE_DEPTH_MONO;
	/* direct colour: numbers are RGB values there, not places in a palette */
	t->rgb = COLORS > 256;
}

bool tty_want_unicode(const struct ui_options *options)
{
	const char *name = getenv("TERM");

	if (!strcmp(setlocale(LC_CTYPE, NULL), "C"))
		setlocale(LC_CTYPE, "");
	if (options->no_unicode || strcmp(nl_langinfo(CODESET), "UTF-8"))
		return false;
	/* the kernel's console knows UTF-8 but has no braille in its font */
	return !name || (strcmp(name, "linux") && strncmp(name, "vt", 2));
}

struct err *tty_open(const struct ui_options *options, struct tty **ret)
{
	struct err *err = tty_available();

	if (err)
		return err;
	struct tty *t = xcalloc(1, sizeof(*t));
	t->fd = -1;
	t->unicode = tty_want_unicode(options);
	t->fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	if (t->fd < 0 || tcgetattr(t->fd, &t->shell)) {
		err = err_errno(errno, "/dev/tty");
		goto fail;
	}
	int in = fcntl(t->fd, F_DUPFD_CLOEXEC, 3), out = fcntl(t->fd, F_DUPFD_CLOEXEC, 3);
	t->in = in < 0 ? NULL : fdopen(in, "r");
	t->out = out < 0 ? NULL : fdopen(out, "w");
	if (!t->in || !t->out) {
		err = err_errno(errno, "/dev/tty");
		if (!t->in && in >= 0)
			close(in);
		if (!t->out && out >= 0)
			close(out);
		goto fail;
	}
	t->screen = new_screen(t->out, t->in);
	if (!t->screen) {
		err = err_new(ERR_UNSUPPORTED, "the terminal can't be opened for the screen");
		goto fail;
	}
	set_term(t->screen);
	build_undo(LINES);
	restore_begin(t->fd, undo.bytes, undo.len, &t->shell);
	if (!getenv("ESCDELAY"))
		set_escdelay(25);
	raw();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	leaveok(stdscr, TRUE);
	scrollok(stdscr, FALSE);
	idlok(stdscr, FALSE);
	curs_set(0);
	define_keys();
	start_colors(t, options->no_color);
	t->theme = options->themes ? themes_find(options->themes, options->theme ? options->theme : "default") : NULL;
	mouseinterval(0);
	tty_mouse(t, !options->no_mouse);
	read_size(t);
	*ret = t;
	return NULL;
fail:
	tty_close(t);
	return err;
}

void tty_close(struct tty *t)
{
	if (!t)
		return;
	if (t->screen) {
		set_term(t->screen);
		tty_mouse(t, false);
		endwin();
		tcsetattr(t->fd, TCSADRAIN, &t->shell);
		restore_end();
		delscreen(t->screen);
	}
	if (t->in)
		fclose(t->in);
	if (t->out)
		fclose(t->out);
	if (t->fd >= 0)
		close(t->fd);
	free(t->shown);
	free(t);
}

void tty_size(const struct tty *t, int *ret_rows, int *ret_cols)
{
	*ret_rows = t->rows;
	*ret_cols = t->cols;
}

bool tty_unicode(const struct tty *t)
{
	return t->unicode;
}

int tty_fd(const struct tty *t)
{
	return t->fd;
}

bool tty_is_gone(int revents)
{
	return revents & (POLLERR | POLLHUP | POLLNVAL);
}

void tty_mouse(struct tty *t, bool on)
{
	if (on == t->mouse)
		return;
	t->mouse = on;
	mousemask(on ? BUTTON1_PRESSED | BUTTON2_PRESSED | BUTTON3_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED : 0,
		  NULL);
}

void tty_theme(struct tty *t, const struct theme *theme)
{
	t->theme = theme;
}

void tty_resized(struct tty *t)
{
	read_size(t);
	clearok(curscr, TRUE);
}

void tty_leave(struct tty *t)
{
	t->mouse_before = t->mouse;
	tty_mouse(t, false);
	endwin();
}

void tty_return(struct tty *t)
{
	tty_continued(t);
	tty_mouse(t, t->mouse_before);
}

void tty_suspend(struct tty *t)
{
	tty_leave(t);
	restore_stop();
	tty_return(t);
}

void tty_send(struct tty *t, const char *bytes)
{
	/* what ncurses has put into the stream comes before it */
	fputs(bytes, t->out);
	fflush(t->out);
}

void tty_continued(struct tty *t)
{
	reset_prog_mode();
	read_size(t);
	clearok(curscr, TRUE);
	refresh();
	curs_set(0);
}

/* ---- keys ---- */

static bool mouse_event(struct key_event *ret)
{
	MEVENT m;

	if (getmouse(&m) != OK)
		return false;
	ret->key = UKEY_MOUSE;
	ret->y = m.y;
	ret->x = m.x;
	if (m.bstate & BUTTON1_PRESSED)
		ret->button = MOUSE_LEFT;
	else if (m.bstate & BUTTON2_PRESSED)
		ret->button = MOUSE_MIDDLE;
	else if (m.bstate & BUTTON3_PRESSED)
		ret->button = MOUSE_RIGHT;
	else if (m.bstate & BUTTON4_PRESSED)
		ret->button = MOUSE_WHEEL_UP;
	else if (m.bstate & BUTTON5_PRESSED)
		ret->button = MOUSE_WHEEL_DOWN;
	else
		return false;
	return true;
}

static uint32_t function_key(wint_t key)
{
	static const struct {
		int curses;
		uint32_t key;
	} keys[] = {
		{ KEY_UP, UKEY_UP }, { KEY_DOWN, UKEY_DOWN }, { KEY_LEFT, UKEY_LEFT },
		{ KEY_RIGHT, UKEY_RIGHT }, { KEY_PPAGE, UKEY_PGUP }, { KEY_NPAGE, UKEY_PGDN },
		{ KEY_HOME, UKEY_HOME }, { KEY_END, UKEY_END }, { KEY_IC, UKEY_INSERT },
		{ KEY_DC, UKEY_DELETE }, { KEY_BACKSPACE, UKEY_BACKSPACE }, { KEY_BTAB, UKEY_BACKTAB },
		{ KEY_ENTER, UKEY_ENTER }, { KEY_RESIZE, UKEY_RESIZE }, { KEY_A1, UKEY_HOME },
		{ KEY_A3, UKEY_PGUP }, { KEY_C1, UKEY_END }, { KEY_C3, UKEY_PGDN },
	};

	if (key >= (wint_t)KEY_F(1) && key <= (wint_t)KEY_F(12))
		return UKEY_F1 + (key - KEY_F(1));
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if ((wint_t)keys[i].curses == key)
			return keys[i].key;
	return UKEY_NONE;
}

bool tty_key(struct tty *t, struct key_event *ret)
{
	(void)t;
	for (;;) {
		wint_t ch;
		int kind = get_wch(&ch);
		*ret = (struct key_event){ 0 };
		if (kind == ERR)
			return false;
		if (kind == KEY_CODE_YES) {
			if (ch == KEY_MOUSE) {
				if (mouse_event(ret))
					return true;
				continue;
			}
			ret->key = function_key(ch);
			if (ret->key == UKEY_NONE)
				continue;
			return true;
		}
		/* both codes of the backspace key */
		ret->key = ch == 127 || ch == 8 ? (uint32_t)UKEY_BACKSPACE : ch == '\n' ? (uint32_t)UKEY_ENTER : ch;
		if (ret->key)
			return true;
	}
}

/* ---- drawing ---- */

static int color_of(const struct tty *t, int c, int fallback)
{
	if (c < 0)
		return t->default_colors ? -1 : t->rgb ? (int)style_rgb(fallback) : fallback;
	return t->rgb ? (int)style_rgb(c) : c;
}

static void attributes(const struct tty *t, style_t style, attr_t *ret_attr, int *ret_pair)
{
	struct style_look look = style_look_in(t->theme, style, t->depth);

	*ret_attr = (look.bold ? A_BOLD : 0) | (look.dim ? A_DIM : 0) | (look.underline ? A_UNDERLINE : 0) |
		(look.reverse ? A_REVERSE : 0);
	*ret_pair = 0;
	if (t->depth != STYLE_DEPTH_MONO && (look.fg >= 0 || look.bg >= 0)) {
		int pair = alloc_pair(color_of(t, look.fg, 7), color_of(t, look.bg, 0));
		*ret_pair = pair > 0 ? pair : 0;
	}
}

static void draw_row(struct tty *t, const struct canvas *c, int y, int cols)
{
	const struct cell *row = &c->cells[(size_t)y * c->cols];
	attr_t attr = 0;
	int pair = 0;
	style_t style = 0;
	bool first = true;

	for (int x = 0; x < cols; x++) {
		if (!row[x].ch)
			continue;	/* the right half of what was put before */
		if (first || row[x].style != style) {
			style = row[x].style;
			attributes(t, style, &attr, &pair);
			first = false;
		}
		/* a wide character at a cut edge has no room */
		bool wide = x + 1 < c->cols && !row[x + 1].ch;
		wchar_t text[2] = { wide && x + 1 >= cols ? L' ' : (wchar_t)row[x].ch, 0 };
		cchar_t cell;
		if (setcchar(&cell, text, attr, (short)pair, &pair) == ERR)
			continue;
		mvadd_wch(y, x, &cell);
	}
}

void tty_draw(struct tty *t, const struct canvas *c, bool clear)
{
	int rows = c->rows < t->rows ? c->rows : t->rows, cols = c->cols < t->cols ? c->cols : t->cols;

	if (clear) {
		clearok(curscr, TRUE);
		memset(t->shown, 0, (size_t)t->rows * t->cols * sizeof(*t->shown));
	}
	for (int y = 0; y < rows; y++) {
		const struct cell *row = &c->cells[(size_t)y * c->cols];
		struct cell *shown = &t->shown[(size_t)y * t->cols];
		bool same = true;
		for (int x = 0; x < cols && same; x++)
			same = row[x].ch == shown[x].ch && row[x].style == shown[x].style;
		if (same)
			continue;
		memcpy(shown, row, cols * sizeof(*row));
		draw_row(t, c, y, cols);
	}
	wnoutrefresh(stdscr);
	doupdate();
}
