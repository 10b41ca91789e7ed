/* See source.h. */
#include "symbol/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"

#define TAB 8u

/* ---- where ---- */

struct err *source_paths_add(struct source_paths *paths, const char *text)
{
	const char *eq = strchr(text, '=');

	if (!eq || !eq[1])
		return err_new(ERR_BAD_INPUT, "'%s' is no FROM=TO", text);
	size_t n = (size_t)(eq - text);
	while (n > 1 && text[n - 1] == '/')
		n--;
	VEC_GROW(paths->list, paths->n, paths->cap);
	paths->list[paths->n++] = (struct source_map){ xstrndup(text, n), xstrdup(eq + 1) };
	return NULL;
}

void source_paths_deinit(struct source_paths *paths)
{
	for (size_t i = 0; i < paths->n; i++) {
		free(paths->list[i].from);
		free(paths->list[i].to);
	}
	free(paths->list);
	*paths = (struct source_paths){ 0 };
}

/* NULL: none of the maps is for it. */
static char *map(const struct source_paths *paths, const char *file)
{
	for (size_t i = paths->n; i--;) {
		const struct source_map *m = &paths->list[i];
		size_t n = strlen(m->from);
		const char *rest = file + n;
		if (strncmp(file, m->from, n) || (!n && *file == '/'))
			continue;
		if (n && m->from[n - 1] != '/' && *rest && *rest != '/')
			continue;	/* /src isn't the beginning of /src2/a.c */
		rest += strspn(rest, "/");
		return xasprintf("%s%s%s", m->to, *rest && m->to[strlen(m->to) - 1] != '/' ? "/" : "", rest);
	}
	return NULL;
}

char *source_paths_apply(const struct source_paths *paths, const char *file, const char *dir)
{
	char *mapped = map(paths, file);

	if (mapped)
		return mapped;
	char *whole = *file == '/' || !dir || !*dir ? xstrdup(file) : xasprintf("%s/%s", dir, file);
	mapped = map(paths, whole);
	if (!mapped)
		return whole;
	free(whole);
	return mapped;
}

/* ---- reading ---- */

static struct err *read_bytes(const char *path, char **ret, size_t *ret_n)
{
	/* a FIFO in its place mustn't keep us waiting */
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return err_errno(errno, "%s", path);
	if (!S_ISREG(st.st_mode))
		return err_new(ERR_BAD_INPUT, "%s: not a regular file", path);
	if (st.st_size > SOURCE_MAX_BYTES)
		return err_new(ERR_BAD_INPUT, "%s: larger than %u MiB", path, SOURCE_MAX_BYTES >> 20);
	char *bytes = xmalloc((size_t)st.st_size + 1);
	size_t n = 0;
	while (n < (size_t)st.st_size) {
		ssize_t got = read(fd, bytes + n, (size_t)st.st_size - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			int errnum = errno;
			free(bytes);
			return err_errno(errnum, "%s", path);
		}
		if (!got)
			break;
		n += (size_t)got;
	}
	*ret = bytes;
	*ret_n = n;
	return NULL;
}

/* One line of n bytes into out, which has room for SOURCE_MAX_LINE + 1; returns its end. */
static char *copy_line(char *out, const char *bytes, size_t n)
{
	char *begin = out;
	size_t room = SOURCE_MAX_LINE, column = 0;

	while (n && (bytes[n - 1] == '\r' || bytes[n - 1] == '\n'))
		n--;
	for (size_t i = 0; i < n && room; i++) {
		/* a column for every character, as far as that is known here */
		size_t times = bytes[i] == '\t' ? TAB - column % TAB : 1;
		column += bytes[i] == '\t' ? times : (bytes[i] & 0xc0) != 0x80;
		if (times > room)
			break;
		room -= times;
		while (times--)
			*out++ = bytes[i] == '\t' ? ' ' : bytes[i] ? bytes[i] : '?';
	}
	*out = '\0';
	text_sanitize(begin);
	return begin + strlen(begin) + 1;
}

static void split(struct source_text *source, const char *bytes, size_t len)
{
	size_t n = 0, size = 0;

	for (size_t at = 0; at < len && n < SOURCE_MAX_LINES; n++) {
		const char *end = memchr(bytes + at, '\n', len - at);
		size_t line = (end ? (size_t)(end - bytes) + 1 : len) - at, tabs = 0;
		for (size_t i = 0; i < line && i < SOURCE_MAX_LINE; i++)
			tabs += bytes[at + i] == '\t';
		size_t most = line + tabs * TAB < SOURCE_MAX_LINE ? line + tabs * TAB : SOURCE_MAX_LINE;
		size += most + 1;
		at += line;
	}
	source->lines = xmalloc((n + 1) * sizeof(*source->lines) + size);
	char *out = (char *)(source->lines + n + 1);
	for (size_t at = 0; source->n < n;) {
		const char *end = memchr(bytes + at, '\n', len - at);
		size_t line = (end ? (size_t)(end - bytes) + 1 : len) - at;
		source->lines[source->n++] = out;
		out = copy_line(out, bytes + at, line);
		at += line;
	}
	source->lines[n] = NULL;
}

struct source_text *source_read(const struct source_paths *paths, const char *file, const char *dir)
{
	struct source_text *source = xcalloc(1, sizeof(*source));
	char *bytes = NULL;
	size_t n = 0;

	source->path = source_paths_apply(paths, file, dir);
	struct err *err = read_bytes(source->path, &bytes, &n);
	if (err) {
		source->error = xasprintf("%s%s", err->text, err->code != ERR_NOT_FOUND ? "" :
					  *source->path == '/' ? "" : " (below the current folder)");
		err_free(err);
	} else {
		split(source, bytes, n);
	}
	free(bytes);
	text_sanitize(source->path);
	return source;
}

void source_destroy(struct source_text *source)
{
	if (!source)
		return;
	free(source->path);
	free(source->error);
	free(source->lines);
	free(source);
}
