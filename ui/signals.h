/* Signals for the program that is watched: the menu of K, and the command `:signal`. */
#ifndef HEAPTOP_UI_SIGNALS_H
#define HEAPTOP_UI_SIGNALS_H

#include <stdbool.h>

struct ui;

/* A menu of them for the process shown. Where none can be sent the status line says why. */
void signals_open(struct ui *ui);
/* By its name or number ("TERM", "SIGTERM", "15"); false, and said in the status line: that can't be. */
bool signals_command(struct ui *ui, const char *name);
/* Its number; 0: there is none of that name. */
int signals_parse(const char *name);

#endif
