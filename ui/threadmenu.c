/* T: a list of threads over any screen, to choose one (Enter) or several (Space, then Enter). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ui/choice.h"
#include "ui/format.h"
#include "ui/list.h"
#include "ui/modal.h"

struct entry {
	char *which;		/* what chooses it; NULL: all threads */
	char *name;
	uint32_t tid, merged;
	bool ended, chosen, marked;
	uint64_t live_bytes;
};

struct menu {
	struct modal modal;
	struct list list;	/* entry 0: all threads */
	struct entry *entries;
	size_t n;
	int y;			/* first row's line */
};

static void entries_free(struct entry *entries, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(entries[i].which);
		free(entries[i].name);
	}
	free(entries);
}

/* Marks stay with their threads, and so does the cursor. */
static void fetch(struct ui *ui, struct menu *m)
{
	struct entry *old = m->entries;
	size_t nold = m->n, n, cursor = m->list.cursor, to = 0;
	const struct report_site *rows = report_rows(ui->report, REPORT_BY_THREAD, REPORT_LIVE_BYTES, false, &n);

	/* the lists' rows were in the same place */
	ui_changed(ui);
	m->entries = xcalloc(n + 1, sizeof(*m->entries));
	m->entries[0].name = xstrdup("all threads");
	m->n = 1;
	for (size_t i = 0; i < n; i++) {
		char *which = choice_of_thread(&rows[i]);
		if (!*which) {
			free(which);
			continue;
		}
		struct entry *e = &m->entries[m->n++];
		*e = (struct entry){
			.which = which, .name = xstrdup(*rows[i].function ? rows[i].function : "?"),
			.tid = rows[i].more->tid, .merged = rows[i].more->merged, .ended = rows[i].more->ended,
			.chosen = rows[i].more->chosen, .live_bytes = rows[i].s.live_bytes,
		};
		for (size_t k = 1; k < nold; k++)
			if (!strcmp(old[k].which, which)) {
				e->marked = old[k].marked;
				if (k == cursor)
					to = m->n - 1;
			}
	}
	for (size_t i = 1; i < m->n; i++)
		m->entries[0].live_bytes += m->entries[i].live_bytes;
	entries_free(old, nold);
	list_set(&m->list, m->n, m->list.rows);
	list_go(&m->list, to);
}

static void draw_row(const struct ui *ui, const struct menu *m, int y, size_t row)
{
	struct canvas *c = ui->canvas;
	const struct entry *e = &m->entries[row];
	char buf[FORMAT_BUF], text[64];
	style_t style = e->ended ? STYLE_DIM : STYLE_TEXT;
	bool all = !row && !ui->view->info.thread;

	canvas_fill(c, y, 0, c->cols, STYLE_TEXT, ' ');
	canvas_char(c, y, 0, STYLE_WARN, e->marked ? '+' : e->chosen || all ? '*' : ' ');
	if (e->merged)
		snprintf(text, sizeof(text), "%" PRIu32 "x", e->merged);
	else
		snprintf(text, sizeof(text), row ? "%" PRIu32 : "", e->tid);
	canvas_put_right(c, y, 2, 7, STYLE_DIM, text);
	canvas_put_right(c, y, 10, 7, style | STYLE_STRONG, format_bytes(buf, e->live_bytes, 7));
	snprintf(text, sizeof(text), "%.40s%s", e->name, e->ended ? "  (ended)" : "");
	canvas_put_cut(c, y, 19, c->cols - 19, style, text);
	if (row == m->list.cursor)
		canvas_restyle(c, y, 0, c->cols, 0, STYLE_SELECTED);
}

