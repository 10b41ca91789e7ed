/* See detail.h. */
#include "ui/detail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "report/lines.h"
#include "report/touched.h"
#include "symbol/source.h"
#include "ui/excerpts.h"
#include "ui/detail_blocks.h"
#include "ui/format.h"
#include "ui/keymap.h"

#define PANE_COLS 110		/* from so many columns or rows of the terminal on there is room for a pane */
#define PANE_ROWS 36
#define TWO_COLUMNS 96
#define HISTORY_STEP 0.95	/* seconds between its values */

struct detail {
	bool open, zoomed;
	int scroll, height;		/* rows; height: of the content drawn last */
	int rows;			/* that were there for it */
	struct rect rect;
	struct excerpts *excerpts;
	bool waits;			/* for a source file */
	/* what is shown: */
	uint64_t key;			/* 0: nothing yet */
	bool stale;
	struct report_parts parts;
	struct report_touched touched;
	struct detail_history history;
};

struct detail *detail_create(void)
{
	struct detail *d = xcalloc(1, sizeof(*d));

	d->excerpts = excerpts_create();
	return d;
}

void detail_destroy(struct detail *d)
{
	if (!d)
		return;
	excerpts_destroy(d->excerpts);
	free(d);
}

static bool selected(struct ui *ui, struct selection *ret)
{
	const struct view_ops *ops = view_ops_of(ui->screen);

	return ops->selected && ops->selected(ui, ui->state[ui->screen], ret) && (ret->is_site || ret->cell || ret->row);
}

static bool has_room(const struct ui *ui)
{
	return ui->canvas->rows >= PANE_ROWS || ui->canvas->cols >= PANE_COLS;
}

static bool is_whole(const struct ui *ui)
{
	return ui->detail->zoomed || !has_room(ui);
}

bool detail_is_open(const struct ui *ui)
{
	return ui->detail->open;
}

static void detail_close(struct ui *ui)
{
	struct detail *d = ui->detail;

	d->open = d->zoomed = false;
	ui->dirty = true;
}

void detail_open(struct ui *ui)
{
	struct detail *d = ui->detail;
	struct selection sel;

	if (d->open && is_whole(ui)) {
		detail_close(ui);
		return;
	}
	if (!selected(ui, &sel))
		return;
	d->zoomed = d->open;
	d->open = true;
	d->scroll = 0;
	d->stale = true;
	ui->dirty = true;
}

static void scroll_by(struct detail *d, int by)
{
	int last = d->height > d->rows ? d->height - d->rows : 0;

	d->scroll += by;
	d->scroll = d->scroll > last ? last : d->scroll < 0 ? 0 : d->scroll;
}

/* Another row of the list behind it. */
static void step_row(struct ui *ui, enum action a)
{
	const struct view_ops *ops = view_ops_of(ui->screen);

	ops->action(ui, ui->state[ui->screen], a);
	ui->detail->scroll = 0;
}

static bool whole_action(struct ui *ui, enum action a)
{
	struct detail *d = ui->detail;
	int page = d->rows > 1 ? d->rows - 1 : 1;

	switch (a) {
	case ACT_UP:
		scroll_by(d, -1);
		return true;
	case ACT_DOWN:
		scroll_by(d, 1);
		return true;
	case ACT_PAGE_UP:
		scroll_by(d, -page);
		return true;
	case ACT_PAGE_DOWN:
		scroll_by(d, page);
		return true;
	case ACT_HALF_UP:
		scroll_by(d, -(page / 2 + 1));
		return true;
	case ACT_HALF_DOWN:
		scroll_by(d, page / 2 + 1);
		return true;
	case ACT_TOP:
		d->scroll = 0;
		return true;
	case ACT_BOTTOM:
		scroll_by(d, d->height);
		return true;
	case ACT_LEFT:
		step_row(ui, ACT_UP);
		return true;
	case ACT_RIGHT:
		step_row(ui, ACT_DOWN);
		return true;
	case ACT_BACK:
		if (d->zoomed && has_room(ui)) {
			d->zoomed = false;
			d->scroll = 0;
			return true;
		}
		detail_close(ui);
		return true;
	case ACT_OPEN:
	case ACT_DETAILS:
	case ACT_QUIT:
		detail_close(ui);
		return true;
	case ACT_SITES:
	case ACT_TREE:
	case ACT_FLAME:
	case ACT_TIME:
	case ACT_THREADS:
	case ACT_MODULES:
	case ACT_OUTPUT:
	case ACT_NEXT_SCREEN:
	case ACT_PREVIOUS_SCREEN:
		/* whoever asks for a screen wants to see it, not what covers it */
		d->zoomed = false;
		if (!has_room(ui))
			detail_close(ui);
		return false;
	default:
		return false;
	}
}

