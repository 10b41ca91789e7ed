/*
 * Sites: who holds the memory, a flat list. Rows keep their place for a few seconds after a key,
 * while their numbers go on; the cursor stays on its site, not on its row.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ui/alike.h"
#include "ui/columns.h"
#include "ui/format.h"
#include "ui/keymap.h"
#include "ui/list.h"
#include "ui/modal.h"
#include "ui/style.h"

struct sites {
	struct list list;
	const struct report_site **rows;
	size_t n;
	struct keymap places;		/* site id -> row, of the order shown last */
	struct alike alike;
	enum report_value sorted_by;
	bool sorted_reverse;
	uint64_t cursor_id;		/* 0: none yet */
	bool chosen;			/* the user put the cursor there: it follows its site. Before
					 * that it stays on the first row */
	double whole;
	struct columns columns;		/* of the last draw */
	struct rect rect;
};

static void *sites_create(struct ui *ui)
{
	(void)ui;
	return xcalloc(1, sizeof(struct sites));
}

static void sites_destroy(void *state)
{
	struct sites *st = state;

	free(st->rows);
	keymap_deinit(&st->places);
	alike_deinit(&st->alike);
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

static void sites_changed(struct ui *ui, void *state)
{
	struct sites *st = state;
	size_t n;
	const struct report_site *sites = report_sites(ui->report, ui->value, ui->reverse, &n);

	st->rows = xreallocarray(st->rows, n ? n : 1, sizeof(*st->rows));
	st->n = n;
	for (size_t i = 0; i < n; i++)
		st->rows[i] = &sites[i];
	bool same_order = st->sorted_by == ui->value && st->sorted_reverse == ui->reverse;
	if (same_order && !ui->resort && st->places.n && ui->now - ui->moved < REST_SECONDS)
		keep_places(st);
	st->sorted_by = ui->value;
	st->sorted_reverse = ui->reverse;
	keymap_clear(&st->places);
	for (size_t i = 0; i < n; i++)
		keymap_put(&st->places, st->rows[i]->id, i);
	st->whole = report_whole(ui->report, ui->value);

	size_t cursor = st->list.cursor;
	uint64_t at;
	if (st->cursor_id)
		st->cursor_id = report_site_id(ui->report, st->cursor_id);
	if (!st->chosen && !ui->modal)
		cursor = 0;	/* not under its details: they are of the row they were opened on */
	else if (st->cursor_id && same_order && keymap_get(&st->places, st->cursor_id, &at) && at < n)
		cursor = at;
	else if (!same_order)
		cursor = 0;
	list_set(&st->list, n, st->list.rows);
	list_go(&st->list, cursor);
	st->cursor_id = n ? st->rows[st->list.cursor]->id : 0;
}

/* Live bytes rose most of the time and by more than noise: at least 2% and 4 KiB. */
static bool growing(const struct report_site *s)
{
	if (s->ntrend < 4)
		return false;
	uint64_t first = s->trend[0], last = s->trend[s->ntrend - 1];
	unsigned up = 0, down = 0;
	for (uint32_t i = 1; i < s->ntrend && i < REPORT_TREND; i++) {
		up += s->trend[i] > s->trend[i - 1];
		down += s->trend[i] < s->trend[i - 1];
	}
	return last > first && last - first >= 4096 && last - first >= first / 50 && up >= 3 * down &&
		up * 2 >= s->ntrend && (double)(last - first) > 2 * s->se;
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
	else if (s->s.alloc_q10 >= 10 * 1024 && s->s.temp_q10 > s->s.alloc_q10 / 10 * 9)
		canvas_char(c, y, x, STYLE_DIM, '~');
}

static void draw_name(struct ui *ui, struct sites *st, int y, int x, int width, const struct report_site *s,
		      style_t extra)
{
	struct canvas *c = ui->canvas;
	char buf[UI_NAME], number[ALIKE_MARK], place[128];
	const char *name = ui_name(ui, s->function, buf);
	/* whole names are their own mark */
	const char *mark = ui->full_names ? "" : alike_mark(&st->alike, name, s->id, number);
	style_t style = style_of_module(s->module, s->unknown, ui->main_module) | extra;
	bool match = ui_find_matches(ui, s->function, s->file, s->module);

	if (match)
		style |= STYLE_MATCH;
	place[0] = '\0';
	if (s->file && *s->file && s->line)
		snprintf(place, sizeof(place), "  %.100s:%u", ui_basename(s->file), s->line);
	else if (s->file && *s->file)
		snprintf(place, sizeof(place), "  %.100s", ui_basename(s->file));
	int nw = canvas_width(c, name), mw = canvas_width(c, mark), pw = canvas_width(c, place);
	/* the place matters more than the name's end, as long as half of the room is the name's */
	int name_room = width - pw > width / 2 ? width - pw : width / 2;
	if (width < 34)
		name_room = width;
	canvas_clip(c, y, x, 1, width);
	if (ui->hscroll) {
		canvas_put(c, y, x - ui->hscroll, style, name);
		canvas_put(c, y, x - ui->hscroll + nw, style, mark);
		canvas_put(c, y, x - ui->hscroll + nw + mw, STYLE_DIM | extra, place);
		canvas_clip_all(c);
		return;
	}
	if (nw + mw > name_room)
		nw = name_room > mw ? name_room - mw : 0;
	canvas_put_cut(c, y, x, nw, style, name);
	canvas_put(c, y, x + nw, style, mark);
	int at = canvas_put(c, y, x + nw + mw, STYLE_DIM | extra, place);
	if (!s->unknown && s->module && *s->module &&
	    (!ui->main_module || strcmp(s->module, ui->main_module)) && at + 4 < x + width)
		canvas_put_cut(c, y, at + 2, x + width - at - 2, STYLE_DIM | extra, s->module);
	canvas_clip_all(c);
}

static void sites_draw(struct ui *ui, void *state, struct rect r)
{
	struct sites *st = state;
	struct canvas *c = ui->canvas;
	int heading = r.rows > 1;
	int rows = r.rows - heading;

	st->rect = r;
	columns_layout(&st->columns, r.cols, ui->value, false, ui_sampled(ui), ui->base != UI_BASE_NONE);
	list_set(&st->list, st->n, rows);
	if (heading)
		columns_heading(&st->columns, c, r.y, r.x, r.cols, ui->value, ui->reverse, "SITE");
	for (int i = 0; i < rows && st->list.top + i < st->n; i++) {
		const struct report_site *s = st->rows[st->list.top + i];
		bool cursor = st->list.top + i == st->list.cursor;
		int y = r.y + heading + i;
		style_t extra = s->gone || ui_unsure(ui, &s->s) ? STYLE_FADED : 0;
		struct column_row row = { .s = &s->s, .se = s->se, .delta = (double)s->delta,
			.trend = s->trend, .ntrend = s->ntrend < REPORT_TREND ? s->ntrend : REPORT_TREND };
		columns_draw(&st->columns, c, y, r.x, STYLE_TEXT | extra, ui->value, &row, st->whole);
		draw_flag(ui, r, y, s, cursor);
		draw_name(ui, st, y, r.x + st->columns.name_x, r.cols - st->columns.name_x, s, extra);
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
		int v = st->columns.list[i].id == COLUMN_VALUE ? (int)ui->value : columns_value(st->columns.list[i].id);
		if (v < 0)
			continue;
		if (v == (int)ui->value)
			at = n;
		seen[n++] = v;
	}
	if (n)
		ui_set_value(ui, seen[(at + step + n) % n], false);
}

static bool sites_action(struct ui *ui, void *state, enum action a)
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
		details_open(ui);
		return true;
	default:
		return false;
	}
}