static void menu_draw(struct ui *ui, struct modal *modal)
{
	struct menu *m = (struct menu *)modal;
	struct canvas *c = ui->canvas;
	int top = c->rows >= 6 ? 2 : c->rows >= 3 ? 1 : 0, bottom = c->rows >= 4 ? 1 : 0;
	char text[64];

	canvas_clip_all(c);
	for (int y = 0; y < c->rows; y++)
		canvas_fill(c, y, 0, c->cols, STYLE_TEXT, ' ');
	if (top) {
		canvas_fill(c, 0, 0, c->cols, STYLE_TAB_ACTIVE, ' ');
		snprintf(text, sizeof(text), "Threads: whose blocks to show? (%zu)", m->n - 1);
		canvas_put_max(c, 0, 1, c->cols - 1, STYLE_TAB_ACTIVE, text);
	}
	if (top > 1) {
		canvas_fill(c, 1, 0, c->cols, STYLE_HEADING, ' ');
		canvas_put_right(c, 1, 2, 7, STYLE_HEADING, "TID");
		canvas_put_right(c, 1, 10, 7, STYLE_HEADING, "LIVE");
		canvas_put(c, 1, 19, STYLE_HEADING, "NAME");
	}
	m->y = top;
	list_set(&m->list, m->n, c->rows - top - bottom);
	for (int i = 0; i < m->list.rows && m->list.top + i < m->n; i++)
		draw_row(ui, m, top + i, m->list.top + i);
	if (bottom)
		canvas_put_cut(c, c->rows - 1, 0, c->cols, STYLE_KEY_TEXT,
			       "Enter Show  Space Add to the choice  Up Down PgUp PgDn g G Move  q Close");
}

/* Those marked, or the one under the cursor. */
static void choose(struct ui *ui, const struct menu *m)
{
	char *which = NULL;

	for (size_t i = 1; i < m->n; i++) {
		if (!m->entries[i].marked)
			continue;
		char *more = which ? xasprintf("%s,%s", which, m->entries[i].which) : xstrdup(m->entries[i].which);
		free(which);
		which = more;
	}
	choice_set_thread(ui, which ? which : m->entries[m->list.cursor].which);
	free(which);
}

static bool menu_key(struct ui *ui, struct modal *modal, const struct key_event *ev)
{
	struct menu *m = (struct menu *)modal;

	if (ev->key == UKEY_MOUSE) {
		int row = ev->y - m->y;
		if (ev->button == MOUSE_WHEEL_UP || ev->button == MOUSE_WHEEL_DOWN)
			list_scroll(&m->list, ev->button == MOUSE_WHEEL_UP ? -3 : 3);
		else if (ev->button == MOUSE_LEFT && row >= 0 && row < m->list.rows && m->list.top + row < m->n) {
			bool again = m->list.cursor == m->list.top + row;
			list_go(&m->list, m->list.top + row);
			if (again) {
				choose(ui, m);
				return false;
			}
		}
		return ev->button != MOUSE_RIGHT;
	}
	if (ev->key == ' ') {
		if (m->list.cursor)
			m->entries[m->list.cursor].marked = !m->entries[m->list.cursor].marked;
		list_action(&m->list, ACT_DOWN);
		return true;
	}
	enum action a = action_of_key(ev->key, UI_SITES);
	if (a == ACT_OPEN) {
		choose(ui, m);
		return false;
	}
	if (a == ACT_REDRAW) {
		ui->clear = true;
		return true;
	}
	return list_action(&m->list, a);
}

static void menu_changed(struct ui *ui, struct modal *modal)
{
	fetch(ui, (struct menu *)modal);
}

static void menu_destroy(struct modal *modal)
{
	struct menu *m = (struct menu *)modal;

	entries_free(m->entries, m->n);
	free(m);
}

void thread_menu_open(struct ui *ui)
{
	if (!ui->view || !ui->view->nthreads) {
		ui_message(ui, false, "%s", choice_no_threads(ui));
		return;
	}
	struct menu *m = xcalloc(1, sizeof(*m));
	m->modal = (struct modal){
		.draw = menu_draw, .changed = menu_changed, .key = menu_key, .destroy = menu_destroy,
	};
	fetch(ui, m);
	ui_set_modal(ui, &m->modal);
}
