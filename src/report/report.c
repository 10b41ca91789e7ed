/* A report's life, its view, and the stacks of traces; see report.h. */
#include "report/report.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "elf/modules.h"
#include "report/internal.h"
#include "report/system.h"
#include "symbol/names.h"

#define NODES_IDLE_MAX 10	/* views after which sums that nobody looks at are given up */

struct report *report_create(struct names *names, bool wait)
{
	struct report *r = xcalloc(1, sizeof(*r));

	funcs_init(&r->funcs, names, wait);
	return r;
}

void report_forget_trees(struct report *r)
{
	for (int i = 0; i < 2; i++) {
		report_tree_destroy(r->trees[i]);
		r->trees[i] = NULL;
	}
}

static void forget_nodes(struct report *r)
{
	node_sums_destroy(r->nodes);
	trends_deinit(&r->module_trends);
	trends_deinit(&r->thread_trends);
	node_sums_destroy(r->linking.sums);
	r->nodes = r->linking.sums = NULL;
	r->counted = false;
}

void report_destroy(struct report *r)
{
	if (!r)
		return;
	report_forget_trees(r);
	base_deinit(&r->base);
	forget_nodes(r);
	filter_deinit(&r->filter);
	funcs_deinit(&r->funcs);
	view_unref(r->view);
	free(r->node_frame);
	free(r->trace_sites);
	free(r->site_list);
	free(r->sites);
	free(r->of_func);
	free(r->system);
	free(r->groups.rows);
	free(r->groups.more);
	free(r->groups.what);
	modsets_deinit(&r->modsets);
	free(r->stack);
	free(r);
}

void report_set_user_only(struct report *r, bool on)
{
	r->user_only = on;
	report_forget_trees(r);
	if (r->base.report)
		report_set_user_only(r->base.report, on);
}

void report_set_held(struct report *r, bool on)
{
	r->sites_valid = r->sites_valid && r->held == on;
	r->held = on;
}

bool report_has_held(const struct report *r)
{
	return r->held;
}

static bool is_system(struct report *r, uint32_t module, const char *name)
{
	const struct module *mod = r->funcs.mods && module ? module_get(r->funcs.mods, module) : NULL;

	if (mod && mod->is_main)
		return false;
	return system_library(name) || (mod && mod->path && system_path(mod->path));
}

bool report_left_out(struct report *r, uint32_t node)
{
	if (!r->user_only)
		return false;
	const struct frame *frame = report_node_frame(r, node);
	uint32_t module = frame_module(frame->addr);
	const char *name = r->funcs.items[frame->funcs[0]].module;
	if (!module)
		return false;
	if (module >= r->nsystem) {
		size_t n = module + 64;
		r->system = xreallocarray(r->system, n, sizeof(*r->system));
		memset(r->system + r->nsystem, -1, n - r->nsystem);
		r->nsystem = n;
	}
	if (r->system[module] < 0 && *name)
		r->system[module] = is_system(r, module, name);
	return r->system[module] > 0;
}

void report_set_modules(struct report *r, const struct modules *mods)
{
	r->funcs.mods = mods;
}

const struct view *report_view(const struct report *r)
{
	return r->view;
}

bool report_stale(const struct report *r)
{
	if (r->base.report && report_stale(r->base.report))
		return true;
	return r->funcs.missing && names_generation(r->funcs.names) != r->generation;
}

const struct frame *report_node_frame(struct report *r, uint32_t node)
{
	return funcs_resolve(&r->funcs, r->node_frame[node]);
}

/* Frames of the nodes that are new since the last view; all of them in another tree. */
static void take_nodes(struct report *r)
{
	const struct view *view = r->view;

	if (view->nnodes > r->node_frame_cap) {
		size_t cap = r->node_frame_cap * 2;
		if (cap < view->nnodes)
			cap = view->nnodes;
		r->node_frame = xreallocarray(r->node_frame, cap, sizeof(*r->node_frame));
		r->node_frame_cap = cap;
	}
	for (size_t id = r->nnode_frame; id < view->nnodes; id++)
		r->node_frame[id] = funcs_frame(&r->funcs, tree_get(view->tree, (uint32_t)id).addr);
	if (r->nnode_frame < view->nnodes)
		r->nnode_frame = view->nnodes;
}

