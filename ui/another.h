/* The list of all processes over the screen, to watch another one instead: the picker, within a session. */
#ifndef HEAPTOP_UI_ANOTHER_H
#define HEAPTOP_UI_ANOTHER_H

struct ui;

/* Takes ui_source.other. The list is read by the screen's worker, once a second. */
void another_open(struct ui *ui);

#endif
