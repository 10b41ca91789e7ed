/*
 * One session: keeps the report on the newest view, hands keys to modal, prompt, screen and the
 * general actions, and lays the frame out. No terminal: tty.c and script.c feed it.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "symbol/names.h"
#include "ui/graph.h"
#include "ui/modal.h"
#include "ui/output.h"

#define MAIN_TRIES 20
#define MAIN_STACKS 32

const struct view_ops *view_ops_of(enum ui_view v)
{
	static const struct view_ops *const all[UI_VIEWS] = {
		[UI_SITES] = &sites_ops, [UI_TREE] = &calltree_ops, [UI_FLAME] = &flame_ops,
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

static void clear_message(struct ui *ui)
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

bool ui_unsure(const struct ui *ui, const struct trace_stats *s)
{
	/* exact sums have no variance, however few */
	return ui_sampled(ui) && s->samples < 10 && s->live_samples < 10 &&
		(s->alloc_var > 0 || s->live_var > 0);
}

const char *ui_name(const struct ui *ui, const char *function, char buf[UI_NAME])
{
	if (!*function)
		return "?";
	if (ui->full_names)
		return function;
	report_short_name(function, buf, UI_NAME, !ui->canvas->unicode);
	return buf;
}

const char *ui_basename(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static bool matches(const struct find *f, const char *text)
{
	if (!text)
		return false;
	/* most patterns are plain words, and those are found 20 times faster */
	if (f->literal)
		return f->icase ? strcasestr(text, f->pattern) : strstr(text, f->pattern);
	return !regexec(&f->re, text, 0, NULL, 0);
}

bool ui_find_matches(const struct ui *ui, const char *function, const char *file, const char *module)
{
	const struct find *f = &ui->find;

	if (!f->pattern || !function)
		return false;
	if (f->exact)
		return !strcmp(f->pattern, function);
	return matches(f, function) || matches(f, file) || matches(f, module);
}

static void forget_find(struct ui *ui)
{
	if (ui->find.pattern && !ui->find.exact)
		regfree(&ui->find.re);
	free(ui->find.pattern);
	ui->find.pattern = NULL;
	ui->find.failed = false;
	ui->find.summary[0] = '\0';
}

static bool has_capital(const char *s)
{
	for (; *s; s++)
		if (*s >= 'A' && *s <= 'Z')
			return true;
	return false;
}

static void refresh_screen(struct ui *ui);

bool ui_set_find(struct ui *ui, const char *pattern, bool exact)
{
	regex_t re;

	if (!pattern || !*pattern) {
		forget_find(ui);
		return true;
	}
	if (!exact) {
		int rc = regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB | (has_capital(pattern) ? 0 : REG_ICASE));
		if (rc) {
			char text[128];
			regerror(rc, &re, text, sizeof(text));
			ui_message(ui, true, "%s: %s", pattern, text);
			return false;
		}
	}
	char *copy = xstrdup(pattern);
	forget_find(ui);
	ui->find.pattern = copy;
	ui->find.exact = exact;
	if (!exact) {
		ui->find.re = re;
		ui->find.icase = !has_capital(pattern);
		ui->find.literal = !strpbrk(pattern, ".[]()*+?{}|^$\\");
	}
	clear_message(ui);
	return true;
}

static void find_step(struct ui *ui, int direction)
{
	const struct view_ops *ops = view_ops_of(ui->screen);

	if (!ui->find.pattern || !ops->find)
		return;
	refresh_screen(ui);
	ui->find.failed = !ops->find(ui, ui->state[ui->screen], direction);
}

bool ui_set_filter(struct ui *ui, const char *pattern)
{
	struct err *err = report_set_filter(ui->report, pattern);

	if (err) {
		ui_message(ui, true, "%s", err->text);
		err_free(err);
		return false;
	}
	free(ui->filter);
	ui->filter = pattern && *pattern ? xstrdup(pattern) : NULL;
	ui->resort = true;
	ui_changed(ui);
	return true;
}

void ui_changed(struct ui *ui)
{
	for (int v = 0; v < UI_VIEWS; v++)
		ui->stale[v] = true;
	ui->dirty = true;
}

