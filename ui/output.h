/*
 * The Output pane: what a launched program writes on its terminal, with scrollback. Owns the
 * terminal emulation (vt.c), borrows the relay. The screen's thread only; nothing here blocks.
 */
#ifndef HEAPTOP_UI_OUTPUT_H
#define HEAPTOP_UI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct canvas;
struct output;
struct relay;

/* `cols`: width to wrap at in the beginning. relay NULL: a pane that says why there is nothing. */
struct output *output_create(struct relay *relay, size_t cols);
void output_destroy(struct output *o);		/* accepts NULL */

/* Read what the relay has (bounded work per call); true if anything new came. */
bool output_pump(struct output *o);
/* New text since it was last drawn: the dot on the tab. */
bool output_unseen(const struct output *o);

/* Draw into the rectangle; also forwards a changed size to the program's terminal. */
void output_draw(struct output *o, struct canvas *c, int y, int x, int rows, int cols);

/*
 * A key (ui/key.h). Typing: everything goes to the program, encoded as a terminal would, except
 * Ctrl-] which ends typing. Otherwise scrolling (arrows, j k, PgUp PgDn, g G Home End, Ctrl-F/B/D/U).
 * True if it was used.
 */
bool output_key(struct output *o, uint32_t key);
/* Lines up (negative: down), for the wheel. */
void output_scroll(struct output *o, int lines);
/* `I`: everything typed goes to the program. False: impossible (no terminal, or it was closed). */
bool output_set_typing(struct output *o, bool typing);
bool output_typing(const struct output *o);

/* One line for the status line ("412 lines, end", "scrolled 40 back", the --io hint). Valid until the next call. */
const char *output_status(struct output *o);

/* The last lines as plain sanitised text, oldest first, for the replay after the screen has
 * closed; the caller frees each and the array. */
char **output_last_lines(struct output *o, size_t max, size_t *ret_n);

#endif
