/* The thread that reads a snapshot; see loader.h. */
#include "loader.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "export/export.h"
#include "heap/view.h"

struct loader {
	char *path;
	struct names *names;
	pthread_t thread;
	bool started;
	int fd;
	bool done;		/* atomic; what follows is the thread's before, the owner's after */
	struct view *view;
	struct err *err;
};

static void *loader_main(void *arg)
{
	struct loader *l = arg;
	uint64_t one = 1;

	l->err = snapshot_read_into(l->path, l->names, &l->view);
	int fd = l->fd;
	__atomic_store_n(&l->done, true, __ATOMIC_RELEASE);
	ssize_t n = write(fd, &one, sizeof(one));
	(void)n;
	return NULL;
}

struct loader *loader_create(const char *path, struct names *names)
{
	struct loader *l = xcalloc(1, sizeof(*l));

	l->path = xstrdup(path);
	l->names = names;
	l->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	l->started = !pthread_create(&l->thread, NULL, loader_main, l);
	if (l->started)
		pthread_setname_np(l->thread, "loader");
	else
		loader_main(l);	/* no thread to be had: it takes as long as it takes */
	return l;
}

bool loader_destroy(struct loader *l)
{
	if (!l)
		return true;
	if (!loader_done(l)) {
		pthread_detach(l->thread);
		return false;
	}
	if (l->started)
		pthread_join(l->thread, NULL);
	if (l->fd >= 0)
		close(l->fd);
	view_unref(l->view);
	err_free(l->err);
	free(l->path);
	free(l);
	return true;
}

int loader_fd(const struct loader *l)
{
	return l->fd;
}

bool loader_done(const struct loader *l)
{
	return __atomic_load_n(&l->done, __ATOMIC_ACQUIRE);
}

struct err *loader_take(struct loader *l, struct view **ret)
{
	struct err *err = l->err;

	*ret = l->view;
	l->view = NULL;
	l->err = NULL;
	return err;
}
