/* See list.h. */
#include "ui/list.h"

static void show(struct list *l)
{
	size_t rows = l->rows > 0 ? l->rows : 1;

	if (l->cursor < l->top)
		l->top = l->cursor;
	if (l->cursor >= l->top + rows)
		l->top = l->cursor - rows + 1;
	if (l->top + rows > l->n)
		l->top = l->n > rows ? l->n - rows : 0;
}

void list_set(struct list *l, size_t n, int rows)
{
	l->n = n;
	l->rows = rows;
	if (l->cursor >= n)
		l->cursor = n ? n - 1 : 0;
	show(l);
}

void list_go(struct list *l, size_t row)
{
	l->cursor = row < l->n ? row : l->n ? l->n - 1 : 0;
	show(l);
}

static void move(struct list *l, long by)
{
	if (by < 0)
		list_go(l, l->cursor > (size_t)-by ? l->cursor - (size_t)-by : 0);
	else
		list_go(l, l->cursor + by);
}

bool list_action(struct list *l, enum action a)
{
	long page = l->rows > 1 ? l->rows - 1 : 1;

	switch (a) {
	case ACT_UP:
		move(l, -1);
		return true;
	case ACT_DOWN:
		move(l, 1);
		return true;
	case ACT_PAGE_UP:
		move(l, -page);
		return true;
	case ACT_PAGE_DOWN:
		move(l, page);
		return true;
	case ACT_HALF_UP:
		move(l, -(page / 2 + 1));
		return true;
	case ACT_HALF_DOWN:
		move(l, page / 2 + 1);
		return true;
	case ACT_TOP:
		list_go(l, 0);
		return true;
	case ACT_BOTTOM:
		list_go(l, l->n);
		return true;
	default:
		return false;
	}
}

void list_scroll(struct list *l, int by)
{
	size_t rows = l->rows > 0 ? l->rows : 1;
	size_t last = l->n > rows ? l->n - rows : 0;

	if (by < 0)
		l->top = l->top > (size_t)-by ? l->top - (size_t)-by : 0;
	else
		l->top = l->top + by < last ? l->top + by : last;
	if (l->cursor < l->top)
		l->cursor = l->top;
	if (l->cursor >= l->top + rows)
		l->cursor = l->top + rows - 1;
	if (l->cursor >= l->n)
		l->cursor = l->n ? l->n - 1 : 0;
}
