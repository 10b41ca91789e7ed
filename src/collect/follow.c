/* Which processes are watched; see follow.h. */
#include "collect/follow.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/ending.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/ticks.h"
#include "collect/processes.h"
#include "collect/told.h"
#include "elf/modules.h"
#include "probe/uprobe_pool.h"
#include "target/faults_kernel.h"
#include "target/target.h"

#define NEWS_MAX 1000		/* reports in a row before the rings are looked at again */

struct follow {
	struct collect_config config;	/* as new processes get it */
	struct session_place place;
	struct ticks_clock clock;
	struct processes ps;
	int exit_code;			/* of the launched program; -1: not known */
	struct pollfd *polls;
	size_t polls_cap;
	char *thread;			/* chosen by a command, or NULL */
};

struct follow *follow_create(const struct collect_config *config, struct modules *modules)
{
	struct follow *f = xcalloc(1, sizeof(*f));

	f->config = *config;
	f->exit_code = -1;
	f->place = (struct session_place){
		.modules = modules, .family = target_family_create(), .clock = &f->clock,
		.uprobes = config->uprobe ? uprobe_pool_create((enum uprobe_way)config->uprobe_way) : NULL,
		.faults_code = faults_code_create(),
	};
	/* now, while nothing runs yet */
	if (config->faults)
		faults_code_prepare(f->place.faults_code);
	processes_init(&f->ps);
	return f;
}

void follow_destroy(struct follow *f)
{
	if (!f)
		return;
	processes_deinit(&f->ps);
	target_family_destroy(f->place.family);
	uprobe_pool_destroy(f->place.uprobes);
	sideband_close(f->place.sideband);
	faults_code_destroy(f->place.faults_code);
	free(f->polls);
	free(f->thread);
	free(f);
}

static bool launched(const struct follow *f)
{
	return !f->config.npids;
}

/* ---- getting in ---- */

static struct err *open_one(struct follow *f, pid_t pid, struct session **ret, int *ret_exit)
{
	*ret = NULL;
	struct err *err = session_open(&f->config, &f->place, pid, ret, ret_exit);

	f->config.record = NULL;	/* the first one's stacks */
	return err;
}

static void keep_all(struct follow *f)
{
	for (size_t i = 0; i < f->ps.n; i++)
		if (!f->ps.list[i]->over && f->ps.list[i]->session)
			session_keep(f->ps.list[i]->session);
}

static struct err *begin_one(struct follow *f, struct session *s)
{
	keep_all(f);
	struct err *err = session_begin(s, &f->place);

	if (!err)
		processes_add(&f->ps, 0, session_target(s), s);
	return err;
}

struct err *follow_open(struct follow *f, char **ret_refusals, int *ret_exit)
{
	struct err *refused = NULL;

	*ret_refusals = NULL;
	ticks_clock_init(&f->clock);
	/* the agent's lease is renewed all the time anyway, and its owner may lack the rights */
	if (f->config.uprobe)
		f->place.sideband = told_open();
	size_t n = launched(f) ? 1 : f->config.npids;
	CLEANUP_FREE struct session **opened = xcalloc(n, sizeof(struct session *));
	for (size_t i = 0; i < n && !ending_broken_off(); i++)
		refused = err_join(refused, open_one(f, launched(f) ? 0 : f->config.pids[i], &opened[i], ret_exit));
	for (size_t i = 0; i < n; i++)
		if (opened[i] && ending_broken_off())
			session_close(opened[i]);
		else if (opened[i])
			refused = err_join(refused, begin_one(f, opened[i]));
	if (!f->ps.n && ending_broken_off() && !launched(f)) {
		err_free(refused);
		return err_new(ERR_INTERRUPTED, "interrupted before anything was watched: nothing of heaptop is left in %s",
			       n > 1 ? "the processes" : "the process");
	}
	if (!f->ps.n)
		return refused;
	/* the others go on */
	if (refused)
		*ret_refusals = xasprintf("%s\n", refused->text);
	err_free(refused);
	return NULL;
}

/* ---- children ---- */

/* The heap that a process works in: its own, or that of who made it by vfork. */
static struct process *with_heap(struct follow *f, struct process *p)
{
	while (p && !p->session)
		p = p->parent ? processes_by_id(&f->ps, p->parent) : NULL;
	return p && !p->over ? p : NULL;
}

static struct process *add_child(struct follow *f, struct target *t)
{
	struct process *parent = processes_by_pid(&f->ps, target_parent(t));

	return processes_add(&f->ps, parent ? parent->id : f->ps.list[0]->id, t, NULL);
}

