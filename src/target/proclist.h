/*
 * The processes of this machine, for the picker: who could be watched, and why not. From /proc;
 * touches nothing. Any thread.
 */
#ifndef HEAPTOP_TARGET_PROCLIST_H
#define HEAPTOP_TARGET_PROCLIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_row {
	pid_t pid;
	uid_t uid;
	char user[32];
	uint64_t rss;		/* bytes */
	uint32_t threads;
	uint64_t start;		/* clock ticks from boot to its start: with the pid, which process it is */
	double age;		/* seconds since its start */
	char *command;		/* sanitised command line, or [name] */
	char *refusal;		/* NULL: can be attached; else target_check()'s text */
};

/* All processes but ourselves and kernel threads, by RSS, largest first. */
struct proc_row *proclist_read(size_t *ret_n);
void proclist_free(struct proc_row *rows, size_t n);
/* A command line from the program's own name on, without the folders it lies in. */
const char *proclist_brief(const char *command);

/* How many processes but ourselves are called `name` (as the kernel has it: 15 characters at most); the pids of
 * the first `max` of them go to ret[]. */
size_t proclist_find(const char *name, pid_t *ret, size_t max);

#endif
