/* The pagers: help from the key table, the log with what the numbers leave out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "ui/format.h"
#include "ui/modal.h"

static const char *const view_names[UI_VIEWS] = {
	[UI_SITES] = "Sites", [UI_TREE] = "Tree", [UI_FLAME] = "Flame",
	[UI_TIME] = "Time", [UI_THREADS] = "Threads", [UI_MODULES] = "Modules", [UI_OUTPUT] = "Output",
};

/* What no key explains. A sign and its meaning, broken between words wherever the terminal ends; "": the next group. */
static void add_legend(struct pager *p)
{
	static const struct { const char *sign, *text; } legend[] = {
		{ "", "Header" },
		{ "▶ ■", "it runs; it has ended, or this is a snapshot" },
		{ "5th", "five threads" },
		{ "1:64K", "one block is recorded for 64K allocated, on average, and stands for them all; exact: every block is" },
		{ "ovh", "what the watching costs, in percent of the program's CPU time" },
		{ "drop", "events that got lost on the way; ! tells more" },
		{ "RSS", "all its memory; Res: what of Live is in it; U says what the rest is" },
		{ "", "Marks" },
		{ ">", "the cursor" },
		{ "▲", "in front of a site: its live bytes keep growing; in the last row: the site further down that grows most" },
		{ "+", "in front of a site: it had allocated nothing before the mark" },
		{ "~", "more than 90% of its blocks were freed within 10 ms" },
		{ "≈", "an estimate from samples; ±6% is one standard error of it" },
		{ "dim", "rows rest on fewer than 10 samples: don't rely on them" },
		{ "›3›", "three calls between that only lead on; ↻4: the same function four deep" },
		{ "█▌▏", "in the source: a line with half, a tenth, a hundredth of the heaviest line's" },
		{ "┊", "calls too narrow for a column each; select it to see how many" },
		{ "", "Columns" },
		{ "B/s", "what a site allocates a second, freed or not" },
		{ "PEAK", "what it held when the whole program held most: less than LIVE if it has grown since" },
		{ "RES", "what of LIVE is in memory: touched, and not swapped out" },
		{ "TEMP%", "the share of its blocks that were freed within 10 ms" },
		{ "AGE p50", "half of its live bytes are at least so old: 10s+ is from 10 s to a minute" },
		{ "OLD", "the value age: what of LIVE is a minute old or more: a leak grows in it, a cache that turns over doesn't" },
		{ "THREADS", "so many threads, ended ones too, allocated what of it is live" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(legend); i++) {
		if (!*legend[i].sign) {
			pager_add(p, STYLE_TEXT, "%s", "");
			pager_add(p, STYLE_HEADING_SORT, "%s", legend[i].text);
			continue;
		}
		/* signs have more bytes than columns */
		int pad = 5 - canvas_width(p->canvas, legend[i].sign);
		CLEANUP_FREE char *line = xasprintf("  %s%*s %s", legend[i].sign, pad > 0 ? pad : 0, "", legend[i].text);
		pager_add_indented(p, STYLE_TEXT, 8, line);
	}
}

void help_open(struct ui *ui)
{
	struct pager *p = pager_create("Help", ui->canvas);
	const char *group = "";
	bool wide = ui->canvas->cols >= 76;

	pager_add(p, STYLE_TITLE, "heaptop shows who holds the memory of a program, live.");
	pager_add(p, STYLE_TEXT, "%s", "");
	for (enum action a = ACT_NONE + 1; a < ACTIONS; a++) {
		const struct action_def *def = action_def(a);
		if (strcmp(group, def->group)) {
			if (*group)
				pager_add(p, STYLE_TEXT, "%s", "");
			group = def->group;
			pager_add(p, STYLE_HEADING_SORT, "%s", group);
		}
		char where[64] = "";
		if (def->screens != EVERYWHERE)
			for (int v = 0; v < UI_VIEWS; v++)
				if (def->screens & ON(v)) {
					size_t n = strlen(where);
					snprintf(where + n, sizeof(where) - n, "%s%s", n ? ", " : "", view_names[v]);
				}
		if (wide) {
			CLEANUP_FREE char *line = xasprintf("  %-14s %-16s %s", def->keys, def->name, def->help);
			pager_add_indented(p, STYLE_TEXT, 34, line);
		} else {
			pager_add(p, STYLE_NUMBER, " %-13s %s", def->keys, def->name);
			pager_add(p, STYLE_TEXT, "   %s", def->help);
		}
		if (*where && def->screens != action_def(ACT_FIND)->screens)
			pager_add(p, STYLE_DIM, "  %*s in %s", wide ? 31 : 0, "", where);
	}
	add_legend(p);
	ui_set_modal(ui, &p->modal);
}

static void add_count(struct pager *p, bool bad, const char *what, uint64_t n, const char *why)
{
	if (n)
		pager_add(p, bad ? STYLE_WARN : STYLE_TEXT, "  %llu %s%s%s", (unsigned long long)n, what,
			  *why ? ": " : "", why);
}

void log_open(struct ui *ui)
{
	struct pager *p = pager_create("Log: what the numbers leave out, and messages", ui->canvas);
	char buf[FORMAT_BUF];
	size_t n;

	if (ui->view) {
		const struct view_info *info = &ui->view->info;
		pager_add(p, STYLE_HEADING_SORT, "What the numbers leave out");
		size_t before = p->n;
		if (info->attached)
			pager_add(p, STYLE_TEXT, "  blocks allocated before heaptop attached are unknown");
		if (info->probe)
			pager_add(p, STYLE_TEXT, "  measured by %s: nothing is placed in the program", info->probe);
		if (ui_sampled(ui) && info->rate <= 1)
			pager_add(p, STYLE_TEXT, "  every call is recorded now, but there were samples only before: numbers are estimates");
		else if (ui_sampled(ui))
			pager_add(p, STYLE_TEXT, "  sampled: one sample for every %s allocated, on average; numbers are estimates",
				  format_bytes(buf, info->rate, 1));
		add_count(p, true, "events dropped", info->dropped, "the rings were full; the numbers are too small by that");
		add_count(p, true, "samples not recorded", info->gap, "collection was off, or heaptop late or stopped");
		add_count(p, true, "blocks not tracked", info->untracked, "beyond the table's bound");
		add_count(p, true, "traces merged", ui->view->totals.merged, "beyond the bound on stacks");
		add_count(p, false, "frees not seen", ui->view->totals.lost_frees, "their addresses came back from a new allocation");
		if (info->stacks && info->stacks_complete < info->stacks) {
			unsigned tenths = (unsigned)((double)info->stacks_complete / (double)info->stacks * 1000);
			pager_add(p, STYLE_TEXT, "  %u.%u%% of %llu stacks reach the program's or the thread's start",
				  tenths / 10, tenths % 10, (unsigned long long)info->stacks);
		}
		for (size_t i = 0; i < info->nunhooked; i++)
			pager_add(p, STYLE_WARN, "  not hooked: %s in %s: %s", info->unhooked[i].name,
				  info->unhooked[i].module, info->unhooked[i].reason);
		if (p->n == before)
			pager_add(p, STYLE_TEXT, "  nothing that is known of");
		pager_add(p, STYLE_TEXT, "%s", "");
		pager_add(p, STYLE_HEADING_SORT, "How it goes");
		pager_add(p, STYLE_TEXT, "  %u entry points hooked, %llu events handled, %zu traces, %u stack nodes",
			  info->nhooks, (unsigned long long)info->events, ui->view->ntraces, ui->view->nnodes);
		const struct tree_stats *t = &ui->view->totals.tree;
		if (t->steps)
			pager_add(p, STYLE_TEXT, "  trace tree: %s%% of %llu steps answered by the last-lookup cache",
				  format_percent(buf, (double)t->last_hits, (double)t->steps, 1),
				  (unsigned long long)t->steps);
		if (info->walked || info->copied)
			pager_add(p, STYLE_TEXT, "  stacks: %llu walked in the program, %llu copied out of it",
				  (unsigned long long)info->walked, (unsigned long long)info->copied);
		if (info->pause > 0)
			pager_add(p, STYLE_TEXT, "  the program was stopped for %u ms to be hooked",
				  info->pause < 1e5f ? (unsigned)(info->pause * 1000 + 0.5f) : 0);
		pager_add(p, STYLE_TEXT, "%s", "");
	}
	pager_add(p, STYLE_HEADING_SORT, "Messages");
	char **lines = log_tail(500, &n);
	for (size_t i = 0; i < n; i++) {
		pager_add(p, STYLE_TEXT, "  %s", lines[i]);
		free(lines[i]);
	}
	free(lines);
	if (!n)
		pager_add(p, STYLE_DIM, "  none");
	ui_set_modal(ui, &p->modal);
}
