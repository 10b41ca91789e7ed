/*
 * Which process is shown, where several are watched: a list over the screen, children below
 * their parents, with all of them together in its first row.
 */
#include "ui/processes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "ui/another.h"
#include "ui/choice.h"
#include "ui/format.h"
#include "ui/list.h"
#include "ui/modal.h"

#define DEPTH_MAX 32	/* levels that are indented */

void ui_processes_free(struct ui_process *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(list[i].command);
		free(list[i].why);
	}
	free(list);
}

size_t processes_read(const struct ui *ui, struct ui_process **ret)
{
	*ret = NULL;
	return ui->source->processes ? ui->source->processes(ui->source->ctx, ret) : 0;
}

/* ---- the order: children behind their parents ---- */

struct order {
	const struct ui_process *list;
	size_t n;
	size_t *rows;		/* indices in list */
	int *depth;		/* by row */
	size_t nrows;
	bool *placed;
};

static void place(struct order *o, size_t i, int depth)
{
	o->placed[i] = true;
	o->depth[o->nrows] = depth;
	o->rows[o->nrows++] = i;
	/* a parent's id is smaller than its children's, so this ends; deeper ones come behind */
	for (size_t k = 0; k < o->n && depth < DEPTH_MAX; k++)
		if (!o->placed[k] && o->list[k].parent == o->list[i].id && o->list[k].id > o->list[i].id)
			place(o, k, depth + 1);
}

static bool has_parent(const struct order *o, size_t i)
{
	for (size_t k = 0; k < o->n; k++)
		if (o->list[k].id == o->list[i].parent && o->list[k].id < o->list[i].id)
			return true;
	return false;
}

static void order_init(struct order *o, const struct ui_process *list, size_t n)
{
	*o = (struct order){ .list = list, .n = n };
	o->rows = xcalloc(n + 1, sizeof(*o->rows));
	o->depth = xcalloc(n + 1, sizeof(*o->depth));
	o->placed = xcalloc(n + 1, sizeof(*o->placed));
	for (size_t i = 0; i < n; i++)
		if (!o->placed[i] && !has_parent(o, i))
			place(o, i, 0);
	for (size_t i = 0; i < n; i++)
		if (!o->placed[i])
			place(o, i, 0);
	free(o->placed);
	o->placed = NULL;
}

static void order_deinit(struct order *o)
{
	free(o->rows);
	free(o->depth);
}

/* ---- the list ---- */

struct menu {
	struct modal modal;
	struct list list;	/* row 0: all together */
	struct ui_process *processes;
	size_t n;
	struct order order;
	uint32_t cursor;	/* id; 0: all together */
	int y;			/* first row's line */
};

static void fetch(struct ui *ui, struct menu *m)
{
	ui_processes_free(m->processes, m->n);
	order_deinit(&m->order);
	m->n = processes_read(ui, &m->processes);
	order_init(&m->order, m->processes, m->n);
	list_set(&m->list, m->n + 1, m->list.rows);
	list_go(&m->list, 0);
	for (size_t row = 0; row < m->order.nrows; row++)
		if (m->processes[m->order.rows[row]].id == m->cursor)
			list_go(&m->list, row + 1);
}

static uint32_t id_of_row(const struct menu *m, size_t row)
{
	return row && row <= m->order.nrows ? m->processes[m->order.rows[row - 1]].id : 0;
}

static const char *state_text(const struct ui_process *p, char buf[24])
{
	switch (p->state) {
	case VIEW_RUNNING:
		return "running";
	case VIEW_PAUSED:
		return "off";
	case VIEW_EXITED:
		if (p->exit_code < 0)
			return "ended";
		snprintf(buf, 24, "rc=%d", p->exit_code);
		return buf;
	case VIEW_DETACHED:
		return "let go";
	case VIEW_SNAPSHOT:
		break;
	}
	return "";
}

static void draw_row(const struct ui *ui, struct menu *m, int y, size_t row)
{
	struct canvas *c = ui->canvas;
	char buf[FORMAT_BUF], text[24];
	bool wide = c->cols >= 60;
	const struct ui_process *p = row ? &m->processes[m->order.rows[row - 1]] : NULL;
	int x = 2, depth = p ? m->order.depth[row - 1] : 0;
	style_t style = p && p->state != VIEW_RUNNING && p->state != VIEW_PAUSED ? STYLE_DIM : STYLE_TEXT;
	uint64_t live = 0, rss = 0, threads = 0;

	for (size_t i = 0; i < m->n; i++) {
		if (p && p != &m->processes[i])
			continue;
		live += m->processes[i].live_bytes;
		rss += m->processes[i].rss;
		threads += m->processes[i].threads;
	}
	canvas_clip_all(c);
	canvas_fill(c, y, 0, c->cols, STYLE_TEXT, ' ');
	canvas_char(c, y, 0, STYLE_TEXT, id_of_row(m, row) == ui->process ? '*' : ' ');
	if (p && p->merged > 1)
		snprintf(text, sizeof(text), "%ux", p->merged);
	else if (p)
		snprintf(text, sizeof(text), "%d", p->pid);
	else
		snprintf(text, sizeof(text), "all");
	canvas_put_right(c, y, x, 7, style, text);
	x += 8;
	canvas_put_right(c, y, x, 7, style | STYLE_STRONG, format_bytes(buf, live, 7));
	x += 8;
	if (wide) {
		canvas_put_right(c, y, x, 7, style, rss ? format_bytes(buf, rss, 7) : "");
		canvas_put_right(c, y, x + 8, 5, style, threads ? format_count(buf, threads, 5) : "");
		canvas_put_max(c, y, x + 15, 8, style, p ? state_text(p, text) : "");
		x += 23;
	}
	x += 1 + 2 * (depth < c->cols / 8 ? depth : c->cols / 8);
	if (depth && x >= 2)
		canvas_char(c, y, x - 2, STYLE_GUIDE, 0x2514);
	canvas_put_cut(c, y, x, c->cols - x, style, p ? p->command ? p->command : "" : "all of them together");
	if (row == m->list.cursor)
		canvas_restyle(c, y, 0, c->cols, 0, STYLE_SELECTED);
}

