/* See detail_blocks.h. */
#include "ui/detail_blocks.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "report/judge.h"
#include "symbol/source.h"
#include "ui/format.h"
#include "ui/graph.h"
#include "ui/style.h"

#define CLASS_LABEL 9
#define CLASS_PERCENT 6
#define CLASS_AMOUNT 9
#define BAR_MIN 8		/* cells a bar has before amounts are told, too */
#define BESIDE 70		/* columns from which two blocks lie beside each other */
#define GRAPH_ROWS 3
#define NAME_ROWS 2000		/* of one text at most */
#define FEW 10u			/* samples: fewer are dim */
#define TREND 10u		/* values of the history that a judgement looks at */

static int heading(struct ui *ui, int y, int x, int cols, const char *text, const char *more)
{
	int end = canvas_put_max(ui->canvas, y, x, cols, STYLE_HEADING_SORT, text);

	if (more && *more)
		canvas_put_max(ui->canvas, y, end + 1, x + cols - end - 1, STYLE_DIM, more);
	return 1;
}

/* Nobody has counted the live blocks yet, or nobody will. */
static const char *why_unknown(const struct ui *ui, const struct detail_facts *f)
{
	if (ui->view && ui->view->info.thread && f->sel->row && f->sel->group == REPORT_BY_THREAD && !f->sel->row->more->chosen)
		return "other threads are chosen (t)";
	if (!ui->source->want_classes)
		return "not in this file";
	if (ui->view && ui->view->totals.s.live_samples > CLASSES_MAX_LIVE)
		return "too many live blocks to look at each";
	return "being counted";
}

/* Text in as many rows as it takes, broken between words where there is one in the row. */
static int put_words(struct ui *ui, const char *text, int y, int x, int cols, style_t style)
{
	int rows = 0;

	do {
		size_t n = canvas_fit(ui->canvas, text, cols > 1 ? cols : 1), cut = n ? n : 1;
		while (text[n] && cut && text[cut] != ' ')
			cut--;
		if (!cut)
			cut = n ? n : 1;
		CLEANUP_FREE char *row = xstrndup(text, cut);
		canvas_put_max(ui->canvas, y + rows++, x, cols, style, row);
		text += cut;
		text += strspn(text, " ");
	} while (*text && rows < NAME_ROWS);
	return rows;
}

/* ---- judgement and numbers ---- */

int detail_verdict(struct ui *ui, const struct detail_facts *f, int y, int x, int cols)
{
	const struct detail_history *h = f->history;
	size_t n = h->n < TREND ? h->n : TREND, from = h->n - n;
	struct judge_facts facts = {
		.s = &f->sel->s, .se = f->sel->se, .trend = h->values + from, .ntrend = n,
		.seconds = n ? h->times[h->n - 1] - h->times[from] : 0, .parts = f->parts,
		.state = ui->view ? ui->view->info.state : VIEW_SNAPSHOT,
	};
	char text[JUDGE_TEXT];
	enum verdict verdict = judge(&facts, text);
	bool grows = verdict == VERDICT_LEAK || verdict == VERDICT_GROWING;

	if (grows)
		canvas_put(ui->canvas, y, x, STYLE_GREW, "▲ ");
	return put_words(ui, text, y, x + 2 * grows, cols - 2 * grows,
			 grows ? STYLE_GREW : verdict == VERDICT_FEW ? STYLE_DIM : STYLE_NUMBER);
}

