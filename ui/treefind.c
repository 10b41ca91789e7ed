/* See treefind.h. */
#include "ui/treefind.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "ui/format.h"
#include "ui/keymap.h"

#define WALK_MAX 20000		/* cells looked at */
#define DEPTH_MAX 4096

void tree_matches_deinit(struct tree_matches *m)
{
	free(m->cells);
	*m = (struct tree_matches){ 0 };
}

struct level {
	const struct report_cell *const *children;
	size_t n, i;
	bool inside;		/* below a match */
};

/* Every function is put to the regex once, however often it is called. */
static bool cell_matches(const struct ui *ui, struct keymap *known, const struct report_cell *cell)
{
	uint64_t answer;

	if (cell->pseudo || !cell->depth)
		return false;
	if (keymap_get(known, cell->func_key, &answer))
		return answer;
	answer = ui_find_matches(ui, cell->function, cell->file, cell->module);
	keymap_put(known, cell->func_key, answer);
	return answer;
}

void tree_matches_read(struct tree_matches *m, const struct ui *ui, struct report_tree *tree,
		       const struct report_cell *root, uint64_t cursor)
{
	struct keymap known = { 0 };
	struct level *stack = xcalloc(DEPTH_MAX, sizeof(*stack));
	size_t depth = 1, seen = 0;
	const struct report_cell *first[1] = { root };

	*m = (struct tree_matches){ 0 };
	stack[0] = (struct level){ first, 1, 0, false };
	bool passed = false;
	while (depth) {
		struct level *l = &stack[depth - 1];
		if (l->i >= l->n) {
			depth--;
			continue;
		}
		if (++seen > WALK_MAX) {
			m->cut = true;
			break;
		}
		const struct report_cell *cell = l->children[l->i++];
		bool here = cell->key == cursor, inside = l->inside;
		if (cell_matches(ui, &known, cell)) {
			if (here)
				m->on_cursor = true;
			if (!inside)
				m->value += fabs(report_cell_value(cell, ui->value));
			inside = true;
			VEC_GROW(m->cells, m->n, m->cap);
			m->cells[m->n++] = cell;
			if (!passed && !here)
				m->cursor = m->n;
		}
		passed = passed || here;
		if (!cell->has_children || depth == DEPTH_MAX)
			continue;
		size_t n;
		const struct report_cell *const *children =
			report_tree_children(tree, cell, ui->value, &n);
		stack[depth++] = (struct level){ children, n, 0, inside };
	}
	if (!passed)
		m->cursor = 0;	/* the cursor is on no cell */
	free(stack);
	keymap_deinit(&known);
}

const struct report_cell *tree_matches_pick(const struct tree_matches *m, struct ui *ui,
					    int direction, double whole)
{
	char percent[FORMAT_BUF];

	if (!m->n)
		return NULL;
	size_t i = m->cursor;
	if (direction > 0 && m->on_cursor)
		i++;
	else if (direction < 0)
		i += m->n - 1;
	i %= m->n;
	format_share(percent, m->value, whole);
	snprintf(ui->find.summary, sizeof(ui->find.summary), "%s%s of %s, frame %zu of %zu%s",
		 m->cut ? "at least " : "", percent, report_value_title(ui->value), i + 1, m->n,
		 m->cut ? " or more" : "");
	return m->cells[i];
}

void cell_selection(struct report_tree *tree, const struct report_cell *cell, struct selection *ret)
{
	*ret = (struct selection){
		.function = cell->function, .file = cell->file, .module = cell->module,
		.line = cell->line, .unknown = cell->unknown, .s = cell->total,
		.se = cell->total.live_var > 0 ? sqrt(cell->total.live_var) : 0,
		.delta = (double)cell->delta, .cell = cell, .tree = tree,
		.func = cell->func_key, .trace = SIZE_MAX,
	};
}
