/*
 * The user's editor on a file, on the terminal that the screen has given back. Waits for it: job control works
 * as for any program, Ctrl-C is the editor's alone.
 */
#ifndef HEAPTOP_UI_EDITOR_H
#define HEAPTOP_UI_EDITOR_H

#include <stdint.h>

struct err;

/* Can the file be read? Else a line that says so, and how to say where it is. */
struct err *editor_check(const char *path);

/*
 * $VISUAL, $EDITOR or vi, with +LINE and the path. *ret_signal: SIGHUP or SIGTERM that came meanwhile and ended
 * the editor, too; else 0. Errors: it can't be started, or says by its code that it failed.
 */
struct err *editor_run(const char *path, uint32_t line, int *ret_signal);

#endif
