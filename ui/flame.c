/*
 * Flame: the call tree as widths, root on top (o: at the bottom). Geometry in flame_layout.c; here
 * zoom, cursor, and drawing. Cursor and zoom are kept as paths of cell keys, so they stay on their
 * frames from refresh to refresh, or on the nearest frame above that still exists.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "ui/flame_layout.h"
#include "ui/format.h"
#include "ui/style.h"
#include "ui/treefind.h"

struct path {
	uint64_t keys[FLAME_LEVELS];	/* from the root on */
	size_t n;
};

struct flame {
	struct flame_layout layout;
	bool laid_out;			/* for `width` and the report as it is */
	int width;
	struct report_tree *tree;
	struct keymap order[2];		/* [inverted] */
	struct path zoom, cursor;	/* zoom.n <= 1: not zoomed */
	size_t at;			/* frame under the cursor */
	int top;			/* first level shown */
	bool flip, was_inverted;
	struct rect rect;
};

struct source_ctx {
	struct ui *ui;
	struct report_tree *tree;
};

static const void *const *source_children(void *ctx, const void *node, size_t *ret_n)
{
	struct source_ctx *s = ctx;
	const struct report_cell *cell = node;

	*ret_n = 0;
	if (!cell->has_children)
		return NULL;
	return (const void *const *)report_tree_children(s->tree, cell, s->ui->value, ret_n);
}

/* Against a base: growth only; of the root that of its callees, however much shrank besides. */
static double width_of(struct ui *ui, struct report_tree *tree, const struct report_cell *cell)
{
	double own = report_cell_value(cell, ui->value), sum = 0;
	size_t n;

	if (ui->value != REPORT_DELTA_BYTES || cell->depth)
		return own > 0 ? own : 0;
	const struct report_cell *const *children = report_tree_children(tree, cell, ui->value, &n);
	for (size_t i = 0; i < n; i++)
		sum += children[i]->delta > 0 ? (double)children[i]->delta : 0;
	return sum > own ? sum : own;
}

static double source_value(void *ctx, const void *node)
{
	struct source_ctx *s = ctx;

	return width_of(s->ui, s->tree, node);
}

static uint64_t source_key(void *ctx, const void *node)
{
	(void)ctx;
	return ((const struct report_cell *)node)->key;
}

static void *flame_create(struct ui *ui)
{
	(void)ui;
	return xcalloc(1, sizeof(struct flame));
}

static void flame_destroy(void *state)
{
	struct flame *f = state;

	flame_layout_deinit(&f->layout);
	keymap_deinit(&f->order[0]);
	keymap_deinit(&f->order[1]);
	free(f);
}

/* The cells on the zoom's path that still exist. */
static size_t zoom_cells(struct ui *ui, struct flame *f, const void **cells)
{
	const struct report_cell *cell = report_tree_root(f->tree);
	size_t n = 0;

	if (!cell)
		return 0;
	cells[n++] = cell;
	for (size_t i = 1; i < f->zoom.n && cell->has_children; i++) {
		size_t nc, k;
		const struct report_cell *const *children =
			report_tree_children(f->tree, cell, ui->value, &nc);
		for (k = 0; k < nc && children[k]->key != f->zoom.keys[i]; k++)
			;
		if (k == nc || !(report_cell_value(children[k], ui->value) > 0))
			break;
		cell = children[k];
		cells[n++] = cell;
	}
	return n;
}

static void remember_cursor(struct flame *f)
{
	const struct flame_layout *l = &f->layout;

	f->cursor.n = 0;
	if (f->at >= l->n)
		return;
	size_t depth = l->frames[f->at].level + 1;
	if (depth > FLAME_LEVELS)
		return;
	f->cursor.n = depth;
	for (size_t i = f->at; i < l->n && depth; i = l->frames[i].parent)
		f->cursor.keys[--depth] = l->frames[i].key;
}

/* The frame of the cursor's path, or the nearest one above it. */
static void find_cursor(struct flame *f)
{
	f->at = 0;
	for (size_t i = f->cursor.n; i-- > 0;) {
		size_t found = flame_find(&f->layout, f->cursor.keys[i]);
		if (found < f->layout.n) {
			f->at = found;
			break;
		}
	}
}

static void lay_out(struct ui *ui, struct flame *f, int width)
{
	const void **cells = xcalloc(FLAME_LEVELS, sizeof(*cells));
	struct source_ctx ctx = { ui, f->tree };
	struct flame_source source = { &ctx, source_children, source_value, source_key };
	size_t n = zoom_cells(ui, f, cells);

	if (f->zoom.n > n)
		f->zoom.n = n;
	flame_layout(&f->layout, &source, cells, n, width, &f->order[ui->inverted]);
	free(cells);
	f->width = width;
	f->laid_out = true;
	find_cursor(f);
}