bool detail_action(struct ui *ui, enum action a)
{
	struct selection sel;

	if (!ui->detail->open || !selected(ui, &sel))
		return false;
	if (is_whole(ui))
		return whole_action(ui, a);
	if (a != ACT_BACK)
		return false;
	detail_close(ui);
	return true;
}

bool detail_mouse(struct ui *ui, const struct key_event *ev)
{
	struct detail *d = ui->detail;
	struct rect r = d->rect;

	if (!d->open || ev->y < r.y || ev->y >= r.y + r.rows || ev->x < r.x || ev->x >= r.x + r.cols)
		return false;
	if (ev->button == MOUSE_WHEEL_UP || ev->button == MOUSE_WHEEL_DOWN)
		scroll_by(d, ev->button == MOUSE_WHEEL_UP ? -3 : 3);
	return true;
}

void detail_split(struct ui *ui, struct rect *screen, struct rect *ret_pane)
{
	struct detail *d = ui->detail;
	struct selection sel;

	*ret_pane = (struct rect){ 0 };
	d->rect = *ret_pane;
	if (!d->open || screen->rows < 2 || !selected(ui, &sel))
		return;
	*ret_pane = *screen;
	if (is_whole(ui)) {
		screen->rows = 0;
	} else if (ui->canvas->rows >= PANE_ROWS) {
		int rows = screen->rows * 11 / 20;
		ret_pane->rows = rows < 24 ? rows : 24;
		screen->rows -= ret_pane->rows;
		ret_pane->y = screen->y + screen->rows;
	} else {
		ret_pane->cols = screen->cols * 9 / 20;
		screen->cols -= ret_pane->cols + 1;
		ret_pane->x = screen->x + screen->cols + 1;
	}
	d->rect = *ret_pane;
}

/* ---- what is shown ---- */

void detail_changed(struct ui *ui)
{
	ui->detail->stale = true;
}

/* A row keeps its key from view to view; other screens have rows of their own. */
static uint64_t key_of(const struct ui *ui, const struct selection *sel)
{
	uint64_t key = sel->cell ? sel->cell->key : sel->site_id;

	key = keymap_mix(key, (uint64_t)ui->screen << 8 | (uint64_t)(sel->row ? sel->group : 0) << 1 | ui->inverted);
	return key ? key : 1;
}

static void history_add(struct detail_history *h, double time, uint64_t value)
{
	if (h->n && time < h->times[h->n - 1] + HISTORY_STEP)
		return;
	if (h->n == DETAIL_HISTORY) {
		memmove(h->values, h->values + 1, (h->n - 1) * sizeof(h->values[0]));
		memmove(h->times, h->times + 1, (h->n - 1) * sizeof(h->times[0]));
		h->n--;
	}
	h->values[h->n] = value;
	h->times[h->n++] = time;
}

/* Of a site the last ten seconds are known already. */
static void history_begin(struct detail_history *h, const struct selection *sel, double now)
{
	double step = sel->ntrend > 1 ? sel->trend_seconds / (double)(sel->ntrend - 1) : 1;

	h->n = 0;
	for (size_t i = 0; i < sel->ntrend; i++)
		history_add(h, now - step * (double)(sel->ntrend - 1 - i), sel->trend[i]);
}

static void refresh(struct ui *ui, const struct selection *sel)
{
	struct detail *d = ui->detail;
	uint64_t key = key_of(ui, sel);
	double now = ui->view ? ui->view->time : 0;

	if (key == d->key && !d->stale)
		return;
	if (key != d->key) {
		history_begin(&d->history, sel, now);
		d->scroll = 0;
	} else if (d->history.n && now < d->history.times[d->history.n - 1]) {
		history_begin(&d->history, sel, now);	/* another process */
	}
	d->key = key;
	d->stale = false;
	history_add(&d->history, now, sel->s.live_bytes);
	if (sel->is_site) {
		report_site_parts(ui->report, sel->site_id, &d->parts);
		report_site_touched(ui->report, sel->site_id, &d->touched);
	} else if (sel->row) {
		report_row_parts(ui->report, sel->group, sel->row, &d->parts);
		memset(&d->touched, 0, sizeof(d->touched));	/* told by site and by cell alone */
	} else {
		report_cell_parts(sel->tree, sel->cell, &d->parts);
		report_cell_touched(sel->tree, sel->cell, &d->touched);
	}
}

