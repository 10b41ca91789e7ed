/*
 * Watching with the screen: connects a collector or a snapshot to ui/, and does what the user
 * chose on leaving. Leaving always releases the target.
 */
#ifndef HEAPTOP_SCREEN_H
#define HEAPTOP_SCREEN_H

struct cli;
struct collector;
struct names;
struct relay;
struct saver;
struct view;

/* Returns heaptop's exit code. */
int screen_watch(const struct cli *cli, struct collector *c, struct saver *saver,
		 struct relay *relay);
int screen_show(const struct cli *cli, struct view *view, struct names *names,
		struct saver *saver);

#endif
