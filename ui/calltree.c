/*
 * Tree: the calls that lead to the memory, or (inverted) from the memory to its callers. Chains of
 * single calls lie in one row, small ones are gathered. What is open is remembered by path, so a
 * refresh never folds what the user opened.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ui/columns.h"
#include "ui/format.h"
#include "ui/held.h"
#include "ui/keymap.h"
#include "ui/list.h"
#include "ui/style.h"
#include "ui/treefind.h"

#define SMALL 0.005		/* of all: gathered below this */
#define AUTO_SHARE 0.05		/* opened at first sight if it holds this much … */
#define AUTO_LEVELS 5		/* … and lies not deeper */
#define LEVELS_MAX 1000
#define ROWS_MAX 100000
#define EXPAND_MAX 5000		/* rows opened by one "expand all" */
#define REST_SALT UINT64_C(0x7265737400000001)

struct row {
	const struct report_cell *first, *cell;	/* of a chain; the same one if it is none */
	uint64_t key;			/* of cell, or of the gathered rest below cell */
	uint32_t hidden;		/* cells between first and cell */
	uint32_t level;
	uint32_t rest;			/* gathered: how many; else 0 */
	double rest_value;
	bool open, opens;		/* is open; has anything to open */
	bool last;			/* no sibling below */
	uint64_t lines;			/* bit i: a guide goes on at level i (below 64) */
};

struct calltree {
	struct list list;
	struct row *rows;
	size_t n, cap;
	struct report_tree *tree;
	struct keymap open[2];		/* [inverted]: cell key -> is it open */
	struct keymap at;		/* cell key -> row */
	uint64_t cursor[2];
	bool was_inverted, no_chains;
	double whole;
	struct columns columns;
	struct rect rect;
};

static void *calltree_create_state(struct ui *ui)
{
	(void)ui;
	return xcalloc(1, sizeof(struct calltree));
}

static void calltree_destroy_state(void *state)
{
	struct calltree *t = state;

	free(t->rows);
	keymap_deinit(&t->open[0]);
	keymap_deinit(&t->open[1]);
	keymap_deinit(&t->at);
	free(t);
}

static double cell_value(const struct ui *ui, const struct report_cell *cell)
{
	return fabs(report_cell_value(cell, ui->value));
}

/* Open as the user left it; decided once at first sight. */
static bool is_open(struct ui *ui, struct calltree *t, const struct report_cell *cell, uint32_t level)
{
	struct keymap *open = &t->open[ui->inverted];
	uint64_t state;

	if (keymap_get(open, cell->key, &state))
		return state;
	state = !level || (level < AUTO_LEVELS && !ui->inverted &&
			   cell_value(ui, cell) >= AUTO_SHARE * t->whole);
	if (t->whole > 0)
		keymap_put(open, cell->key, state);
	return state;
}

static struct row *add_row(struct calltree *t)
{
	VEC_GROW(t->rows, t->n, t->cap);
	struct row *row = &t->rows[t->n++];
	memset(row, 0, sizeof(*row));
	return row;
}

/* The end of the chain of single calls that begins at `cell`. */
static const struct report_cell *chain_end(struct ui *ui, struct calltree *t, size_t row,
					   const struct report_cell *cell, uint32_t *ret_hidden)
{
	uint32_t steps = 0;

	keymap_put(&t->at, cell->key, row);
	while (cell->depth && cell->has_children && !t->no_chains && steps < LEVELS_MAX) {
		size_t n;
		const struct report_cell *const *children =
			report_tree_children(t->tree, cell, ui->value, &n);
		if (n != 1 || report_value_of(&cell->self, ui->value) > 0)
			break;
		cell = children[0];
		keymap_put(&t->at, cell->key, row);
		steps++;
	}
	*ret_hidden = steps ? steps - 1 : 0;
	return cell;
}

static void add_cell(struct ui *ui, struct calltree *t, const struct report_cell *cell, uint32_t level,
		     uint64_t lines, bool last);

static void add_rest(struct ui *ui, struct calltree *t, const struct report_cell *parent,
		     const struct report_cell *const *cells, size_t n, uint32_t level, uint64_t lines)
{
	uint64_t key = keymap_mix(parent->key, REST_SALT), open = false;
	struct row *row = add_row(t);

	keymap_get(&t->open[ui->inverted], key, &open);
	*row = (struct row){
		.first = parent, .cell = parent, .key = key, .level = level, .rest = n,
		.last = true, .lines = lines, .opens = true, .open = open,
	};
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += cell_value(ui, cells[i]);
	row->rest_value = sum;
	keymap_put(&t->at, key, t->n - 1);
	for (size_t i = 0; open && i < n && t->n < ROWS_MAX; i++)
		add_cell(ui, t, cells[i], level + 1, lines, i + 1 == n);
}