/*
 * The place to show: the row's own; where its traces differ or there is none, that of the heaviest one's site, and of a
 * function that allocates its innermost frame.
 */
static void find_source(struct ui *ui, struct detail_facts *f)
{
	struct detail *d = ui->detail;

	f->file = f->sel->file;
	f->line = f->sel->line;
	size_t own = f->sel->row && f->sel->group == REPORT_BY_FUNCTION ? 0 : f->site;
	if ((!f->file || !*f->file || !f->line) && own < f->nframes) {
		f->file = f->stack[own].file;
		f->line = f->stack[own].line;
	}
	bool asked = f->file && *f->file && f->line;
	if (asked)
		f->source = excerpts_get(d->excerpts, ui->worker, ui->options.source_paths, f->file,
					 /* which looks through all frames: once a file */
					 excerpts_has(d->excerpts, f->file) ? NULL : report_source_dir(ui->report, f->file));
	d->waits = asked && !f->source;
}

bool detail_poll(struct ui *ui)
{
	struct detail *d = ui->detail;

	if (!d->waits || excerpts_pending(d->excerpts))
		return false;
	d->waits = false;
	return true;
}

bool detail_waits(const struct ui *ui)
{
	return ui->detail->waits;
}

/* ---- drawing ---- */

static void draw_title(struct ui *ui, const struct selection *sel, struct rect r)
{
	struct canvas *c = ui->canvas;
	char name[UI_NAME], rest[200], bytes[TEXT_NUMBER], percent[FORMAT_BUF], error[UI_ERROR], note[200] = "";
	char delta[FORMAT_BUF + 8] = "", number[FORMAT_BUF];
	bool faults = ui->value == REPORT_FAULT_BYTES;
	double whole = report_whole(ui->report, faults ? REPORT_FAULT_BYTES : REPORT_LIVE_BYTES);
	uint64_t shown = faults ? sel->s.fault_bytes : sel->s.live_bytes;

	ui_error(ui, sel, error);
	if (ui->base != UI_BASE_NONE)
		snprintf(delta, sizeof(delta), "  Δ %s", format_delta(number, sel->delta, 1, true));
	format_share(percent, (double)shown, whole);
	/* a site's note is what the judgement says */
	if (!sel->is_site && *sel->note && ui->screen == UI_TREE)
		snprintf(note, sizeof(note), "  %s", sel->note);
	snprintf(rest, sizeof(rest), " %s%s  %s%s%.60s%s ", faults ? "touched " : "", text_bytes(bytes, shown), percent, delta,
		 note, error);
	canvas_fill(c, r.y, r.x, r.cols, STYLE_GUIDE, 0x2500);
	int w = canvas_width(c, rest), room = r.cols - w - 6;
	const char *text = ui_name(ui, sel->function, name);
	int nw = canvas_width(c, text);
	canvas_put(c, r.y, r.x + 1, STYLE_TEXT, " ");
	if (room > 0) {
		canvas_put_cut(c, r.y, r.x + 2, nw < room ? nw : room, STYLE_TITLE, text);
		canvas_put(c, r.y, r.x + 2 + (nw < room ? nw : room), STYLE_TEXT, " ");
	}
	canvas_put(c, r.y, r.x + r.cols - w - 1, STYLE_NUMBER, rest);
}

/* Where the name is longer than the title has room for. */
static int draw_name(struct ui *ui, const struct detail_facts *f, int y, int x, int cols)
{
	if (canvas_width(ui->canvas, f->sel->function) < cols / 2)
		return 0;
	return 1 + detail_name(ui, f, y + 1, x, cols);
}

/* Not of a row that has only touched memory: it has none to tell sizes, ages and threads of. */
static bool has_blocks(const struct detail_facts *f)
{
	return f->sel->s.alloc_q10 || !f->sel->s.fault_bytes;
}

