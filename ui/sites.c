/*
 * Flat lists (sites.h), and Sites: who holds the memory, by site, function, stack, module or thread. Rows keep their place for a few seconds after a key,
 * while their numbers go on; the cursor stays on its site, not on its row.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/judge.h"
#include "ui/alike.h"
#include "ui/columns.h"
#include "ui/detail.h"
#include "ui/format.h"
#include "ui/held.h"
#include "ui/keymap.h"
#include "ui/list.h"
#include "ui/modal.h"
#include "ui/sites.h"
#include "ui/style.h"

#define SITE_LEVELS 4096	/* of a tree, to look for a site in */

struct sites {
	const struct rows_kind *kind;
	struct list list;
	const struct report_site **rows;
	size_t n;
	struct keymap places;		/* site id -> row, of the order shown last */
	enum report_group group;	/* of the rows */
	enum report_value value, sorted_by;	/* of now, of then */
	bool sorted_reverse;
	uint64_t cursor_id;		/* 0: none yet */
	bool chosen;			/* the user put the cursor there: it follows its site. Before
					 * that it stays on the first row */
	double whole;
	struct columns columns;		/* of the last draw */
	struct rect rect;
};

void *rows_create(const struct rows_kind *kind)
{
	struct sites *st = xcalloc(1, sizeof(*st));

	st->kind = kind;
	return st;
}

void rows_destroy(void *state)
{
	struct sites *st = state;

	free(st->rows);
	keymap_deinit(&st->places);
	free(st);
}

struct placed {
	const struct report_site *site;
	uint64_t place;
};

static int by_place(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	return x->place < y->place ? -1 : x->place > y->place;
}

/* Put rows back where they lay; new ones keep their order behind them. */
static void keep_places(struct sites *st)
{
	struct placed *placed = xcalloc(st->n, sizeof(*placed));

	for (size_t i = 0; i < st->n; i++) {
		uint64_t at;
		placed[i].site = st->rows[i];
		placed[i].place = keymap_get(&st->places, st->rows[i]->id, &at) ? at : (1ull << 32) + i;
	}
	qsort(placed, st->n, sizeof(*placed), by_place);
	for (size_t i = 0; i < st->n; i++)
		st->rows[i] = placed[i].site;
	free(placed);
}

void rows_changed(struct ui *ui, void *state)
{
	struct sites *st = state;
	size_t n;
	enum report_group group = st->kind->group(ui);
	st->value = st->kind->value ? st->kind->value(ui) : ui->value;
	const struct report_site *sites = report_rows(ui->report, group, st->value, ui->reverse, &n);

	/* those of the other lists were there */
	for (int v = 0; group != REPORT_BY_SITE && v < UI_VIEWS; v++)
		if (v != (int)ui->screen && view_ops_of(v)->changed == rows_changed)
			ui->stale[v] = true;

	st->rows = xreallocarray(st->rows, n ? n : 1, sizeof(*st->rows));
	st->n = n;
	for (size_t i = 0; i < n; i++)
		st->rows[i] = &sites[i];
	bool same_order = st->group == group && st->sorted_by == st->value && st->sorted_reverse == ui->reverse;
	if (same_order && !ui->resort && st->places.n && ui->now - ui->moved < REST_SECONDS)
		keep_places(st);
	st->group = group;
	st->sorted_by = st->value;
	st->sorted_reverse = ui->reverse;
	keymap_clear(&st->places);
	for (size_t i = 0; i < n; i++)
		keymap_put(&st->places, st->rows[i]->id, i);
	st->whole = report_rows_whole(sites, n, st->value);

	size_t cursor = st->list.cursor;
	uint64_t at;
	if (st->cursor_id && group == REPORT_BY_SITE)
		st->cursor_id = report_site_id(ui->report, st->cursor_id);
	if (!st->chosen)
		cursor = 0;
	else if (st->cursor_id && same_order && !ui->no_follow && keymap_get(&st->places, st->cursor_id, &at) && at < n)
		cursor = at;
	else if (!same_order)
		cursor = 0;
	list_set(&st->list, n, st->list.rows);
	list_go(&st->list, cursor);
	st->cursor_id = n ? st->rows[st->list.cursor]->id : 0;
}

static bool growing(const struct report_site *s)
{
	return !judge_over(&s->s) && judge_growing(s->trend, s->ntrend < REPORT_TREND ? s->ntrend : REPORT_TREND, s->se);
}

