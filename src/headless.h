/*
 * Watching without a screen: batch frames on standard output, or just the snapshot at the end. Signals are blocked
 * (ending.h), and taken through a descriptor.
 */
#ifndef HEAPTOP_HEADLESS_H
#define HEAPTOP_HEADLESS_H

struct cli;
struct err;
struct collector;
struct saver;
struct view;
struct names;

/*
 * Read a snapshot, unless a signal comes first: *ret_signal is its number then and there is no view. Else 0, and the caller
 * owns both, or gets an error of snapshot_read. After a signal a thread reads on until the process ends.
 */
struct err *headless_read(const char *path, struct view **ret_view, struct names **ret_names, int *ret_signal);

/* Watch until the program ends, -D or -n is reached, or a signal; returns heaptop's exit code. A Ctrl-C that came before
 * there was anything to watch leaves without a frame or a file. */
int headless_watch(const struct cli *cli, struct collector *c, struct saver *saver);

/* A snapshot file as one batch frame or converted to -o. */
int headless_show(const struct cli *cli, struct view *view, struct names *names,
		  struct saver *saver);

#endif
