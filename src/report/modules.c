/*
 * Rows by module. A trace counts in full for the module of its site ("self"), and once for each module
 * that any of its frames is in ("total"). Self sums are exactly the report's totals; totals aren't a
 * division of anything, they overlap.
 *
 * Modules are one if their names are the same, as functions are (funcs.h): the same library in two
 * processes, or in now and a base, is one row.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/internal.h"
#include "symbol/names.h"

struct module_sums {
	struct sums self, total;
	uint32_t traces;	/* that count in either */
	uint32_t row;		/* + 1, among those that have any */
	uint32_t set;		/* set + 1 that was counted last */
	uint32_t named, unknown, lined;	/* frames with a name, without a symbol, with a line */
};

struct making {
	struct report *r;
	struct group_rows *rows;
	struct module_sums *sums;	/* one a row */
	size_t nsums, sums_cap;
	uint32_t of_id[1 << 16];	/* by module id: row + 1 */
};

static uint32_t row_by_name(struct making *m, const char *name, uint32_t id)
{
	uint64_t what = funcs_what("", name);

	for (size_t i = 0; i < m->nsums; i++)
		if (m->rows->what[i] == what)
			return (uint32_t)i;
	struct report_site *row = group_row(m->rows, what);
	row->function = row->module = name;
	m->rows->more[m->rows->n - 1].module_id = id;
	VEC_GROW(m->sums, m->nsums, m->sums_cap);
	m->sums[m->nsums] = (struct module_sums){ 0 };
	return (uint32_t)m->nsums++;
}

/* The row of a frame's module, by the name that its functions have. One frame of each module is looked up for it. */
static uint32_t row_of_frame(struct making *m, uint32_t index)
{
	uint32_t id = frame_module(m->r->funcs.frames[index].addr);

	if (!m->of_id[id]) {
		const struct frame *frame = funcs_resolve(&m->r->funcs, index);
		m->of_id[id] = row_by_name(m, m->r->funcs.items[frame->funcs[0]].module, id) + 1;
	}
	return m->of_id[id] - 1;
}

static uint32_t row_of_node(struct making *m, uint32_t node)
{
	return row_of_frame(m, m->r->node_frame[node]);
}

/* Every set's sum goes once to each of its modules. */
static void count_sets(struct making *m, const struct sums *of_set, const uint32_t *traces)
{
	const struct modsets *sets = &m->r->modsets;

	for (uint32_t k = 1; k < sets->n; k++) {
		if (!traces[k])
			continue;
		for (uint32_t s = k; s; s = sets->sets[s].up) {
			uint32_t row = m->of_id[sets->sets[s].module];
			/* two modules of one name are one */
			if (!row || m->sums[row - 1].set == k + 1)
				continue;
			m->sums[row - 1].set = k + 1;
			m->sums[row - 1].traces += traces[k];
			sums_merge(&m->sums[row - 1].total, &of_set[k]);
		}
	}
}

static bool holds(const struct modsets *sets, uint32_t set, uint32_t module)
{
	for (; set; set = sets->sets[set].up)
		if (sets->sets[set].module == module)
			return true;
	return false;
}

static void count_traces(struct making *m)
{
	struct report *r = m->r;
	const struct view *view = r->view;
	CLEANUP_FREE struct sums *of_set = xcalloc(r->modsets.n + 1, sizeof(*of_set));
	CLEANUP_FREE uint32_t *traces = xcalloc(r->modsets.n + 1, sizeof(*traces));

	for (size_t i = 0; i < view->ntraces; i++) {
		const struct view_trace *t = view_trace(view, i);
		if (!t || !report_passes(r, t->node))
			continue;
		uint32_t node = r->trace_sites[i].node, set = r->modsets.of_node[t->node];
		uint32_t row = row_of_node(m, node);
		struct report_more *more = &m->rows->more[row];
		sums_add(&m->sums[row].self, &t->s);
		m->sums[row].traces++;
		if (m->rows->of_trace)
			m->rows->of_trace[i] = row + 1;
		if (trace_heavier(t, more->trace == SIZE_MAX ? NULL : view_trace(view, more->trace)))
			more->trace = i;
		sums_add(&of_set[set], &t->s);
		traces[set]++;
		/* the site is no code of a module: a stack without frames, or its beginning */
		if (!holds(&r->modsets, set, frame_module(r->funcs.frames[r->node_frame[node]].addr)))
			sums_add(&m->sums[row].total, &t->s);
	}
	count_sets(m, of_set, traces);
}