int detail_numbers(struct ui *ui, const struct detail_facts *f, int y, int x, int cols)
{
	const struct trace_stats *s = &f->sel->s;
	/* the last: not kept by thread */
	const struct { const char *name; uint64_t bytes, q10; bool by_stack; } rows[] = {
		{ "live", s->live_bytes, s->live_q10, false }, { "at peak", s->peak_bytes, s->peak_q10, true },
		{ "allocated", s->alloc_bytes, s->alloc_q10, false }, { "freed", s->free_bytes, s->free_q10, false },
		{ "temporary", s->temp_bytes, s->temp_q10, true },
	};
	bool thread = f->sel->row && f->sel->group == REPORT_BY_THREAD;
	const int width = 32;
	int across = cols / width > 0 ? cols / width : 1, n = 0;
	char a[FORMAT_BUF], b[FORMAT_BUF];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].by_stack && thread)
			continue;
		canvas_printf(ui->canvas, y + n / across, x + n % across * width, STYLE_TEXT, "%-9s %7s %7s blk",
			      rows[i].name, format_bytes(a, rows[i].bytes, 7), format_count(b, q10_round(rows[i].q10), 7));
		n++;
	}
	canvas_printf(ui->canvas, y + n / across, x + n % across * width, STYLE_TEXT, "a second  %7s %7s blk",
		      format_bytes(a, format_clamp(s->alloc_bps), 7), format_count(b, format_clamp(s->alloc_cps), 7));
	n++;
	return (n + across - 1) / across;
}

/* ---- classes ---- */

struct class_row {
	char label[REPORT_LABEL];
	struct report_part part;
	double share;		/* of the whole; -1: of nothing */
};

static void part_merge(struct report_part *to, const struct report_part *from)
{
	to->bytes += from->bytes;
	to->q10 += from->q10;
	to->samples += from->samples;
}

/* A bar of `width` cells at most, in eighths of a cell. */
static void draw_bar(struct canvas *c, int y, int x, int width, style_t style, double share)
{
	int eighths = (int)(share * width * 8 + 0.5);

	if (share > 0 && !eighths)
		eighths = 1;
	if (!c->unicode) {
		canvas_fill(c, y, x, (eighths + 4) / 8, style, '#');
		return;
	}
	canvas_fill(c, y, x, eighths / 8, style, 0x2588);
	if (eighths % 8)
		canvas_char(c, y, x + eighths / 8, style, 0x2590 - eighths % 8);
}

static void draw_class(struct ui *ui, const struct class_row *row, int y, int x, int cols, bool bytes)
{
	struct canvas *c = ui->canvas;
	bool unsure = ui_sampled(ui) && row->part.samples < FEW;
	style_t extra = unsure ? STYLE_FADED : 0;
	int bar = cols - CLASS_LABEL - CLASS_PERCENT - CLASS_AMOUNT;
	bool amount = bar >= BAR_MIN;
	char number[FORMAT_BUF], percent[16];

	canvas_put_right(c, y, x, CLASS_LABEL - 1, STYLE_TEXT | extra, row->label);
	if (!amount)
		bar += CLASS_AMOUNT;
	if (bar > 30)
		bar = 30;
	if (bar > 0)
		draw_bar(c, y, x + CLASS_LABEL, bar, STYLE_GRAPH | extra, row->share);
	snprintf(percent, sizeof(percent), "%3u%%", (unsigned)(row->share * 100 + 0.5));
	int at = x + CLASS_LABEL + (bar > 0 ? bar : 0);
	canvas_put_right(c, y, at, CLASS_PERCENT, STYLE_TEXT | extra, percent);
	if (amount)
		canvas_put_right(c, y, at + CLASS_PERCENT, CLASS_AMOUNT, STYLE_NUMBER | extra, bytes ? format_bytes(number, row->part.bytes, 7)
			 : format_count(number, q10_round(row->part.q10), 7));
}

/* Rows of so many classes each as fit; returns their number. */
static size_t size_rows(const struct report_parts *p, struct class_row *rows, size_t max)
{
	unsigned first = 0, last = CLASS_SIZES - 1;
	size_t n = 0;

	while (first < last && !p->sizes[first].samples)
		first++;
	while (last > first && !p->sizes[last].samples)
		last--;
	unsigned step = (unsigned)((last - first + max) / max);
	for (unsigned k = first; k <= last; k += step, n++) {
		rows[n] = (struct class_row){ .share = 0 };
		for (unsigned i = k; i < k + step && i <= last; i++)
			part_merge(&rows[n].part, &p->sizes[i]);
		report_size_label(k, k + step - 1, rows[n].label);
		rows[n].share = p->total.q10 ? (double)rows[n].part.q10 / (double)p->total.q10 : 0;
	}
	return n;
}

