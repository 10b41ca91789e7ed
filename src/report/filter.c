/*
 * Which traces pass the filter. A node matches if one of its frame's functions does or its parent
 * matches; parents come before children in the tree, so one pass in id order answers for all. So it
 * does for the module of the site.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/pattern.h"
#include "report/internal.h"

void filter_deinit(struct filter *filter)
{
	if (filter->pattern)
		regfree(&filter->regex);
	free(filter->pattern);
	free(filter->text);
	free(filter->match);
	free(filter->module);
	free(filter->site);
	*filter = (struct filter){ 0 };
}

struct err *report_set_filter(struct report *r, const char *pattern)
{
	struct filter filter = { 0 };
	const char *text = pattern;

	if (pattern && *pattern == '!') {
		filter.exclude = true;
		pattern++;
	}
	if (pattern && *pattern) {
		struct err *err = pattern_compile(pattern, pattern_ignores_case(pattern), &filter.regex);
		if (err)
			return err_prefix(err, "filter '%s'", pattern);
		filter.pattern = xstrdup(pattern);
		filter.text = xstrdup(text);
	}
	filter.module = r->filter.module;
	r->filter.module = NULL;
	filter_deinit(&r->filter);
	r->filter = filter;
	for (size_t i = 0; i < r->funcs.n; i++)
		r->funcs.items[i].match = -1;
	for (size_t i = 0; i < r->funcs.nframes; i++)
		r->funcs.frames[i].match = -1;
	report_look_again(r);
	return r->base.report ? report_set_filter(r->base.report, text) : NULL;
}

void report_set_module(struct report *r, const char *module)
{
	char *copy = module ? xstrdup(module) : NULL;

	free(r->filter.module);
	r->filter.module = copy;
	report_look_again(r);
	if (r->base.report)
		report_set_module(r->base.report, copy);
}

static bool text_matches(const struct report *r, const char *text)
{
	return text && *text && pattern_matches(&r->filter.regex, text);
}

static bool frame_matches(struct report *r, uint32_t node)
{
	report_node_frame(r, node);
	struct frame *frame = &r->funcs.frames[r->node_frame[node]];

	if (frame->match >= 0)
		return frame->match;
	bool matches = false;
	for (uint32_t i = 0; i < frame->nfuncs && !matches; i++) {
		struct func *func = &r->funcs.items[frame->funcs[i]];
		if (func->match < 0)
			func->match = text_matches(r, func->function)
				|| text_matches(r, func->module);
		matches = func->match || text_matches(r, frame_file(frame, i));
	}
	frame->match = matches;
	return matches;
}

/* As find_site goes, but a step for each node: the site of a stack that ends here, or where its caller's is. */
static void judge_site(struct report *r, uint32_t id)
{
	struct filter *filter = &r->filter;
	const struct frame *frame = report_node_frame(r, id);
	uint32_t first = TREE_NONE;

	for (uint32_t i = 0; i < frame->nfuncs && first == TREE_NONE; i++) {
		const struct func *func = &r->funcs.items[frame->funcs[i]];
		if (!func->wrapper && !func->pseudo)
			first = id;
	}
	if (first == TREE_NONE && id)
		first = filter->site[tree_get(r->view->tree, id).parent].first;
	/* the root is a site only to the stack without frames */
	filter->site[id].first = id ? first : TREE_NONE;
	frame = report_node_frame(r, first == TREE_NONE ? id : first);
	filter->site[id].in = !strcmp(r->funcs.items[frame->funcs[0]].module, filter->module);
}

void filter_take_nodes(struct report *r)
{
	struct filter *filter = &r->filter;
	uint32_t n = r->view->nnodes;

	if (!filter->pattern && !filter->module)
		return;
	if (filter->pattern && n > filter->match_cap) {
		filter->match_cap = n + n / 4;
		filter->match = xreallocarray(filter->match, filter->match_cap,
					      sizeof(*filter->match));
	}
	if (filter->module && n > filter->site_cap) {
		filter->site_cap = n + n / 4;
		filter->site = xreallocarray(filter->site, filter->site_cap, sizeof(*filter->site));
	}
	for (size_t id = filter->nmatch; id < n; id++) {
		if (filter->pattern)
			filter->match[id] = id && (filter->match[tree_get(r->view->tree, (uint32_t)id).parent]
						   || frame_matches(r, (uint32_t)id));
		if (filter->module)
			judge_site(r, (uint32_t)id);
	}
	if (filter->nmatch < n)
		filter->nmatch = n;
}