/* Of the rows from `from` on, the one that grew most; NULL: none grows. */
static const struct report_site *fastest(const struct sites *st, size_t from)
{
	const struct report_site *ret = NULL;
	uint64_t most = 0;

	for (size_t i = from; i < st->n; i++) {
		const struct report_site *s = st->rows[i];
		if (growing(s) && s->trend[s->ntrend - 1] - s->trend[0] > most) {
			most = s->trend[s->ntrend - 1] - s->trend[0];
			ret = s;
		}
	}
	return ret;
}

/*
 * The last row says what lies below it: how many sites, and which of them grows most, as a leak that has just begun is
 * among the small ones.
 */
static void draw_below(struct ui *ui, struct sites *st, struct rect r, int y, size_t from)
{
	struct canvas *c = ui->canvas;
	char text[48], name[UI_NAME], place[128] = "";
	const struct report_site *s = fastest(st, from);

	snprintf(text, sizeof(text), "… %zu more ", st->n - from);
	int w = canvas_width(c, text), room = r.cols - w - 1;
	if (room < 3)
		return;
	canvas_fill(c, y, r.x, r.cols, STYLE_TEXT, ' ');
	canvas_put(c, y, r.x + r.cols - w, STYLE_DIM, text);
	if (!s)
		return;
	if (s->file && *s->file && s->line)
		snprintf(place, sizeof(place), "  %.100s:%u", ui_basename(s->file), s->line);
	const char *shown = ui_name(ui, s->function, name);
	int pw = canvas_width(c, place);
	canvas_char(c, y, r.x, STYLE_GREW, 0x25b2);
	canvas_clip(c, y, r.x, 1, room);
	int x = canvas_put(c, y, r.x + 2, STYLE_GREW, room < 50 ? "" : "growing below: ");
	int nw = canvas_width(c, shown), left = r.x + room - x - pw;
	/* the place is where to look: the name gives way */
	if (left < 4)
		left = r.x + room - x;
	nw = nw < left ? nw : left;
	canvas_put_cut(c, y, x, nw, style_of_module(s->module, s->unknown, ui->main_module), shown);
	canvas_put(c, y, x + nw, STYLE_DIM, place);
	canvas_clip_all(c);
}

static void draw_flag(struct ui *ui, struct rect r, int y, const struct report_site *s, bool cursor)
{
	struct canvas *c = ui->canvas;

	/* the column beside it is empty: the cursor hides nothing */
	int x = r.x + cursor;

	if (cursor)
		canvas_char(c, y, r.x, STYLE_TEXT, '>');
	if (growing(s))
		canvas_char(c, y, x, STYLE_GREW, 0x25b2);
	else if (ui->base != UI_BASE_NONE && s->fresh)
		canvas_char(c, y, x, STYLE_GREW, '+');
	else if (judge_temporary(&s->s))
		canvas_char(c, y, x, STYLE_DIM, '~');
}

/* The callers of a stack's site, as many as there is room for: " ‹ load ‹ main". */
static void draw_callers(struct ui *ui, int y, int x, int width, const struct report_site *s, style_t extra)
{
	size_t n, i;
	const struct report_frame *frames = report_stack(ui->report, s->more->trace, &n, &i);
	char buf[UI_NAME];
	int end = x + width;

	for (i++; i < n && x < end; i++) {
		const char *name = ui_name(ui, frames[i].function, buf);
		x = canvas_put(ui->canvas, y, x, STYLE_GUIDE | extra, " ‹ ");
		x = canvas_put(ui->canvas, y, x, style_of_module(frames[i].module, frames[i].unknown, ui->main_module) | extra, name);
	}
}