static void born(struct follow *f, struct process *p)
{
	struct process *parent = with_heap(f, p);
	struct err *err = NULL;

	if (parent)
		err = session_open_forked(parent->session, &f->place, p->target, &p->session);
	if (err) {
		log_line("process %d isn't watched: %s", (int)p->pid, err->text);
		err_free(err);
	}
	err_free(p->session ? session_resume(p->session) : target_resume(p->target));
}

static void executed(struct follow *f, struct process *p)
{
	struct err *err = session_open_image(&f->config, &f->place, p->target, &p->session);

	if (err) {
		log_line("process %d isn't watched: %s", (int)p->pid, err->text);
		err_free(err);
	}
	err_free(p->session ? session_resume(p->session) : target_resume(p->target));
}

/* News of a process without a heap. */
static void bare_news(struct follow *f, struct process *p)
{
	for (;;) {
		switch (target_poll(p->target)) {
		case TARGET_BORN:
			born(f, p);
			return;
		case TARGET_EXEC:
			executed(f, p);
			return;
		case TARGET_EXITING:
			continue;	/* which lets it go */
		case TARGET_EXITED:
		case TARGET_LEFT:
			processes_end(&f->ps, p, VIEW_EXITED, -1, NULL);
			return;
		case TARGET_NOTHING:
			return;
		}
	}
}

/* ---- ends ---- */

static void ended(struct follow *f, struct process *p)
{
	int code = session_exit_code(p->session);

	if (p->id == 1 && launched(f))
		f->exit_code = code;
	const char *why = session_why(p->session);
	processes_end(&f->ps, p, why && code < 0 ? VIEW_DETACHED : VIEW_EXITED, code,
		      why ? xasprintf("process %d %s", (int)p->pid, why) : NULL);
}

/* A step's result, of one of them. */
static enum session_step stepped(struct follow *f, struct process *p, enum session_step step, struct err *err,
				 struct err **ret_err)
{
	if (step == SESSION_ENDED)
		ended(f, p);
	if (step != SESSION_BROKEN)
		return step;
	if (!p->parent && f->ps.n == 1) {
		*ret_err = err;
		return step;
	}
	processes_end(&f->ps, p, VIEW_DETACHED, -1, xstrdup(err->text));
	err_free(err);
	return SESSION_BUSY;
}

static bool roots_over(const struct follow *f)
{
	for (size_t i = 0; i < f->ps.n && !f->ps.list[i]->parent; i++)
		if (!f->ps.list[i]->over)
			return false;
	return true;
}

/* Of one that is still held; its last view is taken. */
static struct err *let_go(struct follow *f, struct process *p, char **ret_message)
{
	struct err *err = NULL;

	*ret_message = NULL;
	if (p->session) {
		err = session_detach(p->session, ret_message);
		if (!*ret_message && !err) {
			ended(f, p);
			return NULL;
		}
	}
	processes_end(&f->ps, p, VIEW_DETACHED, -1, err ? xstrdup(err->text) : NULL);
	return err;
}

static struct process *next_held(struct follow *f)
{
	for (size_t i = 0; i < f->ps.n; i++)
		if (!f->ps.list[i]->over)
			return f->ps.list[i];
	return NULL;
}

struct err *follow_detach(struct follow *f, char **ret_message)
{
	struct err *first = NULL;
	struct process *p;
	size_t n = 0;

	*ret_message = NULL;
	while ((p = next_held(f))) {
		char *message;
		keep_all(f);
		struct err *err = let_go(f, p, &message);
		n += message != NULL;
		if (!*ret_message)
			*ret_message = message;
		else
			free(message);
		if (!first)
			first = err;
		else
			err_free(err);
	}
	if (n > 1) {
		free(*ret_message);
		*ret_message = xasprintf("detached from %zu processes: hooks removed, their code is identical to "
					 "its files", n);
	}
	return first;
}

/* ---- step ---- */

static enum session_step worst(enum session_step a, enum session_step b)
{
	return a == SESSION_AT_ONCE || b == SESSION_AT_ONCE ? SESSION_AT_ONCE
		: a == SESSION_BUSY || b == SESSION_BUSY ? SESSION_BUSY : SESSION_IDLE;
}

/* Whoever waits for us first. */
static enum session_step take_news(struct follow *f, struct err **ret_err)
{
	enum session_step ret = SESSION_IDLE;
	struct target *t;