static void add_children(struct ui *ui, struct calltree *t, const struct report_cell *cell, uint32_t level,
			 uint64_t lines)
{
	size_t n, big = 0;
	const struct report_cell *const *children = report_tree_children(t->tree, cell, ui->value, &n);

	/* largest first, so the small ones are the tail */
	while (big < n && cell_value(ui, children[big]) >= SMALL * t->whole && t->whole > 0)
		big++;
	if (n - big < 2)
		big = n;
	for (size_t i = 0; i < big && t->n < ROWS_MAX; i++)
		add_cell(ui, t, children[i], level, lines, i + 1 == n);
	if (big < n)
		add_rest(ui, t, cell, children + big, n - big, level, lines);
}

static void add_cell(struct ui *ui, struct calltree *t, const struct report_cell *cell, uint32_t level,
		     uint64_t lines, bool last)
{
	uint32_t hidden;
	size_t at = t->n;

	add_row(t);
	const struct report_cell *end = chain_end(ui, t, at, cell, &hidden);
	bool open = end->has_children && level < LEVELS_MAX && is_open(ui, t, end, level);
	t->rows[at] = (struct row){
		.first = cell, .cell = end, .key = end->key, .hidden = hidden, .level = level,
		.open = open, .opens = end->has_children, .last = last, .lines = lines,
	};
	if (!last && level < 64)
		lines |= UINT64_C(1) << level;
	if (open)
		add_children(ui, t, end, level + 1, lines);
}

static void calltree_changed(struct ui *ui, void *state)
{
	struct calltree *t = state;
	size_t cursor = t->list.cursor;
	uint64_t at;

	t->n = 0;
	keymap_clear(&t->at);
	t->tree = report_tree(ui->report, ui->inverted);
	const struct report_cell *root = report_tree_root(t->tree);
	t->whole = root ? report_whole(ui->report, ui->value) : 0;
	if (root)
		add_cell(ui, t, root, 0, 0, true);
	if (keymap_get(&t->at, t->cursor[ui->inverted], &at))
		cursor = at;
	else if (t->was_inverted != ui->inverted)
		cursor = 0;
	t->was_inverted = ui->inverted;
	list_set(&t->list, t->n, t->list.rows);
	list_go(&t->list, cursor);
	t->cursor[ui->inverted] = t->n ? t->rows[t->list.cursor].key : 0;
}

static style_t cell_style(const struct ui *ui, const struct report_cell *cell)
{
	if (cell->pseudo || !cell->depth)
		return STYLE_DIM;
	style_t style = style_of_module(cell->module, cell->unknown, ui->main_module);
	if (ui_find_matches(ui, cell->function, cell->file, cell->module))
		style |= STYLE_MATCH;
	return style;
}

/* Guides and fold mark; returns the column where the name begins. */
static int draw_guides(struct ui *ui, const struct row *row, int y, int x, uint32_t base)
{
	struct canvas *c = ui->canvas;

	for (uint32_t level = base > 0 ? base : 1; level <= row->level; level++) {
		bool own = level == row->level;
		bool goes_on = own ? !row->last : level < 64 && row->lines >> level & 1;
		if (own) {
			canvas_char(c, y, x, STYLE_GUIDE, row->last ? 0x2514 : 0x251c);
			canvas_char(c, y, x + 1, STYLE_GUIDE, 0x2500);
		} else if (goes_on) {
			canvas_char(c, y, x, STYLE_GUIDE, 0x2502);
		}
		x += 2;
	}
	if (row->opens)
		canvas_char(c, y, x, STYLE_KEY, row->open ? 0x25be : 0x25b8);
	return x + 2;
}