static void names_round(struct report *r)
{
	r->funcs.round++;
	r->funcs.missing = false;
	r->generation = r->funcs.names ? names_generation(r->funcs.names) : 0;
}

static void trace_sites_room(struct report *r, size_t n)
{
	if (n > r->trace_sites_cap) {
		r->trace_sites_cap = n + n / 4;
		r->trace_sites = xreallocarray(r->trace_sites, r->trace_sites_cap,
					       sizeof(*r->trace_sites));
	}
	for (; r->ntrace_sites < n; r->ntrace_sites++)
		r->trace_sites[r->ntrace_sites].node = TREE_NONE;
}

void report_look_again(struct report *r)
{
	const struct view *view = r->view;

	report_forget_trees(r);
	forget_nodes(r);
	sites_clear(r);
	r->ntrace_sites = 0;
	r->filter.nmatch = 0;
	if (!view)
		return;
	names_round(r);
	take_nodes(r);
	filter_take_nodes(r);
	trace_sites_room(r, view->ntraces);
	for (size_t i = 0; i < view->ntraces; i++)
		if (view_trace(view, i))
			sites_put(r, (uint32_t)i, view_trace(view, i));
}

static void names_came(struct report *r)
{
	/* a filter asked for every name, and any of them may decide what passes */
	if (r->filter.pattern || r->filter.module) {
		report_look_again(r);
		return;
	}
	report_forget_trees(r);
	names_round(r);
	sites_renamed(r);
}

static void trace_gone(struct report *r, uint32_t trace, const struct view_trace *was)
{
	sites_take(r, trace, was);
	if (r->nodes && report_passes(r, was->node)) {
		struct sums diff = { 0 };
		sums_sub(&diff, &was->s);
		node_sums_change(r->nodes, was->node, &diff, -1);
	}
}

static void trace_come(struct report *r, uint32_t trace, const struct view_trace *now)
{
	sites_put(r, trace, now);
	if (r->nodes && report_passes(r, now->node)) {
		struct sums diff = { 0 };
		sums_add(&diff, &now->s);
		node_sums_link(r->nodes, now->node, trace);
		node_sums_change(r->nodes, now->node, &diff, 1);
	}
}

/* Returns whether it did. */
static bool trace_changed(struct report *r, uint32_t trace, const struct view_trace *was,
			  const struct view_trace *now)
{
	struct sums diff = { 0 };

	if (!memcmp(&was->s, &now->s, sizeof(was->s)))
		return false;
	sums_add(&diff, &now->s);
	sums_sub(&diff, &was->s);
	sites_change(r, trace, &diff, now->s.live_bytes - was->s.live_bytes);
	if (r->nodes && report_passes(r, now->node))
		node_sums_change(r->nodes, now->node, &diff, 0);
	return true;
}

static bool same_chunk(const struct view *a, const struct view *b, size_t chunk)
{
	return chunk * VIEW_CHUNK < a->ntraces && a->chunks[chunk] == b->chunks[chunk];
}

/*
 * Take over what differs between `old`, which all sums stand for, and the view. A trace may have
 * gone and its node come back under another index in the same step: first those that go.
 */
