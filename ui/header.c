/*
 * The header: who is watched and how it goes, then how much memory and how fast; the tabs, the
 * status line, the footer. Honesty lives here: sampling and its overhead, drops, the share of
 * incomplete stacks, entry points not hooked, what is unknown because we came late.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "ui/choice.h"
#include "ui/format.h"
#include "ui/output.h"
#include "ui/pieces.h"
#include "ui/processes.h"
#include "ui/screen.h"

/* "0%", "1.8%", "12%" in four columns. */
static void percent_short(char buf[16], double fraction)
{
	double p = fraction > 0 ? fraction * 100 : 0;

	if (p > 999)
		p = 999;
	if (p < 9.95) {
		unsigned tenths = (unsigned)(p * 10 + 0.5);
		snprintf(buf, 16, "%u.%u%%", tenths / 10, tenths % 10);
	} else {
		snprintf(buf, 16, "%3u%%", (unsigned)(p + 0.5));
	}
}

static void add_state(const struct ui *ui, struct pieces *p)
{
	const struct view_info *info = &ui->view->info;
	char text[32], ended[16];
	style_t style = STYLE_GOOD;
	const char *shown = "", *brief = NULL;

	if (ui->frozen) {
		snprintf(text, sizeof(text), " ❚❚ frozen +%llu ", (unsigned long long)(ui->missed > 999 ? 999 : ui->missed));
		shown = text;
		brief = "❚❚ frozen";
		style = STYLE_FROZEN;
	} else if (info->state == VIEW_PAUSED || ui->paused) {
		shown = "⏸ collection off";
		brief = "⏸ off";
		style = STYLE_WARN;
	} else if (info->state == VIEW_EXITED) {
		/* an attached one's code goes to its parent, not to us */
		if (info->attached)
			snprintf(text, sizeof(text), "■ ended");
		else
			snprintf(text, sizeof(text), "■ exited rc=%d", info->exit_code);
		shown = text;
		style = STYLE_WARN;
		snprintf(ended, sizeof(ended), "■ rc=%d", info->exit_code);
		brief = info->attached ? text : ended;
	} else if (info->state == VIEW_DETACHED) {
		shown = "■ detached";
		brief = "■";
	} else if (info->state == VIEW_SNAPSHOT) {
		shown = "■ snapshot";
		brief = "■";
		style = STYLE_TITLE;
	} else {
		shown = "▶";
	}
	pieces_set(pieces_add(p, 0, STYLE_TITLE, style), "heaptop", NULL, shown, brief);
}

static void add_identity(const struct ui *ui, struct pieces *p)
{
	const struct view_info *info = &ui->view->info;
	const char *command = !ui->process && ui->options.title && *ui->options.title ? ui->options.title :
		info->command ? info->command : "";
	char pid[24] = "";
	/* the name alone where it is narrow: the program without its folder and arguments */
	char brief[64];

	snprintf(brief, sizeof(brief), "%.*s", (int)strcspn(command, " "), command);
	struct piece *piece = pieces_add(p, 0, STYLE_TEXT, STYLE_TITLE);
	pieces_set(piece, "", NULL, command, ui_basename(brief));
	piece->stretch = true;
	char several[48];
	if (processes_name(ui, several, sizeof(several)))
		pieces_set(pieces_add(p, 5, STYLE_WARN, STYLE_TITLE), "", NULL, several, ui->process ? "1 of them" : "all");
	if (info->pid > 0) {
		snprintf(pid, sizeof(pid), "[%d]", info->pid);
		pieces_set(pieces_add(p, 20, STYLE_DIM, STYLE_DIM), "", NULL, pid, NULL);
	}
}