static void menu_draw(struct ui *ui, struct modal *modal)
{
	struct menu *m = (struct menu *)modal;
	struct canvas *c = ui->canvas;
	bool wide = c->cols >= 60;
	int top = c->rows >= 6 ? 2 : c->rows >= 3 ? 1 : 0, bottom = c->rows >= 5 ? 2 : c->rows >= 4 ? 1 : 0;
	int rows = c->rows - top - bottom;
	char text[64];

	canvas_clip_all(c);
	for (int y = 0; y < c->rows; y++)
		canvas_fill(c, y, 0, c->cols, STYLE_TEXT, ' ');
	if (top) {
		canvas_fill(c, 0, 0, c->cols, STYLE_TAB_ACTIVE, ' ');
		snprintf(text, sizeof(text), "Processes: which to show? (%zu)", m->n);
		canvas_put_max(c, 0, 1, c->cols - 1, STYLE_TAB_ACTIVE, text);
	}
	if (top > 1) {
		canvas_fill(c, 1, 0, c->cols, STYLE_HEADING, ' ');
		canvas_put_right(c, 1, 2, 7, STYLE_HEADING, "PID");
		canvas_put_right(c, 1, 10, 7, STYLE_HEADING, "LIVE");
		if (wide)
			canvas_put(c, 1, 22, STYLE_HEADING, "RSS   THR  STATE");
		canvas_put(c, 1, wide ? 42 : 19, STYLE_HEADING, "COMMAND");
	}
	m->y = top;
	list_set(&m->list, m->n + 1, rows);
	for (int i = 0; i < rows && m->list.top + i <= m->n; i++)
		draw_row(ui, m, top + i, m->list.top + i);
	size_t row = m->list.cursor;
	const char *why = row && row <= m->order.nrows ? m->processes[m->order.rows[row - 1]].why : NULL;
	if (bottom > 1 && why && *why)
		canvas_put_cut(c, c->rows - 2, 0, c->cols, STYLE_WARN, why);
	if (bottom)
		canvas_put_cut(c, c->rows - 1, 0, c->cols, STYLE_KEY_TEXT,
			       "Enter Show  Up Down PgUp PgDn g G Move  q Close");
}

static void choose(struct ui *ui, uint32_t id)
{
	if (!ui->source->choose || !ui->source->choose(ui->source->ctx, id)) {
		ui_message(ui, true, "that process is no longer there");
		return;
	}
	ui->process = id;
	/* the others' threads have other names */
	if (ui->thread)
		choice_set_thread(ui, NULL);
	ui->switched = true;
}

static bool menu_key(struct ui *ui, struct modal *modal, const struct key_event *ev)
{
	struct menu *m = (struct menu *)modal;

	if (ev->key == UKEY_MOUSE) {
		int row = ev->y - m->y;
		if (ev->button == MOUSE_WHEEL_UP || ev->button == MOUSE_WHEEL_DOWN)
			list_scroll(&m->list, ev->button == MOUSE_WHEEL_UP ? -3 : 3);
		else if (ev->button == MOUSE_LEFT && row >= 0 && row < m->list.rows && m->list.top + row <= m->n) {
			bool again = m->list.cursor == m->list.top + row;
			list_go(&m->list, m->list.top + row);
			if (again) {
				choose(ui, id_of_row(m, m->list.cursor));
				return false;
			}
		}
		m->cursor = id_of_row(m, m->list.cursor);
		return ev->button != MOUSE_RIGHT;
	}
	enum action a = action_of_key(ev->key, UI_SITES);
	if (a == ACT_OPEN) {
		choose(ui, id_of_row(m, m->list.cursor));
		return false;
	}
	if (a == ACT_REDRAW)
		ui->clear = true;
	else if (!list_action(&m->list, a))
		return false;
	m->cursor = id_of_row(m, m->list.cursor);
	return true;
}

static void menu_changed(struct ui *ui, struct modal *modal)
{
	fetch(ui, (struct menu *)modal);
}

static void menu_destroy(struct modal *modal)
{
	struct menu *m = (struct menu *)modal;

	ui_processes_free(m->processes, m->n);
	order_deinit(&m->order);
	free(m);
}

void processes_open(struct ui *ui)
{
	struct menu *m = xcalloc(1, sizeof(*m));

	m->modal = (struct modal){
		.draw = menu_draw, .changed = menu_changed, .key = menu_key, .destroy = menu_destroy,
	};
	m->cursor = ui->process;
	fetch(ui, m);
	bool another = m->n == 1 && ui->source->other;
	if (!m->n || another) {
		menu_destroy(&m->modal);
		if (another)
			another_open(ui);
		else
			ui_message(ui, false, "only one process is shown");
		return;
	}
	ui_set_modal(ui, &m->modal);
}

bool processes_name(const struct ui *ui, char *buf, size_t len)
{
	struct ui_process *list;
	size_t n = processes_read(ui, &list);
	/* a file has no list of them */
	size_t sum = n ? n : ui->view ? ui->view->info.processes : 0;

	if (sum > 1)
		snprintf(buf, len, "all %zu processes", sum);
	for (size_t i = 0; ui->process && n > 1 && i < n; i++)
		if (list[i].id == ui->process)
			snprintf(buf, len, "one of %zu processes", n);
	ui_processes_free(list, n);
	return sum > 1;
}
