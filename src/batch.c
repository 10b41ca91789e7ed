/* Batch frames; see batch.h. */
#include "batch.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "collect/collect.h"
#include "heap/classes.h"
#include "heap/view.h"
#include "report/rss.h"
#include "report/touched.h"
#include "unwind/unwind.h"

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 100.0;
}

static double percent_error(double error, uint64_t value)
{
	return value ? 100.0 * error / (double)value : 0;
}

/* "# stacks_incomplete: 12 stack copy too short, 3 too deep" */
static void incomplete(FILE *out, const struct view_info *i)
{
	const char *before = "# stacks_incomplete: ";

	for (int why = UNWIND_END_ROOT + 1; why < UNWIND_END_COUNT; why++) {
		if (!i->ends[why])
			continue;
		fprintf(out, "%s%" PRIu64 " %s", before, i->ends[why], unwind_end_text(why));
		before = ", ";
	}
	if (*before == ',')
		fputc('\n', out);
}

static pid_t pid_of(const struct process_list *list, uint32_t id)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->p[i].id == id)
			return list->p[i].pid;
	return 0;
}

/*
 * "# process: 4242	4240	exited	0	1	1200	3	..	./worker --fast": pid, parent, state, exit code,
 * how many they are, bytes and blocks live, allocated, freed, bytes at the peak, command.
 */
static void processes(FILE *out, const struct process_list *list, uint32_t n)
{
	fprintf(out, "# processes: %u\n", n);
	for (size_t i = 0; i < list->n; i++) {
		const struct collect_process *p = &list->p[i];
		const struct trace_stats *s = &p->s;
		fprintf(out, "# process: %d\t%d\t%s\t%d\t%u\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64
			"\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%s\n", (int)p->pid,
			(int)pid_of(list, p->parent), view_state_name(p->state), p->exit_code, p->merged,
			s->live_bytes, q10_round(s->live_q10), s->alloc_bytes, q10_round(s->alloc_q10),
			s->free_bytes, q10_round(s->free_q10), s->peak_bytes, p->command);
	}
}

#define THREADS_MAX 40u		/* lines; what is beyond is added up in one more */

static int compare_threads(const void *pa, const void *pb)
{
	const struct view_thread *a = *(const struct view_thread *const *)pa, *b = *(const struct view_thread *const *)pb;

	if (a->s.live_bytes != b->s.live_bytes)
		return a->s.live_bytes > b->s.live_bytes ? -1 : 1;
	if (a->s.alloc_bytes != b->s.alloc_bytes)
		return a->s.alloc_bytes > b->s.alloc_bytes ? -1 : 1;
	return a < b ? -1 : a > b;
}

static void thread_line(FILE *out, uint32_t tid, const char *state, uint32_t threads, const struct trace_stats *s,
			const char *name)
{
	fprintf(out, "# thread: %" PRIu32 " %s %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		" %" PRIu64 " %.0f %.0f %s\n", tid, state, threads, s->live_bytes, q10_round(s->live_q10),
		s->alloc_bytes, q10_round(s->alloc_q10), s->free_bytes, q10_round(s->free_q10),
		(double)s->alloc_bps, (double)s->alloc_cps, *name ? name : "?");
}

/* What each thread holds, most first. The name comes last: it may have blanks. */
static void threads(FILE *out, const struct view *v)
{
	struct trace_stats rest = { 0 };
	uint32_t nrest = 0;

	if (!v->nthreads)
		return;
	CLEANUP_FREE const struct view_thread **order = xcalloc(v->nthreads, sizeof(const struct view_thread *));
	for (size_t i = 0; i < v->nthreads; i++)
		order[i] = &v->threads[i];
	qsort(order, v->nthreads, sizeof(order[0]), compare_threads);
	fprintf(out, "# thread_columns: tid state threads live_bytes live_blocks alloc_bytes alloc_blocks free_bytes "
		"free_blocks alloc_bps alloc_cps name\n");
	for (size_t i = 0; i < v->nthreads; i++) {
		const struct view_thread *t = order[i];
		if (i < THREADS_MAX) {
			thread_line(out, t->tid, t->ended ? "ended" : "running", t->merged ? t->merged : 1, &t->s,
				    t->name);
			continue;
		}
		trace_stats_add(&rest, &t->s);
		nrest += t->merged ? t->merged : 1;
	}
	if (nrest)
		thread_line(out, 0, "others", nrest, &rest, "other threads");
}

