/*
 * The selection goes along from screen to screen: a site is found again as the cell at the end of its
 * heaviest stack, a cell as its site, if the user has moved on the screen that is left. Otherwise each
 * screen keeps the place it had.
 */
#include <string.h>

#include "ui/screen.h"

static const struct report_cell *child_named(struct report_tree *tree, const struct report_cell *cell,
					     enum report_value value, const struct report_frame *frame)
{
	size_t n = 0;
	const struct report_cell *const *children =
		cell->has_children ? report_tree_children(tree, cell, value, &n) : NULL;

	for (size_t i = 0; i < n; i++)
		if (!strcmp(children[i]->function, frame->function) && !strcmp(children[i]->module, frame->module))
			return children[i];
	return NULL;
}

/* Down a stack as far as the site; frames that the tree doesn't show are passed over. */
static const struct report_cell *down_stack(struct ui *ui, struct report_tree *tree, size_t trace)
{
	size_t n, site;
	const struct report_frame *frames = report_stack(ui->report, trace, &n, &site);
	const struct report_cell *cell = report_tree_root(tree);

	for (size_t i = n; i-- > site;) {
		const struct report_cell *child = child_named(tree, cell, ui->value, &frames[i]);
		if (child)
			cell = child;
		else if (!ui->user_only)
			break;
	}
	return cell->depth ? cell : NULL;
}

size_t carry_trace(struct ui *ui, const struct selection *sel)
{
	if (sel->cell)
		return SIZE_MAX;
	return sel->is_site ? report_site_trace(ui->report, sel->site_id) : sel->trace;
}

const struct report_cell *carry_cell(struct ui *ui, const struct selection *sel, struct report_tree *tree)
{
	const struct report_cell *root = report_tree_root(tree);
	size_t n = 0;

	if (sel->cell)
		return sel->tree == tree ? sel->cell : NULL;
	if (ui->inverted) {
		const struct report_cell *const *sites =
			root->has_children ? report_tree_children(tree, root, ui->value, &n) : NULL;
		for (size_t i = 0; sel->func && i < n; i++)
			if (sites[i]->func_key == sel->func)
				return sites[i];
		return NULL;
	}
	size_t trace = carry_trace(ui, sel);
	return trace == SIZE_MAX ? NULL : down_stack(ui, tree, trace);
}

void carry_to(struct ui *ui, enum ui_view v)
{
	const struct view_ops *from = view_ops_of(ui->screen), *to = view_ops_of(v);
	struct selection sel;
	bool carry = false;

	if (v == ui->screen)
		return;
	if (ui->touched && to->reveal && ui->view) {
		ui_refresh_screen(ui);
		carry = from->selected && from->selected(ui, ui->state[ui->screen], &sel) && !sel.gathered;
	}
	/* a screen without rows lets it pass */
	ui->touched = ui->touched && !from->selected;
	ui->screen = v;
	if (!carry)
		return;
	ui_refresh_screen(ui);
	to->reveal(ui, ui->state[v], &sel);
	ui->touched = true;
}
