/*
 * The inside of a report, shared by the files of this folder only. report.c: life, view, stacks;
 * filter.c: which traces pass; sites.c: the flat list; nodesums.c: sums by tree node; calltree.c:
 * the merged trees; groups.c, modules.c: rows by other things than sites.
 *
 * From one view to the next of the same heap only what differs is looked at: report.c finds the
 * traces whose records differ, and every sum here takes the difference (they are exact, sums.h).
 */
#ifndef HEAPTOP_REPORT_INTERNAL_H
#define HEAPTOP_REPORT_INTERNAL_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap/sums.h"
#include "report/funcs.h"
#include "report/groups.h"
#include "report/modsets.h"
#include "report/nodesums.h"
#include "report/report.h"
#include "report/trends.h"

/* Where in a trace its site lies, and its place in the site's list. */
struct trace_site {
	uint32_t node;		/* tree node of the frame; TREE_NONE: there is no such trace */
	uint32_t i;		/* which function of that frame */
	bool ends;		/* it is the outermost of the stack */
	uint32_t func;		/* index of it in funcs */
	uint32_t next, prev;	/* traces of the same site, index + 1; 0: none */
};

/* A function that is, or once was, a site. */
struct site {
	struct sums sum;	/* of the traces that pass the filter */
	uint64_t live;		/* bytes, of all its traces */
	uint32_t func;
	uint32_t first;		/* list of its traces */
	uint32_t npass;		/* traces that pass the filter */
	uint32_t nends;		/* of these, with the site as outermost function */
	bool place_known;	/* the next three are right (for what passes) */
	bool inlined;		/* in all of them */
	const char *file;	/* NULL: unknown, or they differ */
	uint32_t line;		/* 0: likewise */
	/* live bytes of what passes, a value a second since the filter was set: func.trend is of all its traces */
	uint64_t trend[REPORT_TREND];	/* a ring */
	uint32_t ntrend;	/* so many ever */
};

struct filter {
	char *text;		/* as given; NULL: none */
	char *pattern;		/* without the !; NULL: none */
	regex_t regex;
	bool exclude;
	bool *match;		/* by node, for nodes below nmatch */
	size_t nmatch, match_cap;
	char *module;		/* only sites in it; NULL: all */
	struct node_site {
		uint32_t first;	/* node whose frame holds the site; TREE_NONE: none on the way yet */
		bool in;	/* the site of a trace that ends here is in the module */
	} *site;		/* by node, as far as match */
	size_t site_cap;
};

/* groups.c: the rows made last. */
struct group_rows {
	struct report_site *rows;
	struct report_more *more;	/* one a row */
	uint32_t *of_trace;	/* row + 1 by the view's traces, 0: none; NULL: nobody asks */
	uint64_t *what;		/* what each row is, in any view of any file; only against a base */
	size_t n, cap, more_cap, what_cap;
};

/* base.c: what the rows are compared with. */
struct base {
	struct report *report;	/* NULL: there is none */
	struct { uint64_t what; uint32_t row; } *slots;	/* hash of its sites: index + 1 in its rows */
	size_t nslots;
	bool *seen;		/* by row: a site of now is that function */
};

struct report {
	struct funcs funcs;
	struct view *view;
	uint64_t generation;	/* of the names, when those missing were asked for */
	uint32_t *node_frame;	/* frame index by node id, for nodes < nnode_frame */
	size_t nnode_frame, node_frame_cap;
	struct filter filter;
	struct trace_site *trace_sites;	/* by trace */
	size_t ntrace_sites, trace_sites_cap;
	struct site *site_list;
	size_t nsite_list, site_list_cap;
	uint32_t root_trace;	/* index + 1 of the trace without frames, 0: none */
	struct sums total;	/* of what passes */
	uint32_t npass;
	struct report_site *sites;	/* rows made of the list */
	size_t nsites, sites_cap;
	bool sites_valid;
	double trend_times[REPORT_TREND];	/* of the views that were put into the trends, */
	uint32_t ntrends;	/* so many ever: a ring */
	struct trends module_trends, thread_trends;
	struct node_sums *nodes;	/* of what passes; NULL: not made */
	unsigned nodes_idle;	/* views since the tree was looked at */
	bool held;		/* rows say how old and whose what they hold is */
	bool user_only;		/* the trees are without system libraries */
	int8_t *system;		/* by module id: 1 it is one, 0 it isn't, -1 not looked at */
	size_t nsystem;
	struct {
		struct node_sums *sums;	/* nodes in the making; NULL: none are */
		size_t next;		/* trace to link next */
		unsigned given_up;	/* times in a row that another view came before they were done */
	} linking;
	bool counted;		/* report_warm has, these nodes */
	struct report_tree *trees[2];
	uint32_t *of_func;	/* calltree.c: child in the making by function, index + 1 */
	size_t nof_func;
	struct base base;
	struct group_rows groups;
	struct modsets modsets;
	struct report_frame *stack;
	size_t stack_cap;
};

