/* Completions for shells, made from the one table of options. */
#ifndef HEAPTOP_COMPLETION_H
#define HEAPTOP_COMPLETION_H

#include <stdbool.h>

/* Print those for bash, zsh or fish to standard output; false: no such shell. */
bool completion_print(const char *shell);

#endif