static void follow(struct report *r, const struct view *old)
{
	const struct view *view = r->view;
	size_t changed = 0;
	bool come = false;

	report_forget_trees(r);
	if (!r->funcs.missing && r->funcs.names)
		r->generation = names_generation(r->funcs.names);
	take_nodes(r);
	filter_take_nodes(r);
	trace_sites_room(r, view->ntraces);
	if (r->linking.sums) {
		forget_nodes(r);
		r->linking.given_up++;
	}
	if (r->nodes && ++r->nodes_idle > NODES_IDLE_MAX)
		forget_nodes(r);
	if (r->nodes)
		node_sums_room(r->nodes, view->nnodes);
	for (size_t i = 0; i < view->ntraces; i++) {
		if (i % VIEW_CHUNK == 0 && same_chunk(old, view, i / VIEW_CHUNK)) {
			i += VIEW_CHUNK - 1;
			continue;
		}
		const struct view_trace *was = view_trace(old, i), *now = view_trace(view, i);
		if (was && now && was->node == now->node) {
			changed += trace_changed(r, (uint32_t)i, was, now);
		} else {
			if (was)
				trace_gone(r, (uint32_t)i, was);
			come |= now != NULL;
		}
		if (r->nodes && changed > view->ntraces / 4 + 100)
			r->nodes->stale = true;
	}
	for (size_t i = 0; come && i < view->ntraces; i++) {
		if (i % VIEW_CHUNK == 0 && same_chunk(old, view, i / VIEW_CHUNK)) {
			i += VIEW_CHUNK - 1;
			continue;
		}
		const struct view_trace *was = view_trace(old, i), *now = view_trace(view, i);
		if (now && (!was || was->node != now->node))
			trace_come(r, (uint32_t)i, now);
	}
	r->sites_valid = false;
}

void report_set_view(struct report *r, struct view *view)
{
	struct view *old = r->view;
	bool next = old && view && old->tree == view->tree && view->seq > old->seq
		&& view->ntraces >= old->ntraces;

	if (r->base.report && report_stale(r->base.report)) {
		report_set_view(r->base.report, r->base.report->view);
		report_forget_trees(r);
		r->sites_valid = false;
	}
	if (old && (view == old || next) && report_stale(r))
		names_came(r);
	if (view == old)
		return;
	r->view = view ? view_ref(view) : NULL;
	if (next) {
		follow(r, old);
	} else {
		if (!old || !view || old->tree != view->tree)
			r->nnode_frame = 0;
		report_look_again(r);
	}
	view_unref(old);
	if (view)
		sites_trend(r);
}

bool report_trace_passes(struct report *r, size_t trace)
{
	const struct view_trace *t = r->view ? view_trace(r->view, trace) : NULL;

	return t && report_passes(r, t->node);
}

const char *report_raw_name(struct report *r, const char *function)
{
	const char *raw = funcs_raw(&r->funcs, function);

	if (!raw && r->base.report)
		raw = funcs_raw(&r->base.report->funcs, function);
	return raw ? raw : function;
}

void report_set_wrappers(struct report *r, const struct wrappers *wrappers)
{
	r->funcs.wrappers = wrappers;
	funcs_rejudge(&r->funcs);
	report_look_again(r);
	if (r->base.report)
		report_set_wrappers(r->base.report, wrappers);
}

const struct report_frame *report_stack(struct report *r, size_t trace, size_t *ret_n,
					size_t *ret_site)
{
	size_t n = 0;

	*ret_n = *ret_site = 0;
	if (!r->view || !view_trace(r->view, trace))
		return NULL;
	const struct trace_site *site = &r->trace_sites[trace];
	for (uint32_t node = view_trace(r->view, trace)->node; node;
	     node = tree_get(r->view->tree, node).parent) {
		const struct frame *frame = report_node_frame(r, node);
		for (uint32_t i = 0; i < frame->nfuncs; i++) {
			const struct func *func = &r->funcs.items[frame->funcs[i]];
			if (node == site->node && i == site->i)
				*ret_site = n;
			VEC_GROW(r->stack, n, r->stack_cap);
			r->stack[n++] = (struct report_frame){
				.function = func->function,
				.file = frame_file(frame, i),
				.module = func->module,
				.line = frame_line(frame, i),
				.inlined = frame_inlined(frame, i),
				.unknown = func->unknown,
				.pseudo = func->pseudo,
			};
		}
	}
	*ret_n = n;
	return r->stack;
}
