/*
 * The launched program's terminal. Rule per descriptor: a descriptor 0, 1 or 2 that is heaptop's own
 * terminal becomes the slave of a pseudo terminal; a file or pipe passes through untouched.
 *
 * A small relay process (forked before the screen opens, in its own session, holding nothing else of
 * heaptop's) owns the master: it drains it at all times, so that the program never stalls on
 * output nobody reads, passes the bytes to heaptop over a socket while heaptop listens, drops what
 * doesn't fit, and goes on when heaptop has died or detached (then the output goes nowhere), so
 * that the program isn't hung up. It ends when the slave has no user left.
 * No curses here. One thread at a time.
 */
#ifndef HEAPTOP_TARGET_RELAY_H
#define HEAPTOP_TARGET_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct relay;

enum relay_mode {
	RELAY_PANE,	/* pty for each descriptor that is our terminal (default with the screen) */
	RELAY_INHERIT,	/* nothing: all three as they are (without the screen) */
	RELAY_NULL,	/* our-terminal descriptors become /dev/null */
	RELAY_FILE,	/* our-terminal outputs go to a file (created without following links), input /dev/null */
	RELAY_TTY,	/* all three are the given terminal device (gdb --tty) */
};
/* --io=: "pane", "inherit", "null", a path under /dev/pts or that is a tty, else a file name. */
struct err *relay_parse(const char *text, enum relay_mode *ret_mode);

/*
 * Set up; rows x cols is the program's terminal size. Fills fd[3] for launch_spec (-1: inherit) and
 * new_session. `path` for FILE and TTY. Call before any thread is started.
 */
struct err *relay_create(enum relay_mode mode, const char *path, int rows, int cols,
			 struct relay **ret, int fd[3], bool *ret_new_session);
/* After the launch: close our copies of the program's descriptors. */
void relay_launched(struct relay *relay);
void relay_destroy(struct relay *relay);	/* accepts NULL; the relay process lives on while the program does */

/* Does the program have our pty at all? */
bool relay_has_terminal(const struct relay *relay);
/* Descriptor to poll for output, -1 without terminal. */
int relay_fd(const struct relay *relay);
/* Read what the program wrote; 0: nothing now, -1: its terminal was closed. */
long relay_read(struct relay *relay, void *buf, size_t len);
/* Bytes typed by the user, for the program. What doesn't fit at once is kept, up to 64 KiB. */
void relay_type(struct relay *relay, const void *buf, size_t len);
/* New size; the program gets SIGWINCH from the kernel. */
void relay_resize(struct relay *relay, int rows, int cols);

#endif
