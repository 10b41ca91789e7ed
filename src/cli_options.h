/*
 * The one table of options, for those that need more of it than a parsed command line: settings files
 * (cli_config.c) and completions (completion.c). cli.c owns it.
 */
#ifndef HEAPTOP_CLI_OPTIONS_H
#define HEAPTOP_CLI_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

struct cli;

struct cli_option {
	struct option o;
	const char *arg, *help;		/* arg NULL: takes none */
};

const struct cli_option *cli_options(size_t *ret_n);

/*
 * Take an option by its long name, as if it had been given. *ret_why, the caller's to free, says why not: one line
 * without the option's name in front. `arg` must live as long as the cli.
 */
bool cli_take(struct cli *cli, const char *name, const char *arg, char **ret_why);

#endif