static void draw_name(struct ui *ui, struct calltree *t, const struct row *row, int y, int x, int width,
		      style_t extra)
{
	struct canvas *c = ui->canvas;
	char buf[UI_NAME], buf2[UI_NAME], text[96], place[128] = "", number[ALIKE_MARK];
	int end = x + width;

	canvas_clip(c, y, x, 1, width);
	if (row->rest) {
		char percent[FORMAT_BUF];
		/* blank where there is nothing that it could be a share of */
		const char *share = format_percent(percent, row->rest_value, t->whole, 1);
		bool known = share[strspn(share, " ")];
		snprintf(text, sizeof(text), "… %u more%s%s%s", row->rest, known ? ", " : "", known ? share : "",
			 known ? "%" : "");
		canvas_put(c, y, x, STYLE_DIM | extra, text);
		canvas_clip_all(c);
		return;
	}
	const struct report_cell *cell = row->cell, *first = row->first;
	const char *name = ui_name(ui, cell->function, buf);
	int nw = canvas_width(c, name);
	if (cell->file && *cell->file && cell->line)
		snprintf(place, sizeof(place), "%.100s:%u", ui_basename(cell->file), cell->line);
	int pw = *place ? 2 + canvas_width(c, place) : 0;
	if (first != cell && first->func_key == cell->func_key) {
		x = canvas_put(c, y, x, cell_style(ui, cell) | extra, name);
		snprintf(text, sizeof(text), " ↻%u", row->hidden + 2);
		canvas_put(c, y, x, STYLE_GUIDE | extra, text);
	} else if (first != cell) {
		const char *head = ui_name(ui, first->function, buf2);
		if (row->hidden)
			snprintf(text, sizeof(text), " ›%u› ", row->hidden);
		else
			snprintf(text, sizeof(text), " › ");
		int hw = canvas_width(c, head), sw = canvas_width(c, text);
		/* the end of the chain matters: its beginning gives way */
		int room = width - nw - sw;
		if (hw > room)
			hw = room > 4 ? room : 4;
		canvas_put_cut(c, y, x, hw, cell_style(ui, first) | extra, head);
		x = canvas_put(c, y, x + hw, STYLE_GUIDE | extra, text);
		int fit = end - x < nw ? end - x : nw;
		canvas_put_cut(c, y, x, fit, cell_style(ui, cell) | extra, name);
		x += fit;
		canvas_put_place(c, y, x, end, STYLE_DIM | extra, place);
	} else {
		int room = width - pw > width / 2 ? width - pw : width / 2;
		if (width < 34)
			room = width;
		const char *mark = cell->depth ? ui_mark(ui, name, cell->func_key, number) : "";
		int mw = canvas_width(c, mark), fit = nw + mw < room ? nw : room > mw ? room - mw : 0;
		canvas_put_cut(c, y, x, fit, cell_style(ui, cell) | extra, name);
		canvas_put(c, y, x + fit, cell_style(ui, cell) | extra, mark);
		canvas_put_place(c, y, x + fit + mw, end, STYLE_DIM | extra, place);
	}
	canvas_clip_all(c);
}

/* Of the rows from the list's top on; the caller frees. NULL: nobody wants to see it. */
static struct report_held *held_of_rows(struct ui *ui, struct calltree *t, int rows)
{
	if (!columns_has(&t->columns, COLUMN_AGE) || rows <= 0)
		return NULL;
	ui->held_shown = true;	/* from now on */
	struct report_held *ret = xcalloc((size_t)rows, sizeof(*ret));
	CLEANUP_FREE const struct report_cell **cells = xcalloc((size_t)rows, sizeof(const struct report_cell *));
	CLEANUP_FREE struct report_held *held = xcalloc((size_t)rows, sizeof(*held));
	CLEANUP_FREE int *row_of = xcalloc((size_t)rows, sizeof(*row_of));
	size_t n = 0;
	for (int i = 0; i < rows && t->list.top + i < t->n; i++) {
		if (t->rows[t->list.top + i].rest)
			continue;
		row_of[n] = i;
		cells[n++] = t->rows[t->list.top + i].cell;
	}
	report_cells_held(t->tree, cells, n, held);
	for (size_t i = 0; i < n; i++)
		ret[row_of[i]] = held[i];
	return ret;
}