static void add_sampling(const struct ui *ui, struct pieces *p)
{
	const struct view_info *info = &ui->view->info;
	char text[40], num[TEXT_NUMBER];

	if (info->state == VIEW_SNAPSHOT && !info->rate)
		return;		/* another tool's file says nothing about it */
	if (info->rate <= 1) {
		/* every call is recorded now, but what is shown may partly come from samples before */
		bool estimates = ui_sampled(ui);
		pieces_set(pieces_add(p, 30, STYLE_LABEL, STYLE_TEXT), "", NULL,
			   estimates ? "every call" : info->auto_rate ? "exact (auto)" : "exact",
			   estimates ? "1:1" : "exact");
		return;
	}
	text_bytes(num, info->rate);
	char *point = strchr(num, '.');
	if (point && point[1] == '0')	/* "512.0K": rates are round */
		memmove(point, point + 2, strlen(point + 2) + 1);
	snprintf(text, sizeof(text), "1:%-4s", num);
	struct piece *piece = pieces_add(p, 30, STYLE_LABEL, STYLE_TEXT);
	pieces_set(piece, "sample", "", text, NULL);
}

/* By another probe than the agent: which, or that there is a better one; why it isn't that one is in the log. */
static void add_probe(const struct ui *ui, struct pieces *p)
{
	const char *probe = ui->view->info.probe;

	if (!probe)
		return;
	bool best = !strchr(probe, '(');
	pieces_set(pieces_add(p, 35, STYLE_LABEL, best ? STYLE_TEXT : STYLE_WARN), "", NULL,
		   best ? probe : "uprobes (! log)", best ? "uprobes" : "uprobes !");
}

static void header_first(const struct ui *ui, struct canvas *c, struct rect r)
{
	const struct view *view = ui->view;
	struct pieces p = { .n = 0 };
	char text[64], num[TEXT_NUMBER], buf[FORMAT_BUF];

	add_state(ui, &p);
	add_identity(ui, &p);
	text_clock(num, view->time);
	/* from "0:00" to "59:59" the same width */
	snprintf(text, sizeof(text), "%5s", num);
	if (view->time > 0)
		pieces_set(pieces_add(&p, 15, STYLE_TEXT, STYLE_TEXT), "", NULL, text, NULL);
	if (view->info.attached)
		pieces_set(pieces_add(&p, 12, STYLE_TEXT, STYLE_WARN), "", NULL, "since attach", "attached");
	if (view->info.threads) {
		snprintf(text, sizeof(text), "%u thread%s", view->info.threads, view->info.threads == 1 ? " " : "s");
		snprintf(num, sizeof(num), "%uth", view->info.threads > 99999 ? 99999 : view->info.threads);
		pieces_set(pieces_add(&p, 40, STYLE_LABEL, STYLE_TEXT), "", NULL, text, num);
	}
	if (ui->filter && !ui->layout.tabs.rows) {
		/* else the tabs say it */
		snprintf(text, sizeof(text), "\\%.40s", ui->filter);
		pieces_set(pieces_add(&p, 0, STYLE_WARN, STYLE_WARN), "", NULL, text, NULL);
		p.list[p.n - 1].stretch = true;
	}
	choice_text(ui, text, sizeof(text));
	if (*text && !ui->layout.tabs.rows) {
		pieces_set(pieces_add(&p, 0, STYLE_WARN, STYLE_WARN), "", NULL, text, NULL);
		p.list[p.n - 1].stretch = true;
	}
	add_sampling(ui, &p);
	add_probe(ui, &p);
	if (view->info.state != VIEW_SNAPSHOT || view->info.overhead > 0) {
		percent_short(text, view->info.overhead);
		pieces_set(pieces_add(&p, 25, STYLE_LABEL, view->info.overhead > 0.1f ? STYLE_WARN : STYLE_TEXT),
			   "overhead", "ovh", text, NULL);
	}
	if (view->info.state != VIEW_SNAPSHOT || view->info.dropped) {
		bool bad = view->info.dropped || view->info.gap;
		format_count(buf, view->info.dropped, 1);
		snprintf(text, sizeof(text), "%s%s", buf, bad ? " (! log)" : "");
		pieces_set(pieces_add(&p, bad ? 0 : 10, STYLE_LABEL, bad ? STYLE_BAD : STYLE_TEXT),
			   "dropped", "drop", text, buf);
	}
	pieces_draw(&p, c, r.y, r.x, r.cols, 3);
}

