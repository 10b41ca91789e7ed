/* See cli_config.h. */
#include "cli_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli.h"
#include "cli_options.h"
#include "symbol/source.h"
#include "ui/action.h"

/*
 * Options that are the user's taste rather than today's question. Those without an argument are said "yes" or "no",
 * no-NAME also as NAME the other way round.
 */
static const char *const known[] = {
	"columns", "copy", "delay", "exit-with-program", "graph", "io", "no-color", "no-mouse", "no-unicode", "on-exit",
	"overhead", "sort", "theme", "value", "view", "wrapper",
};

bool cli_config_knows(const char *option)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(known[i], option))
			return true;
	return false;
}

static const struct cli_option *find(const char *name)
{
	size_t n;
	const struct cli_option *opts = cli_options(&n);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(opts[i].o.name, name))
			return &opts[i];
	return NULL;
}

static bool parse_bool(const char *s, bool *ret)
{
	*ret = !strcmp(s, "yes") || !strcmp(s, "on") || !strcmp(s, "true");
	return *ret || !strcmp(s, "no") || !strcmp(s, "off") || !strcmp(s, "false");
}

/* Why not, to be freed; NULL: taken. */
static char *take_option(struct cli *cli, const char *key, const char *value)
{
	CLEANUP_FREE char *other = xasprintf("no-%s", key);
	bool negated = !cli_config_knows(key) && cli_config_knows(other);
	const char *name = negated ? other : key;
	const struct cli_option *opt = cli_config_knows(name) ? find(name) : NULL;
	char *why = NULL;
	bool on;

	if (!opt)
		return xstrdup("there is no such setting");
	if (opt->o.has_arg == no_argument) {
		if (!parse_bool(value, &on))
			return xasprintf("'%s' is neither yes nor no", value);
		if (on != negated)
			cli_take(cli, name, NULL, &why);
		return why;
	}
	/* an option's help has no place in a file */
	if (!strcmp(value, "help"))
		return xstrdup("'help' is for the command line");
	/* it is kept by whoever takes it, for the process's life */
	char *kept = xstrdup(value);
	if (cli_take(cli, name, kept, &why))
		cli_keep(cli, kept);
	else
		free(kept);
	return why;
}

static char *take(struct cli *cli, char *key, char *value)
{
	if (!value)
		return xstrdup("a line is KEY = VALUE");
	if (!strncmp(key, "bind", 4) && (key[4] == ' ' || key[4] == '\t')) {
		const char *name = key + 4 + strspn(key + 4, " \t");
		return action_bind(name, value) ? NULL : xasprintf("'%s' is no key, or '%s' no action (heaptop --keys lists both)", name, value);
	}
	if (!strcmp(key, "source-path")) {
		struct err *err = source_paths_add(&cli->source_paths, value);
		char *why = err ? xstrdup(err->text) : NULL;
		err_free(err);
		return why;
	}
	return take_option(cli, key, value);
}

void cli_config_take(struct cli *cli, const char *name, char *text)
{
	char *key, *value;
	unsigned line = 0;

	for (char *at = text; (at = config_next(at, &key, &value)); ) {
		line++;
		CLEANUP_FREE char *why = key ? take(cli, key, value) : NULL;
		if (why)
			log_line("%s, line %u: %s: %s", name, line, key, why);
	}
	if (cli->sort == REPORT_DELTA_BYTES || cli->value == REPORT_DELTA_BYTES) {
		log_line("%s: the value delta needs something to compare with, and is no setting", name);
		cli->sort = cli->value = REPORT_LIVE_BYTES;
	}
}

/* One file; `must`: that it isn't there is an error. */
static struct err *read_file(struct cli *cli, const char *path, bool must)
{
	CLEANUP_FREE char *text = NULL;
	struct err *err = config_read(path, &text);

	if (!err) {
		cli_config_take(cli, path, text);
	} else if (!must) {
		if (err->code != ERR_NOT_FOUND)
			log_line("%s", err->text);
		err_free(err);
		err = NULL;
	}
	return err;
}

struct err *cli_config_read(struct cli *cli, const char *path)
{
	CLEANUP_FREE char *system_themes = xasprintf("%s/heaptop/themes", SYSCONFDIR);
	CLEANUP_FREE char *own_themes = config_user_path("themes");
	const char *named = path ? path : getenv("HEAPTOP_CONFIG");

	themes_read(&cli->themes, system_themes);
	themes_read(&cli->themes, own_themes);
	if (named && (path || *named)) {
		if (!*named)
			return NULL;
		cli->config_path = xstrdup(named);
		return read_file(cli, named, true);
	}
	CLEANUP_FREE char *system_file = xasprintf("%s/heaptop/heaptoprc", SYSCONFDIR);
	struct err *err = read_file(cli, system_file, false);
	cli->config_path = config_user_path("heaptoprc");
	if (!err && cli->config_path)
		err = read_file(cli, cli->config_path, false);
	return err;
}

char **cli_words(const char *text, int *ret_n)
{
	/* at most a word for every two characters, and none is longer than the text */
	size_t len = strlen(text), room = len / 2 + 2;
	char **words = xmalloc(room * sizeof(*words) + len + room);
	char *out = (char *)(words + room);
	int n = 0;

	for (const char *s = text; *(s += strspn(s, " \t\n")); ) {
		char quote = '\0';
		words[n++] = out;
		for (; *s && (quote || !strchr(" \t\n", *s)); s++) {
			if (*s == quote)
				quote = '\0';
			else if (!quote && (*s == '\'' || *s == '"'))
				quote = *s;
			else if (*s == '\\' && quote != '\'' && s[1])
				*out++ = *++s;
			else
				*out++ = *s;
		}
		*out++ = '\0';
	}
	words[n] = NULL;
	*ret_n = n;
	return words;
}