/* What of the live bytes is in memory, and what RSS is made of, in parts that add up to rss_sum. */
static void memory(FILE *out, const struct view *v)
{
	const struct trace_stats *s = &v->totals.s;
	struct rss rss;
	char note[200];

	rss_split(v, &rss);
	if (report_value_known(v, REPORT_RES_BYTES))
		fprintf(out, "# res_bytes: %" PRIu64 "\n# swap_bytes: %" PRIu64 "\n# untouched_bytes: %.0f\n",
			s->res_bytes, s->swap_bytes, report_value_of(s, REPORT_UNTOUCHED_BYTES));
	if (report_value_known(v, REPORT_FAULT_BYTES))
		fprintf(out, "# touched_bytes: %" PRIu64 "\n# touched_error_pct: %.2f\n", s->fault_bytes,
			percent_error(sqrt(s->fault_var), s->fault_bytes));
	if (v->info.faults_why)
		fprintf(out, "# faults_off: %s\n", v->info.faults_why);
	if (!rss.total)
		return;
	fprintf(out, "# rss_sum: %" PRIu64 "\n", rss.total);
	for (enum rss_part part = 0; part < RSS_PARTS; part++)
		fprintf(out, "# rss_%s: %" PRIu64 "\n", rss_part_name(part), rss.part[part]);
	fprintf(out, "# rss_error: %.0f\n# scan_pct: %.2f\n", rss.error, (double)v->info.memory.scan_share * 100);
	if (rss_judge(&rss, v->info.attached, note, sizeof(note)))
		fprintf(out, "# rss_note: %s\n", note);
}

#define TOUCHES_MAX 40u		/* lines; what is beyond is added up in one more */

/* Who touched whose memory, most first; names have no tabs. */
static void touches(FILE *out, struct report *report)
{
	size_t n;
	uint64_t rest = 0;
	CLEANUP_FREE struct report_touch *list = report_touches(report, &n);

	if (n)
		fprintf(out, "# touch_columns: touched_bytes\ttoucher\tasked_by\n");
	for (size_t i = 0; i < n; i++) {
		if (i < TOUCHES_MAX)
			fprintf(out, "# touch: %" PRIu64 "\t%s\t%s\n", list[i].bytes, list[i].toucher, list[i].owner);
		else
			rest += list[i].bytes;
	}
	if (rest)
		fprintf(out, "# touch: %" PRIu64 "\tothers\tothers\n", rest);
}

static void header(FILE *out, struct report *report, const struct process_list *list)
{
	const struct view *v = report_view(report);
	const struct view_info *i = &v->info;
	const struct trace_stats *s = &v->totals.s;
	const struct tree_stats *t = &v->totals.tree;

	fprintf(out, "# command: %s\n# pid: %d\n# state: %s\n", i->command, i->pid,
		view_state_name(i->state));
	if (list && list->n > 1)
		processes(out, list, i->processes);
	else if (i->processes > 1)
		fprintf(out, "# processes: %u\n", i->processes);
	if (i->state == VIEW_EXITED)
		fprintf(out, "# exit_code: %d\n", i->exit_code);
	fprintf(out, "# time_s: %.3f\n# mode: %s\n# rate: %" PRIu64 "\n", v->time,
		i->rate <= 1 ? "exact" : "sampled", i->rate);
	if (i->probe)
		fprintf(out, "# probe: %s\n", i->probe);
	if (i->thread)
		fprintf(out, "# only_threads: %s\n", i->thread);
	if (i->min_size)
		fprintf(out, "# only_min_size: %" PRIu64 "\n", i->min_size);
	fprintf(out, "# since: %s\n", i->attached ? "attach" : "start");
	fprintf(out, "# overhead_pct: %.2f\n", (double)i->overhead * 100);
	fprintf(out, "# dropped: %" PRIu64 "\n# gap: %" PRIu64 "\n# lost_frees: %" PRIu64
		"\n# untracked: %" PRIu64 "\n", i->dropped, i->gap, v->totals.lost_frees,
		i->untracked);
	fprintf(out, "# live_bytes: %" PRIu64 "\n# live_blocks: %" PRIu64 "\n", s->live_bytes,
		q10_round(s->live_q10));
	fprintf(out, "# live_error_pct: %.2f\n",
		percent_error(sqrt(s->live_var), s->live_bytes));
	fprintf(out, "# peak_bytes: %" PRIu64 "\n# peak_time_s: %.3f\n", s->peak_bytes,
		(double)v->totals.peak_time);
	fprintf(out, "# alloc_bytes: %" PRIu64 "\n# alloc_blocks: %" PRIu64 "\n# free_bytes: %" PRIu64
		"\n# free_blocks: %" PRIu64 "\n# temp_blocks: %" PRIu64 "\n", s->alloc_bytes,
		q10_round(s->alloc_q10), s->free_bytes, q10_round(s->free_q10), q10_round(s->temp_q10));
	fprintf(out, "# alloc_error_pct: %.2f\n", percent_error(sqrt(s->alloc_var), s->alloc_bytes));
	fprintf(out, "# rss_bytes: %" PRIu64 "\n# threads: %u\n", i->rss, i->threads);
	memory(out, v);
	touches(out, report);
	fprintf(out, "# events: %" PRIu64 "\n# stacks_complete_pct: %.2f\n", i->events,
		percent(i->stacks_complete, i->stacks));
	incomplete(out, i);
	threads(out, v);
	fprintf(out, "# stacks_walked_pct: %.2f\n", percent(i->walked, i->walked + i->copied));
	fprintf(out, "# cache_hit_pct: %.2f\n", percent(t->last_hits, t->steps));
	fprintf(out, "# hooks: %u\n", i->nhooks);
	for (size_t k = 0; k < i->nunhooked; k++)
		fprintf(out, "# not_hooked: %s in %s: %s\n", i->unhooked[k].name,
			i->unhooked[k].module, i->unhooked[k].reason);
}

