/* See dump.h. */
#include "dump.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "collect/collect.h"
#include "heap/view.h"
#include "saver.h"

#define EVERY_MIN 0.1		/* seconds */
#define EVERY_MAX 1e7

struct dumper {
	struct dump_times times;
	const char *path;
	struct collector *c;
	struct saver *saver;
	int timer;		/* -1: none */
	struct view *peak;	/* the view with most live bytes so far; its reference keeps what differs from the next alone */
};

static struct err *parse_word(const char *word, struct dump_times *times)
{
	if (!strcmp(word, "exit"))
		times->exit = true;
	else if (!strcmp(word, "peak"))
		times->peak = true;
	else if (!strcmp(word, "signal"))
		times->on_signal = true;
	else if (strncmp(word, "every=", 6))
		return err_new(ERR_BAD_INPUT, "'%s' is none of peak, exit, every=TIME, signal", word);
	else if (!text_parse_time(word + 6, &times->every) || times->every < EVERY_MIN || times->every > EVERY_MAX)
		return err_new(ERR_BAD_INPUT, "'%s' is no time such as 10s or 5m", word + 6);
	return NULL;
}

struct err *dump_parse(const char *list, struct dump_times *ret)
{
	CLEANUP_FREE char *copy = xstrdup(list);
	struct dump_times times = { 0 };
	char *save = NULL;
	bool any = false;

	for (char *word = strtok_r(copy, ", ", &save); word; word = strtok_r(NULL, ", ", &save)) {
		struct err *err = parse_word(word, &times);
		if (err)
			return err;
		any = true;
	}
	if (!any)
		return err_new(ERR_BAD_INPUT, "give some of peak, exit, every=TIME, signal");
	*ret = times;
	return NULL;
}

bool dump_goes_on(const struct dump_times *times)
{
	return times->peak || times->on_signal || times->every > 0;
}

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
