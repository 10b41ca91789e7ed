/*
 * Watching without a screen: batch frames on standard output, or just the snapshot at the end.
 */
#ifndef HEAPTOP_HEADLESS_H
#define HEAPTOP_HEADLESS_H

struct cli;
struct collector;
struct saver;
struct view;
struct names;

/* Signals the loop takes through a descriptor; block them before any thread is started. */
void headless_block_signals(void);

/* Watch until the program ends, -D or -n is reached, or a signal; returns heaptop's exit code. */
int headless_watch(const struct cli *cli, struct collector *c, struct saver *saver);

/* A snapshot file as one batch frame or converted to -o. */
int headless_show(const struct cli *cli, struct view *view, struct names *names,
		  struct saver *saver);

#endif
