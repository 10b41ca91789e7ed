/* Rows by other things than sites; see groups.h. */
#include "report/groups.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/held.h"
#include "report/internal.h"

static const char *const names[REPORT_GROUPS] = {
	[REPORT_BY_SITE] = "site", [REPORT_BY_FUNCTION] = "function", [REPORT_BY_STACK] = "stack",
	[REPORT_BY_MODULE] = "module", [REPORT_BY_THREAD] = "thread",
};

const char *report_group_name(enum report_group group)
{
	return (unsigned)group < REPORT_GROUPS ? names[group] : NULL;
}

int report_group_parse(const char *name)
{
	for (int g = 0; g < REPORT_GROUPS; g++)
		if (!strcmp(names[g], name))
			return g;
	return -1;
}

struct report_site *group_row(struct group_rows *rows, uint64_t what)
{
	VEC_GROW(rows->rows, rows->n, rows->cap);
	VEC_GROW(rows->more, rows->n, rows->more_cap);
	VEC_GROW(rows->what, rows->n, rows->what_cap);
	rows->more[rows->n] = (struct report_more){ .trace = SIZE_MAX };
	rows->what[rows->n] = what;
	rows->rows[rows->n] = (struct report_site){ .id = what };
	return &rows->rows[rows->n++];
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* ---- functions ---- */

static void function_rows(struct report *r, struct group_rows *rows)
{
	/* resolving frames adds functions: the list grows */
	uint32_t *of_func = NULL;
	size_t nof = 0, nsums = 0, cap = 0;
	struct sums *sums = NULL;

	for (size_t i = 0; i < r->view->ntraces; i++) {
		const struct view_trace *t = view_trace(r->view, i);
		if (!t || !report_passes(r, t->node))
			continue;
		const struct frame *frame = report_node_frame(r, t->node);
		uint32_t k = frame->funcs[0];
		if (r->funcs.n > nof) {
			of_func = xreallocarray(of_func, r->funcs.n * 2, sizeof(*of_func));
			memset(of_func + nof, 0, (r->funcs.n * 2 - nof) * sizeof(*of_func));
			nof = r->funcs.n * 2;
		}
		const struct func *func = &r->funcs.items[k];
		if (!of_func[k]) {
			struct report_site *row = group_row(rows, funcs_what(func->function, func->module));
			row->id = func->id;
			row->function = func->function;
			row->module = func->module;
			row->unknown = func->unknown;
			row->file = frame_file(frame, 0);
			row->line = frame_line(frame, 0);
			VEC_GROW(sums, nsums, cap);
			sums[nsums++] = (struct sums){ 0 };
			of_func[k] = (uint32_t)rows->n;
		}
		if (rows->of_trace)
			rows->of_trace[i] = of_func[k];
		struct report_site *row = &rows->rows[of_func[k] - 1];
		struct report_more *more = &rows->more[of_func[k] - 1];
		if (!same_text(row->file, frame_file(frame, 0))) {
			row->file = NULL;
			row->line = 0;
		} else if (row->line != frame_line(frame, 0)) {
			row->line = 0;
		}
		sums_add(&sums[of_func[k] - 1], &t->s);
		if (trace_heavier(t, more->trace == SIZE_MAX ? NULL : view_trace(r->view, more->trace)))
			more->trace = i;
	}
	for (size_t i = 0; i < rows->n; i++)
		rows->rows[i].s = sums_get(&sums[i]);
	free(sums);
	free(of_func);
}

/* ---- stacks ---- */

/* What a stack is, from its functions, in any view. */
static uint64_t stack_what(struct report *r, uint32_t node)
{
	uint64_t what = 1;

	for (; node; node = tree_get(r->view->tree, node).parent) {
		const struct frame *frame = report_node_frame(r, node);
		for (uint32_t i = 0; i < frame->nfuncs; i++)
			what = funcs_mix(what, r->funcs.items[frame->funcs[i]].hash);
	}
	return what;
}

static void stack_rows(struct report *r, struct group_rows *rows, bool against)
{
	for (size_t i = 0; i < r->view->ntraces; i++) {
		const struct view_trace *t = view_trace(r->view, i);
		if (!t || !report_passes(r, t->node))
			continue;
		const struct trace_site *at = &r->trace_sites[i];
		struct report_site *row = group_row(rows, against ? stack_what(r, t->node) : 0);
		/* only now: the above may have found functions, and moved the table */
		const struct func *func = &r->funcs.items[at->func];
		const struct frame *frame = report_node_frame(r, at->node);
		/* a trace's node is the same as long as the trace lives */
		row->id = funcs_mix(t->node, 0x737461636b);
		row->function = func->function;
		row->module = func->module;
		row->unknown = func->unknown;
		row->file = frame_file(frame, at->i);
		row->line = frame_line(frame, at->i);
		row->s = t->s;
		rows->more[rows->n - 1].trace = i;
		if (rows->of_trace)
			rows->of_trace[i] = (uint32_t)rows->n;
	}
}

/* ---- threads ---- */

static uint64_t thread_what(const struct view_thread *t)
{
	char which[40];

	snprintf(which, sizeof(which), "%" PRIu32 "%s%s", t->tid, t->merged ? "+" : "", t->chosen ? "!" : "");
	return funcs_what(t->name, t->tid || t->merged ? which : "");
}

void threads_trend(struct report *r)
{
	const struct view *view = r->view;
	CLEANUP_FREE struct trend *now = xcalloc(view->nthreads + 1, sizeof(*now));

	for (size_t i = 0; i < view->nthreads; i++)
		now[i] = (struct trend){ .id = thread_what(&view->threads[i]), .now = view->threads[i].s.live_bytes };
	trends_put(&r->thread_trends, now, view->nthreads);
}

static void thread_rows(struct report *r, struct group_rows *rows)
{
	for (size_t i = 0; i < r->view->nthreads; i++) {
		const struct view_thread *t = &r->view->threads[i];
		struct report_site *row = group_row(rows, thread_what(t));
		row->function = t->name;
		row->module = "";
		row->s = t->s;
		struct report_more *more = &rows->more[rows->n - 1];
		more->tid = t->tid;
		more->merged = t->merged;
		more->ended = t->ended;
		more->chosen = t->chosen;
	}
}

/* ---- all of them ---- */

static void make(struct report *r, enum report_group group, struct group_rows *rows, bool against)
{
	CLEANUP_FREE uint32_t *of_trace = NULL;

	rows->n = 0;
	if (!r->view)
		return;
	if (((r->held && r->view->classes) || trends_in_file(r)) && group != REPORT_BY_THREAD)
		of_trace = xcalloc(r->view->ntraces + 1, sizeof(*of_trace));
	rows->of_trace = of_trace;
	if (group == REPORT_BY_FUNCTION)
		function_rows(r, rows);
	else if (group == REPORT_BY_STACK)
		stack_rows(r, rows, against);
	else if (group == REPORT_BY_MODULE)
		modules_rows(r, rows);
	else
		thread_rows(r, rows);
	if (of_trace && r->held)
		held_fill(r, rows->rows, rows->n, of_trace);
	rows->of_trace = NULL;
	for (size_t i = 0; i < rows->n; i++) {
		struct report_site *row = &rows->rows[i];
		row->se = row->s.live_var > 0 ? sqrt(row->s.live_var) : 0;
		if (group == REPORT_BY_MODULE)
			trends_get(&r->module_trends, row);
		else if (group == REPORT_BY_THREAD)
			trends_get(&r->thread_trends, row);
		row->trend_seconds = trend_span(r, row->ntrend);
	}
	if (of_trace)
		trends_of_file(r, rows->rows, rows->n, of_trace);
	else if (group == REPORT_BY_THREAD)
		trends_of_file_threads(r, rows->rows, rows->n);
}

struct same {
	uint64_t what;
	size_t i;
};

static int by_what(const void *pa, const void *pb)
{
	const struct same *a = pa, *b = pb;

	if (a->what != b->what)
		return a->what < b->what ? -1 : 1;
	return a->i < b->i ? -1 : a->i > b->i;
}

static struct same *sorted_by_what(const struct group_rows *rows)
{
	struct same *list = xcalloc(rows->n + 1, sizeof(*list));

