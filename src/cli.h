/*
 * The command line: parsed into a struct, checked, nothing done yet. main() alone acts on it.
 */
#ifndef HEAPTOP_CLI_H
#define HEAPTOP_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "report/report.h"
#include "target/relay.h"
#include "ui/ui.h"

enum cli_mode {
	CLI_RUN,		/* start a program and watch it */
	CLI_ATTACH,		/* watch a running process */
	CLI_INPUT,		/* look at a snapshot file */
	CLI_PICK,		/* choose a process on the screen, then attach */
	CLI_DONE,		/* --help, --version, -s help: printed; exit with `exit_code` */
};

#define EXIT_USAGE 2		/* attach, view and batch: see heaptop(1), EXIT STATUS */
#define EXIT_FAILED 1
#define EXIT_LAUNCH_FAILED 125

struct cli {
	enum cli_mode mode;
	int exit_code;		/* CLI_DONE */
	char **argv;		/* CLI_RUN: the program and its arguments */
	pid_t pid;		/* CLI_ATTACH */
	const char *name;	/* CLI_PICK: filter to begin with, or NULL */
	const char *input;	/* CLI_INPUT */

	const char *output;	/* -o, or NULL */
	uint64_t rate;		/* -r */
	bool auto_rate, exact;
	double overhead;	/* fraction */
	double duration;	/* seconds, 0: until the end */
	double delay;		/* seconds between frames */
	bool batch, tui;	/* -b; --tui forces the screen */
	long iterations;	/* -n, 0: no limit */
	enum report_value sort;
	enum report_value value;	/* --value: folded files, flame widths */
	const char *filter;
	const char *thread;	/* -T, or NULL */
	enum ui_view view;
	bool exit_with_program;
	bool paused;
	bool io_given;
	enum relay_mode io;
	const char *io_path;
	bool no_color, no_unicode, no_mouse;
	const char *record;	/* --record-stacks, or NULL */
	bool quiet, verbose;
};

/*
 * Parse. On a usage error prints one line and "Try 'heaptop --help'" to stderr, and returns false:
 * exit with EXIT_USAGE.
 */
bool cli_parse(int argc, char **argv, struct cli *ret);

#endif