/* How much is known of the modules' names, by the frames that have been looked up; and rows for all modules. */
static void look_at_frames(struct making *m)
{
	const struct funcs *funcs = &m->r->funcs;

	for (uint32_t k = 0; k < funcs->nframes; k++) {
		if (funcs->frames[k].addr <= FRAME_PSEUDO_MAX)
			continue;
		uint32_t row = row_of_frame(m, k);	/* may move m->sums, and the frames */
		struct module_sums *sums = &m->sums[row];
		const struct frame *frame = &funcs->frames[k];
		if (!frame->name)
			continue;
		const struct name_func *func = &frame->name->funcs[frame->nfuncs - 1];
		sums->named++;
		sums->unknown += func->unknown;
		sums->lined += func->line != 0;
	}
}

static enum report_symbols symbols_of(const struct module_sums *sums)
{
	if (!sums->named)
		return REPORT_SYMBOLS_PENDING;
	if (sums->lined)
		return REPORT_SYMBOLS_LINES;
	return sums->unknown == sums->named ? REPORT_SYMBOLS_NONE : REPORT_SYMBOLS_NAMES;
}

static void count_sites(struct making *m)
{
	for (size_t i = 0; i < m->r->nsite_list; i++) {
		const struct site *site = &m->r->site_list[i];
		if (!site->npass)
			continue;
		uint32_t node = m->r->trace_sites[site->first - 1].node;
		uint32_t row = row_of_node(m, node);
		m->rows->more[row].nsites++;
	}
}

void modules_rows(struct report *r, struct group_rows *rows)
{
	struct making *m = xcalloc(1, sizeof(*m));
	size_t n = 0;

	m->r = r;
	m->rows = rows;
	modsets_take_nodes(&r->modsets, r->view->tree, r->view->nnodes);
	look_at_frames(m);
	count_traces(m);
	count_sites(m);
	for (size_t i = 0; i < rows->n; i++) {
		if (!m->sums[i].traces)
			continue;
		m->sums[i].row = (uint32_t)n + 1;
		rows->rows[n] = rows->rows[i];
		rows->more[n] = rows->more[i];
		rows->what[n] = rows->what[i];
		rows->rows[n].s = sums_get(&m->sums[i].self);
		rows->more[n].total = sums_get(&m->sums[i].total);
		rows->more[n++].symbols = symbols_of(&m->sums[i]);
	}
	rows->n = n;
	for (size_t i = 0; rows->of_trace && i < r->view->ntraces; i++)
		if (rows->of_trace[i])
			rows->of_trace[i] = m->sums[rows->of_trace[i] - 1].row;
	free(m->sums);
	free(m);
}

/* ---- over time ---- */

#define RECENT 64u	/* names by their address: the sites of a module share one nearly always */

struct module_live {
	struct trend *items;
	const char **names;
	size_t n, cap, names_cap;
	struct { const char *name; size_t i; } recent[RECENT];
};

static struct trend *live_of(struct module_live *live, const char *name)
{
	size_t at = ((uintptr_t)name >> 4) % RECENT, i = 0;

	if (live->recent[at].name == name)
		return &live->items[live->recent[at].i];
	while (i < live->n && strcmp(live->names[i], name))
		i++;
	if (i == live->n) {
		VEC_GROW(live->names, live->n, live->names_cap);
		VEC_GROW(live->items, live->n, live->cap);
		live->names[live->n] = name;
		live->items[live->n++] = (struct trend){ .id = funcs_what("", name) };
	}
	live->recent[at].name = name;
	live->recent[at].i = i;
	return &live->items[i];
}

void modules_trend(struct report *r)
{
	struct module_live live = { 0 };

	for (size_t i = 0; i < r->nsite_list; i++) {
		const struct site *site = &r->site_list[i];
		if (site->first)
			live_of(&live, r->funcs.items[site->func].module)->now += site->live;
	}
	trends_put(&r->module_trends, live.items, live.n);
	free(live.items);
	free(live.names);
}
