/* Snapshots as text; see text.h. */
#include "export/text.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "heap/view.h"
#include "report/parts.h"

#define MAX_SITES 100
#define MAX_DEPTH 100
#define TREE_SHARE 0.005	/* of the whole: smaller branches are left out, and counted */
#define NAME_BYTES 160

static const char *location(const struct report_site *site, char *buf, size_t len)
{
	if (site->file && site->line)
		snprintf(buf, len, "  %s:%u", site->file, site->line);
	else if (site->file)
		snprintf(buf, len, "  %s", site->file);
	else if (*site->module && !site->unknown)
		snprintf(buf, len, "  %s", site->module);
	else
		*buf = '\0';
	return buf;
}

static void write_header(FILE *out, const struct view *view)
{
	char a[TEXT_NUMBER], b[TEXT_NUMBER];
	const struct view_info *info = &view->info;
	const struct trace_stats *s = &view->totals.s;

	fprintf(out, "heaptop: %s [%d], %s, after %s\n", info->command, info->pid,
		view_state_name(info->state), text_clock(a, view->time));
	if (info->processes > 1)
		fprintf(out, "the sum of %u processes\n", info->processes);
	if (info->thread)
		fprintf(out, "only blocks of threads: %s\n", info->thread);
	if (info->min_size)
		fprintf(out, "only blocks of %s and more\n", text_bytes(a, info->min_size));
	if (info->rate > 1)
		fprintf(out, "sampled: one sample in %s on average; numbers are estimates\n",
			text_bytes(a, info->rate));
	else if (s->alloc_var > 0)
		fprintf(out, "every call counted now, sampled before; numbers are estimates\n");
	else
		fprintf(out, "exact: every call counted\n");
	if (info->attached)
		fprintf(out, "attached late: blocks from before are not known\n");
	fprintf(out, "live %s in %s blocks, peak %s at %s, ", text_bytes(a, s->live_bytes),
		text_count(b, q10_round(s->live_q10)), text_bytes((char[TEXT_NUMBER]){ 0 }, s->peak_bytes),
		text_clock((char[TEXT_NUMBER]){ 0 }, view->totals.peak_time));
	fprintf(out, "allocated %s in %s calls, %s temporary\n", text_bytes(a, s->alloc_bytes),
		text_count(b, q10_round(s->alloc_q10)),
		text_count((char[TEXT_NUMBER]){ 0 }, q10_round(s->temp_q10)));
	fprintf(out, "events %llu, dropped %llu, not tracked %llu, not recorded %llu, frees lost %llu\n",
		(unsigned long long)info->events, (unsigned long long)info->dropped,
		(unsigned long long)info->untracked, (unsigned long long)info->gap,
		(unsigned long long)view->totals.lost_frees);
	for (size_t i = 0; i < info->nunhooked; i++)
		fprintf(out, "not hooked: %s in %s: %s\n", info->unhooked[i].name,
			info->unhooked[i].module, info->unhooked[i].reason);
}

static void write_sites(FILE *out, struct report *report, enum report_value value)
{
	size_t n;
	const struct report_site *sites = report_sites(report, value, false, &n);
	char b[5][TEXT_NUMBER], name[NAME_BYTES], where[512];

	fprintf(out, "\nSites by %s\n%9s %9s %9s %9s %9s  %s\n", report_value_title(value), "LIVE",
		"BLOCKS", "PEAK", "ALLOC", "ALLOCS", "SITE");
	for (size_t i = 0; i < n && i < MAX_SITES; i++) {
		const struct trace_stats *s = &sites[i].s;
		report_short_name(sites[i].function, name, sizeof(name), true);
		fprintf(out, "%9s %9s %9s %9s %9s  %s%s\n", text_bytes(b[0], s->live_bytes),
			text_count(b[1], q10_round(s->live_q10)), text_bytes(b[2], s->peak_bytes),
			text_bytes(b[3], s->alloc_bytes), text_count(b[4], q10_round(s->alloc_q10)),
			name, location(&sites[i], where, sizeof(where)));
	}
	if (n > MAX_SITES)
		fprintf(out, "%9s %zu more\n", "", n - MAX_SITES);
}