static void draw_name(struct ui *ui, int y, int x, int width, const struct report_site *s, style_t extra)
{
	struct canvas *c = ui->canvas;
	char buf[UI_NAME], number[ALIKE_MARK], place[128];
	const char *name = ui_name(ui, s->function, buf);
	bool stack = s->more && s->more->trace != SIZE_MAX && ui->group == REPORT_BY_STACK;
	/* stacks of one site have its name in common, and their callers to tell them apart */
	const char *mark = stack ? "" : ui_mark(ui, name, s->id, number);
	style_t style = style_of_module(s->module, s->unknown, ui->main_module) | extra;
	bool match = ui_find_matches(ui, s->function, s->file, s->module);

	if (match)
		style |= STYLE_MATCH;
	place[0] = '\0';
	if (s->file && *s->file && s->line)
		snprintf(place, sizeof(place), "%.100s:%u", ui_basename(s->file), s->line);
	else if (s->file && *s->file)
		snprintf(place, sizeof(place), "%.100s", ui_basename(s->file));
	int nw = canvas_width(c, name), mw = canvas_width(c, mark), pw = *place ? 2 + canvas_width(c, place) : 0;
	/* the place matters more than the name's end, as long as half of the room is the name's */
	int name_room = width - pw > width / 2 ? width - pw : width / 2;
	if (width < 34)
		name_room = width;
	if (stack && pw + 12 < width / 2)
		name_room = width / 2 - pw;
	canvas_clip(c, y, x, 1, width);
	if (ui->hscroll) {
		canvas_put(c, y, x - ui->hscroll, style, name);
		canvas_put(c, y, x - ui->hscroll + nw, style, mark);
		canvas_put(c, y, x - ui->hscroll + nw + mw + 2, STYLE_DIM | extra, place);
		canvas_clip_all(c);
		return;
	}
	if (nw + mw > name_room)
		nw = name_room > mw ? name_room - mw : 0;
	canvas_put_cut(c, y, x, nw, style, name);
	canvas_put(c, y, x + nw, style, mark);
	int at = canvas_put_place(c, y, x + nw + mw, x + width, STYLE_DIM | extra, place);
	if (stack) {
		draw_callers(ui, y, at, x + width - at, s, extra);
		canvas_clip_all(c);
		return;
	}
	if (!s->unknown && s->module && *s->module &&
	    (!ui->main_module || strcmp(s->module, ui->main_module)))
		canvas_put_module(c, y, at, x + width, STYLE_DIM | extra, s->module);
	canvas_clip_all(c);
}

static void (*name_drawer(const struct sites *st))(struct ui *, int, int, int, const struct report_site *, style_t)
{
	/* whichever list they are in */
	if (st->group == REPORT_BY_THREAD)
		return thread_draw_name;
	return st->group == REPORT_BY_MODULE ? module_draw_name : draw_name;
}

/* Whichever list threads are in, a column of figures that they don't have would be one of wrong zeroes. */
static enum columns_set columns_of(const struct sites *st)
{
	return st->group == REPORT_BY_THREAD ? COLUMNS_THREADS : st->kind->columns;
}

void rows_draw(struct ui *ui, void *state, struct rect r)
{
	struct sites *st = state;
	struct canvas *c = ui->canvas;
	int heading = r.rows > 1;
	int rows = r.rows - heading;

	st->rect = r;
	st->columns.hidden = ui->hidden_columns;
	st->columns.held = held_possible(ui);
	columns_layout(&st->columns, r.cols, st->value, columns_of(st), ui_estimated(ui), ui->base != UI_BASE_NONE,
		       ui_value_known(ui, REPORT_RES_BYTES));
	ui->held_shown |= columns_has(&st->columns, COLUMN_AGE) || columns_has(&st->columns, COLUMN_THREADS);
	if (ui->held_shown && !report_has_held(ui->report)) {
		/* from now on */
		report_set_held(ui->report, true);
		rows_changed(ui, state);
	}
	list_set(&st->list, st->n, rows);
	if (heading)
		columns_heading(&st->columns, c, r.y, r.x, r.cols, st->value, ui->reverse, st->kind->heading(ui));
	for (int i = 0; i < rows && st->list.top + i < st->n; i++) {
		const struct report_site *s = st->rows[st->list.top + i];
		bool cursor = st->list.top + i == st->list.cursor;
		int y = r.y + heading + i;
		style_t extra = s->gone || ui_unsure(ui, &s->s) ? STYLE_FADED : 0;
		struct column_row row = { .s = &s->s, .more = s->more, .delta = (double)s->delta,
			.trend = s->trend, .ntrend = s->ntrend < REPORT_TREND ? s->ntrend : REPORT_TREND,
			.held = s->held };
		columns_draw(&st->columns, c, y, r.x, STYLE_TEXT | extra, st->value, &row, st->whole);
		draw_flag(ui, r, y, s, cursor);
		name_drawer(st)(ui, y, r.x + st->columns.name_x, r.cols - st->columns.name_x, s, extra);
		if (cursor)
			canvas_restyle(c, y, r.x, r.cols, STYLE_FADED, STYLE_SELECTED);
	}
	size_t below = st->n > st->list.top + rows ? st->n - st->list.top - rows : 0;
	if (!st->n && rows > 0)
		canvas_put_max(c, r.y + heading, r.x + 2, r.cols - 2, STYLE_DIM,
			       ui_nothing(ui));
	if (below && rows >= 6 && st->list.cursor != st->list.top + rows - 1)
		draw_below(ui, st, r, r.y + r.rows - 1, st->list.top + rows - 1);
}