const char *ui_nothing(const struct ui *ui)
{
	if (ui->filter)
		return "nothing matches the filter (Del: no filter)";
	enum view_state state = ui->view ? ui->view->info.state : VIEW_RUNNING;
	return state == VIEW_RUNNING || state == VIEW_PAUSED ? "nothing allocated yet" : "nothing was allocated";
}

/* The screen shown fetches what has changed: before it draws or acts. */
static void refresh_screen(struct ui *ui)
{
	const struct view_ops *ops = view_ops_of(ui->screen);

	if (!ui->stale[ui->screen] || !ui->view)
		return;
	ui->stale[ui->screen] = false;
	if (ops->changed)
		ops->changed(ui, ui->state[ui->screen]);
	ui->resort = false;
}

void ui_set_screen(struct ui *ui, enum ui_view v)
{
	if (v >= UI_VIEWS || (v == UI_OUTPUT && !ui->output)) {
		ui_message(ui, false, "the program has no terminal of ours: nothing to show here");
		return;
	}
	ui->screen = v;
	ui->hscroll = 0;
	/* it counted the rows of another screen */
	ui->find.failed = false;
	ui->find.summary[0] = '\0';
	ui->dirty = true;
}

void ui_set_value(struct ui *ui, enum report_value v, bool toggle_reverse)
{
	if (v >= REPORT_VALUES)
		return;
	ui->reverse = toggle_reverse && v == ui->value && ui->screen == UI_SITES && !ui->reverse;
	ui->value = v;
	ui->resort = true;
	ui_changed(ui);
}

void ui_save(struct ui *ui, const char *path)
{
	if (!ui->source->save) {
		ui_message(ui, true, "there is nothing to save: this is a snapshot already");
		return;
	}
	if (!path || !*path)
		path = ui->options.snapshot_name;
	ui->source->save(ui->source->ctx, path);
	ui_message(ui, false, "saving %s …", path ? path : "a snapshot");
}

static void set_refresh(struct ui *ui, bool faster)
{
	static const double steps[] = { 0.1, 0.2, 0.5, 1, 2, 5, 10 };
	size_t n = ARRAY_SIZE(steps), i = 0;

	if (!ui->source->set_refresh) {
		ui_message(ui, false, "a snapshot has no refresh");
		return;
	}
	while (i + 1 < n && steps[i] < ui->refresh * 0.99)
		i++;
	if (faster)
		i = i ? i - 1 : 0;
	else if (i + 1 < n && steps[i] <= ui->refresh * 1.01)
		i++;
	ui->refresh = steps[i];
	ui->source->set_refresh(ui->source->ctx, ui->refresh);
	char text[16];
	unsigned tenths = (unsigned)(ui->refresh * 10 + 0.5);
	snprintf(text, sizeof(text), "%u.%u", tenths / 10, tenths % 10);
	ui_message(ui, false, "refresh every %s s", text);
}

static void find_same(struct ui *ui)
{
	const struct view_ops *ops = view_ops_of(ui->screen);
	struct selection sel;

	refresh_screen(ui);
	if (!ops->selected || !ops->selected(ui, ui->state[ui->screen], &sel) || sel.gathered)
		return;
	if (ui_set_find(ui, sel.function, true))
		find_step(ui, 0);
}

static void go_back(struct ui *ui)
{
	if (ui->find.pattern)
		forget_find(ui);
	else if (ui->hscroll)
		ui->hscroll = 0;
	else if (ui->filter)
		ui_set_filter(ui, NULL);
}

static void next_screen(struct ui *ui, int step)
{
	int v = ui->screen;

	do
		v = (v + step + UI_VIEWS) % UI_VIEWS;
	while (v == UI_OUTPUT && !ui->output);
	ui_set_screen(ui, v);
}