/* The youngest are one row where there are too many. */
static size_t age_rows(const struct ui *ui, const struct report_parts *p, struct class_row *rows, size_t max)
{
	unsigned first = 0, last = CLASS_AGES - 1;
	size_t n = 0;

	while (first < last && !p->ages[first].samples)
		first++;
	while (last > first && !p->ages[last].samples)
		last--;
	for (unsigned k = first; k <= last; k++) {
		if (!n || last - k + 1 < max)
			rows[n++] = (struct class_row){ .share = 0 };
		struct class_row *row = &rows[n - 1];
		part_merge(&row->part, &p->ages[k]);
		snprintf(row->label, sizeof(row->label), "%s%s", k + 1 < CLASS_AGES ? "" : ui->canvas->unicode ? "≥" : ">=",
			 report_age_label(k));
		row->share = p->total.bytes ? (double)row->part.bytes / (double)p->total.bytes : 0;
	}
	return n;
}

int detail_classes(struct ui *ui, const struct detail_facts *f, int y, int x, int cols, size_t max)
{
	struct class_row sizes[CLASS_SIZES], ages[CLASS_AGES];
	const struct report_parts *p = f->parts;
	bool beside = cols >= BESIDE / 2 + 20;
	int width = beside ? cols / 2 - 1 : cols;
	const char *unknown = p->known ? p->fresh ? "" : "a moment ago" : why_unknown(ui, f);
	size_t nsizes = p->total.samples ? size_rows(p, sizes, max < CLASS_SIZES ? max : CLASS_SIZES) : 0;
	size_t nages = p->total.samples ? age_rows(ui, p, ages, max < CLASS_AGES ? max : CLASS_AGES) : 0;

	heading(ui, y, x, width, "SIZE", p->known && !*unknown ? "live blocks" : unknown);
	for (size_t i = 0; i < nsizes; i++)
		draw_class(ui, &sizes[i], y + 1 + (int)i, x, width, false);
	int below = beside ? y : y + 2 + (int)nsizes, right = beside ? x + cols / 2 + 1 : x;
	heading(ui, below, right, width, "AGE", p->known && !*unknown ? "live bytes" : unknown);
	for (size_t i = 0; i < nages; i++)
		draw_class(ui, &ages[i], below + 1 + (int)i, right, width, true);
	int rows = (int)(beside && nsizes > nages ? nsizes : nages) + 1;
	return below - y + rows;
}

/* ---- threads and time ---- */

static void draw_thread(struct ui *ui, const struct report_thread_part *t, const struct report_parts *p, int y, int x,
			int cols)
{
	char name[VIEW_THREAD_NAME + 32], number[FORMAT_BUF], percent[16];
	bool unsure = ui_sampled(ui) && t->part.samples < FEW;
	style_t style = t->ended || unsure ? STYLE_DIM : STYLE_TEXT;
	double share = p->total.bytes ? (double)t->part.bytes / (double)p->total.bytes : 0;

	if (t->nobody)
		snprintf(name, sizeof(name), "mappings");
	else if (t->merged)
		snprintf(name, sizeof(name), "%s ×%u", *t->name ? t->name : "?", t->merged);
	else if (*t->name)
		snprintf(name, sizeof(name), "%s", t->name);
	else if (t->tid)
		snprintf(name, sizeof(name), "thread %u", t->tid);
	else
		snprintf(name, sizeof(name), "not known");
	int room = cols - 14 > 4 ? cols - 14 : 4;
	canvas_put_cut(ui->canvas, y, x + 1, room - 1, style, name);
	canvas_put_right(ui->canvas, y, x + room, 8, STYLE_NUMBER | (style == STYLE_DIM ? STYLE_FADED : 0),
			 format_bytes(number, t->part.bytes, 7));
	snprintf(percent, sizeof(percent), "%3u%%", (unsigned)(share * 100 + 0.5));
	canvas_put_right(ui->canvas, y, x + room + 8, 6, style, percent);
}

