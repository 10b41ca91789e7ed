/*
 * Copying text out of the screen: by OSC 52 to the terminal's clipboard, which works over ssh and gives no
 * answer, or into a file. Pure but for copy_file.
 */
#ifndef HEAPTOP_UI_COPY_H
#define HEAPTOP_UI_COPY_H

#include <stdbool.h>
#include <stddef.h>

struct err;

enum copy_through {
	COPY_PLAIN,
	COPY_TMUX,	/* also within its passthrough, should its own handling be off */
	COPY_SCREEN,	/* in pieces that screen hands on */
};

#define COPY_MAX 74994u		/* bytes: longer ones, 100,000 in base64, terminals cut or refuse */

/* Escape sequences that copy `len` bytes; the caller frees. */
char *copy_sequence(const char *text, size_t len, enum copy_through through);

/* By TMUX and STY, as the environment has them (NULL: unset). */
enum copy_through copy_way(const char *tmux, const char *sty);
/* May a terminal of this name know OSC 52 at all? */
bool copy_terminal_can(const char *term);

/* Write the text to `path`, a new file for the user alone; folders above it are made. */
struct err *copy_file(const char *path, const char *text);

#endif
