/*
 * Detail: all about the selected row, beside or below the list where there is room, else in its place. As a pane
 * it follows the cursor; on the whole screen arrows scroll it. Here is when it is open and what it shows; its parts
 * are in detail_blocks.h. On the screen's thread.
 */
#ifndef HEAPTOP_UI_DETAIL_H
#define HEAPTOP_UI_DETAIL_H

#include <stdbool.h>

#include "ui/screen.h"

struct detail *detail_create(void);
void detail_destroy(struct detail *d);		/* accepts NULL */

/* Open it; open as a pane: on the whole screen; and from there close it. */
void detail_open(struct ui *ui);
bool detail_is_open(const struct ui *ui);
/* An action that is Detail's as it is now; false: it isn't. Before the screen is asked. */
bool detail_action(struct ui *ui, enum action a);
/* Wheel and clicks within; false: not there. */
bool detail_mouse(struct ui *ui, const struct key_event *ev);

/* Take its part out of the screen's rectangle; *ret_pane without rows: it has none. *screen without rows: it takes all. */
void detail_split(struct ui *ui, struct rect *screen, struct rect *ret_pane);
void detail_draw(struct ui *ui, struct rect pane);

/* The report shows something else. */
void detail_changed(struct ui *ui);
/* Look whether a source file has come in; true if there is something to draw. */
bool detail_poll(struct ui *ui);
/* One is waited for, without a descriptor. */
bool detail_waits(const struct ui *ui);

#endif
