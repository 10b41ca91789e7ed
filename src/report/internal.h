/*
 * The inside of a report, shared by the files of this folder only. report.c: life, view, stacks;
 * filter.c: which traces pass; sites.c: the flat list; calltree.c: the merged trees.
 */
#ifndef HEAPTOP_REPORT_INTERNAL_H
#define HEAPTOP_REPORT_INTERNAL_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/funcs.h"
#include "report/report.h"

/* Where in a trace its site lies. */
struct trace_site {
	uint32_t node;		/* tree node of the frame */
	uint32_t i;		/* which function of that frame */
	uint32_t func;		/* index of it in funcs */
};

struct filter {
	char *pattern;		/* NULL: none */
	regex_t regex;
	bool exclude;
};

struct report {
	struct funcs funcs;
	struct view *view;
	uint64_t generation;	/* of the names, when the view was looked at */
	uint32_t *node_frame;	/* frame index by node id, for nodes < nnode_frame */
	size_t nnode_frame, node_frame_cap;
	struct trace_site *trace_sites;	/* by trace */
	bool *passes;		/* by trace; NULL: all do */
	struct filter filter;
	struct report_site *sites;
	size_t nsites, sites_cap;
	bool sites_valid;
	double trend_time;	/* of the view that was last put into the trends */
	struct report_tree *trees[2];
	struct report_frame *stack;
	size_t stack_cap;
};

/* The resolved frame of a tree node. Valid until the next call. */
const struct frame *report_node_frame(struct report *r, uint32_t node);

static inline bool report_passes(const struct report *r, size_t trace)
{
	return !r->passes || r->passes[trace];
}

void filter_deinit(struct filter *filter);
/* Compute r->passes for the view. */
void filter_apply(struct report *r);

void sites_reset(struct report *r);
/* Another view came: put the sites' live bytes into their trends if a second has gone by. */
void sites_trend(struct report *r);

void report_tree_destroy(struct report_tree *tree);	/* accepts NULL */

#endif
