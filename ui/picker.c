/*
 * The process picker: who could be watched, largest first; typing filters; Enter chooses. Rows that
 * can't be attached are dim, and say why at the bottom.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "target/proclist.h"
#include "ui/format.h"
#include "ui/list.h"
#include "ui/picker.h"
#include "ui/restore.h"
#include "ui/tty.h"
#include "ui/ui.h"

#define REFRESH_SECONDS 2.0

void picker_init(struct picker *p, const char *filter)
{
	memset(p, 0, sizeof(*p));
	snprintf(p->filter, sizeof(p->filter), "%s", filter ? filter : "");
}

void picker_deinit(struct picker *p)
{
	proclist_free(p->rows, p->n);
	free(p->shown);
	memset(p, 0, sizeof(*p));
}

static bool wanted(const struct picker *p, const struct proc_row *row)
{
	char pid[24];

	snprintf(pid, sizeof(pid), "%ld", (long)row->pid);
	return !p->filter[0] || strcasestr(row->command ? row->command : "", p->filter) ||
		strstr(pid, p->filter) || strcasestr(row->user, p->filter);
}

static void refilter(struct picker *p)
{
	size_t cursor = 0;

	free(p->shown);
	p->shown = xcalloc(p->n + 1, sizeof(*p->shown));
	p->nshown = 0;
	for (size_t i = 0; i < p->n; i++) {
		if (!wanted(p, &p->rows[i]))
			continue;
		if (p->rows[i].pid == p->cursor)
			cursor = p->nshown;
		p->shown[p->nshown++] = &p->rows[i];
	}
	list_set(&p->list, p->nshown, p->list.rows);
	list_go(&p->list, cursor);
	p->cursor = p->nshown ? p->shown[p->list.cursor]->pid : 0;
}

void picker_take(struct picker *p, struct proc_row *rows, size_t n)
{
	proclist_free(p->rows, p->n);
	p->rows = rows;
	p->n = n;
	refilter(p);
}

static void age_text(char buf[TEXT_NUMBER], double seconds)
{
	unsigned long s = seconds > 0 && seconds < 1e10 ? (unsigned long)seconds : 0;

	if (s < 60)
		snprintf(buf, TEXT_NUMBER, "%lus", s);
	else if (s < 3600)
		snprintf(buf, TEXT_NUMBER, "%lum", s / 60);
	else if (s < 86400)
		snprintf(buf, TEXT_NUMBER, "%luh", s / 3600);
	else
		snprintf(buf, TEXT_NUMBER, "%lud", s / 86400);
}

static void draw_row(struct canvas *c, int y, const struct proc_row *row, bool cursor)
{
	style_t style = row->refusal ? STYLE_DIM : STYLE_TEXT;
	char buf[FORMAT_BUF], age[TEXT_NUMBER];
	bool wide = c->cols >= 60;

	snprintf(buf, sizeof(buf), "%ld", (long)row->pid);
	canvas_put_right(c, y, 2, 7, style, buf);
	int x = 10;
	if (wide) {
		canvas_put_cut(c, y, x, 10, style, row->user);
		x += 11;
	}
	canvas_put_right(c, y, x, 7, style | STYLE_STRONG, format_bytes(buf, row->rss, 7));
	x += 8;
	if (wide) {
		snprintf(buf, sizeof(buf), "%u", row->threads);
		canvas_put_right(c, y, x, 5, style, buf);
		age_text(age, row->age);
		canvas_put_right(c, y, x + 6, 5, style, age);
		x += 12;
	}
	canvas_put_cut(c, y, x + 1, c->cols - x - 1, style, row->command ? row->command : "");
	if (cursor) {
		canvas_char(c, y, 0, STYLE_TEXT, '>');
		canvas_restyle(c, y, 0, c->cols, 0, STYLE_SELECTED);
	}
}

void picker_draw(struct picker *p, struct canvas *c)
{
	bool wide = c->cols >= 60;
	int top = c->rows >= 6 ? 2 : c->rows >= 3 ? 1 : 0, bottom = c->rows >= 5 ? 2 : c->rows >= 4 ? 1 : 0;
	int rows = c->rows - top - bottom;

	canvas_clear(c);
	if (top) {
		int x = canvas_put(c, 0, 0, STYLE_TITLE, "heaptop");
		x = canvas_put(c, 0, x + 2, STYLE_LABEL, "Which process?");
		x = canvas_put(c, 0, x + 2, STYLE_PROMPT, p->filter);
		canvas_char(c, 0, x, STYLE_PROMPT | STYLE_SELECTED, ' ');
		if (!p->filter[0])
			canvas_put(c, 0, x + 1, STYLE_DIM, "type to filter");
	}
	if (top > 1) {
		canvas_fill(c, 1, 0, c->cols, STYLE_HEADING, ' ');
		canvas_put(c, 1, 6, STYLE_HEADING, "PID");
		if (wide)
			canvas_put(c, 1, 10, STYLE_HEADING, "USER");
		canvas_put(c, 1, wide ? 25 : 14, STYLE_HEADING_SORT, "RSS▼");
		if (wide)
			canvas_put(c, 1, 31, STYLE_HEADING, "THR   AGE");
		canvas_put(c, 1, wide ? 42 : 19, STYLE_HEADING, "COMMAND");
	}
	list_set(&p->list, p->nshown, rows);
	for (int i = 0; i < rows && p->list.top + i < p->nshown; i++)
		draw_row(c, top + i, p->shown[p->list.top + i], p->list.top + i == p->list.cursor);
	if (!p->nshown && rows > 0)
		canvas_put(c, top, 2, STYLE_DIM, "no process matches");
	if (bottom > 1) {
		const struct proc_row *row = p->nshown ? p->shown[p->list.cursor] : NULL;
		if (row && row->refusal)
			canvas_put_cut(c, c->rows - 2, 0, c->cols, STYLE_WARN, row->refusal);
		else if (row)
			canvas_put_cut(c, c->rows - 2, 0, c->cols, STYLE_DIM,
				       c->cols < 76 ? "Enter hooks its malloc, till you leave" :
				       "Enter hooks its malloc, which stops it for milliseconds, till you leave");
	}
	if (bottom)
		canvas_put_cut(c, c->rows - 1, 0, c->cols, STYLE_KEY_TEXT,
			       p->filter[0] ? "Enter Attach  Up Down PgUp PgDn Move  Esc Clear filter  F10 Quit"
			       : "Enter Attach  Up Down PgUp PgDn Move  Esc Quit");
}

enum picker_result picker_key(struct picker *p, const struct key_event *ev)
{
	size_t len = strlen(p->filter);
	uint32_t key = ev->key;

	if (key == UKEY_MOUSE) {
		int row = ev->y - 2;
		if (ev->button == MOUSE_WHEEL_UP || ev->button == MOUSE_WHEEL_DOWN)
			list_scroll(&p->list, ev->button == MOUSE_WHEEL_UP ? -3 : 3);
		else if (ev->button == MOUSE_LEFT && row >= 0 && row < p->list.rows &&
			 p->list.top + row < p->nshown)
			list_go(&p->list, p->list.top + row);
	} else if (key == UKEY_ENTER) {
		return p->nshown && !p->shown[p->list.cursor]->refusal ? PICKER_CHOSEN : PICKER_GOES_ON;
	} else if (key == KEY_CTRL_('c')) {
		return PICKER_INTERRUPTED;
	} else if (key == UKEY_F10 || (key == UKEY_ESC && !len)) {
		return PICKER_LEFT;
	} else if (key == UKEY_BACKSPACE) {
		while (len && ((unsigned char)p->filter[--len] & 0xc0) == 0x80)
			;
		p->filter[len] = '\0';
		refilter(p);
	} else if (key == UKEY_ESC || key == KEY_CTRL_('u')) {
		p->filter[0] = '\0';
		refilter(p);
	} else if (key >= 0x20 && key < 0x7f) {
		if (len + 1 < sizeof(p->filter)) {
			p->filter[len] = (char)key;
			p->filter[len + 1] = '\0';
		}
		p->cursor = 0;
		refilter(p);
	} else {
		/* letters filter: only the keys that are none move */
		list_action(&p->list, action_of_key(key, UI_SITES));
	}
	p->cursor = p->nshown ? p->shown[p->list.cursor]->pid : 0;
	return PICKER_GOES_ON;
}

