/* Boxes over the screen: the menu of values, and the question at quitting. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ui/modal.h"

struct rect box_draw(struct canvas *c, int rows, int cols, const char *title)
{
	if (cols > c->cols)
		cols = c->cols;
	if (rows > c->rows)
		rows = c->rows;
	struct rect r = { (c->rows - rows) / 2, (c->cols - cols) / 2, rows, cols };

	canvas_clip(c, r.y, r.x, rows, cols);
	for (int y = 0; y < rows; y++)
		canvas_fill(c, r.y + y, r.x, cols, STYLE_BOX, ' ');
	if (rows >= 3 && cols >= 4) {
		canvas_fill(c, r.y, r.x, cols, STYLE_BOX, 0x2500);
		canvas_fill(c, r.y + rows - 1, r.x, cols, STYLE_BOX, 0x2500);
		for (int y = 0; y < rows; y++) {
			bool top = !y, bottom = y == rows - 1;
			canvas_char(c, r.y + y, r.x, STYLE_BOX, top ? 0x250c : bottom ? 0x2514 : 0x2502);
			canvas_char(c, r.y + y, r.x + cols - 1, STYLE_BOX, top ? 0x2510 : bottom ? 0x2518 : 0x2502);
		}
		canvas_put_max(c, r.y, r.x + 2, cols - 4, STYLE_BOX | STYLE_STRONG, title);
		r = (struct rect){ r.y + 1, r.x + 2, rows - 2, cols - 4 };
	}
	canvas_clip(c, r.y, r.x, r.rows, r.cols);
	return r;
}

/* ---- the menu of values ---- */

struct menu {
	struct modal modal;
	enum report_value values[REPORT_VALUES];	/* those that are known of what is shown */
	struct menu_rows rows;
};

static const char letters[REPORT_VALUES] = {
	[REPORT_LIVE_BYTES] = 'l', [REPORT_LIVE_BLOCKS] = 'b', [REPORT_ALLOC_BPS] = 'r',
	[REPORT_ALLOC_CPS] = 'c', [REPORT_ALLOC_BYTES] = 'a', [REPORT_ALLOC_BLOCKS] = 'n',
	[REPORT_TEMP_BLOCKS] = 't', [REPORT_PEAK_BYTES] = 'p', [REPORT_RES_BYTES] = 'm',
	[REPORT_UNTOUCHED_BYTES] = 'u', [REPORT_SWAP_BYTES] = 'w', [REPORT_FAULT_BYTES] = 'f',
	[REPORT_OLD_BYTES] = 'o', [REPORT_DELTA_BYTES] = 'd',
};

static void sort_draw(struct ui *ui, struct modal *modal)
{
	struct menu *m = (struct menu *)modal;
	struct canvas *c = ui->canvas;
	struct rect r = box_draw(c, m->rows.n + 2, 34, " Sort by ");

	m->rows.inside = r;
	int top = menu_top(&m->rows);
	for (int i = 0; i < r.rows && top + i < m->rows.n; i++) {
		enum report_value v = m->values[top + i];
		char text[64];
		snprintf(text, sizeof(text), " %c  %-22s %s", letters[v], report_value_title(v),
			 v == ui->value ? (ui->reverse ? "▲" : "▼") : " ");
		canvas_put_cut(c, r.y + i, r.x, r.cols, STYLE_BOX | (top + i == m->rows.cursor ? STYLE_SELECTED : 0), text);
	}
	canvas_clip_all(c);
}

static bool sort_key(struct ui *ui, struct modal *modal, const struct key_event *ev)
{
	struct menu *m = (struct menu *)modal;

	/* also one that isn't in the list: then it is said why */
	for (int v = 0; v < REPORT_VALUES; v++)
		if (ev->key == (unsigned char)letters[v]) {
			ui_set_value(ui, v, true);
			return false;
		}
	enum menu_did did = menu_rows_key(ui, &m->rows, ev);
	if (did == MENU_CHOSE)
		ui_set_value(ui, m->values[m->rows.cursor], true);
	return did == MENU_STAYS;
}

static void destroy_plain(struct modal *m)
{
	free(m);
}

void sort_menu_open(struct ui *ui)
{
	struct menu *m = xcalloc(1, sizeof(*m));

	m->modal = (struct modal){ .draw = sort_draw, .key = sort_key, .destroy = destroy_plain };
	for (int v = 0; v < REPORT_VALUES; v++) {
		/* what has changed since a mark is always worth a hint that there are marks */
		if (v != REPORT_DELTA_BYTES && !ui_value_known(ui, v))
			continue;
		if (v == (int)ui->value)
			m->rows.cursor = m->rows.n;
		m->values[m->rows.n++] = v;
	}
	ui_set_modal(ui, &m->modal);
}

/* ---- quitting ---- */

static void quit_draw(struct ui *ui, struct modal *modal)
{
	struct canvas *c = ui->canvas;
	static const struct {
		const char *key, *text;
	} choices[] = {
		{ "k", "Kill it" },
		{ "d", "Detach: unhook it, let it run on" },
		{ "c", "Cancel" },
	};
	struct rect r = box_draw(c, 6, 50, " The program still runs ");

	(void)modal;
	for (int i = 0; i < (int)ARRAY_SIZE(choices) && i < r.rows; i++) {
		canvas_put(c, r.y + i, r.x, STYLE_BOX | STYLE_STRONG, choices[i].key);
		canvas_put(c, r.y + i, r.x + 3, STYLE_BOX, choices[i].text);
	}
	canvas_clip_all(c);
}

static bool quit_key(struct ui *ui, struct modal *modal, const struct key_event *ev)
{
	(void)modal;
	switch (ev->key) {
	case 'k':
		ui->leaving = true;
		ui->leave = UI_LEAVE_KILL;
		return false;
	case 'd':
		ui->leaving = true;
		ui->leave = UI_LEAVE_DETACH;
		return false;
	case 'c':
	case 'q':
	case 'n':
	case UKEY_ESC:
	case UKEY_BACKSPACE:
	case KEY_CTRL_('c'):
		return false;
	case UKEY_MOUSE:
		return ev->button != MOUSE_RIGHT;
	default:
		return true;
	}
}

void quit_open(struct ui *ui)
{
	struct modal *m = xcalloc(1, sizeof(*m));

	*m = (struct modal){ .draw = quit_draw, .key = quit_key, .destroy = destroy_plain };
	ui_set_modal(ui, m);
}
