/*
 * Time: live bytes, RSS and allocation rate over the whole session, a pane each as far as there are rows.
 * Time runs evenly from left to right; a column that several points fall into shows the highest. Where
 * nothing was looked at for a while (heaptop was suspended) nothing is drawn but a dotted ground. A cursor
 * reads off the values; it stays at its time while the session goes on, or with the newest point.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "ui/format.h"
#include "ui/graph.h"
#include "ui/screen.h"

#define LABEL 8			/* columns of the scale at the right */
#define PANE_ROWS 4		/* that a further pane is worth */
#define GAP_STEPS 4		/* of the points around: what is longer is a gap */
#define GAP_SECONDS 3.0

enum pane { PANE_LIVE, PANE_RSS, PANE_RATE, PANES };

struct slot {			/* one value of the graph */
	uint64_t value[PANES];
	bool known, gap;
	size_t point;		/* the newest one up to here */
};

struct timeline {
	double cursor;		/* seconds; < 0: with the newest */
	/* of the last draw */
	struct rect graph;
	double from, step;	/* time of the left edge; seconds a column */
	int used;		/* columns that time has reached */
};

static void *time_create(struct ui *ui)
{
	struct timeline *t = xcalloc(1, sizeof(*t));

	(void)ui;
	t->cursor = -1;
	return t;
}

static void time_destroy(void *state)
{
	free(state);
}

static uint64_t value_of(const struct view_point *p, enum pane pane)
{
	return pane == PANE_LIVE ? p->live_bytes : pane == PANE_RSS ? p->rss : format_clamp(p->alloc_bps);
}

/* Is there a gap between point i and the next? Points are as far apart as those beside them, but for gaps. */
static bool is_gap(const struct view_point *points, size_t n, size_t i)
{
	double here = (double)points[i + 1].time - (double)points[i].time, usual = 0;

	if (here <= GAP_SECONDS)
		return false;
	if (i)
		usual = (double)points[i].time - (double)points[i - 1].time;
	if (i + 2 < n) {
		double after = (double)points[i + 2].time - (double)points[i + 1].time;
		usual = usual > after ? usual : after;
	}
	return usual > 0 && here > GAP_STEPS * usual;
}

static size_t slot_at(double seconds, double from, double step, size_t n)
{
	double i = step > 0 ? (seconds - from) / step : 0;

	return i <= 0 ? 0 : i >= (double)n ? n - 1 : (size_t)i;
}

/* Each point is what was known from its time to the next one's. */
static void fill(struct slot *slots, size_t n, const struct view *view, double from, double step)
{
	const struct view_point *points = view->points;

	for (size_t i = 0; i < view->npoints; i++) {
		size_t a = slot_at((double)points[i].time, from, step, n), b = a;
		bool gap = false;
		if (i + 1 < view->npoints) {
			b = slot_at((double)points[i + 1].time, from, step, n);
			gap = is_gap(points, view->npoints, i);
		}
		for (size_t k = a; k <= b && k < n; k++) {
			struct slot *s = &slots[k];
			if (k > a && k == b)
				break;	/* the next one's */
			s->point = i;
			if (k > a && gap) {
				s->gap = true;
				continue;
			}
			s->known = true;
			for (enum pane p = 0; p < PANES; p++) {
				uint64_t v = value_of(&points[i], p);
				s->value[p] = v > s->value[p] ? v : s->value[p];
			}
		}
	}
}

static const char *pane_name(enum pane pane)
{
	static const char *const names[PANES] = { "Live", "RSS", "Alloc/s" };

	return names[pane];
}

static void draw_scale(struct canvas *c, struct rect r, enum pane pane, uint64_t max)
{
	char num[FORMAT_BUF];
	int x = r.x + r.cols;

	canvas_put(c, r.y, x, STYLE_GRAPH_SCALE, r.rows > 1 ? "┬" : "┤");
	canvas_put_right(c, r.y, x + 1, LABEL - 1, STYLE_GRAPH_SCALE, format_bytes(num, max, 6));
	for (int y = 1; y + 1 < r.rows; y++)
		canvas_put(c, r.y + y, x, STYLE_GRAPH_SCALE, "│");
	if (r.rows > 1) {
		canvas_put(c, r.y + r.rows - 1, x, STYLE_GRAPH_SCALE, "┴");
		canvas_put_right(c, r.y + r.rows - 1, x + 1, LABEL - 1, STYLE_LABEL, pane_name(pane));
	}
}

