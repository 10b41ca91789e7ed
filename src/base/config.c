/* See config.h. */
#include "base/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"

#define BLANKS " \t\r\f\v"

static char *trim(char *s)
{
	s += strspn(s, BLANKS);
	size_t n = strlen(s);
	while (n && strchr(BLANKS, s[n - 1]))
		n--;
	s[n] = '\0';
	return s;
}

static char *unquote(char *s)
{
	size_t n = strlen(s);

	if (n < 2 || s[0] != '"' || s[n - 1] != '"')
		return s;
	s[n - 1] = '\0';
	return s + 1;
}

char *config_next(char *text, char **ret_key, char **ret_value)
{
	*ret_key = *ret_value = NULL;
	if (!text || !*text)
		return NULL;
	size_t n = strcspn(text, "\n");
	char *rest = text[n] ? text + n + 1 : text + n;
	text[n] = '\0';
	char *key = trim(text);
	if (!*key || *key == '#')
		return rest;
	*ret_key = key;
	/* "bind = = resort" binds the key "=" */
	bool bind = !strncmp(key, "bind", 4) && strchr(BLANKS, key[4]);
	char *eq = bind ? strrchr(key, '=') : strchr(key, '=');
	if (!eq)
		return rest;
	*eq = '\0';
	trim(key);
	*ret_value = unquote(trim(eq + 1));
	return rest;
}

/* The key of a line, as config_next sees it; NULL: none. The caller frees. */
static char *key_of(const char *line, size_t n)
{
	CLEANUP_FREE char *copy = xstrndup(line, n);
	char *key, *value;

	config_next(copy, &key, &value);
	return key ? xstrdup(key) : NULL;
}

/* Index of the setting a line is of, SIZE_MAX: of none. */
static size_t setting_of(const char *line, size_t n, const struct config_setting *settings, size_t nsettings)
{
	CLEANUP_FREE char *key = key_of(line, n);

	for (size_t i = 0; key && i < nsettings; i++)
		if (!strcmp(key, settings[i].key))
			return i;
	return SIZE_MAX;
}

static void put(FILE *out, const struct config_setting *s)
{
	bool blank_lost = strchr(BLANKS, s->value[0]) || (*s->value && strchr(BLANKS, s->value[strlen(s->value) - 1]));

	fprintf(out, blank_lost ? "%s = \"%s\"\n" : "%s = %s\n", s->key, s->value);
}

char *config_change(const char *text, const struct config_setting *settings, size_t n)
{
	const char **last = xcalloc(n + 1, sizeof(*last));	/* line that a setting stands in */
	char *ret = NULL;
	size_t size = 0;

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t i = setting_of(line, strcspn(line, "\n"), settings, n);
		if (i < n)
			last[i] = line;
	}
	FILE *out = open_memstream(&ret, &size);
	if (!out)
		abort();
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t len = strcspn(line, "\n"), i = setting_of(line, len, settings, n);
		if (i >= n)
			fprintf(out, "%.*s\n", (int)len, line);
		else if (last[i] == line && settings[i].value)
			put(out, &settings[i]);
	}
	for (size_t i = 0; i < n; i++)
		if (!last[i] && settings[i].value)
			put(out, &settings[i]);
	fclose(out);
	free(last);
	return ret;
}

struct err *config_read(const char *path, char **ret)
{
	/* a FIFO in its place mustn't keep us waiting */
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	*ret = NULL;
	if (fd < 0 || fstat(fd, &st))
		return err_errno(errno, "%s", path);
	if (!S_ISREG(st.st_mode))
		return err_new(ERR_BAD_INPUT, "%s: not a regular file", path);
	char *text = xmalloc(CONFIG_MAX_BYTES + 2);
	size_t n = 0;
	while (n <= CONFIG_MAX_BYTES) {
		ssize_t got = read(fd, text + n, CONFIG_MAX_BYTES + 1 - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			int errnum = errno;
			free(text);
			return err_errno(errnum, "%s", path);
		}
		if (!got)
			break;
		n += (size_t)got;
	}
	if (n > CONFIG_MAX_BYTES) {
		free(text);
		return err_new(ERR_BAD_INPUT, "%s: larger than %u KiB", path, CONFIG_MAX_BYTES >> 10);
	}
	text[n] = '\0';
	*ret = text;
	return NULL;
}

static char *user_path(const char *variable, const char *below_home, const char *name)
{
	const char *dir = getenv(variable), *home = getenv("HOME");

	/* XDG base directory specification: what isn't absolute is to be ignored */
	if (dir && *dir == '/')
		return xasprintf("%s/heaptop/%s", dir, name);
	return home && *home == '/' ? xasprintf("%s/%s/heaptop/%s", home, below_home, name) : NULL;
}

char *config_user_path(const char *name)
{
	return user_path("XDG_CONFIG_HOME", ".config", name);
}

char *config_state_path(const char *name)
{
	return user_path("XDG_STATE_HOME", ".local/state", name);
}

struct err *config_make_dirs(const char *path)
{
	CLEANUP_FREE char *dir = xstrdup(path);

	for (char *slash = dir; (slash = strchr(slash + 1, '/')); *slash = '/') {
		*slash = '\0';
		if (mkdir(dir, 0700) && errno != EEXIST)
			return err_errno(errno, "%s", dir);
	}
	return NULL;
}
