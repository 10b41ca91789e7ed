/*
 * Children. All threads of a launched program that is followed are traced, each from its birth on: the
 * kernel stops the one that forks (PTRACE_EVENT_FORK, _VFORK, _CLONE) and the new one before its first
 * instruction. That is reported in either order. Whoever is reported before its parent has told of it waits
 * here; and so that nobody waits for ever (the parent may have been killed in between), after a while it is asked
 * of /proc whose child it is, and let go if that is nobody of ours.
 *
 * Every wait(2) elsewhere is for one thread; this one alone looks at all, without taking the report.
 */
#include <errno.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "target/impl.h"
#include "target/proc.h"

#define THREADS_MAX 200		/* started in a second: less than a hundredth of the time goes into it */
#define STRANGER_SECONDS 0.02	/* until it is asked whose child it is */

#ifndef __WNOTHREAD
#define __WNOTHREAD 0x20000000
#endif

struct target_family {
	struct target **targets;
	size_t n, cap;
	/* Stopped for the first time, and nobody has told of them yet. */
	struct stranger {
		pid_t tid;
		int status;
		double since;
	} *strangers;
	size_t nstrangers, strangers_cap;
};

struct target_family *target_family_create(void)
{
	return xcalloc(1, sizeof(struct target_family));
}

void target_family_destroy(struct target_family *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->nstrangers; i++)
		ptrace(PTRACE_DETACH, f->strangers[i].tid, 0, 0L);
	for (size_t i = 0; i < f->n; i++)
		f->targets[i]->family = NULL;
	free(f->targets);
	free(f->strangers);
	free(f);
}

void target_family_join(struct target_family *f, struct target *t)
{
	VEC_GROW(f->targets, f->n, f->cap);
	f->targets[f->n++] = t;
	t->family = f;
}

void target_family_leave(struct target *t)
{
	struct target_family *f = t->family;

	for (size_t i = 0; f && i < f->n; i++) {
		if (f->targets[i] == t) {
			f->targets[i] = f->targets[--f->n];
			break;
		}
	}
	t->family = NULL;
}

static struct target *find_target(const struct target_family *f, pid_t pid)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->targets[i]->pid == pid && !f->targets[i]->exited)
			return f->targets[i];
	return NULL;
}

static struct target *owner_of(const struct target_family *f, pid_t tid)
{
	struct target *t = find_target(f, tid);

	for (size_t i = 0; !t && i < f->n; i++)
		if (target_thread(f->targets[i], tid))
			t = f->targets[i];
	return t;
}

/* The report of a stranger, if it has come already; it is none any more. */
static bool take_stranger(struct target_family *f, pid_t tid, int *ret_status)
{
	for (size_t i = 0; f && i < f->nstrangers; i++) {
		if (f->strangers[i].tid == tid) {
			*ret_status = f->strangers[i].status;
			f->strangers[i] = f->strangers[--f->nstrangers];
			return true;
		}
	}
	return false;
}

/* ---- births ---- */

void target_tell_births(struct target *t, const struct target_births *births)
{
	t->tell = births ? *births : (struct target_births){ 0 };
}

void target_thread_ended(struct target *t, pid_t tid)
{
	const struct thread *th = target_thread(t, tid);
	struct target_thread birth = th ? th->birth : (struct target_thread){ 0 };

	target_drop_thread(t, tid);
	if (birth.tid && t->tell.ended)
		t->tell.ended(t->tell.ctx, &birth);
}

/* It hasn't executed anything yet. */
static void tell_birth(struct target *t, struct thread *th)
{
	struct cpu_regs regs;
	struct err *err = cpu_regs_get(th->tid, &regs);

	if (err) {	/* killed meanwhile */
		err_free(err);
		return;
	}
	th->birth = (struct target_thread){
		.tid = th->tid, .pc = cpu_pc(&regs), .sp = cpu_sp(&regs), .tp = cpu_tp(&regs),
	};
	t->tell.born(t->tell.ctx, &th->birth);
}

void target_greet(struct target *t, struct thread *th)
{
	th->fresh = false;
	if (t->tell.born && th->tid != t->pid)
		tell_birth(t, th);
	ptrace(PTRACE_SETOPTIONS, th->tid, 0, target_options(t, th->tid));
}

/*
 * Each birth stops two threads until we have looked. A program that lives on starting threads would be several
 * times slower for it: from THREADS_MAX a second on it isn't told any more, and what the new ones fork isn't
 * followed. (To seize them later, unstopped, might hang: PTRACE_SEIZE waits for an exec that waits for us.)
 */
static void count_birth(struct target *t, pid_t parent)
{
	double now = target_now();

	if (now - t->births_since > 1) {
		t->births_since = now;
		t->births = 0;
	}
	if (++t->births > THREADS_MAX && !t->many_threads) {
		t->many_threads = true;
		log_line("process %d starts many threads: children of new ones aren't followed", t->pid);
	}
	if (t->many_threads)
		ptrace(PTRACE_SETOPTIONS, parent, 0, target_options(t, parent));
}