static void calltree_draw(struct ui *ui, void *state, struct rect r)
{
	struct calltree *t = state;
	struct canvas *c = ui->canvas;
	int heading = r.rows > 1, rows = r.rows - heading;

	t->rect = r;
	t->columns.hidden = ui->hidden_columns;
	t->columns.held = held_possible(ui);
	columns_layout(&t->columns, r.cols, ui->value, COLUMNS_TREE, ui_estimated(ui), ui->base != UI_BASE_NONE,
		       ui_value_known(ui, REPORT_RES_BYTES));
	list_set(&t->list, t->n, rows);
	if (heading)
		columns_heading(&t->columns, c, r.y, r.x, r.cols, ui->value, false,
				ui->inverted ? "SITE AND ITS CALLERS" : "CALLS");
	int name_x = r.x + t->columns.name_x, width = r.cols - t->columns.name_x;
	CLEANUP_FREE struct report_held *held = held_of_rows(ui, t, rows);
	/* deep rows: at most half of the width goes into guides, counted from the cursor's level */
	uint32_t most = width / 4 > 1 ? width / 4 : 1, base = 0;
	if (t->n && t->rows[t->list.cursor].level > most)
		base = t->rows[t->list.cursor].level - most;
	for (int i = 0; i < rows && t->list.top + i < t->n; i++) {
		const struct row *row = &t->rows[t->list.top + i];
		bool cursor = t->list.top + i == t->list.cursor;
		int y = r.y + heading + i;
		style_t extra = row->cell->gone || ui_unsure(ui, &row->cell->total) ? STYLE_FADED : 0;
		if (!row->rest) {
			const struct trace_stats *s = &row->cell->total;
			struct column_row numbers = { .s = s, .self = &row->cell->self,
				.delta = (double)row->cell->delta, .held = held ? held[i] : (struct report_held){ 0 } };
			columns_draw(&t->columns, c, y, r.x, STYLE_TEXT | extra, ui->value, &numbers, t->whole);
		}
		canvas_clip(c, y, name_x, 1, width);
		int x = draw_guides(ui, row, y, name_x, base);
		draw_name(ui, t, row, y, x, r.x + r.cols - x, extra);
		if (cursor) {
			canvas_char(c, y, r.x, STYLE_TEXT, '>');
			canvas_restyle(c, y, r.x, r.cols, STYLE_FADED, STYLE_SELECTED);
		}
	}
	if (t->n <= 1 && rows > 1)
		canvas_put_max(c, r.y + heading + 1, r.x + 2, r.cols - 2, STYLE_DIM,
			       ui_nothing(ui));
}

static void set_open(struct ui *ui, struct calltree *t, const struct row *row, bool open)
{
	keymap_put(&t->open[ui->inverted], row->key, open);
}

/* Open all below the row, as many as a user could want to look at. */
static void open_below(struct ui *ui, struct calltree *t, const struct row *row)
{
	struct { const struct report_cell *const *cells; size_t n; } *levels;
	size_t depth = 1, opened = 0;
	const struct report_cell *first[1] = { row->cell };

	levels = xcalloc(LEVELS_MAX, sizeof(*levels));
	set_open(ui, t, row, true);
	levels[0].cells = first;
	levels[0].n = row->cell->has_children ? 1 : 0;
	while (depth && opened < EXPAND_MAX) {
		if (!levels[depth - 1].n) {
			depth--;
			continue;
		}
		levels[depth - 1].n--;
		const struct report_cell *cell = *levels[depth - 1].cells++;
		if (!cell->has_children)
			continue;
		keymap_put(&t->open[ui->inverted], cell->key, true);
		opened++;
		if (depth == LEVELS_MAX)
			continue;
		levels[depth].cells = report_tree_children(t->tree, cell, ui->value, &levels[depth].n);
		depth++;
	}
	free(levels);
}

static void go_parent(struct calltree *t)
{
	size_t i = t->list.cursor;
	uint32_t level = t->rows[i].level;

	while (i > 0 && t->rows[i].level >= level)
		i--;
	list_go(&t->list, i);
}

static bool calltree_action(struct ui *ui, void *state, enum action a)
{
	struct calltree *t = state;

	if (!t->n)
		return false;
	if (list_action(&t->list, a)) {
		t->cursor[ui->inverted] = t->rows[t->list.cursor].key;
		return true;
	}
	const struct row *row = &t->rows[t->list.cursor];
	switch (a) {
	case ACT_OPEN:
		if (row->opens)
			set_open(ui, t, row, !row->open);
		break;
	case ACT_EXPAND:
		set_open(ui, t, row, true);
		break;
	case ACT_RIGHT:
		if (row->opens && !row->open)
			set_open(ui, t, row, true);
		else if (row->open)
			list_go(&t->list, t->list.cursor + 1);
		break;
	case ACT_LEFT:
		if (row->open)
			set_open(ui, t, row, false);
		else
			go_parent(t);
		break;
	case ACT_COLLAPSE:
		if (row->open)
			set_open(ui, t, row, false);
		break;
	case ACT_EXPAND_ALL:
		open_below(ui, t, row);
		break;
	case ACT_COLLAPSE_ALL:
		for (size_t i = 1; i < t->n; i++)
			set_open(ui, t, &t->rows[i], false);
		t->cursor[ui->inverted] = 0;
		list_go(&t->list, 0);
		break;
	case ACT_CHAINS:
		t->no_chains = !t->no_chains;
		break;
	default:
		return false;
	}
	t->cursor[ui->inverted] = t->rows[t->list.cursor].key;
	calltree_changed(ui, t);
	return true;
}

