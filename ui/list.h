/*
 * Cursor and scrolling of anything that is a list of rows. The cursor is always on a row that
 * exists, and always visible. Pure.
 */
#ifndef HEAPTOP_UI_LIST_H
#define HEAPTOP_UI_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/action.h"

struct list {
	size_t n;		/* rows there are */
	size_t cursor, top;	/* row under the cursor; first row shown */
	int rows;		/* rows that fit */
};

/* Another number of rows, or another height: cursor and top are put right. */
void list_set(struct list *l, size_t n, int rows);
/* Put the cursor on a row (cut to the list) and scroll it into view. */
void list_go(struct list *l, size_t row);
/* A moving action; false if it isn't one. */
bool list_action(struct list *l, enum action a);
/* Wheel: scroll by rows, the cursor follows only to stay visible. */
void list_scroll(struct list *l, int by);

#endif