static void add_thread(struct target *t, pid_t tid)
{
	int status;

	if (target_thread(t, tid))
		return;
	struct thread *th = target_add_thread(t, tid);
	th->watched = th->fresh = true;
	if (!take_stranger(t->family, tid, &status))
		return;
	target_greet(t, th);
	th->group_stop = status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) != SIGTRAP;
	ptrace(th->group_stop ? PTRACE_LISTEN : PTRACE_CONT, tid, 0, 0L);
}

static struct target *add_child(struct target_family *f, struct target *parent, pid_t pid, bool shares)
{
	struct target *t = target_new_child(parent, pid, shares);

	target_family_join(f, t);
	take_stranger(f, pid, &t->first_status);
	return t;
}

/* clone(2) knows CLONE_VFORK without CLONE_VM: the parent waits, but the child has a copy. In doubt it has not. */
static bool share_memory(pid_t tid, pid_t child)
{
	return syscall(SYS_kcmp, tid, child, KCMP_VM, 0L, 0L) <= 0;
}

void target_forked(struct target *t, pid_t tid, int event)
{
	unsigned long child = 0;

	if ((event != PTRACE_EVENT_FORK && event != PTRACE_EVENT_VFORK && event != PTRACE_EVENT_CLONE) ||
	    !t->family || ptrace(PTRACE_GETEVENTMSG, tid, 0, &child) < 0 || !child)
		return;
	if (event == PTRACE_EVENT_CLONE && syscall(SYS_tgkill, t->pid, child, 0) == 0) {
		add_thread(t, (pid_t)child);
		count_birth(t, tid);
	} else if (!owner_of(t->family, (pid_t)child)) {
		bool vforked = event == PTRACE_EVENT_VFORK;
		add_child(t->family, t, (pid_t)child, vforked && share_memory(tid, (pid_t)child))->vforked = vforked;
	}
}

bool target_adopt_thread(struct target *t, pid_t tid)
{
	struct proc_status status;
	int first;

	if (!proc_status(t->pid, tid, &status) || status.tracer != (pid_t)syscall(SYS_gettid))
		return false;
	bool stopped = take_stranger(t->family, tid, &first);
	struct thread *th = target_add_thread(t, tid);
	th->watched = th->fresh = true;
	if (stopped) {
		th->state = THREAD_STOPPED;
		target_greet(t, th);
	}
	return true;
}

/* Nobody has told of it in time. */
static void place_stranger(struct target_family *f, pid_t tid)
{
	struct proc_status status;
	struct target *t = NULL;
	int first;

	if (proc_status(tid, 0, &status)) {
		t = find_target(f, status.tgid != tid ? status.tgid : status.ppid);
		if (t && !t->follow)
			t = NULL;
	}
	if (t && status.tgid != tid) {
		add_thread(t, tid);
	} else if (t) {
		add_child(f, t, tid, false);
	} else {
		take_stranger(f, tid, &first);
		ptrace(PTRACE_DETACH, tid, 0, 0L);
		log_line("process %d: forked by one that isn't followed any more, goes on unwatched", tid);
	}
}

static void place_strangers(struct target_family *f)
{
	double now = f->nstrangers ? target_now() : 0;

	for (size_t i = f->nstrangers; i-- > 0;)
		if (now - f->strangers[i].since > STRANGER_SECONDS)
			place_stranger(f, f->strangers[i].tid);
}

/* ---- reports ---- */

static pid_t peek(void)
{
	siginfo_t info = { 0 };

	/* of this thread's children and tracees only: others of heaptop's threads have theirs */
	while (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL | __WNOTHREAD) < 0)
		if (errno != EINTR)
			return 0;
	return info.si_pid;
}

struct target *target_family_news(struct target_family *f)
{
	pid_t tid;

	while ((tid = peek())) {
		struct target *t = owner_of(f, tid);
		int status;
		if (t) {
			t->reported = tid;
			return t;
		}
		if (waitpid(tid, &status, __WALL | WNOHANG) != tid || !WIFSTOPPED(status))
			continue;
		VEC_GROW(f->strangers, f->nstrangers, f->strangers_cap);
		f->strangers[f->nstrangers++] = (struct stranger){ tid, status, target_now() };
	}
	place_strangers(f);
	for (size_t i = 0; i < f->n; i++)
		if (f->targets[i]->first_status)
			return f->targets[i];
	return NULL;
}

void target_let_sharers_run(struct target_family *f)
{
	for (size_t i = 0; i < f->n; i++) {
		struct target *t = f->targets[i];
		int status = t->first_status;

		if (!t->vforked || !t->born)
			continue;
		if (!status && waitpid(t->pid, &status, __WALL | WNOHANG) != t->pid)
			continue;
		if (!WIFSTOPPED(status)) {
			target_set_exited(t, status);
			continue;
		}
		struct thread *th = target_thread(t, t->pid);
		t->first_status = 0;
		t->born = false;
		if (th)
			target_greet(t, th);
		ptrace(PTRACE_CONT, t->pid, 0, 0L);
	}
}
