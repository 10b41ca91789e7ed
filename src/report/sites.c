/* The flat list of sites: every trace counted at its site's function; see report.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/held.h"
#include "report/internal.h"

#define TREND_STEP 0.95		/* seconds between the values of a trend */

struct trace_site report_find_site(struct report *r, uint32_t leaf)
{
	struct trace_site first = { .node = leaf };

	for (uint32_t node = leaf; ; node = tree_get(r->view->tree, node).parent) {
		if (node == 0 && leaf != 0)
			return first;
		const struct frame *frame = report_node_frame(r, node);
		if (node == leaf)
			first.func = frame->funcs[0];
		for (uint32_t i = 0; i < frame->nfuncs; i++) {
			const struct func *func = &r->funcs.items[frame->funcs[i]];
			if (!func->wrapper && !func->pseudo)
				return (struct trace_site){ .node = node, .i = i, .func = frame->funcs[i] };
		}
		if (node == 0)
			return first;
	}
}

static struct site *site_of(struct report *r, uint32_t func)
{
	struct func *f = &r->funcs.items[func];

	if (!f->site) {
		VEC_GROW(r->site_list, r->nsite_list, r->site_list_cap);
		r->site_list[r->nsite_list++] = (struct site){ .func = func };
		f->site = (uint32_t)r->nsite_list;
	}
	return &r->site_list[f->site - 1];
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* One more trace's place: what isn't the same for all is right for none. */
static void place_add(struct report *r, struct site *site, const struct trace_site *at)
{
	const struct frame *frame = report_node_frame(r, at->node);
	const char *file = frame_file(frame, at->i);
	uint32_t line = frame_line(frame, at->i);

	if (!site->place_known) {
		site->place_known = true;
		site->file = file;
		site->line = line;
		site->inlined = frame_inlined(frame, at->i);
		return;
	}
	site->inlined = site->inlined && frame_inlined(frame, at->i);
	if (!same_text(site->file, file)) {
		/* a header and the file that includes it */
		site->file = NULL;
		site->line = 0;
	} else if (site->line != line) {
		site->line = 0;
	}
}

void sites_put(struct report *r, uint32_t trace, const struct view_trace *t)
{
	struct trace_site *at = &r->trace_sites[trace];

	*at = report_find_site(r, t->node);
	at->ends = at->i + 1 >= report_node_frame(r, at->node)->nfuncs
		&& !tree_get(r->view->tree, at->node).parent;
	struct site *site = site_of(r, at->func);
	at->next = site->first;
	if (at->next)
		r->trace_sites[at->next - 1].prev = trace + 1;
	site->first = trace + 1;
	site->live += t->s.live_bytes;
	if (!t->node)
		r->root_trace = trace + 1;
	if (!report_passes(r, t->node))
		return;
	sums_add(&site->sum, &t->s);
	sums_add(&r->total, &t->s);
	r->npass++;
	site->nends += at->ends;
	if (!site->npass++ || site->place_known)
		place_add(r, site, at);
}

void sites_take(struct report *r, uint32_t trace, const struct view_trace *t)
{
	struct trace_site *at = &r->trace_sites[trace];
	struct site *site = site_of(r, at->func);

	if (at->next)
		r->trace_sites[at->next - 1].prev = at->prev;
	if (at->prev)
		r->trace_sites[at->prev - 1].next = at->next;
	else
		site->first = at->next;
	site->live -= t->s.live_bytes;
	if (!t->node)
		r->root_trace = 0;
	if (report_passes(r, t->node)) {
		sums_sub(&site->sum, &t->s);
		sums_sub(&r->total, &t->s);
		r->npass--;
		site->npass--;
		site->nends -= at->ends;
		site->place_known = false;
	}
	at->node = TREE_NONE;
}

void sites_change(struct report *r, uint32_t trace, const struct sums *diff, uint64_t live)
{
	struct site *site = site_of(r, r->trace_sites[trace].func);

	site->live += live;
	if (!report_passes(r, view_trace(r->view, trace)->node))
		return;
	sums_merge(&site->sum, diff);
	sums_merge(&r->total, diff);
}

void sites_clear(struct report *r)
{
	for (size_t i = 0; i < r->nsite_list; i++)
		r->site_list[i] = (struct site){ .func = r->site_list[i].func };
	r->total = (struct sums){ 0 };
	r->npass = 0;
	r->root_trace = 0;
	r->sites_valid = false;
}

/*
 * The search for a site stops at a frame without a name, so only the traces of such sites can get another
 * one. They all have the same frame there.
 */
void sites_renamed(struct report *r)
{
	size_t n = r->nsite_list;

	r->sites_valid = false;
	for (size_t s = 0; s < n; s++) {
		uint32_t trace = r->site_list[s].first;
		if (!trace || !r->funcs.items[r->site_list[s].func].unknown)
			continue;
		const struct frame *frame = report_node_frame(r, r->trace_sites[trace - 1].node);
		if (!frame->name || frame->provisional != r->site_list[s].func + 1)
			continue;
		for (uint32_t next; trace; trace = next) {
			const struct view_trace *t = view_trace(r->view, trace - 1);
			next = r->trace_sites[trace - 1].next;
			sites_take(r, trace - 1, t);
			sites_put(r, trace - 1, t);
		}
	}
}

/* When the newest value (1) of all trends was taken, or an older one. */
static double trend_time(const struct report *r, uint32_t back)
{
	return r->trend_times[(r->ntrends - back) % REPORT_TREND];
}

double trend_span(const struct report *r, uint32_t n)
{
	return n ? trend_time(r, 1) - trend_time(r, n) : 0;
}

static bool filtered(const struct report *r)
{
	return r->filter.pattern || r->filter.module;
}

void sites_trend(struct report *r)
{
	const struct view *view = r->view;

	if (r->ntrends && view->time < trend_time(r, 1) + TREND_STEP)
		return;
	r->trend_times[r->ntrends++ % REPORT_TREND] = view->time;
	for (size_t i = 0; i < r->nsite_list; i++) {
		struct site *site = &r->site_list[i];
		struct func *func = &r->funcs.items[site->func];
		if (filtered(r) && (site->ntrend || site->npass))
			site->trend[site->ntrend++ % REPORT_TREND] = sums_get(&site->sum).live_bytes;
		/* ntrend is one more than the number of values, so that "is a site" has a mark */
		if (!func->ntrend && !site->first)
			continue;
		if (!func->ntrend)
			func->ntrend = 1;
		func->trend[(func->ntrend - 1) % REPORT_TREND] = site->live;
		func->ntrend++;
	}
	modules_trend(r);
	threads_trend(r);
}

/* Of what the row's other figures are of. */
static void copy_trend(const struct report *r, const struct site *site, struct report_site *row)
{
	const struct func *func = &r->funcs.items[site->func];
	bool part = filtered(r);
	const uint64_t *trend = part ? site->trend : func->trend;
	uint32_t n = part ? site->ntrend : func->ntrend ? func->ntrend - 1 : 0;

	row->ntrend = n < REPORT_TREND ? n : REPORT_TREND;
	for (uint32_t k = 0; k < row->ntrend; k++)
		row->trend[k] = trend[(n - row->ntrend + k) % REPORT_TREND];
}

/*
 * What the rows have of their traces one by one. The list's rows are those of the sites with traces that pass, in
 * the list's order.
 */
static void sites_by_trace(struct report *r)
{
	CLEANUP_FREE uint32_t *of_trace = xcalloc(r->view->ntraces + 1, sizeof(*of_trace));
	uint32_t row = 0;

	for (size_t i = 0; i < r->nsite_list; i++) {
		if (!r->site_list[i].npass)
			continue;
		row++;
		for (uint32_t k = r->site_list[i].first; k; k = r->trace_sites[k - 1].next)
			if (report_passes(r, view_trace(r->view, k - 1)->node))
				of_trace[k - 1] = row;
	}
	if (r->held)
		held_fill(r, r->sites, r->nsites, of_trace);
	trends_of_file(r, r->sites, r->nsites, of_trace);
}

void sites_rows(struct report *r)
{
	if (r->sites_valid)
		return;
	r->nsites = 0;
	for (size_t i = 0; i < r->nsite_list; i++) {
		struct site *site = &r->site_list[i];
		if (!site->npass)
			continue;
		for (uint32_t k = site->place_known ? 0 : site->first; k; k = r->trace_sites[k - 1].next)
			if (report_passes(r, view_trace(r->view, k - 1)->node))
				place_add(r, site, &r->trace_sites[k - 1]);
		const struct func *func = &r->funcs.items[site->func];
		VEC_GROW(r->sites, r->nsites, r->sites_cap);
		struct report_site *row = &r->sites[r->nsites++];
		*row = (struct report_site){
			.id = func->id,
			.function = func->function,
			.file = site->file,
			.line = site->line,
			.module = func->module,
			.unknown = func->unknown,
			.s = sums_get(&site->sum),
		};
		row->se = sqrt(row->s.live_var);
		copy_trend(r, site, row);
		row->trend_seconds = trend_span(r, row->ntrend);
	}
	if ((r->held && r->view && r->view->classes) || trends_in_file(r))
		sites_by_trace(r);
	base_sites(r);
	r->sites_valid = true;
}

struct order {
	enum report_value value;
	bool reverse;
};

static int compare_sites(const void *pa, const void *pb, void *arg)
{
	const struct report_site *a = pa, *b = pb;
	const struct order *order = arg;
	double va = fabs(report_site_value(a, order->value)), vb = fabs(report_site_value(b, order->value));

	if (va != vb)
		return (va > vb) != order->reverse ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

/* Sites that have allocated, or had, to the front; returns how many. */
static size_t put_touchers_last(struct report_site *sites, size_t n)
{
	size_t front = 0;

	for (size_t i = 0; i < n; i++) {
		struct report_site site = sites[i];
		if (stats_only_touched(&site.s))
			continue;
		sites[i] = sites[front];
		sites[front++] = site;
	}
	return front;
}

void sites_sort(struct report_site *rows, size_t n, enum report_value value, bool reverse)
{
	struct order order = { value, reverse };

	if (n)
		qsort_r(rows, n, sizeof(*rows), compare_sites, &order);
}

const struct report_site *report_sites(struct report *r, enum report_value value, bool reverse,
				       size_t *ret_n)
{
	sites_rows(r);
	*ret_n = value == REPORT_FAULT_BYTES ? r->nsites : put_touchers_last(r->sites, r->nsites);
	sites_sort(r->sites, *ret_n, value, reverse);
	return r->sites;
}

struct trace_stats report_total(struct report *r)
{
	return sums_get(&r->total);
}

bool trace_heavier(const struct view_trace *a, const struct view_trace *b)
{
	if (!b || a->s.live_bytes != b->s.live_bytes)
		return !b || a->s.live_bytes > b->s.live_bytes;
	if (a->s.alloc_bytes != b->s.alloc_bytes)
		return a->s.alloc_bytes > b->s.alloc_bytes;
	/* the list's order is no order: among equals the one that was there first */
	return a->node < b->node;
}

size_t report_site_trace(struct report *r, uint64_t site_id)
{
	int64_t func = funcs_by_id(&r->funcs, site_id);
	const struct view_trace *best = NULL;
	size_t ret = SIZE_MAX;

	if (func < 0 || !r->funcs.items[func].site)
		return SIZE_MAX;
	for (uint32_t k = site_of(r, (uint32_t)func)->first; k; k = r->trace_sites[k - 1].next) {
		const struct view_trace *t = view_trace(r->view, k - 1);
		if (!report_passes(r, t->node))
			continue;
		if (trace_heavier(t, best)) {
			best = t;
			ret = k - 1;
		}
	}
	return ret;
}

uint64_t report_site_id(struct report *r, uint64_t site_id)
{
	int64_t func = funcs_by_id(&r->funcs, site_id);

	return func < 0 ? site_id : r->funcs.items[func].id;
}
