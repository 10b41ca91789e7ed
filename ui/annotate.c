/*
 * Annotated source: the file of the selected frame with what each line holds in the gutter, over the whole
 * screen. The text is read by the session's worker; until it is there, or if it isn't, the lines that hold
 * anything are shown with their numbers alone, so that the figures never wait for a file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/worker.h"
#include "report/lines.h"
#include "symbol/source.h"
#include "ui/format.h"
#include "ui/modal.h"
#include "ui/tools.h"

#define HEAVY 0.01	/* n stops at lines with that share of the heaviest */

struct annotate;

struct read_job {
	struct worker_job job;
	const struct source_paths *paths;
	char *file, *dir;	/* dir: NULL if not known */
	struct source_text *source;
	struct annotate *whom;	/* NULL: closed meanwhile */
};

struct annotate {
	struct modal modal;
	struct ui *ui;
	char *file;			/* as the debug information has it */
	struct source_text *source;		/* NULL: not there yet */
	struct read_job *job;		/* under way, or NULL */
	struct report_line *lines;	/* by number */
	size_t n;
	uint32_t line;			/* under the cursor */
	size_t top;			/* first row shown */
	int rows, hscroll;		/* rows: of the last draw */
	bool centre;			/* the cursor's line is to come to the middle */
};

/* ---- the file ---- */

static void read_run(struct worker_job *job)
{
	struct read_job *r = (struct read_job *)job;

	r->source = source_read(r->paths, r->file, r->dir);
}

static void read_done(struct worker_job *job)
{
	struct read_job *r = (struct read_job *)job;

	if (r->whom) {
		r->whom->source = r->source;
		r->whom->job = NULL;
		r->whom->centre = true;
	} else {
		source_destroy(r->source);
	}
	free(r->file);
	free(r->dir);
	free(r);
}

static void start_reading(struct annotate *a)
{
	static const struct source_paths none;
	struct read_job *r = xcalloc(1, sizeof(*r));

	r->job = (struct worker_job){ .run = read_run, .done = read_done };
	r->paths = a->ui->options.source_paths ? a->ui->options.source_paths : &none;
	r->file = xstrdup(a->file);
	const char *dir = report_source_dir(a->ui->report, a->file);
	r->dir = dir ? xstrdup(dir) : NULL;
	r->whom = a;
	a->job = r;
	worker_give(a->ui->worker, &r->job);
}

/* ---- rows: of the text, or without one of the lines that hold something ---- */

static bool has_text(const struct annotate *a)
{
	return a->source && !a->source->error;
}

static size_t row_count(const struct annotate *a)
{
	return has_text(a) ? a->source->n : a->n;
}

static uint32_t row_line(const struct annotate *a, size_t row)
{
	return has_text(a) ? (uint32_t)row + 1 : row < a->n ? a->lines[row].line : 0;
}

/* The row of a line, or the one behind it. */
static size_t line_row(const struct annotate *a, uint32_t line)
{
	size_t n = row_count(a), row = 0;

	if (has_text(a))
		row = line ? line - 1 : 0;
	else
		while (row < n && a->lines[row].line < line)
			row++;
	return row < n ? row : n ? n - 1 : 0;
}

static const struct report_line *line_data(const struct annotate *a, uint32_t line)
{
	size_t lo = 0, hi = a->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (a->lines[mid].line < line)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < a->n && a->lines[lo].line == line ? &a->lines[lo] : NULL;
}

/* Lines have no base to be compared with: of the difference what is live is shown. */
static enum report_value shown_value(const struct ui *ui)
{
	return ui->value == REPORT_DELTA_BYTES ? REPORT_LIVE_BYTES : ui->value;
}

static double total_of(const struct annotate *a, const struct report_line *l)
{
	return l ? report_value_of(&l->total, shown_value(a->ui)) : 0;
}

static double heaviest(const struct annotate *a, uint32_t *ret_line)
{
	double max = 0;

	*ret_line = a->n ? a->lines[0].line : 1;
	for (size_t i = 0; i < a->n; i++)
		if (total_of(a, &a->lines[i]) > max) {
			max = total_of(a, &a->lines[i]);
			*ret_line = a->lines[i].line;
		}
	return max;
}

static void go_row(struct annotate *a, int64_t row)
{
	int64_t last = (int64_t)row_count(a) - 1;

	row = row > last ? last : row;
	a->line = row_line(a, row < 0 ? 0 : (size_t)row);
}

