/* See source.h. */
#include "symbol/source.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"

#define TAB 8u

struct sources {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t thread;
	bool started, stop;
	/* under lock: those below `read` are done, the others wait in their order */
	struct source *files[SOURCE_MAX_FILES];
	size_t n, read;
	struct source full;	/* in place of one more */
};

struct sources *sources_create(void)
{
	struct sources *s = xcalloc(1, sizeof(*s));

	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->wake, NULL);
	s->full.why = xstrdup("too many source files looked at");
	s->full.path = xstrdup("");
	return s;
}

static void source_free(struct source *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->lines[i]);
	free(f->lines);
	free(f->why);
	free(f->path);
}

void sources_destroy(struct sources *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	if (s->started)
		pthread_join(s->thread, NULL);
	for (size_t i = 0; i < s->n; i++) {
		source_free(s->files[i]);
		free(s->files[i]);
	}
	source_free(&s->full);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* ---- reading: on the thread ---- */

static char *clean_line(const char *text, size_t len)
{
	char line[SOURCE_MAX_LINE + 1];
	size_t n = 0;

	for (size_t i = 0; i < len && n < SOURCE_MAX_LINE; i++) {
		if (text[i] != '\t') {
			line[n++] = text[i] ? text[i] : '?';
			continue;
		}
		do
			line[n++] = ' ';
		while (n % TAB && n < SOURCE_MAX_LINE);
	}
	line[n] = '\0';
	text_sanitize(line);
	return xstrdup(line);
}

static void split(struct source *f, const char *text, size_t len)
{
	size_t cap = 0;

	for (size_t at = 0; at < len;) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t n = end ? (size_t)(end - text) - at : len - at;
		size_t line = n && text[at + n - 1] == '\r' ? n - 1 : n;
		VEC_GROW(f->lines, f->n, cap);
		f->lines[f->n++] = clean_line(text + at, line);
		at += n + 1;
	}
}

/* All of it, or why not. */
static char *read_file(const char *path, char **ret, size_t *ret_len)
{
	/* not blocking: it may be a FIFO */
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return xstrdup(strerror(errno));
	if (!S_ISREG(st.st_mode))
		return xstrdup("not a regular file");
	if (st.st_size > SOURCE_MAX_FILE)
		return xstrdup("too large");
	*ret = xmalloc((size_t)st.st_size + 1);
	while (*ret_len < (size_t)st.st_size) {
		ssize_t n = read(fd, *ret + *ret_len, (size_t)st.st_size - *ret_len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return xstrdup(strerror(errno));
		if (!n)
			break;
		*ret_len += (size_t)n;
	}
	return NULL;
}

static void read_source(struct source *f)
{
	CLEANUP_FREE char *text = NULL;
	size_t len = 0;

	f->why = read_file(f->path, &text, &len);
	if (!f->why)
		split(f, text, len);
}

static void *work(void *arg)
{
	struct sources *s = arg;

	pthread_mutex_lock(&s->lock);
	while (!s->stop) {
		if (s->read == s->n) {
			pthread_cond_wait(&s->wake, &s->lock);
			continue;
		}
		struct source *f = s->files[s->read];
		pthread_mutex_unlock(&s->lock);
		read_source(f);
		pthread_mutex_lock(&s->lock);
		s->read++;
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* ---- asking ---- */

/* Signals are for the threads that wait for them. */
static bool start(struct sources *s)
{
	sigset_t all, old;

	if (s->started)
		return true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	s->started = !pthread_create(&s->thread, NULL, work, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (s->started)
		pthread_setname_np(s->thread, "heaptop-source");
	return s->started;
}

static const struct source *find(struct sources *s, const char *path)
{
	for (size_t i = 0; i < s->n; i++)
		if (!strcmp(s->files[i]->path, path))
			return i < s->read ? s->files[i] : NULL;
	if (s->n == SOURCE_MAX_FILES || !start(s))
		return &s->full;
	s->files[s->n] = xcalloc(1, sizeof(*s->files[0]));
	s->files[s->n++]->path = xstrdup(path);
	pthread_cond_signal(&s->wake);
	return NULL;
}

const struct source *sources_get(struct sources *s, const char *path)
{
	pthread_mutex_lock(&s->lock);
	const struct source *f = find(s, path);
	pthread_mutex_unlock(&s->lock);
	return f;
}

bool sources_pending(struct sources *s)
{
	pthread_mutex_lock(&s->lock);
	bool pending = s->read < s->n;
	pthread_mutex_unlock(&s->lock);
	return pending;
}
