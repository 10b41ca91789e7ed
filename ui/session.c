/*
 * One session: what it knows, and keeping it on the newest view. Keys come in by input.c, what they
 * do is in perform.c, frame.c draws. No terminal: tty.c and script.c feed it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "report/judge.h"
#include "base/worker.h"
#include "symbol/names.h"
#include "ui/choice.h"
#include "ui/detail.h"
#include "ui/format.h"
#include "ui/modal.h"
#include "ui/output.h"
#include "ui/tools.h"
#include "ui/watching.h"

#define MAIN_TRIES 20
#define MAIN_STACKS 32

const struct view_ops *view_ops_of(enum ui_view v)
{
	static const struct view_ops *const all[UI_VIEWS] = {
		[UI_SITES] = &sites_ops, [UI_TREE] = &calltree_ops, [UI_FLAME] = &flame_ops,
		[UI_TIME] = &time_ops, [UI_THREADS] = &threads_ops, [UI_MODULES] = &modules_ops,
		[UI_OUTPUT] = &output_ops,
	};

	return all[v < UI_VIEWS ? v : UI_SITES];
}

void ui_message(struct ui *ui, bool bad, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	free(ui->message);
	ui->message = xvasprintf(fmt, ap);
	va_end(ap);
	text_sanitize(ui->message);
	ui->message_bad = bad;
	ui->message_until = ui->now + (bad ? 10 : 6);
	ui->dirty = true;
}

void ui_clear_message(struct ui *ui)
{
	if (!ui->message)
		return;
	free(ui->message);
	ui->message = NULL;
	ui->dirty = true;
}

bool ui_sampled(const struct ui *ui)
{
	return ui->view && (ui->view->info.rate > 1 || ui->view->totals.s.alloc_var > 0);
}

bool ui_estimated(const struct ui *ui)
{
	if (ui->value != REPORT_FAULT_BYTES)
		return ui_sampled(ui);
	return ui->view && ui->view->totals.s.fault_var > 0;
}

const char *ui_error(const struct ui *ui, const struct selection *sel, char buf[UI_ERROR])
{
	char number[FORMAT_BUF];
	double of, se = report_error(&sel->s, ui->value, &of);

	*buf = '\0';
	if (!ui_estimated(ui) || !(se > 0))
		return buf;
	format_error(number, se, of, ui->canvas->unicode);
	size_t n = (size_t)snprintf(buf, UI_ERROR, " %s", number + strspn(number, " "));
	/* the samples are those of live blocks, as their error */
	if (ui->value != REPORT_FAULT_BYTES)
		snprintf(buf + n, UI_ERROR - n, " n=%llu", (unsigned long long)sel->s.live_samples);
	return buf;
}

bool ui_unsure(const struct ui *ui, const struct trace_stats *s)
{
	double of, se = report_error(s, ui->value, &of);

	/* the error of ten samples at most, as with all else */
	if (ui->value == REPORT_FAULT_BYTES)
		return se * se * 10 > of * of;
	return ui_sampled(ui) && judge_unsure(s);
}

const char *ui_name(const struct ui *ui, const char *function, char buf[UI_NAME])
{
	if (!*function)
		return "?";
	if (ui->names_form == UI_NAMES_RAW)
		return report_raw_name(ui->report, function);
	if (ui->names_form == UI_NAMES_FULL)
		return function;
	report_short_name(function, buf, UI_NAME, !ui->canvas->unicode);
	return buf;
}

const char *ui_mark(struct ui *ui, const char *name, uint64_t id, char buf[ALIKE_MARK])
{
	return alike_mark(&ui->alike[ui->names_form], name, id, buf);
}