static void next_heavy(struct annotate *a, int step)
{
	uint32_t line;
	double least = heaviest(a, &line) * HEAVY;

	/* lines are few where rows may be many; around the end */
	for (size_t k = 1; least > 0 && k <= a->n; k++) {
		size_t from = 0;
		while (from < a->n && a->lines[from].line < a->line)
			from++;
		bool on = from < a->n && a->lines[from].line == a->line;
		size_t i = step > 0 ? (from + k - !on) % a->n : (from + a->n - k) % a->n;
		if (total_of(a, &a->lines[i]) < least)
			continue;
		a->line = a->lines[i].line;
		a->centre = true;
		return;
	}
	ui_message(a->ui, false, "no line holds anything");
}

/* ---- drawing ---- */

struct gutter {
	bool self, blocks, percent, number;
	int value_x, self_x, blocks_x, percent_x, mark_x, number_x, text_x;
};

static struct gutter lay_out(const struct annotate *a, int cols)
{
	struct gutter g = { .self = cols >= 100, .blocks = cols >= 64, .percent = cols >= 50, .number = cols >= 32 };
	int x = 1, digits = 4;	/* the cursor is at 0 */

	for (size_t n = row_count(a) ? row_line(a, row_count(a) - 1) : 0; n >= 10000; n /= 10)
		digits++;
	g.value_x = x, x += 8;
	g.self_x = x, x += g.self ? 8 : 0;
	g.blocks_x = x, x += g.blocks ? 8 : 0;
	g.percent_x = x, x += g.percent ? 6 : 0;
	g.mark_x = x + 1, x += 2;
	g.number_x = x, x += g.number ? digits + 1 : 0;
	g.text_x = x + 1;
	return g;
}

static void draw_heading(struct annotate *a, const struct gutter *g, int y)
{
	struct canvas *c = a->ui->canvas;

	canvas_fill(c, y, 0, c->cols, STYLE_HEADING, ' ');
	canvas_put_right(c, y, g->value_x, 7, STYLE_HEADING_SORT, "TOTAL");
	if (g->self)
		canvas_put_right(c, y, g->self_x, 7, STYLE_HEADING, "SELF");
	if (g->blocks)
		canvas_put_right(c, y, g->blocks_x, 7, STYLE_HEADING, "BLOCKS");
	if (g->percent)
		canvas_put_right(c, y, g->percent_x, 5, STYLE_HEADING, "%");
	if (g->number)
		canvas_put_right(c, y, g->number_x, g->text_x - 1 - g->number_x, STYLE_HEADING, "LINE");
}

/* How heavy beside the heaviest: said by the mark, by bold type and by colour. */
static void weigh(double value, double max, style_t *ret_numbers, style_t *ret_text, uint32_t *ret_mark)
{
	static const struct { double share; uint32_t mark; style_t numbers, text; } steps[] = {
		{ 0.5, 0x2588, STYLE_GREW | STYLE_STRONG, STYLE_TEXT | STYLE_STRONG },
		{ 0.1, 0x258c, STYLE_WARN, STYLE_TEXT },
		{ HEAVY, 0x258f, STYLE_TEXT, STYLE_TEXT },
	};

	*ret_numbers = STYLE_DIM;
	*ret_text = STYLE_TEXT;
	*ret_mark = ' ';
	for (size_t i = 0; i < ARRAY_SIZE(steps) && max > 0; i++)
		if (value >= max * steps[i].share) {
			*ret_mark = steps[i].mark;
			*ret_numbers = steps[i].numbers;
			*ret_text = steps[i].text;
			return;
		}
}

