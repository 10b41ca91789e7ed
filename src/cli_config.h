/*
 * Settings from files, and options from the environment, before those of the command line. What is wrong in a
 * file is told in the log (the screen's `!`), and the rest of it counts all the same.
 */
#ifndef HEAPTOP_CLI_CONFIG_H
#define HEAPTOP_CLI_CONFIG_H

#include <stdbool.h>

struct cli;
struct err;

/*
 * Read the settings into `cli`: `path`, or if that is NULL the file that HEAPTOP_CONFIG names, or else that of the system
 * (SYSCONFDIR/heaptop/heaptoprc) and then the user's ($XDG_CONFIG_HOME/heaptop/heaptoprc). An empty path: none. Also
 * cli->config_path, the file that the setup screen saves to, and the themes. An error only if a file that
 * was named can't be read.
 */
struct err *cli_config_read(struct cli *cli, const char *path);

/* The settings of one text, which is changed; `name` is said in the log. */
void cli_config_take(struct cli *cli, const char *name, char *text);

/* May an option, by its long name, stand in a settings file? */
bool cli_config_knows(const char *option);

/*
 * Words of a text as a shell takes them apart: blanks between, quotes and backslashes. An array in one block with its
 * strings, the caller frees; NULL at its end.
 */
char **cli_words(const char *text, int *ret_n);

#endif
