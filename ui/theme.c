/* See theme.h. */
#include "ui/theme.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

#define FILES_MAX 64

static const char *const elements[THEME_IDS] = {
	[STYLE_TEXT] = "text", [STYLE_TITLE] = "title", [STYLE_LABEL] = "label", [STYLE_NUMBER] = "number",
	[STYLE_DIM] = "dim", [STYLE_GOOD] = "good", [STYLE_WARN] = "warn", [STYLE_BAD] = "bad",
	[STYLE_GREW] = "grew", [STYLE_SHRANK] = "shrank", [STYLE_FROZEN] = "frozen",
	[STYLE_GRAPH] = "graph", [STYLE_GRAPH_SCALE] = "graph-scale",
	[STYLE_TAB] = "tab", [STYLE_TAB_ACTIVE] = "tab-active",
	[STYLE_HEADING] = "heading", [STYLE_HEADING_SORT] = "heading-sort", [STYLE_GUIDE] = "guide",
	[STYLE_KEY] = "key", [STYLE_KEY_TEXT] = "key-text", [STYLE_STATUS] = "status", [STYLE_PROMPT] = "prompt",
	[STYLE_BOX] = "box", [STYLE_CODE_MAIN] = "code-main",
	[STYLE_CODE_0] = "code-0", [STYLE_CODE_1] = "code-1", [STYLE_CODE_2] = "code-2", [STYLE_CODE_3] = "code-3",
	[STYLE_CODE_4] = "code-4", [STYLE_CODE_5] = "code-5",
	[STYLE_CODE_SYSTEM] = "code-system", [STYLE_CODE_UNKNOWN] = "code-unknown",
	[STYLE_FLAME_MAIN] = "flame-main",
	[STYLE_FLAME_0] = "flame-0", [STYLE_FLAME_1] = "flame-1", [STYLE_FLAME_2] = "flame-2",
	[STYLE_FLAME_3] = "flame-3", [STYLE_FLAME_4] = "flame-4", [STYLE_FLAME_5] = "flame-5",
	[STYLE_FLAME_SYSTEM] = "flame-system", [STYLE_FLAME_UNKNOWN] = "flame-unknown",
	[THEME_FADED] = "faded", [THEME_FADED_FLAME] = "faded-flame",
	[THEME_MATCH] = "match", [THEME_MATCH_FLAME] = "match-flame",
};

/* Greys and hues that are dark enough for a white ground. */
static const char light[] =
	"label = 240\ndim = 240\ngood = 28 default bold\nwarn = 130 default bold\nbad = 231 160 bold\n"
	"grew = 160\nshrank = 25\nfrozen = 16 220 bold\ngraph = 30\ngraph-scale = 240\n"
	"tab = 240\ntab-active = 231 25 bold\nheading = 240 default underline\nguide = 246\n"
	"key-text = 240\nbox = 16 253\ncode-0 = 25\ncode-1 = 28\ncode-2 = 94\ncode-3 = 90\ncode-4 = 30\ncode-5 = 124\n"
	"code-system = 240\ncode-unknown = 240\nfaded = 246\nfaded-flame = 246 254\nmatch = 127 default bold underline\n"
	"match-flame = 16 220 bold underline\n";

/* Nothing grey: for bad eyes, bad screens and sunlight. */
static const char contrast[] =
	"label = default\ndim = default\ngood = bright-green default bold\nwarn = bright-yellow default bold\n"
	"bad = bright-white red bold\ngrew = bright-red default bold\nshrank = bright-cyan\nfrozen = black bright-yellow bold\n"
	"graph = bright-cyan\ngraph-scale = default\ntab = default\ntab-active = bright-white blue bold\n"
	"heading = default default underline\nguide = default\nkey-text = default\nbox = bright-white blue\n"
	"code-0 = bright-cyan\ncode-1 = bright-green\ncode-2 = bright-yellow\ncode-3 = bright-magenta\ncode-4 = cyan\n"
	"code-5 = bright-red\ncode-system = default\ncode-unknown = default\nfaded = default\nfaded-flame = default 236\n"
	"match = bright-yellow default bold underline\nmatch-flame = black bright-yellow bold underline\n"
	"flame-main = bright-white 130 bold\nflame-0 = bright-white 19\nflame-1 = bright-white 22\nflame-2 = bright-white 58\n"
	"flame-3 = bright-white 54\nflame-4 = bright-white 23\nflame-5 = bright-white 88\nflame-system = bright-white 237\n";

const char *theme_element(unsigned id)
{
	return id < THEME_IDS ? elements[id] : NULL;
}

/* ---- reading ---- */

static bool parse_color(const char *word, int16_t *ret)
{
	static const char *const names[] = { "black", "red", "green", "yellow", "blue", "magenta", "cyan", "white" };
	int base = 0;
	char *end;

	if (!strcmp(word, "default") || !strcmp(word, "-")) {
		*ret = -1;
		return true;
	}
	long n = strtol(word, &end, 10);
	if (*word >= '0' && *word <= '9' && !*end && n <= 255) {
		*ret = (int16_t)n;
		return true;
	}
	if (!strncmp(word, "bright-", 7)) {
		base = 8;
		word += 7;
	}
	for (int i = 0; i < (int)ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], word)) {
			*ret = (int16_t)(base + i);
			return true;
		}
	return false;
}

