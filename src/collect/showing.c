/* What a session shows, and what it is told to do meanwhile; session.c takes in what comes, see session.h. */
#include "collect/watched.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/ticks.h"
#include "collect/touching.h"
#include "elf/modules.h"
#include "heap/heap.h"
#include "heap/view.h"
#include "probe/probe.h"
#include "target/target.h"
#include "unwind/unwind.h"

/* ---- seeing ---- */

static enum view_state view_state(const struct session *s)
{
	if (s->ended)
		return VIEW_EXITED;
	if (s->detached)
		return VIEW_DETACHED;
	return s->paused ? VIEW_PAUSED : VIEW_RUNNING;
}

struct view *session_publish(struct session *s, enum session_classes classes)
{
	size_t nhooks = s->probe->nhooks, nun = 0;
	struct view_unhooked *un = xcalloc(nhooks, sizeof(*un));

	for (size_t i = 0; i < nhooks; i++) {
		struct probe_hook *h = &s->probe->hooks[i];
		if (h->hooked)
			continue;
		const struct module *mod = module_get(s->mods, h->module);
		un[nun++] = (struct view_unhooked){
			h->name, mod ? mod->name : (char *)"", h->reason,
		};
	}
	struct view_info info = {
		.pid = target_pid(s->target),
		.command = (char *)target_command(s->target),
		.state = view_state(s),
		.probe = s->config.uprobe ? (char *)s->probe->ops->where(s->probe) : NULL,
		.exit_code = s->ended ? target_exit_code(s->target) : -1,
		.attached = s->attached,
		.exact = s->config.exact,
		.min_size = s->config.min_size,
		.auto_rate = s->control.on,
		.rate = s->control.rate,
		.overhead = s->control.overhead,
		.events = s->intake.events,
		.dropped = s->stats.dropped + s->stats.abandoned + s->stats.bad,
		.gap = s->stats.gap,
		.stacks = s->intake.allocs,
		.stacks_complete = s->intake.stacks_complete,
		.walked = s->stats.walked,
		.copied = s->stats.copied,
		.untracked = s->stats.no_slot,
		.rss = s->usage.rss,
		.memory = s->residence.memory,
		.faults = s->touching != NULL,
		.faults_why = s->faults_why,
		.res_off = s->residence.off,
		.threads = s->usage.threads,
		.pause = (float)s->pause_seconds,
		.nhooks = (uint32_t)(nhooks - nun),
		.unhooked = un,
		.nunhooked = nun,
	};
	_Static_assert(ARRAY_SIZE(info.ends) >= UNWIND_END_COUNT, "every end has its counter");
	memcpy(info.ends, s->intake.ends, sizeof(s->intake.ends));
	uint64_t now = ticks_to_ns(&s->clock, ticks_now());
	if (classes == SESSION_CLASSES_NONE)
		heap_forget_classes(s->heap);
	else
		heap_classify(s->heap, now, classes == SESSION_CLASSES_NOW);
	struct view *view = heap_publish(s->heap, &info, now);
	free(un);
	view->seq = ++s->views;
	return view;
}

/* ---- commands ---- */

void session_pause(struct session *s, bool paused)
{
	s->paused = paused;
	if (s->placed && !s->ended)
		err_free(s->probe->ops->set_active(s->probe, s->target, !paused));
}

void session_hush(struct session *s)
{
	s->hushed = true;
	if (s->placed && !s->ended)
		err_free(s->probe->ops->set_active(s->probe, s->target, false));
}

void session_set_rate(struct session *s, uint64_t rate)
{
	if (s->config.exact || !s->placed || s->ended)
		return;
	/* first: the agent mustn't raise a rate given by hand */
	err_free(s->probe->ops->set_raise(s->probe, s->target, !rate && !s->starting));
	control_set(&s->control, rate, s->probe, s->target);
}

void session_choose_threads(struct session *s, const char *which)
{
	s->config.thread = which;
	heap_choose_threads(s->heap, which);
}

void session_want_faults(struct session *s, bool want)
{
	s->config.faults = want;
	if (s->ended || s->detached || want == (s->touching != NULL))
		return;
	if (want) {
		session_open_faults(s);
		return;
	}
	const struct touching_of of = session_touching_of(s);
	struct touching_counts counts;
	touching_settle(s->touching, &of, monotonic_seconds(), true);
	counts = touching_counts(s->touching);
	s->faults_before.samples += counts.samples;
	s->faults_before.faults += counts.faults;
	touching_close(s->touching, s->heap);
	s->touching = NULL;
}

void session_want_res(struct session *s, bool want)
{
	s->config.no_res = !want;
	residence_want(&s->residence, want);
}

struct err *session_signal(struct session *s, int sig)
{
	int fd = session_pidfd(s);

	if (s->ended)
		return NULL;
	/* an attached process may have ended since, and its number be another's; a launched one's isn't before it is waited for */
	if (!(fd >= 0 ? syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0) : kill(target_pid(s->target), sig)))
		return NULL;
	struct err *err = errno == EPERM ?
		err_new(ERR_DENIED, "signal %d not sent: %d runs as another user, which takes root or CAP_KILL", sig,
			(int)target_pid(s->target)) :
		err_errno(errno, "signal %d not sent to %d", sig, (int)target_pid(s->target));
	log_line("%s", err->text);
	return err;
}

int session_pidfd(const struct session *s)
{
	return s->ended ? -1 : target_pidfd(s->target);
}

const char *session_why(const struct session *s)
{
	if (s->replaced)
		return "has executed another program: what was watched is gone; attach again to watch the new one";
	if (s->left)
		return "has executed a program with rights of its own (setuid, capabilities), which runs unwatched";
	return NULL;
}

int session_exit_code(const struct session *s)
{
	if (s->left && s->child)
		return -1;	/* it goes on */
	return s->ended && target_is_launched(s->target) ? target_exit_code(s->target) : -1;
}

struct target *session_target(const struct session *s)
{
	return s->target;
}

double session_cpu(const struct session *s)
{
	return s->usage.cpu;
}