static bool act_generally(struct ui *ui, enum action a)
{
	switch (a) {
	case ACT_SITES:
	case ACT_TREE:
	case ACT_FLAME:
	case ACT_OUTPUT:
		ui_set_screen(ui, (enum ui_view)(a - ACT_SITES));
		return true;
	case ACT_NEXT_SCREEN:
		next_screen(ui, 1);
		return true;
	case ACT_PREVIOUS_SCREEN:
		next_screen(ui, -1);
		return true;
	case ACT_BACK:
		go_back(ui);
		return true;
	case ACT_VALUE:
		ui_set_value(ui, (ui->value + 1) % REPORT_VALUES, false);
		return true;
	case ACT_VALUE_BACK:
		ui_set_value(ui, (ui->value + REPORT_VALUES - 1) % REPORT_VALUES, false);
		return true;
	case ACT_SORT:
		sort_menu_open(ui);
		return true;
	case ACT_REVERSE:
		ui_set_value(ui, ui->value, true);
		return true;
	case ACT_RESORT:
		ui->resort = true;
		ui_changed(ui);
		return true;
	case ACT_NAMES:
		ui->full_names = !ui->full_names;
		ui_message(ui, false, "%s names", ui->full_names ? "full" : "short");
		return true;
	case ACT_DETAILS:
		details_open(ui);
		return true;
	case ACT_FIND:
		prompt_open(&ui->prompt, PROMPT_FIND, "");
		return true;
	case ACT_FIND_NEXT:
		find_step(ui, 1);
		return true;
	case ACT_FIND_PREVIOUS:
		find_step(ui, -1);
		return true;
	case ACT_SAME:
		find_same(ui);
		return true;
	case ACT_FILTER:
		prompt_open(&ui->prompt, PROMPT_FILTER, ui->filter);
		return true;
	case ACT_CLEAR_FILTER:
		ui_set_filter(ui, NULL);
		return true;
	case ACT_INVERT:
		ui->inverted = !ui->inverted;
		ui_changed(ui);
		return true;
	case ACT_FREEZE:
		ui->frozen = !ui->frozen;
		ui->missed = 0;
		ui_poll(ui);
		return true;
	case ACT_PAUSE:
		if (!ui->source->pause) {
			ui_message(ui, false, "nothing is being collected");
			return true;
		}
		ui->paused = !ui->paused;
		ui->source->pause(ui->source->ctx, ui->paused);
		ui_message(ui, false, "collection %s", ui->paused ? "off" : "on");
		return true;
	case ACT_SLOWER:
		set_refresh(ui, false);
		return true;
	case ACT_FASTER:
		set_refresh(ui, true);
		return true;
	case ACT_SAVE:
		ui_save(ui, NULL);
		return true;
	case ACT_TYPE:
		if (!ui->output || !output_set_typing(ui->output, true)) {
			ui_message(ui, true, "the program has no terminal to type into");
		} else {
			ui->screen = UI_OUTPUT;
			ui_message(ui, false, "typing into the program; C-] ends it");
		}
		return true;
	case ACT_HELP:
		help_open(ui);
		return true;
	case ACT_LOG:
		log_open(ui);
		return true;
	case ACT_COMMAND:
		prompt_open(&ui->prompt, PROMPT_COMMAND, "");
		return true;
	case ACT_GRAPH:
		ui->graph_rows = ui->graph_rows == 3 ? -1 : ui->graph_rows + 1;
		return true;
	case ACT_MOUSE:
		ui->mouse_on = !ui->mouse_on;
		ui_message(ui, false, "mouse %s", ui->mouse_on ? "on" : "off: the terminal's own selection works");
		return true;
	case ACT_REDRAW:
		ui->clear = true;
		return true;
	case ACT_SUSPEND:
		ui->suspend = true;
		return true;
	case ACT_QUIT:
		/* before the first view it runs too */
		if (ui->source->live && ui->source->launched &&
		    (!ui->view || ui->view->info.state == VIEW_RUNNING || ui->view->info.state == VIEW_PAUSED)) {
			quit_open(ui);
		} else {
			ui->leaving = true;
			ui->leave = UI_LEAVE_QUIT;
		}
		return true;
	default:
		return false;
	}
}

bool ui_action(struct ui *ui, enum action a)
{
	const struct view_ops *ops = view_ops_of(ui->screen);

	if (!action_def(a))
		return false;
	ui->dirty = true;
	refresh_screen(ui);
	if (ops->action && ops->action(ui, ui->state[ui->screen], a)) {
		ui->moved = ui->now;
		return true;
	}
	return act_generally(ui, a);
}

