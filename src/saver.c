/* The snapshot thread; see saver.h. */
#include "saver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "collect/collect.h"
#include "heap/view.h"
#include "moment.h"

struct saver {
	struct collector *collector;
	struct view *view;
	const struct moment *last;	/* NULL: as things are now */
	struct names *names;
	struct export_options options;
	pthread_t thread;
	bool thread_started;
	int fd;
	pthread_mutex_t lock;
	pthread_cond_t asked, done;
	char *path;		/* under lock: asked for, not begun */
	char *status;		/* under lock */
	bool busy, stop;	/* under lock */
};

/* Is the process id part of the name? */
static bool names_process(const char *path)
{
	for (; (path = strchr(path, '%')); path += path[1] ? 2 : 1)
		if (path[1] == 'p')
			return true;
	return false;
}

/* Each its own file; ended ones that are merged have no id to name one by. */
static struct err *write_each(struct saver *s, const char *path, const struct moment *m, char **ret_path)
{
	const struct process_list *list = m->list;
	const struct modules *mods = collector_modules(s->collector);
	CLEANUP_FREE char *last = NULL;
	size_t written = 0, left = 0;

	for (size_t i = 0; i < list->n; i++) {
		if (!m->views[i] || !list->p[i].pid) {
			left += list->p[i].merged;
			continue;
		}
		free(last);
		last = NULL;
		struct err *err = export_write(path, m->views[i], s->names, mods, &s->options, &last);
		if (err)
			return err;
		written++;
	}
	if (ret_path && left)
		*ret_path = xasprintf("%zu files, the last %s (%zu ended processes are in the sum alone)", written,
				      last ? last : "", left);
	else if (ret_path)
		*ret_path = xasprintf("%zu files, the last %s", written, last ? last : "");
	return NULL;
}

struct err *saver_write(struct saver *s, const char *path, char **ret_path)
{
	if (!s->collector)
		return export_write(path, s->view, s->names, NULL, &s->options, ret_path);
	struct moment *now = s->last ? NULL : moment_take(s->collector, true);
	const struct moment *m = now ? now : s->last;
	struct err *err = m->list->n > 1 && names_process(path)
		? write_each(s, path, m, ret_path)
		: saver_write_view(s, path, m->sum, ret_path);

	moment_free(now);
	return err;
}

void saver_settle(struct saver *s, const struct moment *last)
{
	s->last = last;
}

struct err *saver_write_view(struct saver *s, const char *path, struct view *view, char **ret_path)
{
	const struct modules *mods = s->collector ? collector_modules(s->collector) : NULL;

	return export_write(path, view, s->names, mods, &s->options, ret_path);
}

static void save(struct saver *s, const char *path)
{
	CLEANUP_FREE char *written = NULL;
	struct err *err = saver_write(s, path, &written);
	char *text = err ? xstrdup(err->text) : xasprintf("saved %s", written ? written : path);

	err_free(err);
	log_line("%s", text);
	pthread_mutex_lock(&s->lock);
	free(s->status);
	s->status = text;
	pthread_mutex_unlock(&s->lock);
	uint64_t one = 1;
	ssize_t n = write(s->fd, &one, sizeof(one));
	(void)n;
}

static void *saver_main(void *arg)
{
	struct saver *s = arg;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		while (!s->path && !s->stop)
			pthread_cond_wait(&s->asked, &s->lock);
		char *path = s->path;
		s->path = NULL;
		if (!path)
			break;
		s->busy = true;
		pthread_mutex_unlock(&s->lock);
		save(s, path);
		free(path);
		pthread_mutex_lock(&s->lock);
		s->busy = false;
		pthread_cond_signal(&s->done);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

struct saver *saver_create(struct collector *collector, struct view *view, struct names *names,
			   const struct export_options *options)
{
	struct saver *s = xcalloc(1, sizeof(*s));

	s->collector = collector;
	s->view = view ? view_ref(view) : NULL;
	s->names = names;
	s->options = *options;
	s->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->asked, NULL);
	pthread_cond_init(&s->done, NULL);
	s->thread_started = !pthread_create(&s->thread, NULL, saver_main, s);
	if (s->thread_started)
		pthread_setname_np(s->thread, "saver");
	return s;
}

void saver_destroy(struct saver *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->asked);
	pthread_mutex_unlock(&s->lock);
	if (s->thread_started)
		pthread_join(s->thread, NULL);
	view_unref(s->view);
	free(s->path);
	free(s->status);
	if (s->fd >= 0)
		close(s->fd);
	free(s);
}

void saver_request(struct saver *s, const char *path)
{
	pthread_mutex_lock(&s->lock);
	free(s->path);
	s->path = xstrdup(path);
	pthread_cond_signal(&s->asked);
	pthread_mutex_unlock(&s->lock);
}

void saver_finish(struct saver *s)
{
	pthread_mutex_lock(&s->lock);
	while (s->thread_started && (s->path || s->busy))
		pthread_cond_wait(&s->done, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

char *saver_status(struct saver *s)
{
	pthread_mutex_lock(&s->lock);
	char *text = xstrdup(s->status ? s->status : "");
	pthread_mutex_unlock(&s->lock);
	return text;
}

int saver_fd(const struct saver *s)
{
	return s->fd;
}
