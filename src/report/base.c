/*
 * The difference to a base: an earlier view of the same heap (a mark), or a snapshot file. The base is
 * a report of its own, with its own names, and is matched by what functions *are*, module and name:
 * sites by their function, cells of the trees by the path that leads to them. What only the base has
 * is put behind as gone.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/internal.h"

void base_deinit(struct base *base)
{
	report_destroy(base->report);
	free(base->slots);
	free(base->seen);
	*base = (struct base){ 0 };
}

struct err *report_set_base(struct report *r, struct view *view, struct names *names)
{
	struct err *err = NULL;

	report_forget_trees(r);
	r->sites_valid = false;
	base_deinit(&r->base);
	if (!view)
		return NULL;
	r->base.report = report_create(names, r->funcs.wait);
	r->base.report->funcs.wrappers = r->funcs.wrappers;
	report_set_modules(r->base.report, names == r->funcs.names ? r->funcs.mods : NULL);
	r->base.report->user_only = r->user_only;
	if (r->filter.text)
		err = report_set_filter(r->base.report, r->filter.text);
	if (r->filter.module)
		report_set_module(r->base.report, r->filter.module);
	report_set_view(r->base.report, view);
	return err;
}

const struct view *report_base(const struct report *r)
{
	return r->base.report ? r->base.report->view : NULL;
}

/* Which row of the base's list is a function's: index + 1 by hash. */
static void index_rows(struct base *base, const struct report_site *rows, size_t n)
{
	size_t slots = 64;

	while (slots < n * 2)
		slots *= 2;
	free(base->slots);
	free(base->seen);
	base->slots = xcalloc(slots, sizeof(*base->slots));
	base->seen = xcalloc(n + 1, sizeof(*base->seen));
	base->nslots = slots;
	for (size_t i = 0; i < n; i++) {
		uint64_t what = funcs_what(rows[i].function, rows[i].module);
		size_t k = what & (slots - 1);
		while (base->slots[k].row)
			k = (k + 1) & (slots - 1);
		base->slots[k].what = what;
		base->slots[k].row = (uint32_t)i + 1;
	}
}

static const struct report_site *find_row(struct base *base, const struct report_site *rows, uint64_t what)
{
	for (size_t k = what & (base->nslots - 1); base->slots[k].row; k = (k + 1) & (base->nslots - 1))
		if (base->slots[k].what == what) {
			base->seen[base->slots[k].row - 1] = true;
			return &rows[base->slots[k].row - 1];
		}
	return NULL;
}

void base_sites(struct report *r)
{
	size_t n;

	if (!r->base.report)
		return;
	const struct report_site *rows = report_sites(r->base.report, REPORT_LIVE_BYTES, false, &n);
	index_rows(&r->base, rows, n);
	for (size_t i = 0; i < r->nsites; i++) {
		struct report_site *now = &r->sites[i];
		const struct report_site *was =
			find_row(&r->base, rows, funcs_what(now->function, now->module));
		now->delta = (int64_t)(now->s.live_bytes - (was ? was->s.live_bytes : 0));
		now->fresh = now->s.alloc_q10 && (!was || !was->s.alloc_q10);
	}
	for (size_t i = 0; i < n; i++) {
		if (r->base.seen[i] || !rows[i].s.live_bytes)
			continue;
		VEC_GROW(r->sites, r->nsites, r->sites_cap);
		r->sites[r->nsites++] = (struct report_site){
			.id = funcs_what(rows[i].function, rows[i].module),
			.function = rows[i].function,
			.file = rows[i].file,
			.line = rows[i].line,
			.module = rows[i].module,
			.unknown = rows[i].unknown,
			.delta = -(int64_t)rows[i].s.live_bytes,
			.gone = true,
		};
	}
}

double report_whole(struct report *r, enum report_value v)
{
	double sum = 0;

	if (v != REPORT_DELTA_BYTES) {
		struct trace_stats total = report_total(r);
		return report_value_of(&total, v);
	}
	sites_rows(r);
	for (size_t i = 0; i < r->nsites; i++)
		sum += (double)(r->sites[i].delta < 0 ? -r->sites[i].delta : r->sites[i].delta);
	return sum;
}
