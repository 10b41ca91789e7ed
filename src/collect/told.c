/* When to look at /proc again; see told.h. */
#include "collect/told.h"

#include <stddef.h>

#include "base/err.h"
#include "base/log.h"

#define SECONDS 1.0	/* between looks when nothing was told: what is unmapped never is */
/* So long after it things aren't over: a library's first mapping is told of, but its others and its relocations follow. */
#define MOMENT 0.5

struct sideband *told_open(void)
{
	struct sideband *ret;
	struct err *err = sideband_open(&ret);

	if (err)
		log_line("%s: mappings are looked at as often as is cheap", err->text);
	else
		log_line("perf_event tells what the program maps and executes, and of its threads");
	err_free(err);
	return ret;
}

void told_watch(struct told *t, pid_t pid)
{
	if (!t->sideband)
		return;
	sideband_watch(t->sideband, pid);
	t->pid = pid;
}

void told_deinit(struct told *t)
{
	if (t->pid)
		sideband_unwatch(t->sideband, t->pid);
	*t = (struct told){ 0 };
}

void told_step(struct told *t, double now)
{
	unsigned news = t->pid ? sideband_take(t->sideband, t->pid) : 0;

	if (news & SIDEBAND_CODE)
		t->code = now;
	if (news & SIDEBAND_EXEC)
		t->exec = now;
	if (news & SIDEBAND_THREADS)
		t->threads = now;
}

bool told_due(const struct told *t, enum sideband_news what, double now, double since, double interval)
{
	double last = what == SIDEBAND_EXEC ? t->exec : what == SIDEBAND_THREADS ? t->threads : t->code;

	if (t->pid && now - last > MOMENT && interval < SECONDS)
		interval = SECONDS;
	return since >= interval;
}
