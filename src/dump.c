/* See dump.h. */
#include "dump.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "collect/collect.h"
#include "heap/view.h"
#include "saver.h"

struct dumper {
	struct dump_times times;
	const char *path;
	struct collector *c;
	struct saver *saver;
	int timer;		/* -1: none */
	struct view *peak;	/* the view with most live bytes so far; its reference keeps what differs from the next alone */
};

struct dumper *dumper_create(const struct dump_times *times, const char *path, struct collector *c, struct saver *saver)
{
	struct dumper *d = xcalloc(1, sizeof(*d));

	d->timer = -1;
	d->c = c;
	d->saver = saver;
	d->path = path;
	if (!path)
		return d;
	d->times = *times;
	if (times->every > 0) {
		time_t seconds = (time_t)times->every;
		struct timespec step = { seconds, (long)((times->every - (double)seconds) * 1e9) };
		d->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
		timerfd_settime(d->timer, 0, &(struct itimerspec){ step, step }, NULL);
	}
	return d;
}

void dumper_destroy(struct dumper *d)
{
	if (!d)
		return;
	if (d->timer >= 0)
		close(d->timer);
	view_unref(d->peak);
	free(d);
}

int dumper_fd(const struct dumper *d)
{
	return d->timer;
}

static void look_for_peak(struct dumper *d)
{
	struct view *view = d->times.peak ? collector_view(d->c) : NULL;

	if (view && (!d->peak || view->totals.s.live_bytes > d->peak->totals.s.live_bytes)) {
		view_unref(d->peak);
		d->peak = view_ref(view);
	}
	view_unref(view);
}

bool dumper_due(struct dumper *d)
{
	uint64_t times;

	look_for_peak(d);
	return d->timer >= 0 && read(d->timer, &times, sizeof(times)) == sizeof(times);
}

/* "logs/leak.pb.gz" -> "logs/leak-peak.pb.gz" */
static char *peak_path(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *dot = strchr(*name == '.' ? name + 1 : name, '.');
	size_t len = dot ? (size_t)(dot - path) : strlen(path);

	return xasprintf("%.*s-peak%s", (int)len, path, path + len);
}

struct err *dumper_finish(struct dumper *d, char **ret_path)
{
	*ret_path = NULL;
	look_for_peak(d);
	if (!d->peak)
		return NULL;
	CLEANUP_FREE char *path = peak_path(d->path);
	return saver_write_view(d->saver, path, d->peak, ret_path);
}
