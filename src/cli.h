/*
 * The command line: parsed into a struct, checked, nothing done yet. main() alone acts on it.
 */
#ifndef HEAPTOP_CLI_H
#define HEAPTOP_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "dump_times.h"
#include "probe/named.h"
#include "report/groups.h"
#include "report/report.h"
#include "symbol/source.h"
#include "target/relay.h"
#include "ui/theme.h"
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
#define EXIT_CONDITION 3	/* --fail-if was true */
#define EXIT_LAUNCH_FAILED 125
#define EXIT_INTERRUPTED 130	/* by Ctrl-C, before any result */

#define CLI_PIDS_MAX 256
enum { CLI_EXIT_KILL = 1, CLI_EXIT_DETACH };

#define CLI_SUM 0
#define CLI_ALL (-1)

struct cli {
	enum cli_mode mode;
	int exit_code;		/* CLI_DONE */
	char **argv;		/* CLI_RUN: the program and its arguments */
	pid_t pids[CLI_PIDS_MAX];	/* CLI_ATTACH */
	size_t npids;
	bool follow;		/* CLI_RUN: its children too */
	pid_t process;		/* --process: whose frames are shown; CLI_SUM, CLI_ALL */
	const char *name;	/* CLI_PICK: filter to begin with, or NULL */
	const char *input;	/* CLI_INPUT */
	const char *base;	/* --base: snapshot to compare with, or NULL; */
	struct view *base_view;	/* opened by main */
	struct names *base_names;

	const char *output;	/* -o, or NULL */
	struct dump_times dump;	/* --dump: when it is written */
	uint64_t rate;		/* -r */
	uint64_t min_size;	/* --min-size, bytes; 0: all blocks */
	bool auto_rate, exact;
	bool mmap, faults;
	bool uprobe;		/* --probe=uprobe, or, with the way to begin with, */
	unsigned uprobe_way;	/* uprobe-multi (1), uprobe-hits (2) */
	double overhead;	/* fraction */
	double duration;	/* seconds, 0: until the end */
	double delay;		/* seconds between frames */
	bool batch, tui;	/* -b; --tui forces the screen */
	long iterations;	/* -n, 0: no limit */
	enum report_value sort;
	enum report_group group;	/* --group: rows of Sites and of batch frames */
	enum report_value value;	/* --value: folded files, flame widths */
	struct wrappers *wrappers;	/* --wrapper: the user's rules, owned */
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
	struct named_list named;	/* --alloc, --free, --realloc, --preset; for the process's life */
	/* settings of the screen; --config, --theme, --columns, --graph, --copy */
	const char *config;	/* NULL: not given */
	char *config_path;	/* file that the setup screen saves to; owned, NULL: none */
	struct themes themes;
	const char *theme;	/* name, or NULL */
	uint32_t hidden_columns;
	int graph;		/* enum graph_kind */
	enum ui_copy copy;
	struct source_paths source_paths;
	struct failif **fail_if;	/* --fail-if, owned */
	size_t nfail_if;
	int on_exit;		/* --on-exit: 0 by default, CLI_EXIT_… */
	double delay_start;	/* seconds from the start until collection begins; 0: at once */
	char **kept;		/* owned: texts that others point into */
	size_t nkept, kept_cap;
	bool doctor;		/* say whether it would work, and why not, instead of doing it */
	bool quiet, verbose;
};

/*
 * Parse. On a usage error prints one line and "Try 'heaptop --help'" to stderr, and returns false:
 * exit with EXIT_USAGE. cli_deinit() either way.
 */
bool cli_parse(int argc, char **argv, struct cli *ret);
/* The same behind the settings files and the options in HEAPTOP_OPTS. */
bool cli_read(int argc, char **argv, struct cli *ret);
void cli_deinit(struct cli *cli);

/* A text that lives as long as the cli: taken over. */
void cli_keep(struct cli *cli, void *text);

/* Does it kill a launched program when it leaves by a signal (else it detaches)? */
bool cli_kills_on_exit(const struct cli *cli);

#endif
