/*
 * The log: short lines about what happened (drops, unwind failures, missing symbols), kept in
 * memory so that nothing is written on the terminal while the screen is open. Bounded: the
 * oldest lines go first. Any thread.
 */
#ifndef HEAPTOP_BASE_LOG_H
#define HEAPTOP_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

/* Add a line (control characters are replaced). With log_to_stderr on it is printed at once too. */
void log_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Print new lines to stderr as well, behind "heaptop: ": batch mode with -v. Off at start. */
void log_to_stderr(bool on);

/* Copy of the last `max` lines, oldest first; the caller frees each and the array. */
char **log_tail(size_t max, size_t *ret_n);

#endif
