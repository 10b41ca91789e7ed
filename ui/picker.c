/*
 * The process picker: who could be watched, largest first, and how they grow while it is looked at; typing filters; Enter
 * says what attaching would do, and asks. Rows that can't be attached are dim, and say why at the bottom.
 */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/worker.h"
#include "target/proclist.h"
#include "ui/format.h"
#include "ui/list.h"
#include "ui/pickask.h"
#include "ui/picker.h"
#include "ui/restore.h"
#include "ui/tty.h"
#include "ui/ui.h"

#define REFRESH_SECONDS 1.0
#define REFRESH_SHARE 0.05	/* of the time, where there are so many processes that reading them takes long */
#define GROWTH_COLS 72		/* of the screen, for that column */
#define LOOK_MS 20		/* between looks whether it is known what attaching would do */
#define TYPE "type to filter"

struct seen {
	pid_t pid;
	uint64_t start, rss;
};

void picker_init(struct picker *p, const char *filter)
{
	memset(p, 0, sizeof(*p));
	snprintf(p->filter, sizeof(p->filter), "%s", filter ? filter : "");
}

void picker_deinit(struct picker *p)
{
	pickask_close(p);
	proclist_free(p->rows, p->n);
	free(p->shown);
	free(p->seen);
	free(p->said);
	memset(p, 0, sizeof(*p));
}

void picker_say(struct picker *p, const char *text)
{
	free(p->said);
	p->said = text ? xstrdup(text) : NULL;
}

