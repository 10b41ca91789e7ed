/*
 * Watching with the screen: connects a collector or a snapshot to ui/, and does what the user
 * chose on leaving. Leaving always releases the target.
 */
#ifndef HEAPTOP_SCREEN_H
#define HEAPTOP_SCREEN_H

struct cli;
struct collector;
struct export_options;
struct relay;
struct saver;

/* Returns heaptop's exit code. */
int screen_watch(const struct cli *cli, struct collector *c, struct saver *saver,
		 struct relay *relay);
/* The file cli->input, read while the screen is open already; `options` of what is saved from there. */
int screen_show(const struct cli *cli, const struct export_options *options);

#endif
