/*
 * What live blocks are like is looked at only while somebody on the screen shows it: Detail's histograms, or the
 * columns and the value that are made of it.
 */
#ifndef HEAPTOP_UI_HELD_H
#define HEAPTOP_UI_HELD_H

#include <stdbool.h>

struct ui;

/* Is it known how old live blocks are and whose, or would it be if somebody asked? */
bool held_possible(const struct ui *ui);
/* Why not, one line; NULL: it is. */
const char *held_why_not(const struct ui *ui);
/* Once a frame is drawn: ask for what it shows, or say that nobody needs it any more. */
void held_drawn(struct ui *ui);

#endif