static void calltree_mouse(struct ui *ui, void *state, const struct key_event *ev)
{
	struct calltree *t = state;

	if (ev->button == MOUSE_WHEEL_UP || ev->button == MOUSE_WHEEL_DOWN) {
		list_scroll(&t->list, ev->button == MOUSE_WHEEL_UP ? -3 : 3);
	} else if (ev->button == MOUSE_LEFT) {
		int row = ev->y - t->rect.y - (t->rect.rows > 1);
		if (row >= 0 && t->list.top + row < t->n)
			list_go(&t->list, t->list.top + row);
	}
	t->cursor[ui->inverted] = t->n ? t->rows[t->list.cursor].key : 0;
}

/* Open the way to a cell and put the cursor there. */
static void go_to_cell(struct ui *ui, struct calltree *t, const struct report_cell *to)
{
	for (const struct report_cell *up = report_tree_parent(t->tree, to); up; up = report_tree_parent(t->tree, up)) {
		keymap_put(&t->open[ui->inverted], up->key, true);
		/* it may lie among the small ones */
		if (cell_value(ui, to) < SMALL * t->whole)
			keymap_put(&t->open[ui->inverted], keymap_mix(up->key, REST_SALT), true);
		if (!up->depth)
			break;
	}
	t->cursor[ui->inverted] = to->key;
	calltree_changed(ui, t);
	/* calltree_changed put the row's own key there; n goes on from the match itself */
	t->cursor[ui->inverted] = to->key;
}

static bool calltree_find(struct ui *ui, void *state, int direction)
{
	struct calltree *t = state;
	struct tree_matches m;
	const struct report_cell *root = report_tree_root(t->tree);

	if (!root || !t->n)
		return false;
	tree_matches_read(&m, ui, t->tree, root, t->cursor[ui->inverted]);
	const struct report_cell *to = tree_matches_pick(&m, ui, direction, t->whole);
	if (to)
		go_to_cell(ui, t, to);
	tree_matches_deinit(&m);
	return to;
}

static void calltree_reveal(struct ui *ui, void *state, const struct selection *sel)
{
	struct calltree *t = state;
	const struct report_cell *cell = t->tree && t->n ? carry_cell(ui, sel, t->tree) : NULL;

	if (cell)
		go_to_cell(ui, t, cell);
}

static bool calltree_selected(struct ui *ui, void *state, struct selection *ret)
{
	struct calltree *t = state;

	if (t->list.cursor >= t->n)
		return false;
	const struct row *row = &t->rows[t->list.cursor];
	cell_selection(t->tree, row->cell, ret);
	if (row->rest) {
		ret->gathered = true;
		ret->count = row->rest;
		return true;
	}
	const struct report_cell *up = row->cell->depth ? report_tree_parent(t->tree, row->cell) : NULL;
	/* nothing has no parts */
	if (up && up->depth && cell_value(ui, up) > 0) {
		char percent[FORMAT_BUF];
		format_percent(percent, cell_value(ui, row->cell), cell_value(ui, up), 1);
		snprintf(ret->note, sizeof(ret->note), "%s%% of caller", percent);
		if (ui->inverted)
			snprintf(ret->note, sizeof(ret->note), "%s%% of callee", percent);
	}
	return true;
}

const struct view_ops calltree_ops = {
	.title = "Tree",
	.create = calltree_create_state,
	.destroy = calltree_destroy_state,
	.changed = calltree_changed,
	.draw = calltree_draw,
	.action = calltree_action,
	.mouse = calltree_mouse,
	.find = calltree_find,
	.selected = calltree_selected,
	.reveal = calltree_reveal,
};
