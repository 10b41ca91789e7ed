/* A report's life, its view, and the stacks of traces; see report.h. */
#include "report/report.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "report/internal.h"
#include "report/wrappers.h"
#include "symbol/names.h"

struct report *report_create(struct names *names, bool wait)
{
	struct report *r = xcalloc(1, sizeof(*r));

	funcs_init(&r->funcs, names, wait);
	return r;
}

static void forget_trees(struct report *r)
{
	for (int i = 0; i < 2; i++) {
		report_tree_destroy(r->trees[i]);
		r->trees[i] = NULL;
	}
}

void report_destroy(struct report *r)
{
	if (!r)
		return;
	forget_trees(r);
	filter_deinit(&r->filter);
	funcs_deinit(&r->funcs);
	view_unref(r->view);
	free(r->node_frame);
	free(r->trace_sites);
	free(r->passes);
	free(r->sites);
	free(r->stack);
	free(r);
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

/*
 * The innermost function that is no wrapper. If there is none (or only what was unknown outside
 * of the wrappers), the innermost one.
 */
static struct trace_site find_site(struct report *r, uint32_t leaf)
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
				return (struct trace_site){ node, i, frame->funcs[i] };
		}
		if (node == 0)
			return first;
	}
}

static void look_again(struct report *r)
{
	const struct view *view = r->view;

	forget_trees(r);
	sites_reset(r);
	r->funcs.round++;
	r->funcs.missing = false;
	r->generation = r->funcs.names ? names_generation(r->funcs.names) : 0;
	take_nodes(r);
	r->trace_sites = xreallocarray(r->trace_sites, view->ntraces, sizeof(*r->trace_sites));
	for (size_t i = 0; i < view->ntraces; i++)
		if (view_trace(view, i))
			r->trace_sites[i] = find_site(r, view_trace(view, i)->node);
	filter_apply(r);
}

void report_set_view(struct report *r, struct view *view)
{
	if (view == r->view) {
		if (view && report_stale(r))
			look_again(r);
		return;
	}
	struct view *old = r->view;
	if (!old || !view || old->tree != view->tree)
		r->nnode_frame = 0;
	r->view = view ? view_ref(view) : NULL;
	view_unref(old);
	if (!view) {
		forget_trees(r);
		sites_reset(r);
		return;
	}
	look_again(r);
	sites_trend(r);
}

bool report_trace_passes(struct report *r, size_t trace)
{
	return r->view && view_trace(r->view, trace) && report_passes(r, trace);
}

struct err *report_add_wrapper(struct report *r, const char *regex)
{
	struct err *err = wrappers_add(r->funcs.wrappers, regex);

	if (err)
		return err;
	funcs_rejudge(&r->funcs);
	if (r->view)
		look_again(r);
	return NULL;
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