static int column_of(const struct timeline *t, double seconds)
{
	return (int)slot_at(seconds, t->from, t->step, (size_t)(t->graph.cols > 0 ? t->graph.cols : 1));
}

static void draw_pane(struct ui *ui, const struct timeline *t, struct rect r, const struct slot *slots, size_t n, enum pane pane)
{
	struct canvas *c = ui->canvas;
	enum graph_kind kind = c->unicode ? GRAPH_BRAILLE : GRAPH_ASCII;
	int per_cell = graph_per_cell(kind);
	uint64_t max = 0;
	CLEANUP_FREE uint64_t *values = xcalloc(n + 1, sizeof(*values));

	for (size_t i = 0; i < n; i++) {
		values[i] = slots[i].value[pane];
		max = values[i] > max ? values[i] : max;
	}
	graph_draw(c, r.y, r.x, r.rows, r.cols, kind, STYLE_GRAPH, values, n, max);
	for (int x = 0; x < r.cols; x++) {
		bool gap = false;
		for (int k = 0; k < per_cell; k++)
			gap |= slots[x * per_cell + k].gap && !slots[x * per_cell + k].known;
		for (int y = 0; gap && y < r.rows; y++)
			canvas_char(c, r.y + y, r.x + x, STYLE_DIM, 0x250a);
	}
	for (size_t m = 0; m < ui->nmarks; m++) {
		bool base = ui->marks[m] == report_base(ui->report);
		for (int y = 0; y < r.rows; y++)
			canvas_put(c, r.y + y, r.x + column_of(t, ui->marks[m]->time), base ? STYLE_LABEL : STYLE_DIM, "┃");
	}
	if (pane == PANE_LIVE && ui->view->totals.s.peak_bytes && r.rows > 1)
		canvas_char(c, r.y, r.x + column_of(t, (double)ui->view->totals.peak_time), STYLE_WARN, 0x25bc);
	if (r.cols < ui->layout.screen.cols)
		draw_scale(c, r, pane, max);
}

/* "1:23  Live 412.3M  RSS 508.1M  Alloc 61.0M/s  (the highest of 32 s)" */
static void draw_values(struct ui *ui, struct rect r, const struct slot *slot, double step, bool now)
{
	const struct view *view = ui->view;
	const struct view_point *p = &view->points[slot->point];
	char clock[TEXT_NUMBER], live[FORMAT_BUF], rss[FORMAT_BUF], rate[FORMAT_BUF], text[200];
	double next = slot->point + 1 < view->npoints ? (double)view->points[slot->point + 1].time : (double)p->time;
	double span = next - (double)p->time > step ? next - (double)p->time : step;
	int n;

	text_clock(clock, (double)p->time);
	if (slot->gap && !slot->known) {
		canvas_printf(ui->canvas, r.y, r.x, STYLE_WARN, "from %s nothing is known for %.0f s: heaptop was stopped", clock, span);
		return;
	}
	n = snprintf(text, sizeof(text), "%s %-7s  Live %s  RSS %s  Alloc %s/s", now ? "now" : "at ", clock,
		     format_bytes(live, slot->value[PANE_LIVE], 6), format_bytes(rss, slot->value[PANE_RSS], 6),
		     format_bytes(rate, slot->value[PANE_RATE], 6));
	if (span >= 2 && n > 0 && (size_t)n < sizeof(text))
		snprintf(text + n, sizeof(text) - (size_t)n, "  (highest in %.0f s)", span);
	canvas_put_max(ui->canvas, r.y, r.x, r.cols, STYLE_NUMBER, text);
}

static void draw_axis(const struct timeline *t, struct canvas *c, int y, int x, double end)
{
	char clock[TEXT_NUMBER];

	canvas_put(c, y, x, STYLE_GRAPH_SCALE, text_clock(clock, t->from));
	text_clock(clock, end);
	int at = x + t->used - (int)strlen(clock);
	if (at > x + 8)
		canvas_put(c, y, at, STYLE_GRAPH_SCALE, clock);
	text_clock(clock, t->from + t->step * (t->used / 2));
	if (t->used > 40)
		canvas_put(c, y, x + t->used / 2, STYLE_GRAPH_SCALE, clock);
}