/* What rows of that group have besides, behind all other columns. */
static const char *more_columns(enum report_group group)
{
	return group == REPORT_BY_THREAD ? "\ttid\tthreads" : group == REPORT_BY_MODULE ? "\ttotal_live_bytes" : "";
}

/* Nothing is what isn't known; 0 would be a figure. */
static void put_figure(FILE *out, bool known, uint64_t figure)
{
	if (known)
		fprintf(out, "\t%" PRIu64, figure);
	else
		fputc('\t', out);
}

static void row(FILE *out, const struct view *view, enum report_group group, const struct report_site *site, bool base)
{
	const struct trace_stats *s = &site->s;
	/* nobody counts these by thread */
	bool by_stack = group != REPORT_BY_THREAD, res = by_stack && report_value_known(view, REPORT_RES_BYTES);

	fprintf(out, "%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64, s->live_bytes,
		q10_round(s->live_q10), s->alloc_bytes, q10_round(s->alloc_q10), s->free_bytes, q10_round(s->free_q10));
	put_figure(out, by_stack, s->peak_bytes);
	put_figure(out, by_stack, q10_round(s->temp_q10));
	fprintf(out, "\t%.0f\t%.0f\t%" PRIu64 "\t%.2f\t%s\t%s", (double)s->alloc_bps,
		(double)s->alloc_cps, s->samples, percent_error(site->se, s->live_bytes),
		site->function, site->file ? site->file : "");
	put_figure(out, site->line != 0, site->line);
	fprintf(out, "\t%s", site->module);
	put_figure(out, res, s->res_bytes);
	put_figure(out, res, s->swap_bytes);
	put_figure(out, by_stack && report_value_known(view, REPORT_FAULT_BYTES), s->fault_bytes);
	if (base)
		fprintf(out, "\t%" PRId64, site->delta);
	if (group == REPORT_BY_THREAD)
		fprintf(out, "\t%" PRIu32 "\t%" PRIu32, site->more->tid, site->more->merged ? site->more->merged : 1);
	else if (group == REPORT_BY_MODULE)
		fprintf(out, "\t%" PRIu64, site->more->total.live_bytes);
	if (site->held.known)
		fprintf(out, "\t%g", site->held.age ? (double)class_age_until(site->held.age - 1u) / 1e9 : 0.0);
	else
		fputc('\t', out);
	put_figure(out, site->held.known, site->held.threads);
	if (by_stack && report_value_known(view, REPORT_FAULT_BYTES))
		fprintf(out, "\t%.2f", percent_error(sqrt(s->fault_var), s->fault_bytes));
	else
		fputc('\t', out);
	fputc('\n', out);
}

bool batch_frame(FILE *out, struct report *report, enum report_group group, enum report_value sort,
		 const struct process_list *list)
{
	size_t n;
	report_set_held(report, true);
	const struct report_site *sites = report_rows(report, group, sort, false, &n);

	bool base = report_base(report) != NULL;

	header(out, report, list);
	if (base)
		fprintf(out, "# base_live_bytes: %" PRIu64 "\n", report_base(report)->totals.s.live_bytes);
	if (group != REPORT_BY_SITE)
		fprintf(out, "# group: %s\n", report_group_name(group));
	fprintf(out, group == REPORT_BY_SITE ? "# sites: %zu\n" : "# rows: %zu\n", n);
	fprintf(out, "live_bytes\tlive_blocks\talloc_bytes\talloc_blocks\tfree_bytes\tfree_blocks\t"
		"peak_bytes\ttemp_blocks\talloc_bps\talloc_cps\tsamples\tse_pct\tsite\tfile\tline\t"
		"module\tres_bytes\tswap_bytes\ttouched_bytes%s%s\tage_p50_s\tlive_threads\ttouched_se_pct\n", base ? "\tdelta_bytes" : "", more_columns(group));
	for (size_t i = 0; i < n; i++)
		row(out, report_view(report), group, &sites[i], base);
	fputc('\n', out);
	return fflush(out) == 0 && !ferror(out);
}