static int compare_pids(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static const struct seen *seen_find(const struct seen *seen, size_t n, const struct proc_row *row)
{
	const struct seen key = { .pid = row->pid };
	const struct seen *s = n ? bsearch(&key, seen, n, sizeof(*seen), compare_pids) : NULL;

	return s && s->start == row->start ? s : NULL;
}

/* Note what those have that are seen for the first time, and forget who has ended. */
static void see(struct picker *p, const struct proc_row *rows, size_t n)
{
	struct seen *seen = xcalloc(n + 1, sizeof(*seen));

	for (size_t i = 0; i < n; i++) {
		const struct seen *before = seen_find(p->seen, p->n, &rows[i]);
		seen[i] = before ? *before : (struct seen){ rows[i].pid, rows[i].start, rows[i].rss };
	}
	qsort(seen, n, sizeof(*seen), compare_pids);
	free(p->seen);
	p->seen = seen;
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
	see(p, rows, n);
	proclist_free(p->rows, p->n);
	p->rows = rows;
	p->n = n;
	refilter(p);
	if (p->ask.pid && p->ask.pid != p->cursor) {
		pickask_close(p);
		picker_say(p, "the process it was asked about has ended");
	}
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

static double growth_of(const struct picker *p, const struct proc_row *row)
{
	const struct seen *first = seen_find(p->seen, p->n, row);

	return first ? (double)row->rss - (double)first->rss : 0;
}

/* A command line that is too long begins with the program's own name, without the folders it lies in. */
static const char *brief(const struct canvas *c, const char *command, int cols)
{
	return canvas_width(c, command) <= cols ? command : proclist_brief(command);
}

static void draw_row(const struct picker *p, struct canvas *c, int y, const struct proc_row *row, bool cursor)
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
	if (c->cols >= GROWTH_COLS) {
		double growth = growth_of(p, row);
		style_t how = growth > 0 ? STYLE_GREW : growth < 0 ? STYLE_SHRANK : STYLE_DIM;
		canvas_put_right(c, y, x, 8, row->refusal ? style : how, format_delta(buf, growth, 8, true));
		x += 9;
	}
	if (wide) {
		snprintf(buf, sizeof(buf), "%u", row->threads);
		canvas_put_right(c, y, x, 5, style, buf);
		age_text(age, row->age);
		canvas_put_right(c, y, x + 6, 5, style, age);
		x += 12;
	}
	canvas_put_cut(c, y, x + 1, c->cols - x - 1, style, brief(c, row->command ? row->command : "", c->cols - x - 1));
	if (cursor) {
		canvas_char(c, y, 0, STYLE_TEXT, '>');
		canvas_restyle(c, y, 0, c->cols, 0, STYLE_SELECTED);
	}
}

/* The first of the texts that there is room for, the shortest one last. */
static const char *fitting(const struct canvas *c, const char *const texts[])
{
	while (texts[1] && canvas_width(c, *texts) > c->cols)
		texts++;
	return *texts;
}

/* What is wrong: with the last choice, or with the row under the cursor; NULL: nothing. */
static const char *problem(const struct picker *p)
{
	return p->said ? p->said : p->list.cursor < p->nshown ? p->shown[p->list.cursor]->refusal : NULL;
}

/* Rows for what Enter would do, or why it can't: a reason that is cut in one has two. */
static int about_rows(const struct picker *p, const struct canvas *c)
{
	const char *why = problem(p);

	return c->rows < 5 ? 0 : why && c->rows >= 8 && canvas_width(c, why) > c->cols ? 2 : 1;
}

static void draw_about(const struct picker *p, struct canvas *c, int rows)
{
	static const char *const does[] = {
		"Enter says what attaching would do to it, and asks; all is undone when you leave",
		"Enter says what attaching would do to it, and asks",
		"Enter says what it would do, and asks", NULL,
	};
	const char *why = problem(p);

	if (!why) {
		if (p->nshown)
			canvas_put_cut(c, c->rows - 2, 0, c->cols, STYLE_DIM, fitting(c, does));
		return;
	}
	size_t n = canvas_fit(c, why, c->cols);
	if (rows < 2) {
		canvas_put_cut(c, c->rows - 2, 0, c->cols, STYLE_WARN, why);
		return;
	}
	while (n > 1 && why[n] != ' ')
		n--;
	CLEANUP_FREE char *first = xstrndup(why, n);
	canvas_put_cut(c, c->rows - 3, 0, c->cols, STYLE_WARN, first);
	canvas_put_cut(c, c->rows - 2, 0, c->cols, STYLE_WARN, why + n + (why[n] == ' '));
}

void picker_draw(struct picker *p, struct canvas *c)
{
	static const char *const keys[] = {
		"Enter Attach  Up Down PgUp PgDn Move  Esc Quit", "Enter Attach  Up Down Move  Esc Quit",
		"Enter Attach  Esc Quit", NULL,
	};
	static const char *const within[] = {
		"Enter Watch it instead  Up Down PgUp PgDn Move  Esc Stay", "Enter Watch it instead  Esc Stay", NULL,
	};
	static const char *const filtered[] = {
		"Enter Attach  Up Down PgUp PgDn Move  Esc Clear filter  F10 Quit",
		"Enter Attach  Esc All again  F10 Quit", "Enter Attach  Esc All again", NULL,
	};
	static const char *const filtered_within[] = {
		"Enter Watch it instead  Up Down PgUp PgDn Move  Esc Clear filter  F10 Stay",
		"Enter Watch it instead  Esc All again", NULL,
	};
	bool wide = c->cols >= 60;
	int more = c->cols >= GROWTH_COLS ? 9 : 0;
	int top = c->rows >= 6 ? 2 : c->rows >= 3 ? 1 : 0, bottom = c->rows >= 4 ? 1 : 0;
	int about = about_rows(p, c);
	int rows = c->rows - top - bottom - about;

	p->y = top;
	canvas_clear(c);
	if (top) {
		int x = canvas_put(c, 0, 0, STYLE_TITLE, "heaptop");
		x = canvas_put(c, 0, x + 2, STYLE_LABEL, p->within ? "Which process instead?" : "Which process?");
		x = canvas_put(c, 0, x + 2, STYLE_PROMPT, p->filter);
		canvas_char(c, 0, x, STYLE_PROMPT | STYLE_SELECTED, ' ');
		if (!p->filter[0] && x + 2 + canvas_width(c, TYPE) <= c->cols)
			canvas_put(c, 0, x + 2, STYLE_DIM, TYPE);
	}
	if (top > 1) {
		canvas_fill(c, 1, 0, c->cols, STYLE_HEADING, ' ');
		canvas_put(c, 1, 6, STYLE_HEADING, "PID");
		if (wide)
			canvas_put(c, 1, 10, STYLE_HEADING, "USER");
		canvas_put(c, 1, wide ? 25 : 14, STYLE_HEADING_SORT, "RSS▼");
		if (wide)
			canvas_put(c, 1, 31 + more, STYLE_HEADING, "THR   AGE");
		if (more)
			canvas_put(c, 1, 31, STYLE_HEADING, "GROWTH");
		canvas_put(c, 1, wide ? 42 + more : 19, STYLE_HEADING, "COMMAND");
	}
	list_set(&p->list, p->nshown, rows);
	for (int i = 0; i < rows && p->list.top + i < p->nshown; i++)
		draw_row(p, c, top + i, p->shown[p->list.top + i], p->list.top + i == p->list.cursor);
	if (!p->nshown && rows > 0)
		canvas_put(c, top, 2, STYLE_DIM, p->rows ? "no process matches" : "looking for processes …");
	if (about)
		draw_about(p, c, about);
	if (bottom)
		canvas_put_cut(c, c->rows - 1, 0, c->cols, STYLE_KEY_TEXT,
			       fitting(c, p->filter[0] ? p->within ? filtered_within : filtered : p->within ? within : keys));
	if (p->ask.pid)
		pickask_draw(p, c);
}

static void choose(struct picker *p)
{
	if (p->nshown && !p->shown[p->list.cursor]->refusal)
		pickask_open(p);
}

/* The second click on a row opens it. The first one may have nothing to move, and mustn't do more than show what would be. */
static void click(struct picker *p, const struct key_event *ev, pid_t before)
{
	int row = ev->y - p->y;

	if (ev->button == MOUSE_WHEEL_UP || ev->button == MOUSE_WHEEL_DOWN)
		list_scroll(&p->list, ev->button == MOUSE_WHEEL_UP ? -3 : 3);
	if (ev->button != MOUSE_LEFT || row < 0 || row >= p->list.rows || p->list.top + row >= p->nshown)
		return;
	list_go(&p->list, p->list.top + row);
	p->clicked = p->cursor = p->shown[p->list.cursor]->pid;
	if (p->clicked == before)
		choose(p);
}

enum picker_result picker_key(struct picker *p, const struct key_event *ev)
{
	size_t len = strlen(p->filter);
	uint32_t key = ev->key;
	pid_t clicked = p->clicked;

	if (p->ask.pid)
		return pickask_key(p, ev);
	picker_say(p, NULL);
	p->clicked = 0;
	if (key == UKEY_MOUSE) {
		click(p, ev, clicked);
	} else if (key == UKEY_ENTER) {
		choose(p);
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
static bool step(struct picker *p, struct tty *tty, struct canvas *c, struct worker *worker, double *read_at,
		 struct ui_pick *pick)
{
	struct pollfd fds[2] = {
		{ .fd = tty_fd(tty), .events = POLLIN }, { .fd = restore_fd(), .events = POLLIN },
	};
	struct key_event ev;
	int sig, rows, cols;

	double now = clock_now();
	if (now >= *read_at) {
		size_t n;
		struct proc_row *list = proclist_read(&n);
		picker_take(p, list, n);
		double took = clock_now() - now;
		*read_at = now + fmax(REFRESH_SECONDS, took / REFRESH_SHARE);
	}
	picker_look(p, worker, pick->foresee, pick->ctx);
	worker_poll(worker);
	picker_draw(p, c);
	tty_draw(tty, c, false);
	int ms = (int)(fmax(*read_at - clock_now(), 0) * 1000) + 1;
	if (worker_busy(worker) && ms > LOOK_MS)
		ms = LOOK_MS;
	if (poll(fds, 2, ms) < 0 && errno != EINTR)
		return false;
	while ((sig = restore_next())) {
		if (sig == SIGTSTP)
			tty_suspend(tty);
		else if (sig == SIGCONT)
			tty_continued(tty);
		else if (sig == SIGWINCH)
			tty_resized(tty);
		else
			pick->signal = sig;
		if (pick->signal)
			return false;
		tty_size(tty, &rows, &cols);
		canvas_resize(c, rows, cols);
	}
	if (tty_is_gone(fds[0].revents)) {
		pick->signal = SIGHUP;
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
			pick->pid = p->cursor;
		if (result == PICKER_INTERRUPTED)
			pick->signal = SIGINT;
		if (result != PICKER_GOES_ON)
			return false;
	}
	return true;
}

struct err *ui_pick(struct ui_pick *pick, const struct ui_options *options)
{
	struct tty *tty;
	struct picker p;
	int rows, cols;
	double read_at = 0;	/* when the list is to be read */

	pick->pid = 0;
	pick->signal = 0;
	struct err *err = tty_open(options, &tty);
	if (err)
		return err;
	tty_size(tty, &rows, &cols);
	struct canvas *c = canvas_create(rows, cols, tty_unicode(tty));
	picker_init(&p, pick->filter);
	picker_say(&p, pick->said);
	struct worker *worker = worker_create("foresee");
	while (step(&p, tty, c, worker, &read_at, pick))
		;
	worker_destroy(worker);
	memcpy(pick->filter, p.filter, sizeof(pick->filter));
	picker_deinit(&p);
	canvas_destroy(c);
	tty_close(tty);
	return NULL;
}