static void time_draw(struct ui *ui, void *state, struct rect r)
{
	struct timeline *t = state;
	struct canvas *c = ui->canvas;
	const struct view *view = ui->view;
	int head = r.rows > 1, axis = r.rows >= 5, rows = r.rows - head - axis;
	int cols = r.cols > 30 ? r.cols - LABEL : r.cols;

	t->graph = (struct rect){ r.y + head, r.x, rows, cols };
	t->used = 0;
	if (view->npoints < 2) {
		canvas_put_max(c, r.y, r.x + 2, r.cols - 2, STYLE_DIM, view->info.state == VIEW_SNAPSHOT ?
			       "the file has no series of points" : "nothing to draw before the second look");
		return;
	}
	int per_cell = graph_per_cell(c->unicode ? GRAPH_BRAILLE : GRAPH_ASCII);
	size_t n = (size_t)cols * (size_t)per_cell;
	double end = (double)view->points[view->npoints - 1].time;
	t->from = (double)view->points[0].time;
	/* at least a second a value: a short session fills the left part only */
	double step = (end - t->from) / (double)(n - 1 > 0 ? n - 1 : 1);
	step = step < 1 ? 1 : step;
	t->step = step * per_cell;
	t->used = column_of(t, end) + 1;
	CLEANUP_FREE struct slot *slots = xcalloc(n + 1, sizeof(*slots));
	fill(slots, n, view, t->from, step);

	int panes = rows / PANE_ROWS < 1 ? 1 : rows / PANE_ROWS > PANES ? PANES : rows / PANE_ROWS, y = t->graph.y;
	for (int p = 0; p < panes; p++) {
		int h = (rows - (y - t->graph.y)) / (panes - p);
		draw_pane(ui, t, (struct rect){ y, r.x, h, cols }, slots, n, (enum pane)p);
		y += h;
	}
	if (axis)
		draw_axis(t, c, r.y + r.rows - 1, r.x, end);
	bool now = t->cursor < 0 || t->cursor >= end;
	int column = now ? t->used - 1 : column_of(t, t->cursor);
	for (int k = 0; k < rows; k++)
		canvas_restyle(c, t->graph.y + k, r.x + column, 1, 0, STYLE_SELECTED);
	/* of its values the newest; a gap only if it is nothing else */
	const struct slot *slot = &slots[column * per_cell];
	for (int k = 1; k < per_cell; k++)
		if (slots[column * per_cell + k].known)
			slot = &slots[column * per_cell + k];
	if (head)
		draw_values(ui, (struct rect){ r.y, r.x, 1, r.cols }, slot, t->step, now);
}

static void go(struct timeline *t, int column)
{
	if (column >= t->used - 1)
		t->cursor = -1;
	else
		t->cursor = t->from + t->step * ((column < 0 ? 0 : column) + 0.5);
}

static bool time_action(struct ui *ui, void *state, enum action a)
{
	struct timeline *t = state;
	int column = t->cursor < 0 ? t->used - 1 : column_of(t, t->cursor), page = t->graph.cols / 4 + 1;

	(void)ui;
	switch (a) {
	case ACT_LEFT:
	case ACT_UP:
		go(t, column - 1);
		return true;
	case ACT_RIGHT:
	case ACT_DOWN:
		go(t, column + 1);
		return true;
	case ACT_PAGE_UP:
	case ACT_HALF_UP:
		go(t, column - page);
		return true;
	case ACT_PAGE_DOWN:
	case ACT_HALF_DOWN:
		go(t, column + page);
		return true;
	case ACT_TOP:
		go(t, 0);
		return true;
	case ACT_BOTTOM:
		t->cursor = -1;
		return true;
	default:
		return false;
	}
}

static void time_mouse(struct ui *ui, void *state, const struct key_event *ev)
{
	struct timeline *t = state;

	if (ev->button == MOUSE_WHEEL_UP)
		time_action(ui, t, ACT_LEFT);
	else if (ev->button == MOUSE_WHEEL_DOWN)
		time_action(ui, t, ACT_RIGHT);
	else if (ev->button == MOUSE_LEFT && ev->x < t->graph.x + t->graph.cols)
		go(t, ev->x - t->graph.x);
}

const struct view_ops time_ops = {
	.title = "Time",
	.create = time_create,
	.destroy = time_destroy,
	.draw = time_draw,
	.action = time_action,
	.mouse = time_mouse,
};
