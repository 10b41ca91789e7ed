/*
 * The collector thread: runs the sessions, carries out commands, publishes views. See collect.h; follow.c
 * has what becomes of a process.
 *
 * Shared state is in struct collector under `lock`: the newest views, the state, the commands
 * wanted. The sessions themselves are touched by the thread alone.
 */
#include "collect/collect.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/ending.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/ticks.h"
#include "collect/follow.h"
#include "collect/haste.h"
#include "collect/processes.h"
#include "collect/session.h"
#include "elf/modules.h"
#include "heap/view.h"
#include "symbol/names.h"

#define STEP_IDLE_MS 20		/* between looks at the rings when nothing comes */
#define STEP_BUSY_MS 1		/* and while events come in */
#define STEP_QUIET_MS 50	/* and when nothing has come for a second */
#define DETACH_SECONDS 10.0
#define ANSWER_SECONDS 10.0	/* the thread may take for a view before it counts as stuck, */
#define STUCK_SECONDS 1.0	/* and then */
#define START_LOOK_SECONDS 0.1	/* between looks whether the user has had enough of waiting for the start, */
#define START_GRACE_SECONDS 1.0	/* and how long it gets then */
#define LEAVE_LOOK_SECONDS 0.05	/* between looks for a signal to end while a view is waited for */
#define HASTE_SECONDS 0.5	/* of the processor's, after getting in: until the first rush is over */

struct published {
	struct view *sum;
	struct process_list *list;
	struct view **views;		/* one for each in the list */
};

struct signal_wanted {
	uint32_t id;			/* of a process, or COLLECT_SUM */
	int sig;
};

struct collector {
	struct collect_config config;
	pthread_t thread;
	struct follow *follow;		/* the thread's */
	struct modules *modules;	/* of all processes */
	struct names *names;
	pid_t first_pid;		/* set before the start is reported, then constant */
	char *refusals;			/* the same */

	pthread_mutex_t lock;
	pthread_cond_t changed;		/* started, state or done_seq changed */
	int news_fd;			/* eventfd for readers: a view or the state is new */
	int wake_fd;			/* eventfd for the thread: a command is there */

	/* under lock */
	struct haste haste;		/* of the thread */
	bool leaving;			/* it shall stay on; atomic: read without the lock, too */
	int launching;			/* pidfd of the program that is being started; -1: none */
	bool stuck;			/* the thread doesn't answer: it isn't waited for any more */
	bool started;
	struct err *start_err;
	int start_exit;
	enum collect_state state;
	struct published newest;
	char *message;
	char *refused;			/* NULL: nothing since it was asked for */
	int exit_code;
	bool want_pause, want_pause_set;
	uint64_t want_rate;
	bool want_rate_set;
	double want_refresh;		/* 0: unchanged */
	struct signal_wanted *want_signals;	/* in the order of asking */
	size_t nsignals, signals_cap;
	char *want_threads;
	bool want_threads_set;
	bool want_detach, want_stop;
	uint64_t now_asked, now_done;	/* collector_view_now */
	uint64_t whole_asked;		/* the newest of them that wants classes */
	bool want_classes;
	int want_faults, want_res;	/* 1, 0; -1: as it is */
};

static void notify(struct collector *c)
{
	uint64_t one = 1;
	ssize_t n = write(c->news_fd, &one, sizeof(one));

	(void)n;	/* a full counter is readable too */
}

static void wake(struct collector *c)
{
	uint64_t one = 1;
	ssize_t n = write(c->wake_fd, &one, sizeof(one));

	(void)n;
}

static void hurry(struct collector *c, bool on)
{
	pthread_mutex_lock(&c->lock);
	if (on)
		haste_begin(&c->haste);
	else if (!c->leaving)
		haste_end(&c->haste);
	pthread_mutex_unlock(&c->lock);
}

static void set_state(struct collector *c, enum collect_state state, char *message, int exit_code)
{
	pthread_mutex_lock(&c->lock);
	c->state = state;
	if (message) {
		free(c->message);
		c->message = message;
	}
	if (exit_code >= 0)
		c->exit_code = exit_code;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	notify(c);
}

