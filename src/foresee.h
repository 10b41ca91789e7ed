/*
 * What attaching to a process would do to it, before it is done: found out from its files and mappings while it runs. The
 * process isn't stopped or changed.
 */
#ifndef HEAPTOP_FORESEE_H
#define HEAPTOP_FORESEE_H

#include <sys/types.h>

struct cli;

/* With these options: lines of text, without control characters; the caller frees. Any thread. */
char *foresee(const struct cli *cli, pid_t pid);

#endif