static const char *amount(char buf[TEXT_NUMBER], double v, enum report_value value)
{
	uint64_t n = v > 0 ? (uint64_t)(v + 0.5) : 0;

	return report_value_is_bytes(value) ? text_bytes(buf, n) : text_count(buf, n);
}

static void write_cell(FILE *out, struct report_tree *tree, const struct report_cell *cell,
		       enum report_value value, double whole)
{
	char buf[TEXT_NUMBER], name[NAME_BYTES];
	double v = report_value_of(&cell->total, value);
	size_t n, k;

	report_short_name(cell->function, name, sizeof(name), true);
	int percent10 = whole > 0 ? (int)(1000 * v / whole + 0.5) : 0;
	fprintf(out, "%9s %3d.%d%%  %*s%s\n", amount(buf, v, value), percent10 / 10, percent10 % 10,
		(int)cell->depth * 2, "", name);
	if (cell->depth >= MAX_DEPTH || !cell->has_children)
		return;
	const struct report_cell *const *children = report_tree_children(tree, cell, value, &n);
	for (k = 0; k < n && report_value_of(&children[k]->total, value) >= whole * TREE_SHARE; k++)
		if (report_value_of(&children[k]->total, value) > 0)
			write_cell(out, tree, children[k], value, whole);
	if (k < n && k)
		fprintf(out, "%9s %5s   %*s... %zu smaller\n", "", "",
			(int)cell->depth * 2 + 2, "", n - k);
}

static void write_part(FILE *out, const struct report_part *part, const char *label)
{
	char a[TEXT_NUMBER], b[TEXT_NUMBER];

	fprintf(out, "%9s %9s  %s\n", text_bytes(a, part->bytes), text_count(b, q10_round(part->q10)), label);
}

static void write_threads(FILE *out, const struct report_parts *parts)
{
	char label[VIEW_THREAD_NAME + 40];

	for (size_t i = 0; i < parts->nthreads; i++) {
		const struct report_thread_part *t = &parts->threads[i];
		const char *name = t->nobody ? "[mappings]" : *t->name ? t->name : "?";
		if (t->merged)
			snprintf(label, sizeof(label), "%s, %u threads that have ended", name, t->merged);
		else if (t->tid)
			snprintf(label, sizeof(label), "%s [%u]%s", name, t->tid, t->ended ? ", ended" : "");
		else
			snprintf(label, sizeof(label), "%s", name);
		write_part(out, &t->part, label);
	}
	snprintf(label, sizeof(label), "%zu more", parts->more);
	if (parts->more)
		write_part(out, &parts->rest, label);
}

/* What the live blocks of what the filter lets through are like, as Detail shows it of a row. */
static void write_classes(FILE *out, const struct report_parts *parts)
{
	static const char head[] = "     LIVE    BLOCKS  ";
	char label[REPORT_LABEL + 2];

	if (!parts->known || !parts->total.samples)
		return;
	fprintf(out, "\nLive blocks by size\n%sBYTES OF A BLOCK\n", head);
	for (unsigned k = 0; k < CLASS_SIZES; k++) {
		if (!parts->sizes[k].samples)
			continue;
		report_size_label(k, k, label);
		write_part(out, &parts->sizes[k], label);
	}
	fprintf(out, "\nLive blocks by age\n%sAGE\n", head);
	for (unsigned k = 0; k < CLASS_AGES; k++) {
		if (!parts->ages[k].samples)
			continue;
		snprintf(label, sizeof(label), "%s%s", k + 1 < CLASS_AGES ? "" : ">=", report_age_label(k));
		write_part(out, &parts->ages[k], label);
	}
	fprintf(out, "\nLive blocks by thread\n%sTHREAD\n", head);
	write_threads(out, parts);
}

struct err *text_write(FILE *out, struct report *report, enum report_value value)
{
	struct report_tree *tree = report_tree(report, false);

	errno = 0;
	write_header(out, report_view(report));
	write_sites(out, report, value);
	if (tree) {
		const struct report_cell *root = report_tree_root(tree);
		struct report_parts parts;
		report_cell_parts(tree, root, &parts);
		write_classes(out, &parts);
		fprintf(out, "\nCall tree by %s\n", report_value_title(value));
		write_cell(out, tree, root, value, report_value_of(&root->total, value));
	}
	if (fflush(out) || ferror(out))
		return err_errno(errno ? errno : EIO, "writing the report");
	return NULL;
}
