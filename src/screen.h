/*
 * Watching with the screen: connects a collector or a snapshot to ui/, and does what the user
 * chose on leaving. Leaving always releases the target.
 */
#ifndef HEAPTOP_SCREEN_H
#define HEAPTOP_SCREEN_H

#include <sys/types.h>

struct cli;
struct collector;
struct export_options;
struct relay;
struct modules;
struct names;
struct saver;
struct view;

/* Returns heaptop's exit code. *ret_other: the user wants to watch that process now; 0: to leave. */
int screen_watch(const struct cli *cli, struct collector *c, struct saver *saver,
		 struct relay *relay, pid_t *ret_other);
/* The file cli->input, read while the screen is open already; `options` of what is saved from there. */
typedef int (*screen_judge_fn)(const struct cli *cli, struct view *view, struct names *names, const struct modules *mods,
			       int code);
/* `judge`: what the exit code is in the end, by --fail-if. */
int screen_show(const struct cli *cli, const struct export_options *options, screen_judge_fn judge);

#endif