static void draw_row(struct annotate *a, const struct gutter *g, int y, size_t row, double max, double whole)
{
	struct canvas *c = a->ui->canvas;
	uint32_t line = row_line(a, row), mark;
	const struct report_line *l = line_data(a, line);
	enum report_value v = shown_value(a->ui);
	style_t numbers, text, extra = line == a->line ? STYLE_SELECTED : 0;
	char buf[FORMAT_BUF];

	weigh(total_of(a, l), max, &numbers, &text, &mark);
	if (extra)
		canvas_fill(c, y, 0, c->cols, STYLE_TEXT | extra, ' ');
	canvas_char(c, y, 0, STYLE_TEXT | extra, extra ? '>' : ' ');
	if (l) {
		canvas_put_right(c, y, g->value_x, 7, numbers | extra, format_value(buf, total_of(a, l), v, 7));
		double self = report_value_of(&l->self, v);
		if (g->self && self > 0)
			canvas_put_right(c, y, g->self_x, 7, numbers | extra, format_value(buf, self, v, 7));
		if (g->blocks)
			canvas_put_right(c, y, g->blocks_x, 7, numbers | extra,
					 format_count(buf, q10_round(l->total.live_q10), 7));
		if (g->percent)
			canvas_put_right(c, y, g->percent_x, 5, numbers | extra, format_percent(buf, total_of(a, l), whole, 5));
	}
	canvas_char(c, y, g->mark_x, numbers | extra, mark);
	if (g->number) {
		snprintf(buf, sizeof(buf), "%u", line);
		canvas_put_right(c, y, g->number_x, g->text_x - 1 - g->number_x, STYLE_LABEL | extra, buf);
	}
	if (has_text(a)) {
		canvas_clip(c, y, g->text_x, 1, c->cols - g->text_x);
		canvas_put(c, y, g->text_x - a->hscroll, text | extra, a->source->lines[row]);
		canvas_clip_all(c);
	}
}

/* What there is in place of a text; returns the rows it took. */
static int draw_missing(struct annotate *a, int y, int rows)
{
	struct canvas *c = a->ui->canvas;

	if (!a->source) {
		canvas_put_max(c, y, 1, c->cols - 1, STYLE_DIM, "reading the file …");
		return 1;
	}
	canvas_put_max(c, y, 1, c->cols - 1, STYLE_WARN, a->source->error);
	if (rows < 4)
		return 1;
	canvas_put_max(c, y + 1, 1, c->cols - 1, STYLE_DIM, c->cols < 60 ? "set it: source-path = FROM=TO" :
		       "settings say where it is: source-path = FROM=TO  (man heaptoprc)");
	return 3;
}

static void scroll(struct annotate *a, int rows)
{
	size_t row = line_row(a, a->line), n = row_count(a), room = rows > 1 ? (size_t)rows : 1;

	a->rows = rows;
	if (a->centre && n)
		a->top = row > room / 2 ? row - room / 2 : 0;
	a->centre = false;
	if (row < a->top)
		a->top = row;
	if (row >= a->top + room)
		a->top = row - room + 1;
	if (n && a->top + room > n)
		a->top = n > room ? n - room : 0;
}

static void draw_title(struct annotate *a)
{
	struct canvas *c = a->ui->canvas;
	const char *path = has_text(a) ? a->source->path : a->file;
	char right[64];

	snprintf(right, sizeof(right), "%s", report_value_title(shown_value(a->ui)));
	int w = canvas_width(c, right);
	bool room = w + 30 < c->cols;
	canvas_fill(c, 0, 0, c->cols, STYLE_TAB_ACTIVE, ' ');
	int x = c->cols - 2 - (room ? w + 3 : 0), pw = canvas_width(c, path);
	/* of a path too long its end says more */
	if (pw <= x)
		canvas_put(c, 0, 1, STYLE_TAB_ACTIVE, path);
	else
		canvas_put_right(c, 0, 1, x, STYLE_TAB_ACTIVE, path);
	if (room)
		canvas_put(c, 0, c->cols - w - 1, STYLE_TAB_ACTIVE, right);
}

static void draw_footer(struct annotate *a, int y)
{
	struct ui *ui = a->ui;
	struct canvas *c = ui->canvas;

	/* what has to be said, an editor that isn't there for one, would else be under this */
	canvas_fill(c, y, 0, c->cols, STYLE_TEXT, ' ');
	if (ui->message)
		canvas_put_cut(c, y, 0, c->cols, ui->message_bad ? STYLE_BAD : STYLE_WARN, ui->message);
	else
		canvas_put_cut(c, y, 0, c->cols, STYLE_KEY_TEXT,
			       "q Back  n Next heavy line  N Previous  O Editor  v Value  g G Top, end");
}

static void annotate_draw(struct ui *ui, struct modal *m)
{
	struct annotate *a = (struct annotate *)m;
	struct canvas *c = ui->canvas;
	uint32_t line;
	double max = heaviest(a, &line), whole = report_whole(ui->report, shown_value(ui));
	int y = 0, end = c->rows;

	canvas_clip_all(c);
	for (int row = 0; row < c->rows; row++)
		canvas_fill(c, row, 0, c->cols, STYLE_TEXT, ' ');
	if (c->rows > 2) {
		draw_title(a);
		y++;
		draw_footer(a, --end);
	}
	struct gutter g = lay_out(a, c->cols);
	if (!has_text(a) && end - y > 2)
		y += draw_missing(a, y, end - y);
	if (end - y > 4)
		draw_heading(a, &g, y++);
	scroll(a, end - y);
	for (size_t row = a->top; row < row_count(a) && y < end; row++)
		draw_row(a, &g, y++, row, max, whole);
}

