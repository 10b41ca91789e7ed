/* One frame: where header, graph, tabs, screen, status and footer lie in a size, and drawing them. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"
#include "ui/detail.h"
#include "ui/graph.h"
#include "ui/held.h"
#include "ui/modal.h"

static void draw_graph(struct ui *ui, struct rect r)
{
	struct canvas *c = ui->canvas;
	enum graph_kind kind = graph_kind_for(c);
	const int label = 7;
	int width = r.cols > 30 ? r.cols - label : r.cols;
	size_t most = (size_t)width * graph_per_cell(kind), n = ui->view->npoints;
	const struct view_point *points = ui->view->points;
	char num[TEXT_NUMBER], text[40];

	if (n > most) {
		points += n - most;
		n = most;
	}
	uint64_t *values = xcalloc(n + 1, sizeof(*values)), max = 0;
	for (size_t i = 0; i < n; i++) {
		values[i] = points[i].live_bytes;
		max = values[i] > max ? values[i] : max;
	}
	graph_draw(c, r.y, r.x, r.rows, width, kind, STYLE_GRAPH, values, n, max);
	free(values);
	/* where the mark compared with was set */
	double mark = marks_time(ui);
	for (size_t i = 0; mark >= 0 && i < n; i++)
		if ((double)points[i].time >= mark) {
			int back = (int)((n - i - 1) / (size_t)graph_per_cell(kind));
			for (int y = 0; y < r.rows && (i || (double)points[0].time <= mark); y++)
				canvas_put(c, r.y + y, r.x + width - 1 - back, STYLE_LABEL, "┃");
			break;
		}
	if (width == r.cols)
		return;
	snprintf(text, sizeof(text), "%6s", text_bytes(num, max));
	canvas_put(c, r.y, r.x + width, STYLE_GRAPH_SCALE, r.rows > 1 ? "┬" : "┤");
	canvas_put_right(c, r.y, r.x + width + 1, label - 1, STYLE_GRAPH_SCALE, text);
	for (int y = 1; y + 1 < r.rows; y++)
		canvas_put(c, r.y + y, r.x + width, STYLE_GRAPH_SCALE, "│");
	if (r.rows > 1) {
		double span = n ? (double)points[n - 1].time - (double)points[0].time : 0;
		snprintf(text, sizeof(text), "%us", span > 0 && span < 1e6 ? (unsigned)(span + 0.5) : 0);
		canvas_put(c, r.y + r.rows - 1, r.x + width, STYLE_GRAPH_SCALE, "┴");
		canvas_put_right(c, r.y + r.rows - 1, r.x + width + 1, label - 1, STYLE_GRAPH_SCALE, text);
	}
}

/* One function from the size: graph, tabs, status, footer, second header line give way in this order. */
static void lay_out(struct ui *ui, struct rect *header, struct rect *status)
{
	int rows = ui->canvas->rows, cols = ui->canvas->cols;
	/* the graph of a choice of threads begins anew, in the same place */
	bool points = ui->view && (ui->view->npoints > 1 || ui->view->info.thread);
	int graph = ui->graph_rows >= 0 ? ui->graph_rows : rows >= 36 ? 3 : rows >= 20 ? 2 : rows >= 16 ? 1 : 0;
	int y = 0;

	/* Time has it all itself */
	if (!points || rows < 12 || ui->screen == UI_TIME)
		graph = 0;
	if (graph > rows - 12)
		graph = rows - 12 > 0 ? rows - 12 : 0;
	*header = (struct rect){ 0, 0, rows >= 7 ? 2 : 1, cols };
	y += header->rows;
	ui->layout.graph = (struct rect){ y, 0, graph, cols };
	y += graph;
	ui->layout.tabs = (struct rect){ y, 0, rows >= 12 ? 1 : 0, cols };
	y += ui->layout.tabs.rows;
	int footer = rows >= 8 ? 1 : 0, below = rows >= 14 ? 1 : 0;
	ui->layout.footer = (struct rect){ rows - footer, 0, footer, cols };
	*status = (struct rect){ rows - footer - below, 0, below, cols };
	ui->layout.screen = (struct rect){ y, 0, rows - footer - below - y, cols };
}

void ui_draw(struct ui *ui)
{
	struct canvas *c = ui->canvas;
	struct rect header, status;

	ui->dirty = ui->held_shown = false;
	ui_refresh_screen(ui);
	canvas_clear(c);
	lay_out(ui, &header, &status);
	if (c->rows < 4 || c->cols < 20) {
		char line[120];
		header_line(ui, line, sizeof(line));
		canvas_put(c, 0, 0, STYLE_NUMBER, line);
		ui->layout.screen = (struct rect){ 1, 0, c->rows - 1, c->cols };
		ui->layout.tabs.rows = ui->layout.footer.rows = ui->layout.graph.rows = status.rows = 0;
	} else {
		header_draw(ui, header);
		if (ui->layout.graph.rows)
			draw_graph(ui, ui->layout.graph);
		if (ui->layout.tabs.rows)
			tabs_draw(ui, ui->layout.tabs);
	}
	canvas_clip_all(c);
	struct rect pane;
	detail_split(ui, &ui->layout.screen, &pane);
	if (ui->layout.screen.rows > 0 && (ui->view || ui->screen == UI_OUTPUT))
		view_ops_of(ui->screen)->draw(ui, ui->state[ui->screen], ui->layout.screen);
	canvas_clip_all(c);
	if (pane.rows > 0)
		detail_draw(ui, pane);
	held_drawn(ui);
	/* without a status row what has to be said goes over the last row */
	bool urgent = ui->message || ui->find.failed || ui->find.summary[0];
	if (!status.rows && urgent)
		status = (struct rect){ c->rows - 1, 0, 1, c->cols };
	if (ui->layout.footer.rows)
		footer_draw(ui, ui->layout.footer);
	if (status.rows) {
		canvas_fill(c, status.y, 0, c->cols, STYLE_TEXT, ' ');
		status_draw(ui, status);
	}
	if (ui->modal)
		ui->modal->draw(ui, ui->modal);
	if (ui->prompt.kind != PROMPT_NONE) {
		static const char *const hints[] = {
			[PROMPT_FIND] = "regex  Enter Keep  Esc Forget",
			[PROMPT_FILTER] = "regex  a|b  !re excludes",
			[PROMPT_COMMAND] = "any action, sort VALUE, filter RE, save FILE",
		};
		prompt_draw(&ui->prompt, c, c->rows - 1, 0, c->cols, hints[ui->prompt.kind]);
	}
	canvas_clip_all(c);
}