const char *ui_basename(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

void ui_changed(struct ui *ui)
{
	for (int v = 0; v < UI_VIEWS; v++)
		ui->stale[v] = true;
	detail_changed(ui);
	ui->dirty = true;
}

const char *ui_nothing(const struct ui *ui)
{
	if (ui->filter || ui->module)
		return "nothing matches the filter (Del: no filter)";
	if (ui->view && ui->view->info.thread)
		return "nothing of the chosen thread (Del: all threads)";
	enum view_state state = ui->view ? ui->view->info.state : VIEW_RUNNING;
	return state == VIEW_RUNNING || state == VIEW_PAUSED ? "nothing allocated yet" : "nothing was allocated";
}

void ui_refresh_screen(struct ui *ui)
{
	const struct view_ops *ops = view_ops_of(ui->screen);

	if (!ui->stale[ui->screen] || !ui->view)
		return;
	ui->stale[ui->screen] = false;
	if (ops->changed)
		ops->changed(ui, ui->state[ui->screen]);
	ui->resort = false;
}

void ui_set_modal(struct ui *ui, struct modal *m)
{
	if (ui->modal && ui->modal->destroy)
		ui->modal->destroy(ui->modal);
	ui->modal = m;
	ui->dirty = true;
}

/*
 * The program's own module: the one that has `main` or `_start` at the outer end of a stack (a
 * command's name may be a link to it). Looked for in a few stacks of the first views; until it is
 * found the command's name will do.
 */
static void find_main_module(struct ui *ui)
{
	if (ui->main_tries >= MAIN_TRIES)
		return;
	ui->main_tries++;
	for (size_t i = 0; i < ui->view->ntraces && i < MAIN_STACKS; i++) {
		size_t n, site;
		const struct report_frame *frames = report_stack(ui->report, i, &n, &site);
		for (size_t k = 0; k < n; k++) {
			const struct report_frame *f = &frames[n - 1 - k];
			/* ld.so has a _start too */
			if (!f->module || !*f->module || !strncmp(f->module, "ld-", 3) ||
			    (strcmp(f->function, "main") && strcmp(f->function, "_start")))
				continue;
			free(ui->main_module);
			ui->main_module = xstrdup(f->module);
			ui->main_tries = MAIN_TRIES;
			return;
		}
	}
	if (!ui->main_module && ui->view->info.command && *ui->view->info.command) {
		CLEANUP_FREE char *first = xstrndup(ui->view->info.command, strcspn(ui->view->info.command, " "));
		ui->main_module = xstrdup(ui_basename(first));
	}
}

static void take_view(struct ui *ui, struct view *view)
{
	view_unref(ui->view);
	ui->view = view;
	ui->paused = view->info.state == VIEW_PAUSED;
	report_set_view(ui->report, view);
	find_main_module(ui);
	watching_view(ui);
	ui_changed(ui);
}

/* What lies over the screen shows what changes, too. */
static void refresh_modal(struct ui *ui)
{
	if (!ui->modal || !ui->modal->changed)
		return;
	ui_refresh_screen(ui);
	ui->modal->changed(ui, ui->modal);
}

bool ui_poll(struct ui *ui)
{
	const struct ui_source *s = ui->source;

	if (ui->output && output_pump(ui->output) && (ui->screen == UI_OUTPUT || output_unseen(ui->output)))
		ui->dirty = true;
	struct view *view = s->view ? s->view(s->ctx) : NULL;
	if (view && view == ui->view) {
		view_unref(view);
		view = NULL;
	}
	bool chosen = view && ui->thread_due && choice_shown(ui, view);
	if (view && ui->frozen && ui->view && !ui->switched && !chosen) {
		/* all that were published since the one shown */
		uint64_t missed = view->seq > ui->view->seq ? view->seq - ui->view->seq : 1;
		ui->dirty = ui->dirty || missed != ui->missed;
		ui->missed = missed;
		view_unref(view);
	} else if (view) {
		if (ui->switched) {
			/* another program, perhaps */
			free(ui->main_module);
			ui->main_module = NULL;
			ui->main_tries = 0;
		}
		ui->switched = false;
		ui->thread_due = ui->thread_due && !chosen;
		take_view(ui, view);
		refresh_modal(ui);
	} else if (ui->view && report_stale(ui->report)) {
		report_set_view(ui->report, ui->view);
		find_main_module(ui);
		ui_changed(ui);
		refresh_modal(ui);
	}
	bool files = tools_poll(ui);
	if (detail_poll(ui) || files)
		ui->dirty = true;
	if (s->status) {
		char *news = s->status(s->ctx);
		if (news && *news && (!ui->news || strcmp(news, ui->news)))
			ui_message(ui, false, "%s", news);
		free(ui->news);
		ui->news = news;
	}
	char *refused = s->refused ? s->refused(s->ctx) : NULL;
	if (refused)
		ui_message(ui, true, "%s", refused);
	free(refused);
	if (ui->message && ui->now >= ui->message_until)
		ui_clear_message(ui);
	if (s->failed && s->failed(s->ctx)) {
		ui->leaving = true;
		ui->leave = UI_LEAVE_QUIT;
	}
	if (ui->options.exit_with_program && s->live && ui->view &&
	    (ui->view->info.state == VIEW_EXITED || ui->view->info.state == VIEW_DETACHED)) {
		ui->leaving = true;
		ui->leave = UI_LEAVE_QUIT;
	}
	return ui->dirty;
}

bool ui_idle(struct ui *ui)
{
	return report_warm(ui->report);
}

double ui_timeout(const struct ui *ui)
{
	double t = -1;

	/* names come in without a descriptor to wait on; the last ones may have since they were looked for */
	if ((ui->view && ui->names && (names_pending(ui->names) || report_stale(ui->report))) || detail_waits(ui))
		t = 0.1;
	if (worker_busy(ui->worker))
		t = 0.02;
	if (ui->message && (t < 0 || ui->message_until - ui->now < t))
		t = ui->message_until > ui->now ? ui->message_until - ui->now : 0;
	return t;
}

void ui_resize(struct ui *ui, int rows, int cols)
{
	canvas_resize(ui->canvas, rows, cols);
	ui->dirty = true;
	ui->clear = true;
}

struct ui *ui_create(const struct ui_source *source, struct names *names, struct relay *relay,
		     const struct ui_options *options, int rows, int cols, bool unicode)
{
	struct ui *ui = xcalloc(1, sizeof(*ui));

	ui->source = source;
	ui->names = names;
	ui->options = *options;
	ui->canvas = canvas_create(rows, cols, unicode);
	ui->report = report_create(names, false);
	report_set_modules(ui->report, source->mods);
	report_set_wrappers(ui->report, options->wrappers);
	ui->screen = options->view < UI_VIEWS ? options->view : UI_SITES;
	ui->value = options->value < REPORT_VALUES ? options->value : REPORT_LIVE_BYTES;
	ui->refresh = options->delay > 0 ? options->delay : 1;
	ui->mouse_on = !options->no_mouse;
	ui->paused = options->paused;
	ui->graph_rows = -1;
	ui->moved = ui->click_time = -10;
	ui->dirty = true;
	ui->detail = detail_create();
	if (relay)
		ui->output = output_create(relay, ui->canvas->cols);
	if (ui->screen == UI_OUTPUT && !ui->output)
		ui->screen = UI_SITES;
	for (int v = 0; v < UI_VIEWS; v++) {
		ui->stale[v] = true;
		if (view_ops_of(v)->create)
			ui->state[v] = view_ops_of(v)->create(ui);
	}
	ui->group = options->group;
	tools_init(ui);
	marks_init(ui);
	if (options->filter && *options->filter)
		ui_set_filter(ui, options->filter);
	return ui;
}

void ui_destroy(struct ui *ui)
{
	if (!ui)
		return;
	ui_set_modal(ui, NULL);
	tools_deinit(ui);
	for (int v = 0; v < UI_VIEWS; v++)
		if (view_ops_of(v)->destroy)
			view_ops_of(v)->destroy(ui->state[v]);
	ui_forget_find(ui);
	detail_destroy(ui->detail);
	prompt_deinit(&ui->prompt);
	output_destroy(ui->output);
	report_destroy(ui->report);
	marks_deinit(ui);
	view_unref(ui->view);
	canvas_destroy(ui->canvas);
	free(ui->main_module);
	free(ui->filter);
	free(ui->thread);
	free(ui->module);
	for (int i = 0; i < UI_NAMES; i++)
		alike_deinit(&ui->alike[i]);
	free(ui->message);
	free(ui->news);
	free(ui);
}