static void prompt_input(struct ui *ui, uint32_t key)
{
	enum prompt_kind kind = ui->prompt.kind;
	enum prompt_result result = prompt_key(&ui->prompt, key);
	const char *text = ui->prompt.text;

	if (kind == PROMPT_FIND) {
		if (result == PROMPT_CANCELLED) {
			ui_set_find(ui, NULL, false);
		} else if (result != PROMPT_SAME) {
			/* half a pattern is often none: wait for the rest without a word */
			regex_t re;
			if (result == PROMPT_DONE || !regcomp(&re, text, REG_EXTENDED | REG_NOSUB)) {
				if (result != PROMPT_DONE)
					regfree(&re);
				if (ui_set_find(ui, text, false))
					find_step(ui, 0);
			}
		}
	} else if (kind == PROMPT_FILTER && result == PROMPT_DONE) {
		ui_set_filter(ui, text);
	} else if (kind == PROMPT_COMMAND && result == PROMPT_DONE) {
		command_run(ui, text);
	}
}

static bool inside(struct rect r, int y, int x)
{
	return y >= r.y && y < r.y + r.rows && x >= r.x && x < r.x + r.cols;
}

static void mouse(struct ui *ui, const struct key_event *ev)
{
	const struct view_ops *ops = view_ops_of(ui->screen);

	ui->moved = ui->now;
	if (ev->button == MOUSE_RIGHT) {
		ui_action(ui, ACT_BACK);
		return;
	}
	if (ev->button == MOUSE_LEFT && inside(ui->layout.tabs, ev->y, ev->x)) {
		for (int v = 0; v < UI_VIEWS; v++)
			if (ev->x >= ui->layout.tab_x[v][0] && ev->x < ui->layout.tab_x[v][1])
				ui_set_screen(ui, v);
	} else if (ev->button == MOUSE_LEFT && inside(ui->layout.footer, ev->y, ev->x)) {
		for (size_t i = 0; i < ui->layout.nhints; i++)
			if (ev->x >= ui->layout.hints[i].x0 && ev->x < ui->layout.hints[i].x1)
				ui_action(ui, ui->layout.hints[i].a);
	} else if (ev->button == MOUSE_LEFT && inside(ui->layout.graph, ev->y, ev->x)) {
		ui_action(ui, ACT_GRAPH);
	} else if (inside(ui->layout.screen, ev->y, ev->x) && ops->mouse) {
		refresh_screen(ui);
		/* a click on what was clicked last opens it */
		bool again = ev->button == MOUSE_LEFT && ev->y == ui->click_y && ev->x == ui->click_x &&
			ui->now - ui->click_time < 1;
		ops->mouse(ui, ui->state[ui->screen], ev);
		if (again)
			ui_action(ui, ACT_OPEN);
		ui->click_y = ev->y;
		ui->click_x = ev->x;
		ui->click_time = again ? -10 : ui->now;
	}
}

void ui_key(struct ui *ui, const struct key_event *ev)
{
	ui->dirty = true;
	if (ui->message && ev->key != UKEY_MOUSE)
		clear_message(ui);
	if (ui->modal) {
		struct modal *m = ui->modal;
		if (!m->key(ui, m, ev) && ui->modal == m)
			ui_set_modal(ui, NULL);
		return;
	}
	if (ui->output && output_typing(ui->output) && ui->screen == UI_OUTPUT && ev->key != UKEY_MOUSE) {
		output_key(ui->output, ev->key);
		return;
	}
	if (ev->key == UKEY_MOUSE) {
		mouse(ui, ev);
		return;
	}
	if (ui->prompt.kind != PROMPT_NONE) {
		prompt_input(ui, ev->key);
		return;
	}
	enum action a = action_of_key(ev->key, ui->screen);
	if (ui->screen == UI_OUTPUT && ui->output && a != ACT_QUIT && output_key(ui->output, ev->key))
		return;
	if (a != ACT_NONE)
		ui_action(ui, a);
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
	ui_changed(ui);
}

/* What lies over the screen shows its rows too: details fill with the names as they come in. */
static void refresh_modal(struct ui *ui)
{
	if (!ui->modal || !ui->modal->changed)
		return;
	refresh_screen(ui);
	ui->modal->changed(ui, ui->modal);
}

