/* Folded stacks; see folded.h. */
#include "export/folded.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

/* A cell whose children are being written. Recursive programs have deep trees: no recursion here. */
struct level {
	const struct report_cell *const *children;
	size_t n, at;
	size_t path_len;	/* of the path to the cell itself */
};

struct path {
	char *text;
	size_t len, cap;
};

static void path_add(struct path *path, const char *function)
{
	size_t n = strlen(function), need = path->len + n + 2;

	if (need > path->cap) {
		path->cap = need * 2;
		path->text = xreallocarray(path->text, path->cap, 1);
	}
	if (path->len)
		path->text[path->len++] = ';';
	for (size_t i = 0; i < n; i++) {
		char c = function[i];
		path->text[path->len++] = c == ';' ? ',' : c == '\n' ? ' ' : c;
	}
	path->text[path->len] = '\0';
}

struct err *folded_write(FILE *out, struct report *report, enum report_value value)
{
	struct report_tree *tree = report_tree(report, false);
	struct path path = { 0 };
	struct level *levels = NULL;
	size_t depth = 0, cap = 0;

	errno = 0;
	if (tree) {
		VEC_GROW(levels, depth, cap);
		levels[depth] = (struct level){ 0 };
		levels[depth].children = report_tree_children(tree, report_tree_root(tree), value,
							      &levels[depth].n);
		depth = 1;
	}
	while (depth && !ferror(out)) {
		struct level *level = &levels[depth - 1];
		if (level->at == level->n) {
			depth--;
			continue;
		}
		const struct report_cell *cell = level->children[level->at++];
		path.len = level->path_len;
		path_add(&path, cell->function);
		double own = report_value_of(&cell->self, value);
		if (own >= 0.5)
			fprintf(out, "%s %llu\n", path.text, (unsigned long long)(own + 0.5));
		if (!cell->has_children || report_value_of(&cell->total, value) <= 0)
			continue;
		VEC_GROW(levels, depth, cap);
		struct level *below = &levels[depth++];
		*below = (struct level){ .path_len = path.len };
		below->children = report_tree_children(tree, cell, value, &below->n);
	}
	free(levels);
	free(path.text);
	if (fflush(out) || ferror(out))
		return err_errno(errno ? errno : EIO, "writing folded stacks");
	return NULL;
}