static void sort_step(struct ui *ui, struct sites *st, int step)
{
	int seen[COLUMN_IDS + 1], n = 0, at = 0;

	for (size_t i = 0; i < st->columns.n; i++) {
		int v = st->columns.list[i].id == COLUMN_VALUE ? (int)st->value : columns_value(st->columns.list[i].id);
		if (v < 0)
			continue;
		if (v == (int)st->value)
			at = n;
		seen[n++] = v;
	}
	if (n)
		ui_set_value(ui, seen[(at + step + n) % n], false);
}

bool rows_action(struct ui *ui, void *state, enum action a)
{
	struct sites *st = state;

	if (list_action(&st->list, a)) {
		st->chosen = a != ACT_TOP;
		st->cursor_id = st->n ? st->rows[st->list.cursor]->id : 0;
		return true;
	}
	switch (a) {
	case ACT_LEFT:
		ui->hscroll = ui->hscroll > 8 ? ui->hscroll - 8 : 0;
		return true;
	case ACT_RIGHT:
		if (ui->hscroll < 100000)
			ui->hscroll += 8;
		return true;
	case ACT_SORT_LEFT:
		sort_step(ui, st, -1);
		return true;
	case ACT_SORT_RIGHT:
		sort_step(ui, st, 1);
		return true;
	case ACT_OPEN:
		if (st->kind->open && st->n) {
			st->kind->open(ui, st->rows[st->list.cursor]);
			return true;
		}
		/* fallthrough */
	case ACT_DETAILS:
		st->chosen = true;	/* what is looked at stays under the cursor */
		detail_open(ui);
		return true;
	default:
		return false;
	}
}

void rows_mouse(struct ui *ui, void *state, const struct key_event *ev)
{
	struct sites *st = state;

	if (ev->button == MOUSE_WHEEL_UP || ev->button == MOUSE_WHEEL_DOWN) {
		list_scroll(&st->list, ev->button == MOUSE_WHEEL_UP ? -3 : 3);
	} else if (ev->button == MOUSE_LEFT) {
		int row = ev->y - st->rect.y - (st->rect.rows > 1);
		if (row < 0) {
			int id = columns_at(&st->columns, ev->x - st->rect.x);
			int v = id == COLUMN_VALUE ? (int)st->value : id < 0 ? -1 : columns_value(id);
			if (v >= 0)
				ui_set_value(ui, v, true);
			return;
		}
		if (st->list.top + row < st->n)
			list_go(&st->list, st->list.top + row);
	}
	st->chosen = true;
	st->cursor_id = st->n ? st->rows[st->list.cursor]->id : 0;
}

bool rows_find(struct ui *ui, void *state, int direction)
{
	struct sites *st = state;
	size_t matched = 0, place = 0;
	double value = 0;
	bool found = false;
	size_t to = 0;

	for (size_t k = 0; k < st->n; k++) {
		/* step k away from the cursor, around the end */
		size_t away = direction ? k + 1 : k;
		size_t i = direction < 0 ? (st->list.cursor + 2 * st->n - away) % st->n :
			(st->list.cursor + away) % st->n;
		const struct report_site *s = st->rows[i];
		if (!ui_find_matches(ui, s->function, s->file, s->module))
			continue;
		if (!found)
			to = i;
		found = true;
		matched++;
		value += fabs(report_site_value(s, st->value));
	}
	if (!found)
		return false;
	list_go(&st->list, to);
	st->chosen = true;
	st->cursor_id = st->rows[to]->id;
	for (size_t i = 0; i <= to; i++)
		place += ui_find_matches(ui, st->rows[i]->function, st->rows[i]->file, st->rows[i]->module);
	char percent[FORMAT_BUF];
	format_share(percent, value, st->whole);
	snprintf(ui->find.summary, sizeof(ui->find.summary), "%s of %s, %s %zu of %zu", percent,
		 report_value_title(st->value), st->kind->one, place, matched);
	return true;
}

