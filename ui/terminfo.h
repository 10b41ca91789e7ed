/*
 * A terminal description of our own, for terminals whose TERM isn't in this machine's database: ui/heaptop.ti, compiled
 * into the program. ncurses takes it from the environment (TERMINFO=b64:...), so that is what it is shown, between
 * terminfo_begin and terminfo_end, and nobody else: a launched program's environment is the user's, and other
 * threads may read theirs meanwhile.
 */
#ifndef HEAPTOP_UI_TERMINFO_H
#define HEAPTOP_UI_TERMINFO_H

#include <stdbool.h>

/* The entry's name, for setupterm and newterm, which must be called with no other. */
#define TERMINFO_NAME "heaptop"

/* Is that a terminal that ours may stand for, if it isn't known? Those that say they can't do anything aren't. */
bool terminfo_may_replace(const char *term);

/* From here on ncurses finds our entry, and no other. On the screen's thread, not nested. */
void terminfo_begin(void);
void terminfo_end(void);

#endif
