/* The flat list of sites: every trace counted at its site's function; see report.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/internal.h"

#define TREND_STEP 0.95		/* seconds between the values of a trend */

void sites_reset(struct report *r)
{
	r->sites_valid = false;
}

void sites_trend(struct report *r)
{
	const struct view *view = r->view;

	if (r->trend_time && view->time < r->trend_time + TREND_STEP)
		return;
	r->trend_time = view->time;
	for (size_t i = 0; i < r->funcs.n; i++)
		r->funcs.items[i].live = 0;
	for (size_t i = 0; i < view->ntraces; i++)
		if (view_trace(view, i))
			r->funcs.items[r->trace_sites[i].func].live += view_trace(view, i)->s.live_bytes;
	for (size_t i = 0; i < view->ntraces; i++) {
		if (!view_trace(view, i))
			continue;
		struct func *func = &r->funcs.items[r->trace_sites[i].func];
		if (!func->ntrend)
			func->ntrend = 1;	/* a site from now on: its first value comes below */
	}
	for (size_t i = 0; i < r->funcs.n; i++) {
		struct func *func = &r->funcs.items[i];
		if (!func->ntrend)
			continue;
		/* ntrend is one more than the number of values, so that "is a site" has a mark */
		func->trend[(func->ntrend - 1) % REPORT_TREND] = func->live;
		func->ntrend++;
	}
}

static void copy_trend(const struct func *func, struct report_site *site)
{
	uint32_t n = func->ntrend ? func->ntrend - 1 : 0;

	site->ntrend = n < REPORT_TREND ? n : REPORT_TREND;
	for (uint32_t k = 0; k < site->ntrend; k++)
		site->trend[k] = func->trend[(n - site->ntrend + k) % REPORT_TREND];
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static void sites_build(struct report *r)
{
	const struct view *view = r->view;

	for (size_t i = 0; i < r->funcs.n; i++)
		r->funcs.items[i].site = 0;
	r->nsites = 0;
	for (size_t i = 0; view && i < view->ntraces; i++) {
		if (!view_trace(view, i) || !report_passes(r, i))
			continue;
		const struct trace_site *at = &r->trace_sites[i];
		const struct frame *frame = report_node_frame(r, at->node);
		struct func *func = &r->funcs.items[at->func];
		const char *file = frame_file(frame, at->i);
		uint32_t line = frame_line(frame, at->i);
		if (!func->site) {
			VEC_GROW(r->sites, r->nsites, r->sites_cap);
			struct report_site *site = &r->sites[r->nsites++];
			*site = (struct report_site){
				.id = func->id,
				.function = func->function,
				.file = file,
				.line = line,
				.module = func->module,
				.unknown = func->unknown,
			};
			copy_trend(func, site);
			func->site = (uint32_t)r->nsites;
		}
		struct report_site *site = &r->sites[func->site - 1];
		if (!same_text(site->file, file)) {
			/* a header and the file that includes it: neither is right for all */
			site->file = NULL;
			site->line = 0;
		} else if (site->line != line) {
			site->line = 0;
		}
		trace_stats_add(&site->s, &view_trace(view, i)->s);
	}
	for (size_t i = 0; i < r->nsites; i++)
		r->sites[i].se = sqrt(r->sites[i].s.live_var);
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
	double va = report_value_of(&a->s, order->value);
	double vb = report_value_of(&b->s, order->value);

	if (va != vb)
		return (va > vb) != order->reverse ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

const struct report_site *report_sites(struct report *r, enum report_value value, bool reverse,
				       size_t *ret_n)
{
	struct order order = { value, reverse };

	if (!r->sites_valid)
		sites_build(r);
	if (r->nsites)
		qsort_r(r->sites, r->nsites, sizeof(*r->sites), compare_sites, &order);
	*ret_n = r->nsites;
	return r->sites;
}

struct trace_stats report_total(struct report *r)
{
	struct trace_stats sum = { 0 };

	for (size_t i = 0; r->view && i < r->view->ntraces; i++)
		if (view_trace(r->view, i) && report_passes(r, i))
			trace_stats_add(&sum, &view_trace(r->view, i)->s);
	return sum;
}

size_t report_site_trace(struct report *r, uint64_t site_id)
{
	int64_t func = funcs_by_id(&r->funcs, site_id);
	size_t best = SIZE_MAX;

	if (func < 0 || !r->view)
		return SIZE_MAX;
	for (size_t i = 0; i < r->view->ntraces; i++) {
		if (!view_trace(r->view, i) || r->trace_sites[i].func != (uint32_t)func
		    || !report_passes(r, i))
			continue;
		const struct trace_stats *s = &view_trace(r->view, i)->s;
		const struct trace_stats *b = best == SIZE_MAX ? NULL : &view_trace(r->view, best)->s;
		if (!b || s->live_bytes > b->live_bytes
		    || (s->live_bytes == b->live_bytes && s->alloc_bytes > b->alloc_bytes))
			best = i;
	}
	return best;
}

uint64_t report_site_id(struct report *r, uint64_t site_id)
{
	int64_t func = funcs_by_id(&r->funcs, site_id);

	return func < 0 ? site_id : r->funcs.items[func].id;
}