static void flame_changed(struct ui *ui, void *state)
{
	struct flame *f = state;

	f->tree = report_tree(ui->report, ui->inverted);
	if (f->was_inverted != ui->inverted) {
		f->zoom.n = f->cursor.n = 0;
		f->top = 0;
	}
	f->was_inverted = ui->inverted;
	if (ui->resort)
		keymap_clear(&f->order[ui->inverted]);
	lay_out(ui, f, f->width > 0 ? f->width : ui->canvas->cols);
}

/* The beginning and the end of a text that is too long, the end of a C++ name first. */
static void put_middle(struct canvas *c, int y, int x, int width, style_t style, const char *text)
{
	int whole = canvas_width(c, text);

	if (whole <= width) {
		canvas_put(c, y, x, style, text);
		return;
	}
	const char *tail = NULL;
	for (const char *s = text; (s = strstr(s, "::")); s += 2)
		tail = s;
	if (tail && tail[2] && canvas_width(c, tail) + 1 <= width) {
		canvas_char(c, y, x, style, 0x2026);
		canvas_put(c, y, x + 1, style, tail);
		return;
	}
	if (width < 7) {
		canvas_put_cut(c, y, x, width, style, text);
		return;
	}
	int head = (width - 1 + 1) / 2, end = width - 1 - head;
	int at = canvas_put_max(c, y, x, head, style, text);
	const struct cell *last = canvas_at(c, y, at - 1);
	if (last && last->ch == 0x2026)
		at--;	/* the name's own ellipsis stands for ours too */
	canvas_char(c, y, at, style, 0x2026);
	/* skip so many columns that `end` are left */
	text += canvas_fit(c, text, whole - end);
	if (!strncmp(text, "…", strlen("…")))
		text += strlen("…");
	canvas_put_max(c, y, at + 1, x + width - at - 1, style, text);
}

static void draw_frame(struct ui *ui, struct flame *f, size_t i, int y, struct rect r)
{
	struct canvas *c = ui->canvas;
	const struct flame_frame *fr = &f->layout.frames[i];
	const struct report_cell *cell = fr->node;
	int x = r.x + fr->x0, w = fr->x1 - fr->x0;
	style_t style = STYLE_FLAME_UNKNOWN;

	if (!cell->pseudo && cell->depth)
		style = style_flame(style_of_module(cell->module, cell->unknown, ui->main_module));
	if (fr->gap)
		style = STYLE_DIM;
	if (ui->find.pattern) {
		bool match = !fr->gap && cell->depth && !cell->pseudo &&
			ui_find_matches(ui, cell->function, cell->file, cell->module);
		style |= match ? STYLE_MATCH : STYLE_FADED;
	} else if (fr->ancestor || ui_unsure(ui, &cell->total)) {
		style |= STYLE_FADED;
	}
	if (i == f->at)
		style = (style & ~STYLE_FADED) | STYLE_SELECTED;
	canvas_clip(c, y, x, 1, w);
	canvas_fill(c, y, x, w, style, ' ');
	canvas_char(c, y, x, style, fr->gap ? 0x250a : 0x258f);
	if (fr->gap || w < 4) {
		canvas_clip_all(c);
		return;
	}
	char name[UI_NAME], value[FORMAT_BUF], percent[FORMAT_BUF], tail[2 * FORMAT_BUF + 4];
	const char *text = ui_name(ui, cell->function, name);
	const struct flame_frame *root = &f->layout.frames[0];
	snprintf(tail, sizeof(tail), "  %s %s", format_value(value, fr->value, ui->value, 1),
		 format_share(percent, fr->value, root->value));
	int tw = canvas_width(c, tail), nw = canvas_width(c, text);
	put_middle(c, y, x + 1, w - 1, style, text);
	if (nw + tw <= w - 2)
		canvas_put(c, y, x + 1 + nw, style, tail);
	canvas_clip_all(c);
}

static void show_cursor(struct flame *f, int rows)
{
	int levels = (int)f->layout.nlevels;
	int level = f->at < f->layout.n ? f->layout.frames[f->at].level : 0;

	if (level < f->top)
		f->top = level;
	/* a row in hand: the last one may say how many more there are */
	int margin = rows > 3 && level + 1 < levels ? 1 : 0;
	if (level + margin >= f->top + rows)
		f->top = level + margin - rows + 1;
	if (f->top + rows > levels)
		f->top = levels - rows;
	if (f->top < 0)
		f->top = 0;
}