/* ---- keys ---- */

static void aggregate(struct annotate *a)
{
	free(a->lines);
	a->lines = report_lines(a->ui->report, a->file, &a->n);
}

static void annotate_changed(struct ui *ui, struct modal *m)
{
	(void)ui;
	aggregate((struct annotate *)m);
}

static bool annotate_mouse(struct annotate *a, const struct key_event *ev)
{
	int64_t row = (int64_t)line_row(a, a->line);

	if (ev->button == MOUSE_WHEEL_UP || ev->button == MOUSE_WHEEL_DOWN) {
		go_row(a, row + (ev->button == MOUSE_WHEEL_UP ? -3 : 3));
	} else if (ev->button == MOUSE_LEFT) {
		int first = a->ui->canvas->rows - (a->ui->canvas->rows > 2) - a->rows;
		if (ev->y >= first && ev->y < first + a->rows)
			go_row(a, (int64_t)a->top + ev->y - first);
	}
	return ev->button != MOUSE_RIGHT;
}

static bool annotate_key(struct ui *ui, struct modal *m, const struct key_event *ev)
{
	struct annotate *a = (struct annotate *)m;
	int64_t row = (int64_t)line_row(a, a->line), page = a->rows > 1 ? a->rows - 1 : 1;

	if (ev->key == UKEY_MOUSE)
		return annotate_mouse(a, ev);
	switch (action_of_key(ev->key, UI_SITES)) {
	case ACT_UP:
		go_row(a, row - 1);
		return true;
	case ACT_DOWN:
		go_row(a, row + 1);
		return true;
	case ACT_PAGE_UP:
		go_row(a, row - page);
		return true;
	case ACT_PAGE_DOWN:
	case ACT_FREEZE:
		go_row(a, row + page);
		return true;
	case ACT_HALF_UP:
		go_row(a, row - page / 2);
		return true;
	case ACT_HALF_DOWN:
		go_row(a, row + page / 2);
		return true;
	case ACT_TOP:
		go_row(a, 0);
		return true;
	case ACT_BOTTOM:
		go_row(a, INT32_MAX);
		return true;
	case ACT_LEFT:
		a->hscroll = a->hscroll > 8 ? a->hscroll - 8 : 0;
		return true;
	case ACT_RIGHT:
		a->hscroll += a->hscroll < (int)SOURCE_MAX_LINE ? 8 : 0;
		return true;
	case ACT_FIND_NEXT:
		next_heavy(a, 1);
		return true;
	case ACT_FIND_PREVIOUS:
		next_heavy(a, -1);
		return true;
	case ACT_VALUE:
	case ACT_VALUE_BACK:
		ui_action(ui, action_of_key(ev->key, UI_SITES));
		return true;
	case ACT_EDITOR:
		ui_edit(ui, a->file, a->line);
		return true;
	case ACT_REDRAW:
		ui->clear = true;
		return true;
	case ACT_SUSPEND:
		ui->suspend = true;
		return true;
	case ACT_BACK:
	case ACT_QUIT:
	case ACT_SOURCE:
	case ACT_OPEN:
		return false;
	default:
		return true;
	}
}

static void annotate_destroy(struct modal *m)
{
	struct annotate *a = (struct annotate *)m;

	if (a->job)
		a->job->whom = NULL;
	source_destroy(a->source);
	free(a->lines);
	free(a->file);
	free(a);
}

void annotate_open(struct ui *ui)
{
	struct selection sel;

	if (!tools_selected(ui, &sel))
		return;
	struct annotate *a = xcalloc(1, sizeof(*a));
	a->modal = (struct modal){
		.draw = annotate_draw, .changed = annotate_changed, .key = annotate_key, .destroy = annotate_destroy,
	};
	a->ui = ui;
	a->file = xstrdup(sel.file);
	a->centre = true;
	aggregate(a);
	a->line = sel.line;
	if (!a->line)
		heaviest(a, &a->line);	/* the site's traces are at several lines */
	ui_set_modal(ui, &a->modal);
	start_reading(a);
}