static int thread_rows(struct ui *ui, const struct detail_facts *f, int y, int x, int cols, size_t max)
{
	const struct report_parts *p = f->parts;
	size_t shown = p->nthreads < max ? p->nthreads : max, more = p->more + p->nthreads - shown;

	heading(ui, y, x, cols, "THREADS", p->known ? "live bytes" : why_unknown(ui, f));
	for (size_t i = 0; i < shown; i++)
		draw_thread(ui, &p->threads[i], p, y + 1 + (int)i, x, cols);
	if (more)
		canvas_printf(ui->canvas, y + 1 + (int)shown, x + 1, STYLE_DIM, "… %zu more", more);
	return 1 + (int)shown + (more ? 1 : 0);
}

static int graph_rows(struct ui *ui, const struct detail_facts *f, int y, int x, int cols)
{
	const struct detail_history *h = f->history;
	enum graph_kind kind = ui->canvas->unicode ? GRAPH_BRAILLE : GRAPH_ASCII;
	size_t most = (size_t)(cols > 0 ? cols : 0) * (size_t)graph_per_cell(kind);
	size_t n = h->n < most ? h->n : most, from = h->n - n;
	uint64_t max = 0;
	char text[64], number[TEXT_NUMBER];

	for (size_t i = from; i < h->n; i++)
		max = h->values[i] > max ? h->values[i] : max;
	double span = n ? h->times[h->n - 1] - h->times[from] : 0;
	snprintf(text, sizeof(text), "last %us, up to %s", span > 0 && span < 1e6 ? (unsigned)(span + 0.5) : 0,
		 text_bytes(number, max));
	heading(ui, y, x, cols, "LIVE", n > 1 ? text : "from now on");
	if (n < 2)
		return 1;
	graph_draw(ui->canvas, y + 1, x, GRAPH_ROWS, cols, kind, STYLE_GRAPH, h->values + from, n, max);
	return 1 + GRAPH_ROWS;
}

int detail_threads(struct ui *ui, const struct detail_facts *f, int y, int x, int cols, size_t max)
{
	bool history = f->history->n > 1 || ui->source->live;

	if (!history)
		return thread_rows(ui, f, y, x, cols, max);
	if (cols < BESIDE / 2 + 20) {
		int rows = thread_rows(ui, f, y, x, cols, max);
		return rows + 1 + graph_rows(ui, f, y + rows + 1, x, cols);
	}
	int left = thread_rows(ui, f, y, x, cols / 2 - 1, max);
	int right = graph_rows(ui, f, y, x + cols / 2 + 1, cols / 2 - 1);
	return left > right ? left : right;
}

/* ---- stack and source ---- */

static void draw_frame(struct ui *ui, const struct report_frame *f, bool marked, int y, int x, int cols)
{
	struct canvas *c = ui->canvas;
	char buf[UI_NAME], place[160] = "";
	const char *name = ui_name(ui, f->function, buf);
	style_t style = f->pseudo ? STYLE_DIM : style_of_module(f->module, f->unknown, ui->main_module);

	if (f->inlined)
		style |= STYLE_FADED;
	if (f->file && *f->file && f->line)
		snprintf(place, sizeof(place), "%.100s:%u", ui_basename(f->file), f->line);
	else if (f->module && !f->unknown)
		snprintf(place, sizeof(place), "%.100s", f->module);
	int pw = canvas_width(c, place), room = cols - 2 - pw - 2;
	if (room < cols / 2) {
		room = cols / 2 > 2 ? cols / 2 - 2 : 0;
		pw = cols - room - 4;
	}
	if (marked)
		canvas_put(c, y, x, STYLE_KEY, "▶");
	if (f->inlined) {
		int w = canvas_width(c, name), end = room - 10;
		canvas_put_cut(c, y, x + 2, w < end ? w : end, style, name);
		canvas_put(c, y, x + 2 + (w < end ? w : end), STYLE_DIM, " (inlined)");
	} else {
		canvas_put_cut(c, y, x + 2, room, style, name);
	}
	if (pw > 0)
		canvas_put_right(c, y, x + cols - pw, pw, STYLE_DIM, place);
}

