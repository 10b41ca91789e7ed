/*
 * The collector thread: runs one session, carries out commands, publishes views. See collect.h.
 *
 * Shared state is in struct collector under `lock`: the newest view, the state, the commands
 * wanted. The session itself is touched by the thread alone.
 */
#include "collect/collect.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/ticks.h"
#include "collect/session.h"
#include "heap/view.h"

#define STEP_IDLE_MS 20		/* between looks at the rings when nothing comes */
#define STEP_BUSY_MS 1		/* and while events come in */
#define STEP_QUIET_MS 50	/* and when nothing has come for a second */
#define DETACH_SECONDS 10.0

struct collector {
	struct collect_config config;
	pthread_t thread;
	struct session *session;	/* set before the start is reported, then constant */

	pthread_mutex_t lock;
	pthread_cond_t changed;		/* started, state or done_seq changed */
	int news_fd;			/* eventfd for readers: a view or the state is new */
	int wake_fd;			/* eventfd for the thread: a command is there */

	/* under lock */
	bool started;
	struct err *start_err;
	int start_exit;
	enum collect_state state;
	struct view *view;
	char *message;
	int exit_code;
	bool want_pause, want_pause_set;
	uint64_t want_rate;
	bool want_rate_set;
	double want_refresh;		/* 0: unchanged */
	int want_signal;
	bool want_detach, want_stop;
	uint64_t now_asked, now_done;	/* collector_view_now */
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

static void publish(struct collector *c)
{
	pthread_mutex_lock(&c->lock);
	uint64_t asked = c->now_asked;
	pthread_mutex_unlock(&c->lock);

	struct view *view = session_publish(c->session);

	pthread_mutex_lock(&c->lock);
	struct view *old = c->view;
	c->view = view;
	c->now_done = asked;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	view_unref(old);
	notify(c);
}

/* What the others want, taken over in one go. */
struct wants {
	bool pause_set, pause, rate_set, detach, stop, now;
	uint64_t rate;
	double refresh;
	int sig;
};

static struct wants take_wants(struct collector *c)
{
	pthread_mutex_lock(&c->lock);
	struct wants w = {
		.pause_set = c->want_pause_set, .pause = c->want_pause,
		.rate_set = c->want_rate_set, .rate = c->want_rate,
		.refresh = c->want_refresh, .sig = c->want_signal,
		.detach = c->want_detach, .stop = c->want_stop,
		.now = c->now_asked != c->now_done,
	};
	c->want_pause_set = c->want_rate_set = false;
	c->want_refresh = 0;
	c->want_signal = 0;
	pthread_mutex_unlock(&c->lock);
	return w;
}

static bool carry_out(struct collector *c, const struct wants *w)
{
	if (w->pause_set)
		session_pause(c->session, w->pause);
	if (w->rate_set)
		session_set_rate(c->session, w->rate);
	if (w->refresh > 0)
		c->config.refresh = w->refresh;
	if (w->sig)
		session_signal(c->session, w->sig);
	return w->detach || w->stop;
}

static void detach(struct collector *c)
{
	char *message = NULL;
	struct err *err = session_detach(c->session, &message);

	publish(c);
	if (err) {
		log_line("detach: %s", err->text);
		set_state(c, COLLECT_FAILED, xstrdup(err->text), -1);
		err_free(err);
	} else if (session_exit_code(c->session) >= 0 || !message) {
		/* its own end came first */
		set_state(c, COLLECT_EXITED, message, session_exit_code(c->session));
	} else {
		set_state(c, COLLECT_DETACHED, message, -1);
	}
}

static void ended(struct collector *c)
{
	char *message = NULL;

	if (session_replaced(c->session))
		message = xasprintf("process %d has executed another program: what was watched is gone; "
				    "attach again to watch the new one", (int)session_pid(c->session));
	publish(c);
	set_state(c, COLLECT_EXITED, message, session_exit_code(c->session));
}

/* After the end: views are still asked for (names came in, screens stay open). */
static void serve_after_end(struct collector *c)
{
	for (;;) {
		struct wants w = take_wants(c);
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
	struct pollfd p[3] = {
		{ .fd = c->wake_fd, .events = POLLIN },
		{ .fd = sigchld, .events = POLLIN },
		{ .fd = session_pidfd(c->session), .events = POLLIN },
	};

	if (poll(p, 3, timeout_ms) <= 0)
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
	double next = 0, busy = 0;

	for (;;) {
		struct wants w = take_wants(c);
		if (carry_out(c, &w)) {
			detach(c);
			return;
		}
		struct err *err = NULL;
		enum session_step step = session_step(c->session, &err);
		if (step == SESSION_ENDED) {
			ended(c);
			return;
		}
		if (step == SESSION_BROKEN) {
			publish(c);
			set_state(c, COLLECT_FAILED, xstrdup(err->text), -1);
			err_free(err);
			return;
		}
		double now = monotonic_seconds();
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
	struct session *session = NULL;
	int exit_code = 1;

	struct err *err = session_open(&c->config, &session, &exit_code);

	pthread_mutex_lock(&c->lock);
	c->session = session;
	c->start_err = err;
	c->start_exit = exit_code;
	c->started = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	if (err)
		return NULL;
	CLEANUP_CLOSE int sigchld = open_sigchld();
	run(c, sigchld);
	serve_after_end(c);
	return NULL;
}

static void collector_free(struct collector *c)
{
	session_close(c->session);
	view_unref(c->view);
	free(c->message);
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

struct err *collector_start(const struct collect_config *config, struct collector **ret,
			    int *ret_exit)
{
	struct collector *c = xcalloc(1, sizeof(*c));

	c->config = *config;
	c->exit_code = -1;
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
		c->session = NULL;
		collector_free(c);
		return err;
	}
	pthread_setname_np(c->thread, "collector");

	pthread_mutex_lock(&c->lock);
	while (!c->started)
		pthread_cond_wait(&c->changed, &c->lock);
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
	struct view *view = c->view ? view_ref(c->view) : NULL;
	pthread_mutex_unlock(&c->lock);
	return view;
}

int collector_fd(const struct collector *c)
{
	return c->news_fd;
}

struct view *collector_view_now(struct collector *c)
{
	pthread_mutex_lock(&c->lock);
	uint64_t mine = ++c->now_asked;
	wake(c);
	while (c->now_done < mine)
		pthread_cond_wait(&c->changed, &c->lock);
	struct view *view = view_ref(c->view);
	pthread_mutex_unlock(&c->lock);
	return view;
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
	return session_names(c->session);
}

const struct modules *collector_modules(const struct collector *c)
{
	return session_modules(c->session);
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

void collector_kill(struct collector *c, int sig)
{
	pthread_mutex_lock(&c->lock);
	c->want_signal = sig;
	pthread_mutex_unlock(&c->lock);
	wake(c);
}

static struct timespec deadline(double seconds)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += (time_t)seconds;
	return t;
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

struct err *collector_detach(struct collector *c)
{
	struct timespec until = deadline(DETACH_SECONDS);
	struct err *err = NULL;

	pthread_mutex_lock(&c->lock);
	c->want_detach = true;
	wake(c);
	while (c->state == COLLECT_RUNNING) {
		if (pthread_cond_timedwait(&c->changed, &c->lock, &until) == ETIMEDOUT) {
			err = err_new(ERR_BUSY, "process %d didn't let itself be stopped for %.0f "
				      "seconds: its hooks are still in place, inactive; attach "
				      "again to remove them", (int)session_pid(c->session),
				      DETACH_SECONDS);
			break;
		}
	}
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
	pthread_mutex_unlock(&c->lock);
	wake(c);
	pthread_join(c->thread, NULL);
	collector_free(c);
}
