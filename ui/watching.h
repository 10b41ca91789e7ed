/* What is looked at besides allocations, switched while the program runs: page faults, and what is in memory. */
#ifndef HEAPTOP_UI_WATCHING_H
#define HEAPTOP_UI_WATCHING_H

#include <stdbool.h>

struct ui;

/* False, and said in the status line: that can't be. */
bool watching_set_faults(struct ui *ui, bool on);
bool watching_set_res(struct ui *ui, bool on);
/* Another view is shown: has what was switched on come about? If not it is said, with the reason. */
void watching_view(struct ui *ui);

#endif
