/*
 * Marks: views kept to compare with. `m` keeps the one shown, `M` lists what there is, `D` orders by
 * what has changed since. A base given from outside, a snapshot file, stands at the end of the list.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "ui/format.h"
#include "ui/modal.h"

static const struct view *view_of(const struct ui *ui, int base)
{
	if (base == UI_BASE_FILE)
		return ui->source->base;
	return base >= 0 && (size_t)base < ui->nmarks ? ui->marks[base] : NULL;
}

static void compare_with(struct ui *ui, int base)
{
	struct view *view = (struct view *)view_of(ui, base);
	struct names *names = base == UI_BASE_FILE ? ui->source->base_names : ui->names;

	ui->base = view ? base : UI_BASE_NONE;
	/* the filter has been accepted before */
	err_free(report_set_base(ui->report, view, names));
	if (!view && ui->value == REPORT_DELTA_BYTES)
		ui->value = ui->value_before;
	ui->resort = true;
	ui_changed(ui);
}

void marks_init(struct ui *ui)
{
	ui->base = UI_BASE_NONE;
	ui->value_before = REPORT_LIVE_BYTES;
	if (ui->source->base)
		compare_with(ui, UI_BASE_FILE);
}

void marks_deinit(struct ui *ui)
{
	for (size_t i = 0; i < ui->nmarks; i++)
		view_unref(ui->marks[i]);
	ui->nmarks = 0;
}

bool marks_name(const struct ui *ui, char *buf, size_t len)
{
	char clock[TEXT_NUMBER];
	const struct view *view = view_of(ui, ui->base);

	if (!view)
		return false;
	if (ui->base == UI_BASE_FILE)
		snprintf(buf, len, "Δ %.60s", ui_basename(ui->source->base_name ? ui->source->base_name : "base"));
	else
		snprintf(buf, len, "Δ since %s", text_clock(clock, view->time));
	return true;
}

double marks_time(const struct ui *ui)
{
	const struct view *view = view_of(ui, ui->base);

	return view && ui->base != UI_BASE_FILE ? view->time : -1;
}

void marks_set(struct ui *ui)
{
	char clock[TEXT_NUMBER];

	if (!ui->view)
		return;
	if (ui->nmarks && ui->marks[ui->nmarks - 1] == ui->view) {
		/* twice the same instant: no second mark, but the one to compare with */
		compare_with(ui, (int)ui->nmarks - 1);
		return;
	}
	if (ui->nmarks == UI_MARKS) {
		view_unref(ui->marks[0]);
		memmove(ui->marks, ui->marks + 1, (UI_MARKS - 1) * sizeof(ui->marks[0]));
		ui->nmarks--;
	}
	ui->marks[ui->nmarks++] = view_ref(ui->view);
	compare_with(ui, (int)ui->nmarks - 1);
	ui_message(ui, false, "mark set at %s; D orders by what has changed since",
		   text_clock(clock, ui->view->time));
}

void marks_since(struct ui *ui)
{
	if (ui->value == REPORT_DELTA_BYTES) {
		ui_set_value(ui, ui->value_before, false);
		return;
	}
	enum report_value before = ui->value;
	ui_set_value(ui, REPORT_DELTA_BYTES, false);
	if (ui->value == REPORT_DELTA_BYTES)
		ui->value_before = before;
}

/* ---- the list ---- */

struct menu {
	struct modal modal;
	struct menu_rows rows;
};

/* Rows: no base, the file if there is one, the marks, newest first. */
static int rows_of(const struct ui *ui)
{
	return 1 + (ui->source->base != NULL) + (int)ui->nmarks;
}

static int base_of_row(const struct ui *ui, int row)
{
	int marks = (int)ui->nmarks;

	if (row < marks)
		return marks - 1 - row;
	return row == marks && ui->source->base ? UI_BASE_FILE : UI_BASE_NONE;
}

static void list_draw(struct ui *ui, struct modal *modal)
{
	struct menu *m = (struct menu *)modal;
	struct canvas *c = ui->canvas;
	int n = rows_of(ui);
	char clock[TEXT_NUMBER], num[TEXT_NUMBER], text[160];

	m->rows.n = n;
	if (m->rows.cursor >= n)
		m->rows.cursor = n - 1;
	struct rect r = box_draw(c, n + 2, 46, " Compare with ");
	m->rows.inside = r;
	int top = menu_top(&m->rows);
	for (int i = 0; i < r.rows && top + i < n; i++) {
		int base = base_of_row(ui, top + i);
		const struct view *view = view_of(ui, base);
		char here = base == ui->base ? '*' : ' ';
		if (base == UI_BASE_NONE)
			snprintf(text, sizeof(text), "%c   nothing", here);
		else if (base == UI_BASE_FILE)
			snprintf(text, sizeof(text), "%c   %.60s  live %s", here,
				 ui_basename(ui->source->base_name ? ui->source->base_name : "base"),
				 text_bytes(num, view->totals.s.live_bytes));
		else
			snprintf(text, sizeof(text), "%c %d mark at %s  live %s", here, base + 1,
				 text_clock(clock, view->time), text_bytes(num, view->totals.s.live_bytes));
		canvas_put_cut(c, r.y + i, r.x, r.cols, STYLE_BOX | (top + i == m->rows.cursor ? STYLE_SELECTED : 0),
			       text);
	}
	canvas_clip_all(c);
}

static bool list_key(struct ui *ui, struct modal *modal, const struct key_event *ev)
{
	struct menu *m = (struct menu *)modal;

	if (ev->key >= '1' && ev->key < '1' + (uint32_t)ui->nmarks) {
		compare_with(ui, (int)(ev->key - '1'));
		return false;
	}
	m->rows.n = rows_of(ui);
	enum menu_did did = menu_rows_key(ui, &m->rows, ev);
	if (did == MENU_CHOSE)
		compare_with(ui, base_of_row(ui, m->rows.cursor));
	return did == MENU_STAYS;
}

static void menu_destroy(struct modal *m)
{
	free(m);
}

void marks_open(struct ui *ui)
{
	struct menu *m = xcalloc(1, sizeof(*m));

	m->modal = (struct modal){ .draw = list_draw, .key = list_key, .destroy = menu_destroy };
	for (int row = 0; row < rows_of(ui); row++)
		if (base_of_row(ui, row) == ui->base)
			m->rows.cursor = row;
	ui_set_modal(ui, &m->modal);
}
