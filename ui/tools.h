/*
 * What leads out of the screen: the editor, copying, the setup and annotated source; perform.c calls it for their
 * keys. Files are touched by the session's worker alone.
 */
#ifndef HEAPTOP_UI_TOOLS_H
#define HEAPTOP_UI_TOOLS_H

#include <stdbool.h>

#include "ui/screen.h"

/* True: it was one of these actions. */
bool tools_action(struct ui *ui, enum action a);
/* What follows on a session's options and its end. */
void tools_init(struct ui *ui);
void tools_deinit(struct ui *ui);
/* Jobs that are done; true if there is anything to draw. */
bool tools_poll(struct ui *ui);

/* What is selected, if it is a function whose file is known; else it is said why not. */
bool tools_selected(struct ui *ui, struct selection *ret);

/* setup.c */
void setup_open(struct ui *ui);
/* annotate.c */
void annotate_open(struct ui *ui);

#endif