static void flame_draw(struct ui *ui, void *state, struct rect r)
{
	struct flame *f = state;
	struct canvas *c = ui->canvas;

	f->rect = r;
	if (!f->tree || r.rows < 1)
		return;
	if (!f->laid_out || f->width != r.cols)
		lay_out(ui, f, r.cols);
	show_cursor(f, r.rows);
	const struct flame_layout *l = &f->layout;
	if (!l->n || !(l->frames[0].value > 0)) {
		canvas_put_max(c, r.y, r.x + 2, r.cols - 2, STYLE_DIM,
			       ui->filter || ui->module ? "nothing matches the filter (Del: no filter)" :
			       ui->value == REPORT_DELTA_BYTES ? "nothing has grown since the mark (D: back to live bytes; 2: what shrank)" :
			       "nothing of this value yet");
		return;
	}
	for (int row = 0; row < r.rows && (size_t)(f->top + row) < l->nlevels; row++) {
		size_t level = f->top + row;
		int y = f->flip ? r.y + r.rows - 1 - row : r.y + row;
		for (size_t i = l->levels[level]; i < l->levels[level + 1]; i++)
			draw_frame(ui, f, i, y, r);
	}
	char text[48];
	long below = (long)l->nlevels - f->top - r.rows;
	if (below > 0 && r.rows > 2) {
		snprintf(text, sizeof(text), " ▾ %ld more level%s ", below, below == 1 ? "" : "s");
		int w = canvas_width(c, text);
		if (w < r.cols)
			canvas_put(c, f->flip ? r.y : r.y + r.rows - 1, r.x + r.cols - w, STYLE_BOX, text);
	}
	if (f->top > 0 && r.rows > 2) {
		snprintf(text, sizeof(text), " ▴ %d level%s above ", f->top, f->top == 1 ? "" : "s");
		int w = canvas_width(c, text);
		if (w < r.cols)
			canvas_put(c, f->flip ? r.y + r.rows - 1 : r.y, r.x + r.cols - w, STYLE_BOX, text);
	}
}

static void go(struct flame *f, size_t i)
{
	if (i < f->layout.n)
		f->at = i;
	remember_cursor(f);
}

/* The widest frame below. */
static size_t child_of(const struct flame *f, size_t i)
{
	const struct flame_layout *l = &f->layout;
	size_t level = (size_t)l->frames[i].level + 1, best = SIZE_MAX;

	if (level >= l->nlevels)
		return SIZE_MAX;
	for (size_t k = l->levels[level]; k < l->levels[level + 1]; k++)
		if (l->frames[k].parent == i &&
		    (best == SIZE_MAX || l->frames[best].gap || (!l->frames[k].gap &&
		     l->frames[k].x1 - l->frames[k].x0 > l->frames[best].x1 - l->frames[best].x0)))
			best = k;
	return best;
}

static void go_beside(struct flame *f, bool right)
{
	const struct flame_layout *l = &f->layout;
	int level = l->frames[f->at].level;

	if (right && f->at + 1 < l->levels[level + 1])
		go(f, f->at + 1);
	else if (!right && f->at > l->levels[level])
		go(f, f->at - 1);
}

static void go_levels(struct flame *f, int by)
{
	for (; by > 0; by--) {
		size_t child = child_of(f, f->at);
		if (child == SIZE_MAX)
			break;
		go(f, child);
	}
	for (; by < 0 && f->layout.frames[f->at].level; by++)
		go(f, f->layout.frames[f->at].parent);
}

static void zoom_in(struct ui *ui, struct flame *f)
{
	const struct flame_frame *fr = &f->layout.frames[f->at];

	if (fr->gap) {
		/* what is gathered can be seen by zooming to what holds it */
		if (fr->parent < f->layout.n)
			go(f, fr->parent);
		if (f->layout.frames[f->at].ancestor || f->cursor.n == f->zoom.n)
			return;
	}
	remember_cursor(f);
	f->zoom = f->cursor;
	keymap_clear(&f->order[ui->inverted]);
	lay_out(ui, f, f->width);
}

static void zoom_out(struct ui *ui, struct flame *f, bool all)
{
	f->zoom.n = all || f->zoom.n < 2 ? 0 : f->zoom.n - 1;
	lay_out(ui, f, f->width);
}