static void published_deinit(struct published *p)
{
	for (size_t i = 0; p->list && i < p->list->n; i++)
		view_unref(p->views[i]);
	free(p->views);
	process_list_unref(p->list);
	view_unref(p->sum);
}

static void publish(struct collector *c)
{
	pthread_mutex_lock(&c->lock);
	uint64_t asked = c->now_asked;
	enum session_classes classes = c->whole_asked > c->now_done ? SESSION_CLASSES_NOW
		: c->want_classes ? SESSION_CLASSES_SOME : SESSION_CLASSES_NONE;
	pthread_mutex_unlock(&c->lock);

	struct processes *ps = follow_processes(c->follow);
	processes_publish(ps, classes);
	struct published fresh = { processes_sum(ps), processes_list(ps), NULL };
	fresh.views = xcalloc(fresh.list->n + 1, sizeof(*fresh.views));
	for (size_t i = 0; i < fresh.list->n; i++)
		fresh.views[i] = view_ref(processes_by_id(ps, fresh.list->p[i].id)->view);

	pthread_mutex_lock(&c->lock);
	struct published old = c->newest;
	c->newest = fresh;
	c->now_done = asked;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	published_deinit(&old);
	notify(c);
}

/* What the others want, taken over in one go. */
struct wants {
	bool pause_set, pause, rate_set, detach, stop, now, leaving;
	uint64_t rate;
	double refresh;
	struct signal_wanted *signals;	/* owned */
	size_t nsignals;
	int faults, res;		/* 1, 0; -1: as before */
	bool threads_set;
	char *threads;			/* owned */
};

static struct wants take_wants(struct collector *c)
{
	pthread_mutex_lock(&c->lock);
	struct wants w = {
		.pause_set = c->want_pause_set, .pause = c->want_pause,
		.rate_set = c->want_rate_set, .rate = c->want_rate,
		.refresh = c->want_refresh, .signals = c->want_signals, .nsignals = c->nsignals,
		.detach = c->want_detach, .stop = c->want_stop, .leaving = c->leaving,
		.now = c->now_asked != c->now_done,
		.threads_set = c->want_threads_set, .threads = c->want_threads,
		.faults = c->want_faults, .res = c->want_res,
	};
	c->want_faults = c->want_res = -1;
	c->want_threads_set = false;
	c->want_threads = NULL;
	c->want_pause_set = c->want_rate_set = false;
	c->want_refresh = 0;
	c->want_signals = NULL;
	c->nsignals = c->signals_cap = 0;
	pthread_mutex_unlock(&c->lock);
	return w;
}

static void choose_threads(struct collector *c, struct wants *w)
{
	if (w->threads_set)
		follow_choose_threads(c->follow, w->threads);
	w->now = w->now || w->threads_set;
	free(w->threads);
}

/* What was asked for can't be: for whoever has asked. */
static void refuse(struct collector *c, struct err *err)
{
	if (!err)
		return;
	pthread_mutex_lock(&c->lock);
	free(c->refused);
	c->refused = xstrdup(err->text);
	pthread_mutex_unlock(&c->lock);
	notify(c);
	err_free(err);
}

static bool carry_out(struct collector *c, struct wants *w)
{
	choose_threads(c, w);
	if (w->pause_set)
		follow_pause(c->follow, w->pause);
	if (w->leaving)
		follow_hush(c->follow);
	if (w->rate_set)
		follow_set_rate(c->follow, w->rate);
	if (w->faults >= 0)
		follow_want_faults(c->follow, w->faults);
	if (w->res >= 0)
		follow_want_res(c->follow, w->res);
	if (w->refresh > 0)
		c->config.refresh = w->refresh;
	for (size_t i = 0; i < w->nsignals; i++)
		refuse(c, follow_signal(c->follow, w->signals[i].id, w->signals[i].sig));
	free(w->signals);
	return w->detach || w->stop;
}