/* The resolved frame of a tree node. Valid until the next call. */
const struct frame *report_node_frame(struct report *r, uint32_t node);
/* Look at everything anew: another program's view, another filter, other rules. */
void report_look_again(struct report *r);

/* Do traces of this node pass the filter? */
static inline bool report_passes(const struct report *r, uint32_t node)
{
	return (!r->filter.pattern || r->filter.match[node] != r->filter.exclude)
		&& (!r->filter.module || r->filter.site[node].in);
}

/* A stack, or several, that first touched memory and never allocated any. */
static inline bool stats_only_touched(const struct trace_stats *s)
{
	return s->fault_bytes && !s->alloc_q10 && !s->alloc_bytes;
}

/* Is the frame of this node left out of the trees? */
bool report_left_out(struct report *r, uint32_t node);
/* The trees are made anew when they are looked at again. */
void report_forget_trees(struct report *r);

void filter_deinit(struct filter *filter);
/* Judge the nodes that are new since the last call, or since filter.nmatch was set to 0. */
void filter_take_nodes(struct report *r);

/*
 * Where the site of the stack that ends at this node lies: the innermost function that is no wrapper. If there is
 * none (or only what was unknown outside of the wrappers), the innermost one. Not in any list.
 */
struct trace_site report_find_site(struct report *r, uint32_t leaf);
/* All sites without traces; their trends stay. */
void sites_clear(struct report *r);
/* A trace came, went (with the record it had), or changed by `diff` and `live` bytes. */
void sites_put(struct report *r, uint32_t trace, const struct view_trace *t);
void sites_take(struct report *r, uint32_t trace, const struct view_trace *t);
void sites_change(struct report *r, uint32_t trace, const struct sums *diff, uint64_t live);
/* Names may have come in: find the sites of those traces again that ended at an unknown one. */
void sites_renamed(struct report *r);
/* Bring the rows, and with them the sites' places, up to date. */
void sites_rows(struct report *r);
/* Another view came: put the sites' live bytes into their trends if a second has gone by. */
void sites_trend(struct report *r);
/* Then the modules and threads do so, too. */
void modules_trend(struct report *r);
void threads_trend(struct report *r);
/* Seconds from the first to the last of the newest n values of a trend. */
double trend_span(const struct report *r, uint32_t n);

void base_deinit(struct base *base);
/* Fill in the rows' differences to the base, and add those that only the base has. */
void base_sites(struct report *r);

/* A new row, zeroed but for its `more`; valid until the next. */
struct report_site *group_row(struct group_rows *rows, uint64_t what);
/* Sort rows as report_sites does. */
void sites_sort(struct report_site *rows, size_t n, enum report_value value, bool reverse);
/* More live bytes, or as many and more allocated. NULL is the lightest. */
bool trace_heavier(const struct view_trace *a, const struct view_trace *b);
/* Whose tree it is, and which. */
struct report *report_tree_report(const struct report_tree *tree, bool *ret_inverted);
/* Where its cells' ages are kept (cellages.h). */
struct cell_ages **report_tree_ages(struct report_tree *tree);
/* From function `i` of a node's frame to the next one outwards that is shown in trees; false at the end of the stack. */
bool report_step_out(struct report *r, uint32_t *node, uint32_t *i);
/* By node: do stacks that end there belong to the cell? The caller frees. */
bool *report_cell_nodes(struct report_tree *tree, const struct report_cell *cell);
/* Rows by module. */
void modules_rows(struct report *r, struct group_rows *rows);

void report_tree_destroy(struct report_tree *tree);	/* accepts NULL */

#endif
