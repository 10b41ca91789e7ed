/*
 * A screen to look at in tests: enough of xterm, the linux console and vt100 to follow what
 * ncurses sends, and the modes a program has to leave as it found them.
 */
#ifndef HEAPTOP_TESTS_LIB_SCREEN_H
#define HEAPTOP_TESTS_LIB_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct screen;

struct screen *screen_create(int rows, int cols);
void screen_destroy(struct screen *s);
void screen_resize(struct screen *s, int rows, int cols);
void screen_feed(struct screen *s, const void *buf, size_t len);

/* Is the text in one of the rows? */
bool screen_contains(const struct screen *s, const char *text);
/* All rows, trailing blanks cut, a newline behind each; the caller frees. */
char *screen_dump(const struct screen *s);

/*
 * NULL: alternate screen, cursor, mouse, keypad, scroll region, character set and attributes are as on
 * a fresh terminal. Else what isn't.
 */
const char *screen_left_over(const struct screen *s);
/* Was the alternate screen ever entered? (A test of leaving it is worth something only then.) */
bool screen_was_alternate(const struct screen *s);

#endif