static double clock_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* One round of the loop; false: leave. */
static bool step(struct picker *p, struct tty *tty, struct canvas *c, double *read_at, pid_t *ret_pid,
		 int *ret_signal)
{
	struct pollfd fds[2] = {
		{ .fd = tty_fd(tty), .events = POLLIN }, { .fd = restore_fd(), .events = POLLIN },
	};
	struct key_event ev;
	int sig, rows, cols;

	if (clock_now() - *read_at >= REFRESH_SECONDS) {
		size_t n;
		struct proc_row *list = proclist_read(&n);
		picker_take(p, list, n);
		*read_at = clock_now();
	}
	picker_draw(p, c);
	tty_draw(tty, c, false);
	if (poll(fds, 2, (int)(REFRESH_SECONDS * 1000)) < 0 && errno != EINTR)
		return false;
	while ((sig = restore_next())) {
		if (sig == SIGTSTP)
			tty_suspend(tty);
		else if (sig == SIGCONT)
			tty_continued(tty);
		else if (sig == SIGWINCH)
			tty_resized(tty);
		else
			*ret_signal = sig;
		if (*ret_signal)
			return false;
		tty_size(tty, &rows, &cols);
		canvas_resize(c, rows, cols);
	}
	if (tty_is_gone(fds[0].revents)) {
		*ret_signal = SIGHUP;
		return false;
	}
	while (fds[0].revents && tty_key(tty, &ev)) {
		if (ev.key == KEY_CTRL_('z')) {
			tty_suspend(tty);
			tty_size(tty, &rows, &cols);
			canvas_resize(c, rows, cols);
			continue;
		}
		enum picker_result result = picker_key(p, &ev);
		if (result == PICKER_CHOSEN)
			*ret_pid = p->cursor;
		if (result == PICKER_INTERRUPTED)
			*ret_signal = SIGINT;
		if (result != PICKER_GOES_ON)
			return false;
	}
	return true;
}

struct err *ui_pick(const char *filter, const struct ui_options *options, pid_t *ret_pid,
		    int *ret_signal)
{
	struct tty *tty;
	struct picker p;
	int rows, cols;
	double read_at = -10;

	*ret_pid = 0;
	*ret_signal = 0;
	struct err *err = tty_open(options, &tty);
	if (err)
		return err;
	tty_size(tty, &rows, &cols);
	struct canvas *c = canvas_create(rows, cols, tty_unicode(tty));
	picker_init(&p, filter);
	while (step(&p, tty, c, &read_at, ret_pid, ret_signal))
		;
	picker_deinit(&p);
	canvas_destroy(c);
	tty_close(tty);
	return NULL;
}
