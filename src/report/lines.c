/*
 * Annotated source; see lines.h. Of most traces few frames are in one file, so a first pass over the nodes,
 * parents before children, notes for each the nearest one outwards that is: the walk of a trace goes
 * from one to the next of those.
 */
#include "report/lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/internal.h"

struct line {
	uint32_t line;
	uint32_t seen;		/* trace + 1 that was last counted here */
	struct sums total, self;
};

struct lines_of {
	const char *file;
	const char *same, *other;	/* strings compared last: names share theirs */
	struct line *list;
	size_t n, cap;
	uint32_t *at;		/* index + 1 in the list by line number */
	size_t nat;
};

#define LINE_MAX (1u << 22)	/* debug information may say anything */

static bool in_file(struct lines_of *of, const char *file)
{
	if (!file || file == of->other)
		return false;
	if (file == of->same)
		return true;
	bool same = !strcmp(file, of->file);
	*(same ? &of->same : &of->other) = file;
	return same;
}

static struct line *line_at(struct lines_of *of, uint32_t line)
{
	if (line >= of->nat) {
		size_t n = (size_t)line + line / 2 + 64;
		of->at = xreallocarray(of->at, n, sizeof(*of->at));
		memset(of->at + of->nat, 0, (n - of->nat) * sizeof(*of->at));
		of->nat = n;
	}
	if (!of->at[line]) {
		VEC_GROW(of->list, of->n, of->cap);
		of->list[of->n++] = (struct line){ .line = line };
		of->at[line] = (uint32_t)of->n;
	}
	return &of->list[of->at[line] - 1];
}

/* Line of function i of a frame; 0: it isn't in the file. */
static uint32_t line_of(struct lines_of *of, const struct frame *frame, uint32_t i)
{
	uint32_t line = frame_line(frame, i);

	return line && line < LINE_MAX && in_file(of, frame_file(frame, i)) ? line : 0;
}

/* By node: itself or the nearest outwards that is in the file; 0: none, as the root has no frame. */
static uint32_t *find_nodes(struct report *r, struct lines_of *of)
{
	uint32_t n = r->view->nnodes, *near = xcalloc((size_t)n + 1, sizeof(*near));

	for (uint32_t id = 1; id < n; id++) {
		const struct frame *frame = report_node_frame(r, id);
		bool inside = false;
		for (uint32_t i = 0; i < frame->nfuncs && !inside; i++)
			inside = line_of(of, frame, i) != 0;
		near[id] = inside ? id : near[tree_get(r->view->tree, id).parent];
	}
	return near;
}

static void add_trace(struct report *r, struct lines_of *of, const uint32_t *near, uint32_t trace)
{
	const struct view_trace *t = view_trace(r->view, trace);
	const struct trace_site *site = &r->trace_sites[trace];

	for (uint32_t node = near[t->node]; node; node = near[tree_get(r->view->tree, node).parent]) {
		const struct frame *frame = report_node_frame(r, node);
		for (uint32_t i = 0; i < frame->nfuncs; i++) {
			uint32_t number = line_of(of, frame, i);
			if (!number)
				continue;
			struct line *line = line_at(of, number);
			if (line->seen != trace + 1)
				sums_add(&line->total, &t->s);
			line->seen = trace + 1;
			if (site->node == node && site->i == i)
				sums_add(&line->self, &t->s);
		}
	}
}

static int by_number(const void *a, const void *b)
{
	const struct report_line *x = a, *y = b;

	return x->line < y->line ? -1 : x->line > y->line;
}

struct report_line *report_lines(struct report *r, const char *file, size_t *ret_n)
{
	struct lines_of of = { .file = file };

	*ret_n = 0;
	if (!r->view)
		return NULL;
	uint32_t *near = find_nodes(r, &of);
	for (size_t i = 0; i < r->view->ntraces; i++)
		if (report_trace_passes(r, i))
			add_trace(r, &of, near, (uint32_t)i);
	struct report_line *ret = of.n ? xcalloc(of.n, sizeof(*ret)) : NULL;
	for (size_t i = 0; i < of.n; i++)
		ret[i] = (struct report_line){
			.line = of.list[i].line,
			.total = sums_get(&of.list[i].total), .self = sums_get(&of.list[i].self),
		};
	if (ret)
		qsort(ret, of.n, sizeof(*ret), by_number);
	*ret_n = of.n;
	free(near);
	free(of.at);
	free(of.list);
	return ret;
}

const char *report_source_dir(struct report *r, const char *file)
{
	struct lines_of of = { .file = file };

	for (uint32_t id = 1; r->view && id < r->view->nnodes; id++) {
		const struct frame *frame = report_node_frame(r, id);
		for (uint32_t i = 0; frame_dir(frame) && i < frame->nfuncs; i++)
			if (in_file(&of, frame_file(frame, i)))
				return frame_dir(frame);
	}
	return NULL;
}