static void sites_mouse(struct ui *ui, void *state, const struct key_event *ev)
{
	struct sites *st = state;

	if (ev->button == MOUSE_WHEEL_UP || ev->button == MOUSE_WHEEL_DOWN) {
		list_scroll(&st->list, ev->button == MOUSE_WHEEL_UP ? -3 : 3);
	} else if (ev->button == MOUSE_LEFT) {
		int row = ev->y - st->rect.y - (st->rect.rows > 1);
		if (row < 0) {
			int id = columns_at(&st->columns, ev->x - st->rect.x);
			int v = id == COLUMN_VALUE ? (int)ui->value : id < 0 ? -1 : columns_value(id);
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

static bool sites_find(struct ui *ui, void *state, int direction)
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
		value += fabs(report_site_value(s, ui->value));
	}
	if (!found)
		return false;
	list_go(&st->list, to);
	st->chosen = true;
	st->cursor_id = st->rows[to]->id;
	for (size_t i = 0; i <= to; i++)
		place += ui_find_matches(ui, st->rows[i]->function, st->rows[i]->file, st->rows[i]->module);
	char percent[FORMAT_BUF];
	format_percent(percent, value, st->whole, 1);
	snprintf(ui->find.summary, sizeof(ui->find.summary), "%s%% of %s, site %zu of %zu", percent,
		 report_value_title(ui->value), place, matched);
	return true;
}

static bool sites_selected(struct ui *ui, void *state, struct selection *ret)
{
	struct sites *st = state;

	(void)ui;
	if (st->list.cursor >= st->n)
		return false;
	const struct report_site *s = st->rows[st->list.cursor];
	*ret = (struct selection){
		.function = s->function, .file = s->file, .module = s->module, .line = s->line,
		.unknown = s->unknown, .s = s->s, .se = s->se, .site_id = s->id, .is_site = true, .delta = (double)s->delta,
	};
	if (s->gone)
		snprintf(ret->note, sizeof(ret->note), "gone");
	else if (growing(s))
		snprintf(ret->note, sizeof(ret->note), "growing");
	else if (s->s.alloc_q10 >= 10 * 1024 && s->s.temp_q10 > s->s.alloc_q10 / 10 * 9)
		snprintf(ret->note, sizeof(ret->note), "temporary");
	return true;
}

const struct view_ops sites_ops = {
	.title = "Sites",
	.create = sites_create,
	.destroy = sites_destroy,
	.changed = sites_changed,
	.draw = sites_draw,
	.action = sites_action,
	.mouse = sites_mouse,
	.find = sites_find,
	.selected = sites_selected,
};
