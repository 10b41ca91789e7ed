/*
 * Giving the terminal back, whatever happens: the bytes and the termios that undo the screen are
 * prepared once, so that a signal handler needs nothing but write, tcsetattr and raise. Also the
 * pipe through which ordinary signals reach the screen's loop. One screen at a time.
 */
#ifndef HEAPTOP_UI_RESTORE_H
#define HEAPTOP_UI_RESTORE_H

#include <stddef.h>
#include <termios.h>

/*
 * Install the handlers, and let through to them, in the calling thread, what was blocked. `undo`: bytes for the terminal
 * (copied, at most 256).
 */
void restore_begin(int tty, const char *undo, size_t len, const struct termios *shell);
/* The screen is given back in order: the old handlers and the old mask are put back. */
void restore_end(void);
/* Readable when a signal came; -1 before restore_begin. */
int restore_fd(void);
/* The next signal that came (HUP INT QUIT TERM, WINCH, TSTP, CONT), 0: none. */
int restore_next(void);
/* Let SIGTSTP stop the whole job now; returns after it was continued. */
void restore_stop(void);

#endif