static void detach(struct collector *c)
{
	char *message = NULL;

	collector_hurry(c);
	struct err *err = follow_detach(c->follow, &message);
	int exit_code = follow_exit_code(c->follow);

	publish(c);
	if (err) {
		log_line("detach: %s", err->text);
		set_state(c, COLLECT_FAILED, xstrdup(err->text), -1);
		err_free(err);
	} else if (exit_code >= 0 || !message) {
		/* its own end came first */
		set_state(c, COLLECT_EXITED, message, exit_code);
	} else {
		set_state(c, COLLECT_DETACHED, message, -1);
	}
}

/* After the end: views are still asked for (names came in, screens stay open), of other threads perhaps. */
static void serve_after_end(struct collector *c)
{
	for (;;) {
		struct wants w = take_wants(c);
		choose_threads(c, &w);
		if (w.stop)
			return;
		if (w.now)
			publish(c);
		uint64_t n;
		struct pollfd p = { .fd = c->wake_fd, .events = POLLIN };
		poll(&p, 1, -1);
		ssize_t got = read(c->wake_fd, &n, sizeof(n));
		(void)got;
	}
}

static void wait_for_something(struct collector *c, int sigchld, int timeout_ms)
{
	size_t npids;
	struct pollfd *p = follow_polls(c->follow, 2, &npids);

	p[0] = (struct pollfd){ .fd = c->wake_fd, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = sigchld, .events = POLLIN };
	if (poll(p, 2 + npids, timeout_ms) <= 0)
		return;
	if (p[0].revents) {
		uint64_t n;
		ssize_t got = read(c->wake_fd, &n, sizeof(n));
		(void)got;
	}
	if (p[1].revents) {
		struct signalfd_siginfo info;
		while (read(sigchld, &info, sizeof(info)) == sizeof(info))
			;
	}
}

static void run(struct collector *c, int sigchld)
{
	double next = 0, busy = 0, enough = thread_cpu_seconds() + HASTE_SECONDS;
	bool entering = true;
	double resume = c->config.delay_start > 0 ? monotonic_seconds() + c->config.delay_start : 0;

	for (;;) {
		struct wants w = take_wants(c);
		if (resume && (w.pause_set || monotonic_seconds() >= resume)) {
			if (!w.pause_set)
				follow_pause(c->follow, false);
			resume = 0;
		}
		if (carry_out(c, &w)) {
			detach(c);
			return;
		}
		struct err *err = NULL;
		enum session_step step = follow_step(c->follow, &err);
		if (step == SESSION_ENDED) {
			publish(c);
			set_state(c, COLLECT_EXITED, follow_farewell(c->follow), follow_exit_code(c->follow));
			return;
		}
		if (step == SESSION_BROKEN) {
			publish(c);
			set_state(c, COLLECT_FAILED, xstrdup(err->text), -1);
			err_free(err);
			return;
		}
		double now = monotonic_seconds();
		if (entering && thread_cpu_seconds() >= enough) {
			hurry(c, false);
			entering = false;
		}
		if (now >= next || w.now) {
			publish(c);
			next = now + c->config.refresh;
		}
		if (step != SESSION_IDLE)
			busy = now;
		wait_for_something(c, sigchld, step == SESSION_AT_ONCE ? 0
				   : step == SESSION_BUSY ? STEP_BUSY_MS
				   : now - busy < 1 ? STEP_IDLE_MS : STEP_QUIET_MS);
	}
}

