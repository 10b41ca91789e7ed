/* What menus in a box have in common: the cursor, what a box too low shows, keys and clicks. See modal.h. */
#include "ui/modal.h"

int menu_top(const struct menu_rows *m)
{
	return m->cursor >= m->inside.rows ? m->cursor - m->inside.rows + 1 : 0;
}

static enum menu_did click(struct menu_rows *m, const struct key_event *ev)
{
	int y = ev->y - m->inside.y, row = menu_top(m) + y;

	if (ev->button == MOUSE_WHEEL_UP || ev->button == MOUSE_WHEEL_DOWN) {
		int to = m->cursor + (ev->button == MOUSE_WHEEL_UP ? -1 : 1);
		m->cursor = to < 0 ? 0 : to < m->n ? to : m->n - 1;
		return MENU_STAYS;
	}
	if (ev->button != MOUSE_LEFT || y < 0 || y >= m->inside.rows || row >= m->n ||
	    ev->x < m->inside.x || ev->x >= m->inside.x + m->inside.cols)
		return MENU_CLOSES;
	m->cursor = row;
	return MENU_CHOSE;
}

enum menu_did menu_rows_key(struct ui *ui, struct menu_rows *m, const struct key_event *ev)
{
	if (ev->key == UKEY_MOUSE)
		return click(m, ev);
	switch (action_of_key(ev->key, ui->screen)) {
	case ACT_UP:
		m->cursor = (m->cursor + m->n - 1) % m->n;
		return MENU_STAYS;
	case ACT_DOWN:
		m->cursor = (m->cursor + 1) % m->n;
		return MENU_STAYS;
	case ACT_TOP:
		m->cursor = 0;
		return MENU_STAYS;
	case ACT_BOTTOM:
		m->cursor = m->n - 1;
		return MENU_STAYS;
	case ACT_OPEN:
		return MENU_CHOSE;
	case ACT_REDRAW:
		ui->clear = true;
		return MENU_STAYS;
	default:
		return MENU_CLOSES;
	}
}