static bool flame_action(struct ui *ui, void *state, enum action a)
{
	struct flame *f = state;
	int page = f->rect.rows > 1 ? f->rect.rows - 1 : 1;

	if (a == ACT_FLIP) {
		f->flip = !f->flip;
		return true;
	}
	if (f->at >= f->layout.n)
		return false;
	int down = f->flip ? -1 : 1;
	switch (a) {
	case ACT_UP:
		go_levels(f, -down);
		return true;
	case ACT_DOWN:
		go_levels(f, down);
		return true;
	case ACT_PAGE_UP:
	case ACT_HALF_UP:
		go_levels(f, -down * page);
		return true;
	case ACT_PAGE_DOWN:
	case ACT_HALF_DOWN:
		go_levels(f, down * page);
		return true;
	case ACT_LEFT:
	case ACT_RIGHT:
		go_beside(f, a == ACT_RIGHT);
		return true;
	case ACT_TOP:
		go(f, 0);
		return true;
	case ACT_BOTTOM:
		go_levels(f, FLAME_LEVELS);
		return true;
	case ACT_OPEN:
		zoom_in(ui, f);
		return true;
	case ACT_BACK:
		if (f->zoom.n < 2)
			return false;
		zoom_out(ui, f, false);
		return true;
	case ACT_UNZOOM:
		zoom_out(ui, f, true);
		return true;
	default:
		return false;
	}
}

static void flame_mouse(struct ui *ui, void *state, const struct key_event *ev)
{
	struct flame *f = state;
	int row = ev->y - f->rect.y;

	(void)ui;
	if (ev->button == MOUSE_WHEEL_UP || ev->button == MOUSE_WHEEL_DOWN) {
		if (f->at < f->layout.n)
			go_levels(f, (ev->button == MOUSE_WHEEL_UP) != f->flip ? -1 : 1);
		return;
	}
	if (f->flip)
		row = f->rect.rows - 1 - row;
	size_t i = flame_at(&f->layout, f->top + row, ev->x - f->rect.x);
	if (row >= 0 && i < f->layout.n)
		go(f, i);
}

/* The cursor to a cell, or, if it is too narrow, to what holds it. */
static void go_to_cell(struct ui *ui, struct flame *f, const struct report_cell *to)
{
	if (to->depth >= FLAME_LEVELS)
		return;
	f->cursor.n = to->depth + 1;
	for (const struct report_cell *c = to; c; c = report_tree_parent(f->tree, c)) {
		if (c->depth < f->cursor.n)
			f->cursor.keys[c->depth] = c->key;
		if (!c->depth)
			break;
	}
	/* outside the zoom: show all again */
	for (size_t i = 0; i < f->zoom.n; i++)
		if (i >= f->cursor.n || f->zoom.keys[i] != f->cursor.keys[i]) {
			f->zoom.n = 0;
			break;
		}
	lay_out(ui, f, f->width);
}

static bool flame_search(struct ui *ui, void *state, int direction)
{
	struct flame *f = state;
	struct tree_matches m;
	const struct report_cell *root = f->tree ? report_tree_root(f->tree) : NULL;

	if (!root || f->at >= f->layout.n)
		return false;
	/* the path's last key, not the frame's: a match may be too narrow to have a frame */
	uint64_t cursor = f->cursor.n ? f->cursor.keys[f->cursor.n - 1] : root->key;
	tree_matches_read(&m, ui, f->tree, root, cursor);
	const struct report_cell *to =
		tree_matches_pick(&m, ui, direction, width_of(ui, f->tree, root));
	bool found = to;
	if (to)
		go_to_cell(ui, f, to);
	tree_matches_deinit(&m);
	return found;
}

static void flame_reveal(struct ui *ui, void *state, const struct selection *sel)
{
	struct flame *f = state;
	const struct report_cell *cell = f->tree && f->layout.n ? carry_cell(ui, sel, f->tree) : NULL;

	if (cell)
		go_to_cell(ui, f, cell);
}

static bool flame_selected(struct ui *ui, void *state, struct selection *ret)
{
	struct flame *f = state;
	char all[FORMAT_BUF], up[FORMAT_BUF];

	(void)ui;
	if (f->at >= f->layout.n)
		return false;
	const struct flame_frame *fr = &f->layout.frames[f->at];
	cell_selection(f->tree, fr->node, ret);
	if (fr->gap) {
		ret->gathered = true;
		ret->count = fr->count;
	}
	char value[FORMAT_BUF];
	format_value(value, fr->value, ui->value, 1);
	format_share(all, fr->value, f->layout.frames[0].value);
	if (fr->parent < f->layout.n && f->layout.frames[fr->parent].level > 0) {
		format_share(up, fr->value, f->layout.frames[fr->parent].value);
		snprintf(ret->note, sizeof(ret->note), "%s  %s of all, %s of parent", value, all, up);
	} else {
		snprintf(ret->note, sizeof(ret->note), "%s  %s of all", value, all);
	}
	return true;
}

const struct view_ops flame_ops = {
	.title = "Flame",
	.create = flame_create,
	.destroy = flame_destroy,
	.changed = flame_changed,
	.draw = flame_draw,
	.action = flame_action,
	.mouse = flame_mouse,
	.find = flame_search,
	.selected = flame_selected,
	.reveal = flame_reveal,
};