static void add_trend(const struct ui *ui, struct pieces *p)
{
	double trend = ui->view->totals.trend_bps;
	char text[64], num[FORMAT_BUF];
	style_t style = STYLE_TEXT;

	format_bytes(num, format_clamp(trend < 0 ? -trend : trend), 1);
	if (trend >= 1) {
		snprintf(text, sizeof(text), "▲%s/s", num);
		style = STYLE_GREW;
	} else if (trend <= -1) {
		snprintf(text, sizeof(text), "▼%s/s", num);
		style = STYLE_SHRANK;
	} else {
		snprintf(text, sizeof(text), "·0/s");
	}
	/* left aligned in nine columns: the sign stands at the number it belongs to */
	int pad = 9 - canvas_width(ui->canvas, text);
	for (size_t n = strlen(text); pad > 0 && n + 1 < sizeof(text); pad--) {
		text[n++] = ' ';
		text[n] = '\0';
	}
	pieces_set(pieces_add(p, 3, STYLE_TEXT, style), "", NULL, text, NULL);
}

static void header_second(const struct ui *ui, struct canvas *c, struct rect r)
{
	const struct view *view = ui->view;
	const struct view_totals *t = &view->totals;
	struct pieces p = { .n = 0 };
	char text[120], buf[FORMAT_BUF], buf2[FORMAT_BUF], num[TEXT_NUMBER];
	bool live = view->info.state != VIEW_SNAPSHOT;
	/* ≈: an estimate */
	const char *about = ui_sampled(ui) ? "≈" : "";

	snprintf(text, sizeof(text), "%s%s", about, format_bytes(buf, t->s.live_bytes, 6));
	pieces_set(pieces_add(&p, 0, STYLE_LABEL, STYLE_NUMBER), "Live", NULL, text, NULL);
	if (live)
		add_trend(ui, &p);
	if (t->s.peak_bytes) {
		format_bytes(buf, t->s.peak_bytes, 6);
		text_clock(num, t->peak_time);
		snprintf(text, sizeof(text), "%s%s", buf, "");
		if (live)
			snprintf(text, sizeof(text), "%s @%-5s", buf, num);
		pieces_set(pieces_add(&p, 10, STYLE_LABEL, STYLE_NUMBER), "Peak", NULL, text, buf);
	}
	if (view->info.rss)
		pieces_set(pieces_add(&p, 20, STYLE_LABEL, STYLE_NUMBER), "RSS", NULL,
			   format_bytes(buf, view->info.rss, 6), NULL);
	if (ui_value_known(ui, REPORT_RES_BYTES))
		pieces_set(pieces_add(&p, 35, STYLE_LABEL, STYLE_NUMBER), "in memory", "Res",
			   format_bytes(buf, t->s.res_bytes, 6), NULL);
	pieces_set(pieces_add(&p, 30, STYLE_LABEL, STYLE_NUMBER), "Blocks", NULL,
		   format_count(buf, q10_round(t->s.live_q10), 6), NULL);
	if (live) {
		snprintf(text, sizeof(text), "%s/s %s/s", format_count(buf, format_clamp(t->s.alloc_cps + 0.5), 6),
			 format_bytes(buf2, format_clamp(t->s.alloc_bps), 6));
		char brief[72];
		snprintf(brief, sizeof(brief), "%s/s", buf);
		pieces_set(pieces_add(&p, 40, STYLE_LABEL, STYLE_NUMBER), "Alloc", "+", text, brief);
		p.list[p.n - 1].tight = false;
		snprintf(text, sizeof(text), "%s/s %s/s", format_count(buf, format_clamp(t->s.free_cps + 0.5), 6),
			 format_bytes(buf2, format_clamp(t->s.free_bps), 6));
		snprintf(brief, sizeof(brief), "%s/s", buf);
		pieces_set(pieces_add(&p, 50, STYLE_LABEL, STYLE_NUMBER), "Free", "-", text, brief);
	} else {
		pieces_set(pieces_add(&p, 40, STYLE_LABEL, STYLE_NUMBER), "Allocated", "Alloc",
			   format_bytes(buf, t->s.alloc_bytes, 6), NULL);
		snprintf(text, sizeof(text), "%s", format_count(buf, q10_round(t->s.alloc_q10), 6));
		pieces_set(pieces_add(&p, 50, STYLE_LABEL, STYLE_NUMBER), "in", NULL, text, NULL);
	}
	pieces_draw(&p, c, r.y, r.x, r.cols, 3);
}

