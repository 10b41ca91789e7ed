/* Several processes watched at once: the list to choose from, and what the header says of it. */
#ifndef HEAPTOP_UI_PROCESSES_H
#define HEAPTOP_UI_PROCESSES_H

#include "ui/screen.h"

/* As ui_source.processes; 0 where the source has one process only. */
size_t processes_read(const struct ui *ui, struct ui_process **ret);
/* Where there is one, and another can be watched instead, the list of those (another.h). */
void processes_open(struct ui *ui);
/* "all 5 processes", "one of 5 processes"; false: there is one. */
bool processes_name(const struct ui *ui, char *buf, size_t len);

#endif
