/*
 * The terminal: brings a canvas onto /dev/tty with ncurses, and keys from it. The only file that
 * includes curses. One terminal at a time, on the screen's thread.
 */
#ifndef HEAPTOP_UI_TTY_H
#define HEAPTOP_UI_TTY_H

#include <stdbool.h>

#include "ui/canvas.h"
#include "ui/key.h"

struct err;
struct tty;
struct ui_options;

/* NULL: a screen can be opened. */
struct err *tty_available(void);

/* The terminal as it is, without opening a screen on it. Errors as tty_available. */
struct ui_terminal;
struct err *tty_facts(struct ui_terminal *ret);

/* UTF-8 locale, and a terminal that shows our glyphs; also without a terminal (scripts). */
bool tty_want_unicode(const struct ui_options *options);

struct err *tty_open(const struct ui_options *options, struct tty **ret);
void tty_close(struct tty *t);	/* accepts NULL; everything as it was before */

void tty_size(const struct tty *t, int *ret_rows, int *ret_cols);
bool tty_unicode(const struct tty *t);
/* Can it be read from? Descriptor to poll. */
int tty_fd(const struct tty *t);
/* By what poll(2) says of that descriptor: is the terminal gone for good? It may seem readable all the same: the end is. */
bool tty_is_gone(int revents);
/* Next key, false: none now. Never waits (but 25 ms after an ESC). */
bool tty_key(struct tty *t, struct key_event *ret);
/* Show the canvas; clear: send everything again. */
void tty_draw(struct tty *t, const struct canvas *c, bool clear);
void tty_mouse(struct tty *t, bool on);
/* Borrowed; of what is on the screen already nothing changes: draw with clear. */
struct theme;
void tty_theme(struct tty *t, const struct theme *theme);
/* SIGWINCH came: look at the size again. */
void tty_resized(struct tty *t);
/* Give the terminal back to a program that runs on it for a while, and take it again. */
void tty_leave(struct tty *t);
void tty_return(struct tty *t);
/* Bytes that put nothing on the screen, as they are. */
void tty_send(struct tty *t, const char *bytes);
/* Ctrl-Z: give the terminal back, stop, take it again. */
void tty_suspend(struct tty *t);
/* SIGCONT came without that. */
void tty_continued(struct tty *t);

#endif