void header_draw(struct ui *ui, struct rect r)
{
	if (!ui->view) {
		canvas_printf(ui->canvas, r.y, r.x, STYLE_TITLE, "heaptop %s", ui->options.title ? ui->options.title : "");
		if (r.rows > 1)
			canvas_put(ui->canvas, r.y + 1, r.x, STYLE_DIM,
				   ui->source->waiting ? ui->source->waiting : "waiting for the first numbers");
		return;
	}
	header_first(ui, ui->canvas, (struct rect){ r.y, r.x, 1, r.cols });
	if (r.rows > 1)
		header_second(ui, ui->canvas, (struct rect){ r.y + 1, r.x, 1, r.cols });
}

void header_line(struct ui *ui, char *buf, size_t len)
{
	char live[FORMAT_BUF], trend[FORMAT_BUF];

	if (!ui->view) {
		snprintf(buf, len, "heaptop");
		return;
	}
	double t = ui->view->totals.trend_bps;
	snprintf(buf, len, "live %s %s%s/s", format_bytes(live, ui->view->totals.s.live_bytes, 1),
		 t <= -1 ? "▼" : t >= 1 ? "▲" : "·", format_bytes(trend, format_clamp(t < 0 ? -t : t), 1));
}

#define TABS_NARROW 100	/* columns: below, the tabs stand closer */

/* What the numbers leave out, at the right of the tabs. */
static void blind_spots(const struct ui *ui, char *buf, size_t len)
{
	const struct view_info *info = &ui->view->info;
	char num[FORMAT_BUF];
	size_t n = 0;

	buf[0] = '\0';
	if (info->stacks && info->stacks_complete < info->stacks) {
		double share = (double)info->stacks_complete / (double)info->stacks;
		/* never rounded up to 100 */
		unsigned tenths = (unsigned)(share * 1000);
		n += snprintf(buf + n, len - n, "%sstacks %u.%u%%", n ? "  " : "", tenths / 10, tenths % 10);
	}
	if (info->nunhooked && n < len)
		n += snprintf(buf + n, len - n, "%s%zu not hooked !", n ? "  " : "", info->nunhooked);
	if (info->gap && n < len)
		n += snprintf(buf + n, len - n, "%sgap %s", n ? "  " : "", format_count(num, info->gap, 1));
	if (info->untracked && n < len)
		n += snprintf(buf + n, len - n, "%suntracked %s", n ? "  " : "", format_count(num, info->untracked, 1));
	if (ui->view->totals.merged && n < len)
		snprintf(buf + n, len - n, "%smerged %s", n ? "  " : "", format_count(num, ui->view->totals.merged, 1));
}

/* One tab as text. `brief`: its name takes five columns at most. */
static void tab_text(const struct ui *ui, int v, bool narrow, bool brief, char *buf, size_t len)
{
	bool active = (int)ui->screen == v;
	const char *title = view_ops_of(v)->title;
	int cut = brief && !active && strlen(title) > 5 ? 3 : -1;
	/* narrow: one blank between two of them */
	const char *before = active ? "[" : narrow ? "" : " ", *behind = active ? "]" : narrow ? "" : " ";

	snprintf(buf, len, "%s%s%c %.*s%s%s", narrow && v ? " " : "", before, '1' + v, cut, title,
		 v == UI_OUTPUT && output_unseen(ui->output) && !active ? "•" : "", behind);
}

static bool tab_there(const struct ui *ui, int v)
{
	return v != UI_OUTPUT || ui->output;
}

/* Columns of all tabs. */
static int tabs_width(const struct ui *ui, bool narrow)
{
	char text[40];
	int w = 0;

	for (int v = 0; v < UI_VIEWS; v++)
		if (tab_there(ui, v)) {
			tab_text(ui, v, narrow, false, text, sizeof(text));
			w += canvas_width(ui->canvas, text);
		}
	return w;
}