/* SIGCHLD is how the kernel announces stops of a launched program: seen through a descriptor. */
static int open_sigchld(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static void *collector_main(void *arg)
{
	struct collector *c = arg;
	int exit_code = 1;

	haste_init(&c->haste);
	if (c->config.npids)	/* else a program is to be forked from this thread */
		hurry(c, true);
	struct err *err = follow_open(c->follow, &c->refusals, &exit_code);

	pthread_mutex_lock(&c->lock);
	c->first_pid = err ? 0 : follow_processes(c->follow)->list[0]->pid;
	c->start_err = err;
	c->start_exit = exit_code;
	c->started = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	if (!err) {
		CLEANUP_CLOSE int sigchld = open_sigchld();
		run(c, sigchld);
		serve_after_end(c);
	}
	follow_destroy(c->follow);	/* on the thread that traces */
	return NULL;
}

/* On the thread, while all others wait for the program's start. */
static void note_launched(void *ctx, pid_t pid)
{
	struct collector *c = ctx;

	pthread_mutex_lock(&c->lock);
	c->launching = (int)syscall(SYS_pidfd_open, pid, 0);
	pthread_mutex_unlock(&c->lock);
}

static void collector_free(struct collector *c)
{
	if (c->launching >= 0)
		close(c->launching);
	names_destroy(c->names);
	published_deinit(&c->newest);
	modules_destroy(c->modules);
	free(c->refusals);
	free(c->want_threads);
	free(c->want_signals);
	free(c->message);
	free(c->refused);
	close(c->news_fd);
	close(c->wake_fd);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static void init_cond(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

static struct timespec deadline(double seconds)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
	t.tv_sec += (time_t)seconds + t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

/*
 * Under lock. The look-ups in the files of a process that is attached to may take seconds: they are broken off when heaptop
 * is told to end. A program may never get to its start: it has been stopped by a signal, or its dynamic linker waits
 * for a file. Nothing of it has run yet: it is killed then, if it still isn't there a moment after heaptop was told.
 */
static void wait_for_start(struct collector *c)
{
	double told = 0;

	while (!c->started) {
		struct timespec until = deadline(START_LOOK_SECONDS);
		pthread_cond_timedwait(&c->changed, &c->lock, &until);
		double now = monotonic_seconds();
		if (!told && ending_pending())
			told = now;
		bool enough = told && (c->config.npids || now - told > START_GRACE_SECONDS);
		if (enough)
			ending_break_off();
		if (enough && c->launching >= 0)
			syscall(SYS_pidfd_send_signal, c->launching, SIGKILL, NULL, 0);
	}
}

struct err *collector_start(const struct collect_config *config, struct collector **ret,
			    int *ret_exit)
{
	struct collector *c = xcalloc(1, sizeof(*c));

	c->want_faults = c->want_res = c->launching = -1;

	c->config = *config;
	c->config.launch.forked = note_launched;
	c->config.launch.ctx = c;
	c->config.leaving = &c->leaving;
	c->exit_code = -1;
	c->modules = modules_create();
	c->names = names_create(c->modules);
	c->follow = follow_create(&c->config, c->modules);
	pthread_mutex_init(&c->lock, NULL);
	init_cond(&c->changed);
	c->news_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	c->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	*ret_exit = 1;
	struct err *err = NULL;
	if (c->news_fd < 0 || c->wake_fd < 0)
		err = err_errno(errno, "eventfd");
	int rc = err ? 0 : pthread_create(&c->thread, NULL, collector_main, c);
	if (!err && rc)
		err = err_errno(rc, "can't start a thread");
	if (err) {
		follow_destroy(c->follow);
		collector_free(c);
		return err;
	}
	pthread_setname_np(c->thread, "collector");

	pthread_mutex_lock(&c->lock);
	wait_for_start(c);
	err = c->start_err;
	*ret_exit = c->start_exit;
	pthread_mutex_unlock(&c->lock);
	if (err) {
		pthread_join(c->thread, NULL);
		collector_free(c);
		return err;
	}
	*ret = c;
	return NULL;
}

struct view *collector_view(struct collector *c)
{
	pthread_mutex_lock(&c->lock);
	struct view *view = c->newest.sum ? view_ref(c->newest.sum) : NULL;
	pthread_mutex_unlock(&c->lock);
	return view;
}

struct view *collector_process_view(struct collector *c, uint32_t id)
{
	struct view *view = NULL;

	if (id == COLLECT_SUM)
		return collector_view(c);
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; c->newest.list && i < c->newest.list->n && !view; i++)
		if (c->newest.list->p[i].id == id)
			view = view_ref(c->newest.views[i]);
	pthread_mutex_unlock(&c->lock);
	return view;
}

struct process_list *collector_processes(struct collector *c)
{
	struct process_list *list;

	pthread_mutex_lock(&c->lock);
	if (c->newest.list) {
		list = c->newest.list;
		__atomic_add_fetch(&list->refs, 1, __ATOMIC_RELAXED);
	} else {
		list = xcalloc(1, sizeof(*list));
		list->refs = 1;
	}
	pthread_mutex_unlock(&c->lock);
	return list;
}

const char *collector_refusals(const struct collector *c)
{
	return c->refusals ? c->refusals : "";
}

int collector_fd(const struct collector *c)
{
	return c->news_fd;
}

/* Under lock. */
static void leave_soon(struct collector *c)
{
	__atomic_store_n(&c->leaving, true, __ATOMIC_RELAXED);
	haste_begin(&c->haste);
}

/*
 * Under lock: a round of the waiting for something to change. Who waits doesn't see a signal to end, where it is taken
 * from a descriptor later; the thread shall know of it at once. (By SIGINT a launched program ends, or doesn't.)
 */
static int wait_watchful(struct collector *c, const struct timespec *until)
{
	struct timespec soon = deadline(LEAVE_LOOK_SECONDS);
	bool first = soon.tv_sec < until->tv_sec || (soon.tv_sec == until->tv_sec && soon.tv_nsec < until->tv_nsec);
	int rc = pthread_cond_timedwait(&c->changed, &c->lock, first ? &soon : until);
	int sig = ending_pending();

	if (sig && (c->config.npids || sig != SIGINT))
		leave_soon(c);
	return first ? 0 : rc;
}

static struct view *view_now(struct collector *c, bool whole)
{
	pthread_mutex_lock(&c->lock);
	uint64_t mine = ++c->now_asked;
	if (whole)
		c->whole_asked = mine;
	wake(c);
	/* a thread that is kept in the kernel by what a target does keeps nobody else: what was seen last must do then */
	struct timespec until = deadline(c->stuck ? STUCK_SECONDS : ANSWER_SECONDS);
	int rc = 0;
	while (c->now_done < mine && !rc)
		rc = c->newest.sum ? wait_watchful(c, &until) : pthread_cond_wait(&c->changed, &c->lock);
	c->stuck = c->now_done < mine;
	struct view *view = view_ref(c->newest.sum);
	pthread_mutex_unlock(&c->lock);
	return view;
}

struct view *collector_view_now(struct collector *c)
{
	return view_now(c, false);
}

struct view *collector_view_whole(struct collector *c)
{
	return view_now(c, true);
}

enum collect_state collector_state(const struct collector *c)
{
	struct collector *m = (struct collector *)c;

	pthread_mutex_lock(&m->lock);
	enum collect_state state = m->state;
	pthread_mutex_unlock(&m->lock);
	return state;
}

int collector_exit_code(const struct collector *c)
{
	struct collector *m = (struct collector *)c;

	pthread_mutex_lock(&m->lock);
	int code = m->exit_code;
	pthread_mutex_unlock(&m->lock);
	return code;
}

const char *collector_message(const struct collector *c)
{
	/* set once, when the thread is past changing it */
	return c->message ? c->message : "";
}

struct names *collector_names(const struct collector *c)
{
	return c->names;
}

const struct modules *collector_modules(const struct collector *c)
{
	return c->modules;
}

void collector_pause(struct collector *c, bool paused)
{
	pthread_mutex_lock(&c->lock);
	c->want_pause = paused;
	c->want_pause_set = true;
	pthread_mutex_unlock(&c->lock);
	wake(c);
}

void collector_set_rate(struct collector *c, uint64_t rate)
{
	pthread_mutex_lock(&c->lock);
	c->want_rate = rate;
	c->want_rate_set = true;
	pthread_mutex_unlock(&c->lock);
	wake(c);
}

void collector_set_refresh(struct collector *c, double seconds)
{
	pthread_mutex_lock(&c->lock);
	c->want_refresh = seconds;
	pthread_mutex_unlock(&c->lock);
	wake(c);
}

void collector_want_classes(struct collector *c, bool want)
{
	pthread_mutex_lock(&c->lock);
	if (want && !c->want_classes)
		c->now_asked++;		/* a screen waits for the first of them */
	c->want_classes = want;
	pthread_mutex_unlock(&c->lock);
	wake(c);
}

void collector_want_faults(struct collector *c, bool want)
{
	pthread_mutex_lock(&c->lock);
	c->want_faults = want;
	c->now_asked++;
	pthread_mutex_unlock(&c->lock);
	wake(c);
}

void collector_want_res(struct collector *c, bool want)
{
	pthread_mutex_lock(&c->lock);
	c->want_res = want;
	c->now_asked++;
	pthread_mutex_unlock(&c->lock);
	wake(c);
}

void collector_choose_threads(struct collector *c, const char *which)
{
	pthread_mutex_lock(&c->lock);
	free(c->want_threads);
	c->want_threads = which ? xstrdup(which) : NULL;
	c->want_threads_set = true;
	pthread_mutex_unlock(&c->lock);
	wake(c);
}

void collector_kill(struct collector *c, uint32_t id, int sig)
{
	pthread_mutex_lock(&c->lock);
	VEC_GROW(c->want_signals, c->nsignals, c->signals_cap);
	c->want_signals[c->nsignals++] = (struct signal_wanted){ id, sig };
	pthread_mutex_unlock(&c->lock);
	wake(c);
}

char *collector_refused(struct collector *c)
{
	pthread_mutex_lock(&c->lock);
	char *ret = c->refused;
	c->refused = NULL;
	pthread_mutex_unlock(&c->lock);
	return ret;
}

bool collector_wait_end(struct collector *c, double seconds)
{
	struct timespec until = deadline(seconds);
	int rc = 0;

	pthread_mutex_lock(&c->lock);
	while (c->state == COLLECT_RUNNING && !rc)
		rc = pthread_cond_timedwait(&c->changed, &c->lock, &until);
	bool ended = c->state == COLLECT_EXITED;
	pthread_mutex_unlock(&c->lock);
	return ended;
}

void collector_hurry(struct collector *c)
{
	pthread_mutex_lock(&c->lock);
	leave_soon(c);
	pthread_mutex_unlock(&c->lock);
}

struct err *collector_detach(struct collector *c)
{
	struct err *err = NULL;

	collector_hurry(c);
	pthread_mutex_lock(&c->lock);
	/* in full also where it counts as stuck: beside a busy program it may only be slow, and hooks would stay */
	struct timespec until = deadline(DETACH_SECONDS);
	c->want_detach = true;
	wake(c);
	while (c->state == COLLECT_RUNNING) {
		if (pthread_cond_timedwait(&c->changed, &c->lock, &until) == ETIMEDOUT) {
			err = err_new(ERR_BUSY, "process %d didn't let itself be stopped for %.0f "
				      "seconds: its hooks are still in place, inactive; attach "
				      "again to remove them", (int)c->first_pid,
				      DETACH_SECONDS);
			break;
		}
	}
	c->stuck = err != NULL;
	if (!err && c->state == COLLECT_FAILED)
		err = err_new(ERR_OTHER, "%s", c->message);
	pthread_mutex_unlock(&c->lock);
	return err;
}

void collector_destroy(struct collector *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->want_stop = true;
	bool stuck = c->stuck;
	pthread_mutex_unlock(&c->lock);
	wake(c);
	if (stuck) {
		/* It ends with heaptop, which harms no target at any instant; until then all that it uses stays. */
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += (time_t)STUCK_SECONDS;
		if (pthread_timedjoin_np(c->thread, NULL, &until))
			return;
	} else {
		pthread_join(c->thread, NULL);
	}
	collector_free(c);
}