/* Which of the stack's frames is the selected row's function. */
static bool is_selected(const struct detail_facts *f, size_t i)
{
	const struct report_frame *frame = &f->stack[i];

	/* of a function it is the innermost frame, of what isn't known by a name the site */
	if (f->sel->is_site || (f->sel->row && f->sel->group != REPORT_BY_FUNCTION))
		return i == f->site;
	return !strcmp(frame->function, f->sel->function) && frame->module && f->sel->module &&
		!strcmp(frame->module, f->sel->module);
}

int detail_stack(struct ui *ui, const struct detail_facts *f, int y, int x, int cols, size_t max)
{
	size_t shown = f->nframes;
	char more[64] = "innermost first";

	if (f->parts->ntraces > 1)
		snprintf(more, sizeof(more), "heaviest of %zu, innermost first", f->parts->ntraces);
	heading(ui, y, x, cols, "STACK", more);
	if (shown > max)
		shown = max > 1 ? max - 1 : 1;
	for (size_t i = 0; i < shown; i++)
		draw_frame(ui, &f->stack[i], is_selected(f, i), y + 1 + (int)i, x, cols);
	if (shown < f->nframes)
		canvas_printf(ui->canvas, y + 1 + (int)shown, x + 2, STYLE_DIM, "… %zu more outside", f->nframes - shown);
	return 1 + (int)shown + (shown < f->nframes ? 1 : 0);
}

static void draw_line(struct ui *ui, const struct detail_facts *f, uint32_t line, int y, int x, int cols)
{
	struct canvas *c = ui->canvas;
	bool own = line == f->line;
	char totals[64] = "", a[TEXT_NUMBER], b[TEXT_NUMBER];

	/* of another place of the row's they aren't */
	if (own && f->sel->line == line)
		snprintf(totals, sizeof(totals), "%s  %s blk", text_bytes(a, f->sel->s.live_bytes),
			 text_count(b, q10_round(f->sel->s.live_q10)));
	int tw = canvas_width(c, totals);
	if (own)
		canvas_put(c, y, x, STYLE_KEY, "▶");
	canvas_printf(c, y, x + 1, own ? STYLE_NUMBER : STYLE_DIM, "%5u", line);
	canvas_put_cut(c, y, x + 8, cols - 8 - (tw ? tw + 2 : 0), own ? STYLE_NUMBER : STYLE_TEXT, f->source->lines[line - 1]);
	if (tw)
		canvas_put_right(c, y, x + cols - tw, tw, STYLE_NUMBER, totals);
}

int detail_source(struct ui *ui, const struct detail_facts *f, int y, int x, int cols, unsigned around)
{
	char what[300] = "no debug info: -g, or its -dbgsym package";
	const struct source_text *s = f->source;

	if (s && s->error)
		snprintf(what, sizeof(what), "%.290s", s->error);	/* says which file */
	else if (f->file && *f->file && f->line)
		snprintf(what, sizeof(what), "%.200s:%u", f->file, f->line);
	else if (f->file && *f->file)
		snprintf(what, sizeof(what), "%.250s", f->file);
	heading(ui, y, x, cols, "SOURCE", what);
	if (!s || s->error || !f->line)
		return 1;
	if (f->line > s->n) {
		canvas_put_max(ui->canvas, y + 1, x + 2, cols - 2, STYLE_DIM, "the file has fewer lines: not the one it was built from");
		return 2;
	}
	uint32_t first = f->line > around ? f->line - around : 1;
	int rows = 1;
	for (uint32_t line = first; line <= f->line + around && line <= s->n; line++)
		draw_line(ui, f, line, y + rows++, x, cols);
	return rows;
}

int detail_name(struct ui *ui, const struct detail_facts *f, int y, int x, int cols)
{
	int rows = heading(ui, y, x, cols, "NAME", f->sel->module);

	return rows + put_words(ui, f->sel->function, y + rows, x + 2, cols - 2, STYLE_TEXT);
}