bool rows_selected(struct ui *ui, void *state, struct selection *ret)
{
	struct sites *st = state;

	if (st->list.cursor >= st->n)
		return false;
	const struct report_site *s = st->rows[st->list.cursor];
	*ret = (struct selection){
		.function = s->function, .file = s->file, .module = s->module, .line = s->line,
		.unknown = s->unknown, .s = s->s, .se = s->se, .site_id = s->id,
		.is_site = !s->more && st->group == REPORT_BY_SITE,
		.row = st->group != REPORT_BY_SITE ? s : NULL, .group = st->group,
		.func = st->group == REPORT_BY_SITE || st->group == REPORT_BY_FUNCTION ? s->id : 0,
		.trace = s->more ? s->more->trace : SIZE_MAX, .delta = (double)s->delta,
		.trend = s->trend, .ntrend = s->ntrend < REPORT_TREND ? s->ntrend : REPORT_TREND,
		.trend_seconds = s->trend_seconds,
	};
	if (st->group == REPORT_BY_THREAD)
		thread_selected(ui, s, ret);
	else if (st->group == REPORT_BY_MODULE)
		module_selected(ui, s, ret);
	else if (s->gone)
		snprintf(ret->note, sizeof(ret->note), "gone");
	else if (growing(s))
		snprintf(ret->note, sizeof(ret->note), "growing");
	else if (judge_temporary(&s->s))
		snprintf(ret->note, sizeof(ret->note), "temporary");
	else if (s->unknown && s->module && *s->module && *s->module != '[')
		snprintf(ret->note, sizeof(ret->note), "no symbol (-dbgsym has it)");
	return true;
}

const struct report_site *rows_cursor(const struct ui *ui, void *state)
{
	const struct sites *st = state;

	(void)ui;
	return st->list.cursor < st->n ? st->rows[st->list.cursor] : NULL;
}

/* The site that stands for a cell: itself, or what holds most below it (inverted: what it was reached from). */
static bool find_site(struct ui *ui, struct sites *st, const struct selection *sel, uint64_t *ret)
{
	const struct report_cell *cell = sel->cell;

	if (!cell)
		return sel->func && keymap_get(&st->places, sel->func, ret);
	for (int level = 0; level < SITE_LEVELS && cell; level++) {
		if (keymap_get(&st->places, cell->func_key, ret))
			return true;
		size_t n = 0;
		const struct report_cell *const *children = NULL;
		if (!ui->inverted && cell->has_children)
			children = report_tree_children(sel->tree, cell, ui->value, &n);
		cell = ui->inverted ? cell->depth ? report_tree_parent(sel->tree, cell) : NULL : n ? children[0] : NULL;
	}
	return false;
}

void rows_reveal(struct ui *ui, void *state, const struct selection *sel)
{
	struct sites *st = state;
	uint64_t at;

	if (st->group != REPORT_BY_SITE || !find_site(ui, st, sel, &at) || at >= st->n)
		return;
	list_go(&st->list, at);
	st->chosen = true;
	st->cursor_id = st->rows[at]->id;
}

/* ---- Sites ---- */

static enum report_group sites_group(const struct ui *ui)
{
	return ui->group;
}

static const char *sites_heading(const struct ui *ui)
{
	static const char *const headings[REPORT_GROUPS] = {
		[REPORT_BY_SITE] = "SITE", [REPORT_BY_FUNCTION] = "FUNCTION THAT ALLOCATES",
		[REPORT_BY_STACK] = "STACK, SITE FIRST", [REPORT_BY_MODULE] = "MODULE OF THE SITE",
	};

	return ui->group == REPORT_BY_THREAD ? thread_heading(ui) : headings[ui->group];
}

static enum report_value sites_value(const struct ui *ui)
{
	return ui->group == REPORT_BY_THREAD ? thread_value(ui) : ui->value;
}

static void *sites_create(struct ui *ui)
{
	static const struct rows_kind kind = {
		.columns = COLUMNS_SITES, .one = "site", .group = sites_group, .value = sites_value,
		.heading = sites_heading,
	};

	(void)ui;
	return rows_create(&kind);
}

const struct view_ops sites_ops = {
	.title = "Sites",
	.create = sites_create,
	.destroy = rows_destroy,
	.changed = rows_changed,
	.draw = rows_draw,
	.action = rows_action,
	.mouse = rows_mouse,
	.find = rows_find,
	.selected = rows_selected,
	.reveal = rows_reveal,
};
