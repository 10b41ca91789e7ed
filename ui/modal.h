/*
 * What lies over a screen and takes all keys: pagers (help, log), menus, the quit
 * question. One at a time.
 */
#ifndef HEAPTOP_UI_MODAL_H
#define HEAPTOP_UI_MODAL_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/screen.h"

struct modal {
	void (*draw)(struct ui *ui, struct modal *m);
	/* There is another view, or names came in. Optional. */
	void (*changed)(struct ui *ui, struct modal *m);
	/* False: close it. */
	bool (*key)(struct ui *ui, struct modal *m, const struct key_event *ev);
	void (*destroy)(struct modal *m);
};

/* Takes the modal over; the one before is destroyed. NULL: none. */
void ui_set_modal(struct ui *ui, struct modal *m);

/* ---- pager.c: lines of text to scroll and search in ---- */
struct pager_line {
	char *text;		/* owned */
	style_t style;
};
struct pager {
	struct modal modal;
	const char *title;	/* static */
	const struct canvas *canvas;	/* for the width of rows */
	struct pager_line *lines;
	size_t n, cap, top;
	int rows;		/* of the last draw */
	char search[64];
	bool searching;
};
struct pager *pager_create(const char *title, const struct canvas *c);
/* Begin the text anew; the place in it and the search stay. */
void pager_clear(struct pager *p);
/* A line; one that is too long goes on in the next row, indented a little more. */
void pager_add(struct pager *p, style_t style, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void pager_add_indented(struct pager *p, style_t style, int indent, const char *text);

/* ---- help.c ---- */
void help_open(struct ui *ui);
void log_open(struct ui *ui);

/* ---- memory.c ---- */
void memory_open(struct ui *ui);

/* ---- menu.c: rows in a box, of which one is chosen ---- */
struct menu_rows {
	int n, cursor;		/* at least one */
	struct rect inside;	/* of the box drawn last */
};
/* The row shown first: a box too low for all scrolls with the cursor. */
int menu_top(const struct menu_rows *m);
enum menu_did { MENU_STAYS, MENU_CHOSE, MENU_CLOSES };
/* A key or a click; chosen is the row under the cursor. */
enum menu_did menu_rows_key(struct ui *ui, struct menu_rows *m, const struct key_event *ev);

/* ---- dialog.c ---- */
void sort_menu_open(struct ui *ui);
/* Ask what to do with a launched program that still runs. */
void quit_open(struct ui *ui);

/* A frame in the middle of the canvas with a title; returns its inside. */
struct rect box_draw(struct canvas *c, int rows, int cols, const char *title);

#endif