bool ui_poll(struct ui *ui)
{
	const struct ui_source *s = ui->source;

	if (ui->output && output_pump(ui->output) && (ui->screen == UI_OUTPUT || output_unseen(ui->output)))
		ui->dirty = true;
	struct view *view = s->view ? s->view(s->ctx) : NULL;
	if (view && ui->view && view->seq == ui->view->seq) {
		view_unref(view);
		view = NULL;
	}
	if (view && ui->frozen && ui->view) {
		/* all that were published since the one shown */
		uint64_t missed = view->seq > ui->view->seq ? view->seq - ui->view->seq : 1;
		ui->dirty = ui->dirty || missed != ui->missed;
		ui->missed = missed;
		view_unref(view);
	} else if (view) {
		take_view(ui, view);
		refresh_modal(ui);
	} else if (ui->view && report_stale(ui->report)) {
		report_set_view(ui->report, ui->view);
		find_main_module(ui);
		ui_changed(ui);
		refresh_modal(ui);
	}
	if (s->status) {
		char *news = s->status(s->ctx);
		if (news && *news && (!ui->news || strcmp(news, ui->news)))
			ui_message(ui, false, "%s", news);
		free(ui->news);
		ui->news = news;
	}
	if (ui->message && ui->now >= ui->message_until)
		clear_message(ui);
	if (ui->options.exit_with_program && s->live && ui->view &&
	    (ui->view->info.state == VIEW_EXITED || ui->view->info.state == VIEW_DETACHED)) {
		ui->leaving = true;
		ui->leave = UI_LEAVE_QUIT;
	}
	return ui->dirty;
}

double ui_timeout(const struct ui *ui)
{
	double t = -1;

	/* names come in without a descriptor to wait on */
	if (ui->view && ui->names && names_pending(ui->names))
		t = 0.1;
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
	ui->screen = options->view < UI_VIEWS ? options->view : UI_SITES;
	ui->value = options->value < REPORT_VALUES ? options->value : REPORT_LIVE_BYTES;
	ui->refresh = options->delay > 0 ? options->delay : 1;
	ui->mouse_on = !options->no_mouse;
	ui->graph_rows = -1;
	ui->moved = ui->click_time = -10;
	ui->dirty = true;
	if (relay)
		ui->output = output_create(relay, ui->canvas->cols);
	if (ui->screen == UI_OUTPUT && !ui->output)
		ui->screen = UI_SITES;
	for (int v = 0; v < UI_VIEWS; v++) {
		ui->stale[v] = true;
		if (view_ops_of(v)->create)
			ui->state[v] = view_ops_of(v)->create(ui);
	}
	if (options->filter && *options->filter)
		ui_set_filter(ui, options->filter);
	return ui;
}

void ui_destroy(struct ui *ui)
{
	if (!ui)
		return;
	ui_set_modal(ui, NULL);
	for (int v = 0; v < UI_VIEWS; v++)
		if (view_ops_of(v)->destroy)
			view_ops_of(v)->destroy(ui->state[v]);
	forget_find(ui);
	prompt_deinit(&ui->prompt);
	output_destroy(ui->output);
	report_destroy(ui->report);
	view_unref(ui->view);
	canvas_destroy(ui->canvas);
	free(ui->main_module);
	free(ui->filter);
	free(ui->message);
	free(ui->news);
	free(ui);
}

void ui_set_modal(struct ui *ui, struct modal *m)
{
	if (ui->modal && ui->modal->destroy)
		ui->modal->destroy(ui->modal);
	ui->modal = m;
	ui->dirty = true;
}

static void draw_graph(struct ui *ui, struct rect r)
{
	struct canvas *c = ui->canvas;
	enum graph_kind kind = c->unicode ? GRAPH_BRAILLE : GRAPH_ASCII;
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
	bool points = ui->view && ui->view->npoints > 1;
	int graph = ui->graph_rows >= 0 ? ui->graph_rows : rows >= 36 ? 3 : rows >= 20 ? 2 : rows >= 16 ? 1 : 0;
	int y = 0;

	if (!points || rows < 12)
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

	ui->dirty = false;
	refresh_screen(ui);
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
	if (ui->layout.screen.rows > 0 && (ui->view || ui->screen == UI_OUTPUT))
		view_ops_of(ui->screen)->draw(ui, ui->state[ui->screen], ui->layout.screen);
	canvas_clip_all(c);
	/* without a status row what has to be said goes over the last row */
	bool urgent = ui->message || ui->find.pattern;
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
