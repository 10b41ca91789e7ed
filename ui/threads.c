/*
 * Threads: who allocates. Enter or t shows that thread's blocks alone, on all screens, and all of them
 * again. The rows are the heap's own sums by thread, of whole threads: no filter of stacks reaches them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ui/choice.h"
#include "ui/sites.h"

static enum report_group threads_group(const struct ui *ui)
{
	(void)ui;
	return REPORT_BY_THREAD;
}

/* Threads have no peaks and no temporary blocks of their own, and nobody looks which pages are theirs or how old their
 * blocks are. */
enum report_value thread_value(const struct ui *ui)
{
	switch (ui->value) {
	case REPORT_PEAK_BYTES:
	case REPORT_TEMP_BLOCKS:
	case REPORT_RES_BYTES:
	case REPORT_UNTOUCHED_BYTES:
	case REPORT_SWAP_BYTES:
	case REPORT_FAULT_BYTES:
	case REPORT_OLD_BYTES:
		return REPORT_LIVE_BYTES;
	default:
		return ui->value;
	}
}

const char *thread_heading(const struct ui *ui)
{
	return ui->filter || ui->module ? "THREAD (filters of stacks don't count here)" : "THREAD";
}

void thread_draw_name(struct ui *ui, int y, int x, int width, const struct report_site *row, style_t extra)
{
	struct canvas *c = ui->canvas;
	char text[64];
	style_t style = (row->more->ended ? STYLE_DIM : STYLE_TEXT) | extra;

	if (ui_find_matches(ui, row->function, NULL, NULL))
		style |= STYLE_MATCH;
	if (row->more->chosen)
		style |= STYLE_STRONG;
	canvas_clip(c, y, x, 1, width);
	/* the one shown alone, wherever the cursor is */
	x = canvas_put(c, y, x - ui->hscroll, STYLE_WARN | extra, row->more->chosen ? "* " : "");
	x = canvas_put(c, y, x, style, *row->function ? row->function : "?");
	if (row->more->merged) {
		snprintf(text, sizeof(text), "  %" PRIu32 " ended ones", row->more->merged);
		canvas_put(c, y, x, STYLE_DIM | extra, text);
	} else if (row->more->ended) {
		canvas_put(c, y, x, STYLE_DIM | extra, "  ended");
	}
	canvas_clip_all(c);
}

void thread_selected(const struct ui *ui, const struct report_site *row, struct selection *ret)
{
	const struct report_more *more = row->more;

	(void)ui;
	ret->unknown = true;	/* no function, no module */
	if (!*row->function)
		ret->function = "?";
	if (more->merged)
		snprintf(ret->note, sizeof(ret->note), "%" PRIu32 " threads that have ended", more->merged);
	else if (more->tid)
		snprintf(ret->note, sizeof(ret->note), "thread %" PRIu32 "%s", more->tid, more->ended ? ", ended" : "");
}

static void threads_open(struct ui *ui, const struct report_site *row)
{
	choice_toggle_thread(ui, row);
}

static void *threads_create(struct ui *ui)
{
	static const struct rows_kind kind = {
		.columns = COLUMNS_THREADS, .one = "thread", .group = threads_group, .value = thread_value,
		.heading = thread_heading, .open = threads_open,
	};

	(void)ui;
	return rows_create(&kind);
}

static void threads_draw(struct ui *ui, void *state, struct rect r)
{
	rows_draw(ui, state, r);
	if (rows_cursor(ui, state) || r.rows < 2)
		return;
	canvas_fill(ui->canvas, r.y + 1, r.x, r.cols, STYLE_TEXT, ' ');
	canvas_put_max(ui->canvas, r.y + 1, r.x + 2, r.cols - 2, STYLE_DIM, choice_no_threads(ui));
}

const struct view_ops threads_ops = {
	.title = "Threads",
	.create = threads_create,
	.destroy = rows_destroy,
	.changed = rows_changed,
	.draw = threads_draw,
	.action = rows_action,
	.mouse = rows_mouse,
	.find = rows_find,
	.selected = rows_selected,
};
