/*
 * Any settings file, theme or HEAPTOP_OPTS: what is wrong is told in clean lines and nothing else happens, what is
 * taken keeps to what cli.h says, and changing settings in such a text changes nothing beside them.
 */
#include <getopt.h>

#include "base/config.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli.h"
#include "cli_config.h"
#include "tests/fuzz/fuzz.h"
#include "ui/style.h"

static void check_settings(const char *text)
{
	CLEANUP_FREE char *copy = xstrdup(text);
	char *argv[] = { (char *)"heaptop", (char *)"program", NULL };
	struct cli cli;
	size_t n;

	optind = 0;
	FUZZ_ASSERT(cli_parse(2, argv, &cli));
	cli_config_take(&cli, "file", copy);
	FUZZ_ASSERT(cli.mode == CLI_RUN && !cli.output && !cli.batch && !cli.exact && !cli.nfail_if);
	FUZZ_ASSERT(cli.overhead > 0 && cli.overhead <= 1);
	FUZZ_ASSERT(cli.delay >= 0.05 && cli.delay <= 3600);
	FUZZ_ASSERT(!cli.theme || themes_find(&cli.themes, cli.theme));
	FUZZ_ASSERT(cli.value != REPORT_DELTA_BYTES && cli.sort != REPORT_DELTA_BYTES);
	for (size_t i = 0; i < cli.source_paths.n; i++)
		FUZZ_ASSERT(*cli.source_paths.list[i].to);
	char **lines = log_tail(20, &n);
	for (size_t i = 0; i < n; i++) {
		FUZZ_ASSERT(fuzz_is_clean(lines[i]));
		free(lines[i]);
	}
	free(lines);
	cli_deinit(&cli);
}

static void check_theme(const char *text)
{
	CLEANUP_FREE char *copy = xstrdup(text);
	struct themes themes;

	themes_init(&themes);
	size_t before = themes.n;
	struct err *err = themes_add(&themes, "fuzz", copy);
	FUZZ_ASSERT(themes.n == before + !err);
	FUZZ_ASSERT(!err || fuzz_is_clean(err->text));
	err_free(err);
	for (unsigned id = 0; id < STYLE_IDS; id++)
		for (int depth = STYLE_DEPTH_MONO; depth <= STYLE_DEPTH_256; depth++) {
			static const int colors[] = { 0, 8, 16, 256 };
			struct style_look look = style_look_in(themes.list[themes.n - 1], (style_t)id, depth);
			FUZZ_ASSERT(look.fg >= -1 && look.fg < (colors[depth] ? colors[depth] : 1) && look.bg >= -1);
		}
	themes_deinit(&themes);
}

static void check_change(const char *text)
{
	const struct config_setting settings[] = { { "theme", "light" }, { "mouse", NULL }, { "graph", "block" } };
	CLEANUP_FREE char *once = config_change(text, settings, ARRAY_SIZE(settings));
	CLEANUP_FREE char *twice = config_change(once, settings, ARRAY_SIZE(settings));
	char *key, *value;
	unsigned theme = 0, other = 0;

	FUZZ_ASSERT(!strcmp(once, twice));
	for (char *at = twice; (at = config_next(at, &key, &value)); ) {
		theme += key && !strcmp(key, "theme") && value && !strcmp(value, "light");
		other += key && !strcmp(key, "mouse");
	}
	FUZZ_ASSERT(theme == 1 && !other);
}

static void check_words(const char *text)
{
	int n;
	char **words = cli_words(text, &n);
	size_t len = 0;

	for (int i = 0; i < n; i++)
		len += strlen(words[i]);
	FUZZ_ASSERT(!words[n] && len <= strlen(text));
	free(words);
}

static void run_config(const uint8_t *data, size_t len)
{
	CLEANUP_FREE char *text = fuzz_string(data, len);

	check_settings(text);
	check_theme(text);
	check_change(text);
	check_words(text);
}

const struct fuzz_target fuzz_config = { "config", 1024, run_config };
