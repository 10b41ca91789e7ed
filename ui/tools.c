/* See tools.h. */
#include "ui/tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/worker.h"
#include "report/lines.h"
#include "symbol/source.h"
#include "ui/copy.h"
#include "ui/theme.h"

bool ui_selected(struct ui *ui, struct selection *ret)
{
	const struct view_ops *ops = view_ops_of(ui->screen);

	ui_refresh_screen(ui);
	*ret = (struct selection){ .function = "" };
	return ops->selected && ops->selected(ui, ui->state[ui->screen], ret);
}

/* ---- the editor ---- */

void ui_edit(struct ui *ui, const char *file, uint32_t line)
{
	static const struct source_paths none;

	free(ui->edit_path);
	ui->edit_path = source_paths_apply(ui->options.source_paths ? ui->options.source_paths : &none, file,
					   report_source_dir(ui->report, file));
	ui->edit_line = line;
}

bool tools_selected(struct ui *ui, struct selection *ret)
{
	if (!ui_selected(ui, ret) || ret->gathered) {
		ui_message(ui, false, "nothing is selected");
		return false;
	}
	if (ret->cell ? !ret->cell->depth : ret->row && (ret->group == REPORT_BY_MODULE || ret->group == REPORT_BY_THREAD)) {
		ui_message(ui, false, "select a function: %.200s has no source file", ret->function);
		return false;
	}
	if (!ret->file || !*ret->file) {
		ui_message(ui, false, "no source file is known of %.200s: its module has no debug information", ret->function);
		return false;
	}
	return true;
}

static void edit_selected(struct ui *ui)
{
	struct selection sel;

	if (tools_selected(ui, &sel))
		ui_edit(ui, sel.file, sel.line);
}

/* ---- copying ---- */

struct copy_job {
	struct worker_job job;
	struct ui *ui;
	char *path, *text;
	bool sent;		/* to the terminal as well */
	struct err *err;
};

static void copy_run(struct worker_job *job)
{
	struct copy_job *j = (struct copy_job *)job;

	j->err = copy_file(j->path, j->text);
}

static void copy_done(struct worker_job *job)
{
	struct copy_job *j = (struct copy_job *)job;

	if (!job->cancelled && j->err)
		ui_message(j->ui, true, "%s", j->err->text);
	else if (!job->cancelled)
		ui_message(j->ui, false, j->sent ? "copied to the terminal's clipboard, should it let us, and to %s" :
			   "copied to %s", j->path);
	err_free(j->err);
	free(j->path);
	free(j->text);
	free(j);
}

static void copy_to_file(struct ui *ui, const char *text, bool sent)
{
	struct copy_job *j = xcalloc(1, sizeof(*j));

	j->job = (struct worker_job){ .run = copy_run, .done = copy_done };
	j->ui = ui;
	j->path = config_state_path("copied.txt");
	if (!j->path)
		j->path = xstrdup("heaptop-copied.txt");
	j->text = xstrdup(text);
	j->sent = sent;
	worker_give(ui->worker, &j->job);
}

static void copy(struct ui *ui, const char *text, const char *what)
{
	size_t len = strlen(text);
	enum copy_through way = copy_way(getenv("TMUX"), getenv("STY"));
	bool send = ui->options.copy == UI_COPY_TERMINAL ||
		(ui->options.copy == UI_COPY_AUTO && !ui->options.script && copy_terminal_can(getenv("TERM")));

	if (send && len > COPY_MAX) {
		ui_message(ui, false, "too long for the terminal's clipboard");
		send = false;
	}
	if (send) {
		free(ui->send);
		ui->send = copy_sequence(text, len, way);
		ui_message(ui, false, "%s copied to the terminal's clipboard, %zu bytes", what, len);
	}
	/* tmux and screen hand it on only if they are set to: so that it is somewhere */
	if (!send || (ui->options.copy == UI_COPY_AUTO && way != COPY_PLAIN))
		copy_to_file(ui, text, send);
}

static void put_frame(FILE *out, const char *function, const char *file, uint32_t line, const char *module)
{
	fprintf(out, "%s", function);
	if (file && *file)
		fprintf(out, line ? "  %s:%u" : "  %s", file, line);
	if (module && *module)
		fprintf(out, "  %s", module);
	fputc('\n', out);
}

/* Innermost first, a frame a line: a row's heaviest stack, or a cell and its callers. */
static void put_stack(FILE *out, struct ui *ui, const struct selection *sel)
{
	if (!sel->cell) {
		size_t trace = carry_trace(ui, sel), n = 0, site;
		const struct report_frame *f = trace == SIZE_MAX ? NULL : report_stack(ui->report, trace, &n, &site);
		for (size_t i = 0; i < n; i++)
			put_frame(out, f[i].function, f[i].file, f[i].line, f[i].module);
		return;
	}
	for (const struct report_cell *c = sel->cell; c && c->depth; c = report_tree_parent(sel->tree, c))
		put_frame(out, c->function, c->file, c->line, c->module);
}

static void copy_selected(struct ui *ui, bool stack)
{
	struct selection sel;
	char *text = NULL;
	size_t size;

	if (!ui_selected(ui, &sel) || sel.gathered) {
		ui_message(ui, false, "nothing is selected");
		return;
	}
	FILE *out = open_memstream(&text, &size);
	if (stack) {
		put_stack(out, ui, &sel);
	} else {
		fprintf(out, "%s", sel.function);
		if (sel.file && *sel.file)
			fprintf(out, sel.line ? "  %s:%u" : "  %s", sel.file, sel.line);
	}
	fclose(out);
	if (*text)
		copy(ui, text, stack ? "stack" : "name");
	else
		ui_message(ui, false, "no stack is known of this row");
	free(text);
}

/* ---- all of them ---- */

bool tools_action(struct ui *ui, enum action a)
{
	switch (a) {
	case ACT_SOURCE:
		annotate_open(ui);
		return true;
	case ACT_EDITOR:
		edit_selected(ui);
		return true;
	case ACT_COPY:
	case ACT_COPY_STACK:
		copy_selected(ui, a == ACT_COPY_STACK);
		return true;
	case ACT_PRINT:
		ui_save(ui, "heaptop.%p.txt");
		return true;
	case ACT_SETUP:
		setup_open(ui);
		return true;
	default:
		return false;
	}
}

void tools_init(struct ui *ui)
{
	const struct ui_options *o = &ui->options;

	ui->worker = worker_create("heaptop-files");
	ui->hidden_columns = o->hidden_columns;
	ui->canvas->graph = (uint8_t)o->graph;
	ui->theme = o->themes ? themes_find(o->themes, o->theme ? o->theme : "default") : NULL;
}

void tools_deinit(struct ui *ui)
{
	worker_destroy(ui->worker);
	free(ui->edit_path);
	free(ui->send);
}

bool tools_poll(struct ui *ui)
{
	return worker_poll(ui->worker);
}