/* Stack and source at the left, figures at the right. Returns the height. */
static int draw_two(struct ui *ui, const struct detail_facts *f, struct rect r, int y)
{
	struct canvas *c = ui->canvas;
	int left = r.cols * 58 / 120, x = r.x + left + 2, cols = r.cols - left - 2, top = y;
	bool whole = is_whole(ui);
	unsigned around = whole ? 6 : 2;
	bool lines = f->source && !f->source->error && f->line && f->line <= f->source->n;
	int source = lines ? (int)(2 * around + 1) + 1 : 1;
	int frames = r.rows - 3 - source - 1;

	for (int row = r.y + 1; row < r.y + r.rows; row++)
		if (row >= y + 1)
			canvas_char(c, row, r.x + left, STYLE_GUIDE, 0x2502);
	y += detail_verdict(ui, f, y, r.x, r.cols);
	int l = y, right = y;
	l += detail_stack(ui, f, l, r.x, left - 1, whole ? 1000 : frames > 2 ? (size_t)frames : 2) + 1;
	l += detail_source(ui, f, l, r.x, left - 1, around);
	/* of what only touches there is nothing else to tell, and who looks at faults wants them first */
	bool first = ui->value == REPORT_FAULT_BYTES;
	if (first)
		right += detail_touched(ui, f, right, x, cols);
	/* in a pane: what is left when threads have their rows */
	int classes = r.rows - 2 - 2 - 5;
	if (has_blocks(f)) {
		right += detail_classes(ui, f, right, x, cols, whole ? 16 : classes > 3 ? (size_t)classes : 3) + 1;
		right += detail_threads(ui, f, right, x, cols, whole ? REPORT_PART_THREADS : 3) + 1;
	}
	right += detail_numbers(ui, f, right, x, cols);
	if (!first)
		right += detail_touched(ui, f, right + 1, x, cols);
	int end = l > right ? l : right;
	end += draw_name(ui, f, end, r.x, r.cols);
	return end - top;
}

static int draw_one(struct ui *ui, const struct detail_facts *f, struct rect r, int y)
{
	int top = y;

	y += detail_verdict(ui, f, y, r.x, r.cols);
	bool first = ui->value == REPORT_FAULT_BYTES;
	if (first)
		y += detail_touched(ui, f, y, r.x, r.cols);
	y += detail_numbers(ui, f, y, r.x, r.cols) + 1;
	y += detail_source(ui, f, y, r.x, r.cols, 2) + 1;
	y += detail_stack(ui, f, y, r.x, r.cols, is_whole(ui) ? 1000 : 8) + 1;
	if (has_blocks(f)) {
		y += detail_classes(ui, f, y, r.x, r.cols, 16) + 1;
		y += detail_threads(ui, f, y, r.x, r.cols, REPORT_PART_THREADS);
	}
	if (!first)
		y += detail_touched(ui, f, y + 1, r.x, r.cols);
	y += draw_name(ui, f, y, r.x, r.cols);
	return y - top;
}

void detail_draw(struct ui *ui, struct rect r)
{
	struct detail *d = ui->detail;
	struct canvas *c = ui->canvas;
	struct selection sel;
	struct detail_facts f = { .sel = &sel, .parts = &d->parts, .touched = &d->touched, .history = &d->history };

	if (r.rows < 1 || !selected(ui, &sel))
		return;
	refresh(ui, &sel);
	if (d->parts.heaviest != SIZE_MAX)
		f.stack = report_stack(ui->report, d->parts.heaviest, &f.nframes, &f.site);
	find_source(ui, &f);
	if (r.x)	/* beside the list */
		for (int row = r.y; row < r.y + r.rows; row++)
			canvas_char(c, row, r.x - 1, STYLE_GUIDE, 0x2502);
	draw_title(ui, &sel, r);
	struct rect inside = { r.y, r.x, r.rows, r.cols };
	canvas_clip(c, r.y + 1, r.x, r.rows - 1, r.cols);
	d->rows = r.rows - 1;
	d->height = (r.cols >= TWO_COLUMNS ? draw_two : draw_one)(ui, &f, inside, r.y + 1 - d->scroll);
	if (d->height - d->scroll > d->rows && d->rows > 3)
		canvas_put_right(c, r.y + r.rows - 1, r.x + r.cols - 7, 7, STYLE_GUIDE, " ▼ more");
	canvas_clip_all(c);
	if (d->scroll > 0 && d->scroll > d->height - d->rows) {
		scroll_by(d, 0);
		ui->dirty = true;
	}
}
