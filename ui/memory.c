/*
 * The Memory overlay: what RSS is made of, as parts that add up to it (report/rss.h), and what of the live bytes is
 * in memory. Filled again with every view.
 */
#include <stdio.h>

#include "base/mem.h"
#include "report/rss.h"
#include "ui/format.h"
#include "ui/modal.h"

#define BAR_COLS 24
#define BAR_BYTES (BAR_COLS * 3 + 3)
#define BAR_MIN_COLS 76	/* of the screen; */
#define TITLE_MIN_COLS 56	/* narrower: a word has to do */

/* A share as a bar, to an eighth of a cell; ASCII: to a cell. What is more than nothing shows. */
static void bar(char buf[BAR_BYTES], uint64_t part, uint64_t whole, bool unicode)
{
	unsigned eighths = whole ? (unsigned)((double)part / (double)whole * BAR_COLS * 8 + 0.5) : 0;
	size_t n = 0;
	int cells = 0;

	if (part && !eighths)
		eighths = 1;
	if (!unicode)
		eighths = (eighths + 7) / 8 * 8;
	for (; eighths >= 8; eighths -= 8, cells++)
		n += (size_t)snprintf(buf + n, 4, "%s", unicode ? "█" : "#");
	if (eighths) {
		cells++;
		/* U+2588 is the whole, U+258F an eighth */
		buf[n++] = (char)0xe2;
		buf[n++] = (char)0x96;
		buf[n++] = (char)(0x90 - eighths);
	}
	/* the same width, so that what stands behind is straight */
	for (; cells < BAR_COLS + 2; cells++)
		buf[n++] = ' ';
	buf[n] = '\0';
}

static void add_parts(const struct ui *ui, struct pager *p, const struct rss *rss)
{
	char size[FORMAT_BUF], share[FORMAT_BUF], error[FORMAT_BUF], chart[BAR_BYTES] = "";
	bool wide = ui->canvas->cols >= BAR_MIN_COLS;

	pager_add(p, STYLE_HEADING_SORT, "RSS %s", format_bytes(size, rss->total, 1));
	for (enum rss_part part = 0; part < RSS_PARTS; part++) {
		uint64_t bytes = rss->part[part];
		if (part == RSS_OLDER && !ui->view->info.attached)
			continue;
		if (wide)
			bar(chart, bytes, rss->total, ui->canvas->unicode);
		/* the rest is uncertain by the same bytes, but only the estimate is one */
		const char *about = part == RSS_TRACKED && rss->error > 0
			? format_error(error, rss->error, (double)bytes, ui->canvas->unicode) : "";
		pager_add(p, part == RSS_TRACKED ? STYLE_NUMBER : bytes ? STYLE_TEXT : STYLE_DIM, "%s %s%%  %s%s%s%s",
			  format_bytes(size, bytes, 7), format_percent(share, (double)bytes, (double)rss->total, 5),
			  chart, ui->canvas->cols >= TITLE_MIN_COLS ? rss_part_title(part) : rss_part_name(part), *about ? " " : "", about);
	}
}

static void add_live(const struct ui *ui, struct pager *p, const struct rss *rss)
{
	const struct view *view = ui->view;
	char a[FORMAT_BUF], share[FORMAT_BUF];
	const struct {
		uint64_t bytes;
		const char *what;
	} rows[] = {
		{ view->totals.s.res_bytes, "in memory" },
		{ rss->swapped, "swapped out" },
		{ rss->untouched, "never touched: takes no memory" },
	};

	pager_add(p, STYLE_TEXT, "%s", "");
	pager_add(p, STYLE_HEADING_SORT, "Live bytes %s%s%s", format_bytes(a, rss->live, 1),
		  view->info.thread ? " of thread " : "", view->info.thread ? view->info.thread : "");
	if (!report_value_known(view, REPORT_RES_BYTES)) {
		pager_add(p, STYLE_DIM, "  what of them is in memory isn't known%s", ui->source->live ? " yet" : "");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		pager_add(p, rows[i].bytes ? STYLE_TEXT : STYLE_DIM, "%s %s%%  %s", format_bytes(a, rows[i].bytes, 7),
			  format_percent(share, (double)rows[i].bytes, (double)rss->live, 5), rows[i].what);
}

/* What is looked at, and how to have it otherwise. */
static void add_watching(struct pager *p, const struct view_info *info)
{
	if (info->res_off)
		pager_add(p, STYLE_WARN, "Nobody looks at it now: these figures are old (:res on).");
	if (info->faults)
		pager_add(p, STYLE_DIM, "Page faults are sampled (:faults off): value \"bytes first touched\" (v, or s f).");
	else if (info->faults_why)
		pager_add(p, STYLE_WARN, "%s.", info->faults_why);
	else
		pager_add(p, STYLE_DIM, "Page faults aren't sampled: :faults on, or s f, shows who touches new memory.");
}

static void fill(struct ui *ui, struct pager *p)
{
	struct rss rss;
	char text[200];

	if (!ui->view) {
		pager_add(p, STYLE_DIM, "nothing is known yet");
		return;
	}
	const struct view_info *info = &ui->view->info;
	rss_split(ui->view, &rss);
	if (rss.total)
		add_parts(ui, p, &rss);
	else
		pager_add(p, STYLE_DIM, ui->source->live ? "what RSS is made of isn't known (yet)"
							 : "the snapshot doesn't say what RSS was made of");
	add_live(ui, p, &rss);
	if (rss_judge(&rss, info->attached, text, sizeof(text))) {
		pager_add(p, STYLE_TEXT, "%s", "");
		pager_add(p, STYLE_TITLE, "%s.", text);
	}
	pager_add(p, STYLE_TEXT, "%s", "");
	if (info->memory.scan_share > 0) {
		unsigned hundredths = (unsigned)((double)info->memory.scan_share * 1e4 + 0.5);
		pager_add(p, STYLE_DIM, "Looking at the page maps takes %u.%02u%% of a core.", hundredths / 100, hundredths % 100);
	}
	if (ui->source->want_res)
		add_watching(p, info);
	pager_add(p, STYLE_DIM, "Which sites hold it: value \"live bytes in memory\" (v, or s m).");
}

static void memory_changed(struct ui *ui, struct modal *m)
{
	struct pager *p = (struct pager *)m;

	pager_clear(p);
	fill(ui, p);
}

void memory_open(struct ui *ui)
{
	struct pager *p = pager_create("Memory: what RSS is made of", ui->canvas);

	p->modal.changed = memory_changed;
	fill(ui, p);
	ui_set_modal(ui, &p->modal);
}