	for (int i = 0; i < NEWS_MAX && (t = target_family_news(f->place.family)); i++) {
		struct process *p = processes_by_target(&f->ps, t);
		struct err *err = NULL;
		if (!p)
			p = add_child(f, t);
		if (!p->session) {
			bare_news(f, p);
			ret = SESSION_BUSY;
			continue;
		}
		enum session_step step = session_news(p->session, &err);
		step = stepped(f, p, step, err, ret_err);
		if (step == SESSION_BROKEN || roots_over(f))
			return step;
		ret = worst(ret, step);
	}
	return ret;
}

enum session_step follow_step(struct follow *f, struct err **ret_err)
{
	enum session_step ret = take_news(f, ret_err);

	for (size_t i = 0; i < f->ps.n && ret != SESSION_BROKEN && !roots_over(f); i++) {
		struct process *p = f->ps.list[i];
		struct err *err = NULL;
		if (p->over || !p->session)
			continue;
		enum session_step step = session_step(p->session, &err);
		step = stepped(f, p, step, err, ret_err);
		ret = step == SESSION_BROKEN ? step : worst(ret, step);
		if (i >= f->ps.n || f->ps.list[i] != p)
			i--;	/* it is gone from the list */
	}
	if (ret == SESSION_BROKEN || !roots_over(f))
		return ret;
	/* children go on alone, as they would without us */
	char *message;
	err_free(follow_detach(f, &message));
	free(message);
	return SESSION_ENDED;
}

struct processes *follow_processes(struct follow *f)
{
	return &f->ps;
}

int follow_exit_code(const struct follow *f)
{
	return f->exit_code;
}

char *follow_farewell(const struct follow *f)
{
	const char *why = f->ps.n ? f->ps.list[0]->why : NULL;

	return why ? xstrdup(why) : NULL;
}

struct pollfd *follow_polls(struct follow *f, size_t before, size_t *ret_n)
{
	size_t n = before;

	for (size_t i = 0; i < before + f->ps.n; i++)
		VEC_GROW(f->polls, i, f->polls_cap);
	for (size_t i = 0; i < f->ps.n; i++) {
		const struct process *p = f->ps.list[i];
		int fd = p->session && !p->over ? session_pidfd(p->session) : -1;
		if (fd >= 0)
			f->polls[n++] = (struct pollfd){ .fd = fd, .events = POLLIN };
	}
	*ret_n = n - before;
	return f->polls;
}

/* ---- commands ---- */

void follow_pause(struct follow *f, bool paused)
{
	f->config.paused = paused;
	for (size_t i = 0; i < f->ps.n; i++)
		if (f->ps.list[i]->session)
			session_pause(f->ps.list[i]->session, paused);
}

void follow_hush(struct follow *f)
{
	for (size_t i = 0; i < f->ps.n; i++)
		if (f->ps.list[i]->session)
			session_hush(f->ps.list[i]->session);
}

void follow_set_rate(struct follow *f, uint64_t rate)
{
	f->config.auto_rate = !rate;
	if (rate)
		f->config.rate = rate;
	for (size_t i = 0; i < f->ps.n; i++)
		if (f->ps.list[i]->session)
			session_set_rate(f->ps.list[i]->session, rate);
}

void follow_choose_threads(struct follow *f, const char *which)
{
	char *copy = which ? xstrdup(which) : NULL;

	f->config.thread = copy;
	for (size_t i = 0; i < f->ps.n; i++)
		if (f->ps.list[i]->session)
			session_choose_threads(f->ps.list[i]->session, copy);
	free(f->thread);
	f->thread = copy;
}

void follow_want_faults(struct follow *f, bool want)
{
	f->config.faults = want;
	for (size_t i = 0; i < f->ps.n; i++)
		if (f->ps.list[i]->session)
			session_want_faults(f->ps.list[i]->session, want);
}

void follow_want_res(struct follow *f, bool want)
{
	f->config.no_res = !want;
	for (size_t i = 0; i < f->ps.n; i++)
		if (f->ps.list[i]->session)
			session_want_res(f->ps.list[i]->session, want);
}

struct err *follow_signal(struct follow *f, uint32_t id, int sig)
{
	struct err *err = NULL;

	if (id != COLLECT_SUM) {
		struct process *p = processes_by_id(&f->ps, id);
		return p && p->session ? session_signal(p->session, sig) : NULL;
	}
	/* a shell that is killed doesn't take along what it has started, which would go on unseen */
	bool all = sig == SIGKILL && launched(f);

	for (size_t i = 0; i < (all ? f->ps.n : f->ps.n ? 1 : 0); i++)
		if (f->ps.list[i]->session) {
			err_free(err);
			err = session_signal(f->ps.list[i]->session, sig);
		}
	return err;
}