void tabs_draw(struct ui *ui, struct rect r)
{
	struct canvas *c = ui->canvas;
	char text[160], spots[120] = "", filter[120] = "", chosen[160];
	int x = r.x;
	bool narrow = r.cols < TABS_NARROW, inverted = ui->inverted && (ui->screen == UI_TREE || ui->screen == UI_FLAME);

	choice_text(ui, chosen, sizeof(chosen));
	if (ui->filter)
		snprintf(filter, sizeof(filter), "filter: %.100s", ui->filter);
	if (ui->view)
		blind_spots(ui, spots, sizeof(spots));
	/* what the numbers leave out matters more than the whole names of tabs */
	int beside = 0;
	const char *notes[] = { chosen, filter, spots };
	for (size_t i = 0; i < sizeof(notes) / sizeof(*notes); i++)
		beside += *notes[i] ? 2 + canvas_width(c, notes[i]) : 0;
	bool brief = beside && tabs_width(ui, narrow) + beside > r.cols;

	canvas_clip(c, r.y, r.x, 1, r.cols);
	for (int v = 0; v < UI_VIEWS; v++) {
		ui->layout.tab_x[v][0] = ui->layout.tab_x[v][1] = 0;
		if (!tab_there(ui, v))
			continue;
		tab_text(ui, v, narrow, brief, text, sizeof(text));
		ui->layout.tab_x[v][0] = x;
		x = canvas_put(c, r.y, x, (int)ui->screen == v ? STYLE_TAB_ACTIVE : STYLE_TAB, text);
		ui->layout.tab_x[v][1] = x;
	}
	x += 2;
	int right = r.x + r.cols;
	if (*chosen) {
		canvas_put_max(c, r.y, x, right - x, STYLE_WARN, chosen);
		x += canvas_width(c, chosen) + 2;
	}
	if (*filter) {
		/* what is left out comes before everything else */
		int w = canvas_width(c, filter), room = right - x;
		w = w < room ? w : room;
		canvas_put_cut(c, r.y, x, w, STYLE_WARN, filter);
		x += w + 2;
	}
	if (ui->view) {
		int w = canvas_width(c, spots);
		if (w && x + w > right) {
			/* the first of them, and that there are more */
			char *end = strstr(spots, "  ");
			if (end)
				snprintf(end, sizeof(spots) - (size_t)(end - spots), " … !");
			w = canvas_width(c, spots);
		}
		if (w && x + w <= right) {
			canvas_put(c, r.y, right - w, STYLE_WARN, spots);
			right -= w + 2;
		}
	}
	char base[100];
	if (marks_name(ui, base, sizeof(base))) {
		int w = canvas_width(c, base);
		if (x + w <= right) {
			canvas_put(c, r.y, right - w, STYLE_LABEL, base);
			right -= w + 2;
		}
	}
	if (ui->screen != UI_OUTPUT && ui->screen != UI_TIME) {
		snprintf(text, sizeof(text), "value: %s%s%s", report_value_title(ui->value), inverted ? ", inverted" : "",
			 ui->reverse && action_def(ACT_REVERSE)->screens & ON(ui->screen) ? ", smallest first" : "");
		if (x + canvas_width(c, text) > right)
			snprintf(text, sizeof(text), "%s", inverted ? "inverted" : "");
		if (x + canvas_width(c, text) <= right)
			canvas_put(c, r.y, x, STYLE_DIM, text);
	}
	canvas_clip_all(c);
}

void footer_draw(struct ui *ui, struct rect r)
{
	struct pieces p = { .n = 0 };

	for (enum action a = ACT_NONE + 1; a < ACTIONS; a++) {
		const struct action_def *def = action_def(a);
		char key[16];
		if (!def->hint || !(def->screens & ON(ui->screen)))
			continue;
		if (a == ACT_SAVE && !ui->source->save)
			continue;
		struct piece *piece = pieces_add(&p, def->rank, STYLE_KEY, STYLE_KEY_TEXT);
		action_first_key(a, key);
		pieces_set(piece, key, NULL, def->hint, NULL);
		/* "F1Help", "/Find", but "s Sort" */
		piece->tight = key[0] == 'F' || key[0] == '/' || key[0] == '\\';
		piece->id = a;
	}
	/* help first, quit last, in between as the table has it */
	for (size_t i = 0; i < p.n; i++)
		if (p.list[i].id == ACT_HELP) {
			struct piece help = p.list[i];
			memmove(&p.list[1], &p.list[0], i * sizeof(p.list[0]));
			p.list[0] = help;
		}
	pieces_draw(&p, ui->canvas, r.y, r.x, r.cols, 2);
	ui->layout.nhints = 0;
	for (size_t i = 0; i < p.n && ui->layout.nhints < ARRAY_SIZE(ui->layout.hints); i++)
		if (p.list[i].x1 > p.list[i].x0) {
			size_t n = ui->layout.nhints++;
			ui->layout.hints[n].a = p.list[i].id;
			ui->layout.hints[n].x0 = p.list[i].x0;
			ui->layout.hints[n].x1 = p.list[i].x1;
		}
}