static uint8_t parse_attr(const char *word)
{
	static const char *const names[] = { "bold", "dim", "underline", "reverse" };

	for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], word))
			return (uint8_t)(1u << i);
	return 0;
}

static struct err *parse_look(char *value, struct theme_look *ret)
{
	struct theme_look look = { .set = true, .fg = -1, .bg = -1 };
	char *save = NULL;
	int n = 0;

	for (char *word = strtok_r(value, " \t", &save); word; word = strtok_r(NULL, " \t", &save), n++) {
		uint8_t attr = n ? parse_attr(word) : 0;
		if (attr)
			look.attr |= attr;
		else if (n > 1 || !parse_color(word, n ? &look.bg : &look.fg))
			return err_new(ERR_BAD_INPUT, "'%.40s' is no %s", word, n > 1 ? "attribute" : "colour");
	}
	if (!n)
		return err_new(ERR_BAD_INPUT, "a colour is missing");
	*ret = look;
	return NULL;
}

static struct err *parse_line(const struct themes *themes, struct theme *theme, const char *key, char *value)
{
	if (!value)
		return err_new(ERR_BAD_INPUT, "'%.40s' is no ELEMENT = COLOUR", key);
	if (!strcmp(key, "base")) {
		const struct theme *base = themes_find(themes, value);
		if (!base)
			return err_new(ERR_BAD_INPUT, "there is no theme '%.40s' to begin with", value);
		theme->mono = base->mono;
		memcpy(theme->looks, base->looks, sizeof(theme->looks));
		return NULL;
	}
	for (unsigned id = 0; id < THEME_IDS; id++)
		if (!strcmp(elements[id], key))
			return parse_look(value, &theme->looks[id]);
	return err_new(ERR_BAD_INPUT, "no element is called '%.40s'", key);
}

static void put(struct themes *themes, const struct theme *theme)
{
	for (size_t i = 0; i < themes->n; i++)
		if (!strcmp(themes->list[i]->name, theme->name)) {
			*themes->list[i] = *theme;
			return;
		}
	VEC_GROW(themes->list, themes->n, themes->cap);
	themes->list[themes->n] = xmalloc(sizeof(*theme));
	*themes->list[themes->n++] = *theme;
}

struct err *themes_add(struct themes *themes, const char *name, char *text)
{
	struct theme theme = { .mono = false };
	char *key, *value;
	unsigned line = 0;

	if (!*name || strlen(name) >= THEME_NAME)
		return err_new(ERR_BAD_INPUT, "a theme's name has 1 to %d characters", THEME_NAME - 1);
	strcpy(theme.name, name);
	text_sanitize(theme.name);
	for (char *at = text; (at = config_next(at, &key, &value)); ) {
		line++;
		struct err *err = key ? parse_line(themes, &theme, key, value) : NULL;
		if (err)
			return err_prefix(err, "line %u", line);
	}
	put(themes, &theme);
	return NULL;
}

void themes_init(struct themes *themes)
{
	static const struct { const char *name, *text; } built_in[] = {
		{ "default", "" }, { "light", light }, { "contrast", contrast }, { "mono", "" },
	};

	*themes = (struct themes){ 0 };
	for (size_t i = 0; i < ARRAY_SIZE(built_in); i++) {
		CLEANUP_FREE char *text = xstrdup(built_in[i].text);
		struct err *err = themes_add(themes, built_in[i].name, text);
		if (err)	/* tests/unit/test_theme.c would have found it */
			log_line("theme %s: %s", built_in[i].name, err->text);
		err_free(err);
	}
	themes->list[themes->n - 1]->mono = true;
}

void themes_deinit(struct themes *themes)
{
	for (size_t i = 0; i < themes->n; i++)
		free(themes->list[i]);
	free(themes->list);
	*themes = (struct themes){ 0 };
}

static int is_theme(const struct dirent *e)
{
	size_t n = strlen(e->d_name);

	return e->d_name[0] != '.' && n > 6 && !strcmp(e->d_name + n - 6, ".theme");
}

void themes_read(struct themes *themes, const char *dir)
{
	struct dirent **found;
	int n = dir ? scandir(dir, &found, is_theme, alphasort) : -1;

	for (int i = 0; i < n; i++) {
		CLEANUP_FREE char *path = xasprintf("%s/%s", dir, found[i]->d_name), *text = NULL;
		CLEANUP_FREE char *name = xstrndup(found[i]->d_name, strlen(found[i]->d_name) - 6);
		struct err *err = i >= FILES_MAX ? err_new(ERR_BAD_INPUT, "%s: only %d themes are read", path, FILES_MAX) :
			config_read(path, &text);
		if (!err)
			err = err_prefix(themes_add(themes, name, text), "%s", path);
		if (err)
			log_line("%s", err->text);
		err_free(err);
		free(found[i]);
	}
	if (n >= 0)
		free(found);
}

const struct theme *themes_find(const struct themes *themes, const char *name)
{
	for (size_t i = 0; i < themes->n; i++)
		if (!strcmp(themes->list[i]->name, name))
			return themes->list[i];
	return NULL;
}

char *themes_names(const struct themes *themes)
{
	char *ret = xstrdup("");

	for (size_t i = 0; i < themes->n; i++) {
		char *longer = xasprintf("%s%s%s", ret, i ? ", " : "", themes->list[i]->name);
		free(ret);
		ret = longer;
	}
	return ret;
}