	for (size_t i = 0; i < rows->n; i++)
		list[i] = (struct same){ rows->what[i], i };
	qsort(list, rows->n, sizeof(*list), by_what);
	return list;
}

static void add_gone(struct group_rows *rows, const struct group_rows *was, size_t i)
{
	if (!was->rows[i].s.live_bytes)
		return;
	struct report_site *row = group_row(rows, was->what[i]);
	uint64_t id = row->id;

	*row = was->rows[i];
	row->id = id;
	row->s = (struct trace_stats){ 0 };
	row->se = 0;
	row->ntrend = 0;
	row->delta = -(int64_t)was->rows[i].s.live_bytes;
	row->gone = true;
	rows->more[rows->n - 1] = was->more[i];
	/* its trace is the other view's */
	rows->more[rows->n - 1].trace = SIZE_MAX;
	rows->more[rows->n - 1].total = (struct trace_stats){ 0 };
}

/* As base_sites, for rows of any group. */
static void compare(struct report *r, enum report_group group, struct group_rows *rows)
{
	struct group_rows was = { 0 };

	make(r->base.report, group, &was, true);
	size_t n = rows->n, k = 0;
	struct same *now = sorted_by_what(rows), *then = sorted_by_what(&was);
	for (size_t i = 0; i < n; i++) {
		struct report_site *row = &rows->rows[now[i].i];
		for (; k < was.n && then[k].what < now[i].what; k++)
			add_gone(rows, &was, then[k].i);
		row = &rows->rows[now[i].i];
		bool there = k < was.n && then[k].what == now[i].what;
		const struct report_site *before = there ? &was.rows[then[k++].i] : NULL;
		row->delta = (int64_t)(row->s.live_bytes - (before ? before->s.live_bytes : 0));
		row->fresh = row->s.alloc_q10 && (!before || !before->s.alloc_q10);
	}
	for (; k < was.n; k++)
		add_gone(rows, &was, then[k].i);
	free(now);
	free(then);
	free(was.rows);
	free(was.more);
	free(was.what);
}

const struct report_site *report_rows(struct report *r, enum report_group group, enum report_value value,
				      bool reverse, size_t *ret_n)
{
	struct group_rows *rows = &r->groups;

	if (group == REPORT_BY_SITE)
		return report_sites(r, value, reverse, ret_n);
	make(r, group, rows, r->base.report != NULL);
	if (r->base.report)
		compare(r, group, rows);
	for (size_t i = 0; i < rows->n; i++)
		rows->rows[i].more = &rows->more[i];
	sites_sort(rows->rows, rows->n, value, reverse);
	*ret_n = rows->n;
	return rows->rows;
}

double report_rows_whole(const struct report_site *rows, size_t n, enum report_value value)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += fabs(report_site_value(&rows[i], value));
	return sum;
}