static void status_name(struct ui *ui, struct rect r, const struct selection *sel)
{
	struct canvas *c = ui->canvas;
	char right[200] = "", delta[FORMAT_BUF], error[UI_ERROR];
	size_t n = 0;

	if (sel->note[0])
		n += snprintf(right + n, sizeof(right) - n, "  %s", sel->note);
	if (ui->base != UI_BASE_NONE && !sel->gathered && ui->value != REPORT_DELTA_BYTES)
		n += snprintf(right + n, sizeof(right) - n, "  Δ %s", format_delta(delta, sel->delta, 1, true));
	if (!sel->gathered && *ui_error(ui, sel, error))
		n += snprintf(right + n, sizeof(right) - n, " %s", error);
	int w = canvas_width(c, right);
	if (w > r.cols / 2)
		w = right[0] = 0;
	int room = r.cols - w;
	if (sel->gathered) {
		canvas_printf(c, r.y, r.x, STYLE_STATUS, "%zu small ones together", sel->count);
	} else {
		char place[256] = "";
		if (sel->file && *sel->file && sel->line)
			snprintf(place, sizeof(place), "%s:%u", sel->file, sel->line);
		else if (sel->file && *sel->file)
			snprintf(place, sizeof(place), "%s", sel->file);
		bool module = sel->module && *sel->module && !sel->unknown;
		int pw = (*place ? 2 + canvas_width(c, place) : 0) + (module ? 2 + canvas_width(c, sel->module) : 0);
		int nw = canvas_width(c, sel->function), half = pw < room / 2 ? pw : room / 2;
		if (nw > room - half)
			nw = room - half;
		canvas_put_cut(c, r.y, r.x, nw, STYLE_STATUS, sel->function);
		int x = canvas_put_place(c, r.y, r.x + nw, r.x + room, STYLE_DIM, place);
		if (module)
			canvas_put_module(c, r.y, x, r.x + room, STYLE_DIM, sel->module);
	}
	canvas_put(c, r.y, r.x + r.cols - w, STYLE_NUMBER, right);
}

void status_draw(struct ui *ui, struct rect r)
{
	struct canvas *c = ui->canvas;
	const struct view_ops *ops = view_ops_of(ui->screen);
	struct selection sel = { .function = "" };

	canvas_clip(c, r.y, r.x, 1, r.cols);
	if (ui->message) {
		canvas_put_cut(c, r.y, r.x, r.cols, ui->message_bad ? STYLE_BAD : STYLE_WARN, ui->message);
	} else if (ui->find.pattern && ui->screen != UI_OUTPUT && (ui->find.failed || ui->find.summary[0])) {
		char text[PROMPT_MAX + 120];
		snprintf(text, sizeof(text), "%s%s: %s", ui->find.exact ? "#" : "/", ui->find.pattern,
			 ui->find.failed ? "not found" : ui->find.summary);
		canvas_put_cut(c, r.y, r.x, r.cols, ui->find.failed ? STYLE_WARN : STYLE_STATUS, text);
	} else if (ui->screen == UI_OUTPUT && ui->output) {
		canvas_put_cut(c, r.y, r.x, r.cols, STYLE_STATUS, output_status(ui->output));
	} else if (ops->selected && ops->selected(ui, ui->state[ui->screen], &sel)) {
		status_name(ui, r, &sel);
	}
	canvas_clip_all(c);
}
