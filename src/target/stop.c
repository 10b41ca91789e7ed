/*
 * Stopping all threads of the target and letting them go.
 *
 * Each thread is seized (PTRACE_SEIZE: no signal is sent, nothing is visible to the program) and
 * interrupted; that is repeated until /proc/PID/task shows no thread we don't have, since a thread
 * not yet stopped may make new ones. Every thread then stands in PTRACE_EVENT_STOP: a signal
 * met on the way is delivered, with the interruption asked for again before (any trap clears
 * a pending one), so its handler's frame is made and the thread stops before the handler's first
 * instruction. So there is never a signal to be kept, and letting go is a plain PTRACE_DETACH:
 * the kernel itself restarts system calls and stops again the threads of a stopped process.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "target/impl.h"
#include "target/proc.h"

/* A thread in an uninterruptible wait (a disk, vfork) can't stop. How long to hope, seconds: in all, and at a
 * time, as all others stand still meanwhile; then these run for a while. */
#define STOP_PATIENCE 3.0
#define WAIT_PATIENCE 0.02
#define RUN_BETWEEN 0.05

double target_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

void target_sleep(double seconds)
{
	struct timespec ts = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

	nanosleep(&ts, NULL);
}

/* ---- the list of threads ---- */

static size_t thread_place(const struct target *t, pid_t tid)
{
	size_t lo = 0, hi = t->nthreads;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (t->threads[mid].tid < tid)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct thread *target_thread(struct target *t, pid_t tid)
{
	size_t i = thread_place(t, tid);

	return i < t->nthreads && t->threads[i].tid == tid ? &t->threads[i] : NULL;
}

struct thread *target_add_thread(struct target *t, pid_t tid)
{
	size_t i = thread_place(t, tid);

	VEC_GROW(t->threads, t->nthreads, t->cap_threads);
	memmove(&t->threads[i + 1], &t->threads[i], (t->nthreads - i) * sizeof(*t->threads));
	t->nthreads++;
	t->threads[i] = (struct thread){ .tid = tid };
	return &t->threads[i];
}

void target_drop_thread(struct target *t, pid_t tid)
{
	size_t i = thread_place(t, tid);

	if (i >= t->nthreads || t->threads[i].tid != tid)
		return;
	t->nthreads--;
	memmove(&t->threads[i], &t->threads[i + 1], (t->nthreads - i) * sizeof(*t->threads));
	if (t->caller == tid)
		t->caller = 0;
}

/*
 * Only the first thread's end is of interest where all threads are traced: to be told of each one's
 * would stop it once more.
 */
long target_options(const struct target *t, pid_t tid)
{
	if (!t->launched)
		return TARGET_OPTIONS;
	if (!t->follow)
		return TARGET_WATCH_OPTIONS;
	return TARGET_OPTIONS | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
	       (t->many_threads ? 0 : PTRACE_O_TRACECLONE) | (tid == t->pid ? PTRACE_O_TRACEEXIT : 0);
}

bool target_watch(struct target *t, pid_t tid)
{
	if (ptrace(PTRACE_SEIZE, tid, 0, target_options(t, tid)) < 0)
		return false;
	target_add_thread(t, tid)->watched = true;
	return true;
}

/* ---- our own priority ---- */

/*
 * On a machine whose processors are all busy with the target's threads, each wait would queue
 * behind them: a real-time priority, where we may have one, makes a stop ten times shorter.
 */
void target_raise_priority(struct target *t)
{
	struct sched_param one = { .sched_priority = 1 };
	pid_t self = (pid_t)syscall(SYS_gettid);

	if (t->raised)
		return;
	t->old_policy = sched_getscheduler(0);
	if (t->old_policy < 0 || sched_getparam(0, &t->old_param) < 0)
		return;
	errno = 0;
	t->old_nice = getpriority(PRIO_PROCESS, (id_t)self);
	if (errno || (t->old_policy != SCHED_OTHER && t->old_policy != SCHED_BATCH))
		return;
	/* not for what is forked meanwhile: a busy program at that priority takes the machine */
	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &one) == 0 ||
	    setpriority(PRIO_PROCESS, (id_t)self, -20) == 0)
		t->raised = true;
}

void target_restore_priority(struct target *t)
{
	if (!t->raised)
		return;
	t->raised = false;
	/* only CAP_SYS_NICE may take the flag away again */
	if (sched_setscheduler(0, t->old_policy, &t->old_param) < 0)
		sched_setscheduler(0, t->old_policy | SCHED_RESET_ON_FORK, &t->old_param);
	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), t->old_nice);
}

/* ---- stopping ---- */

enum wait_result { WAIT_STOPPED, WAIT_DEAD, WAIT_NOT_YET };

static bool is_socket(const struct target *t, pid_t tid, int fd)
{
	char path[64], link[16];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%d", t->pid, tid, fd);
	return readlink(path, link, sizeof(link)) > 8 && memcmp(link, "socket:[", 8) == 0;
}

/*
 * Some system calls fail with EINTR because of our stop: they are made again, so that the program
 * doesn't see it. Their time-out begins anew. A signal that is handled before the thread goes on is a
 * reason of its own: the kernel sees to that.
 *
 * Sleeps with a time-out are restarted by restart_syscall(2), which many a seccomp filter has not
 * heard of, and kills for: under one they, too, begin anew. Each such thread is asked, each time: a filter comes at any
 * moment, for one thread or for all.
 */
static void hide_interruption(struct target *t, const struct thread *th)
{
	struct cpu_regs regs;
	int fd;
	struct err *err = cpu_regs_get(th->tid, &regs);
	enum cpu_retry retry = err ? CPU_RETRY_NEVER : cpu_may_retry(&regs, &fd);

	if (retry == CPU_RETRY || (retry == CPU_RETRY_SOCKET && is_socket(t, th->tid, fd))) {
		cpu_retry_syscall(&regs);
		err = cpu_regs_set(th->tid, &regs);
	} else if (!err && cpu_has_restart(&regs)) {
		long nr = naps_call(&t->naps, th->tid, &regs);
		if (nr >= 0 && target_stopped_has_seccomp(t, th->tid)) {
			cpu_begin_anew(&regs, nr);
			err = cpu_regs_set(th->tid, &regs);
		}
	}
	err_free(err);
}

/* Take a thread's report, if there is one, and bring it on towards PTRACE_EVENT_STOP. */
static enum wait_result wait_once(struct target *t, struct thread *th)
{
	int status, sig;
	pid_t tid = th->tid;

	for (;;) {
		pid_t got = waitpid(tid, &status, __WALL | WNOHANG);
		if (got == 0)
			return WAIT_NOT_YET;
		if (got < 0) {
			if (errno == EINTR)
				continue;
			/* ECHILD: gone, or it took the first thread's id by an exec. */
			if (t->launched && tid == t->pid)
				target_set_exited(t, -1);
			return WAIT_DEAD;
		}
		switch (target_stop_kind(status, &sig)) {
		case STOP_DEAD:
			if (t->launched && tid == t->pid)
				target_set_exited(t, status);
			return WAIT_DEAD;
		case STOP_TRAP:
		case STOP_GROUP:
			th->group_stop = sig != SIGTRAP;
			th->state = THREAD_STOPPED;
			if (th->fresh)
				target_greet(t, th);
			if (!th->group_stop)
				hide_interruption(t, th);
			return WAIT_STOPPED;
		case STOP_EXEC:
			t->exec_pending = true;
			th->state = THREAD_STOPPED;
			return WAIT_STOPPED;
		case STOP_EXIT:
			if (!th->watched)
				ptrace(PTRACE_CONT, tid, 0, 0L);
			else if (target_at_exit(t, tid))
				return WAIT_STOPPED;
			th = target_thread(t, tid);	/* the list may have moved */
			break;
		case STOP_SIGNAL:
			ptrace(PTRACE_INTERRUPT, tid, 0, 0L);
			ptrace(PTRACE_CONT, tid, 0, (long)sig);
			break;
		default:
			target_forked(t, tid, status >> 16);
			th = target_thread(t, tid);	/* the list may have moved */
			ptrace(PTRACE_INTERRUPT, tid, 0, 0L);
			ptrace(PTRACE_CONT, tid, 0, 0L);
			break;
		}
	}
}

static bool ending(const struct target *t)
{
	return t->exited || t->exit_held || t->exec_pending;
}

/* Why a stop was broken off by what the program did meanwhile. */
static struct err *ended_error(const struct target *t)
{
	if (t->exec_pending)
		return err_new(ERR_GONE, "process %d has just executed another program, in which nothing of heaptop is: "
			       "attach to it to watch it (heaptop -p %d)", t->pid, t->pid);
	return target_gone(t);
}

static char thread_state(const struct target *t, pid_t tid)
{
	struct proc_stat stat;

	return proc_stat(t->pid, tid, &stat) ? stat.state : 'X';
}

/*
 * Is one of the others still on its way to its stop? Threads wait uninterruptibly for each other, too:
 * for the lock of their address space, whose holder may be waiting for a processor.
 */
static bool others_move(const struct target *t, pid_t tid)
{
	for (size_t i = 0; i < t->nthreads; i++) {
		const struct thread *th = &t->threads[i];
		if (th->tid != tid && th->state == THREAD_RUNNING &&
		    !strchr("DtTZX", thread_state(t, th->tid)))
			return true;
	}
	return false;
}

static struct err *cant_stop(const struct target *t, pid_t tid)
{
	return err_new(ERR_BUSY, "thread %d of process %d waits in the kernel and can't be stopped now (a disk, "
		       "or a vfork): try again", tid, t->pid);
}

/*
 * Wait for all threads that were interrupted, one after the other, with naps in between and not
 * blocking, since one might never stop. The naps also leave the processor to the threads: those
 * that wait for one have to run to notice.
 */
static struct err *wait_all(struct target *t, double deadline)
{
	double nap = 20e-6, began = target_now();

	for (size_t i = 0; i < t->nthreads;) {
		pid_t tid = t->threads[i].tid;
		if (t->threads[i].state != THREAD_RUNNING) {
			i++;
			continue;
		}
		enum wait_result result = wait_once(t, &t->threads[i]);
		if (ending(t))
			return ended_error(t);
		if (result == WAIT_STOPPED) {
			i++;
			nap = 20e-6;
			began = target_now();
			continue;
		}
		if (result == WAIT_DEAD) {
			target_thread_ended(t, tid);
			i = 0;	/* the list may have changed in other ways, too */
			continue;
		}
		char state = nap > 100e-6 ? thread_state(t, tid) : '?';
		/* A first thread that has left stays a zombie while the others go on: it never stops. */
		if (state == 'Z' && tid == t->pid) {
			i++;
			continue;
		}
		if (t->family)
			target_let_sharers_run(t->family);
		double now = target_now();
		if (now > deadline)
			return cant_stop(t, tid);
		if (state != 'D' || (now - began > WAIT_PATIENCE && others_move(t, tid)))
			began = now;
		if (now - began > WAIT_PATIENCE)
			return cant_stop(t, tid);
		target_sleep(nap);
		if (nap < 1e-3)
			nap *= 1.4;
	}
	return NULL;
}

/* Seize and interrupt every thread that we don't have yet; their number in *ret_fresh. */
static struct err *seize_new(struct target *t, size_t *ret_fresh)
{
	CLEANUP_FREE pid_t *tids = NULL;
	size_t n = proc_tasks(t->pid, &tids);

	*ret_fresh = 0;
	if (!n)
		return target_gone(t);
	for (size_t i = 0; i < n; i++) {
		struct thread *th = target_thread(t, tids[i]);
		if (th && th->state == THREAD_LEAVING) {
			th->state = THREAD_RUNNING;	/* interrupted already, and welcome back */
			++*ret_fresh;
		}
		if (th)
			continue;
		/* First without PTRACE_SEIZE, which takes a lock that an exec holds while it waits for us. */
		if (t->follow && target_adopt_thread(t, tids[i])) {
			++*ret_fresh;
			continue;
		}
		if (ptrace(PTRACE_SEIZE, tids[i], 0, target_options(t, tids[i])) < 0) {
			int errnum = errno;
			struct proc_stat stat;
			/* One that has died meanwhile, or a first thread that has left. */
			if (!proc_stat(t->pid, tids[i], &stat) || stat.state == 'Z' ||
			    stat.state == 'X' || stat.flags & PROC_PF_EXITING)
				continue;
			return target_seize_error(t->pid, tids[i], errnum);
		}
		target_add_thread(t, tids[i])->watched = t->follow;
		ptrace(PTRACE_INTERRUPT, tids[i], 0, 0L);
		++*ret_fresh;
	}
	return NULL;
}

static struct err *stop_new_threads(struct target *t)
{
	double deadline = target_now() + STOP_PATIENCE;

	for (;;) {
		size_t fresh;
		struct err *err = seize_new(t, &fresh);
		if (!err)
			err = wait_all(t, deadline);
		if (err)
			return err;
		if (!fresh)
			return t->nthreads ? NULL : target_gone(t);
	}
}

/* ---- letting go ---- */

void target_let_go(struct target *t)
{
	for (size_t i = t->nthreads; i-- > 0;) {
		struct thread *th = &t->threads[i];
		pid_t tid = th->tid;
		int status, sig;
		if (th->state != THREAD_LEAVING)
			continue;
		pid_t got = waitpid(tid, &status, __WALL | WNOHANG);
		if (got == 0 || (got < 0 && errno == EINTR))
			continue;
		if (got == tid && WIFSTOPPED(status)) {
			if (target_stop_kind(status, &sig) != STOP_SIGNAL)
				sig = 0;
			if (ptrace(PTRACE_DETACH, tid, 0, (long)sig) < 0)
				continue;	/* killed: its death is still to be taken */
		}
		target_drop_thread(t, tid);
	}
}

/* Let one stopped thread go on as it would without us. */
static void release(struct thread *th)
{
	if (!th->watched) {
		if (th->state == THREAD_STOPPED && ptrace(PTRACE_DETACH, th->tid, 0, 0L) == 0)
			th->tid = 0;
		else
			th->state = THREAD_LEAVING;
		return;
	}
	if (th->state != THREAD_STOPPED)
		return;
	th->state = THREAD_RUNNING;
	if (th->group_stop) {
		/*
		 * Back to listening for SIGCONT. A remote call has led it away from its stop:
		 * ask for another, which the kernel reports as the group-stop that still is in
		 * effect, and target_poll() answers that with PTRACE_LISTEN.
		 */
		if (ptrace(PTRACE_LISTEN, th->tid, 0, 0L) == 0)
			return;
		ptrace(PTRACE_INTERRUPT, th->tid, 0, 0L);
	}
	ptrace(PTRACE_CONT, th->tid, 0, 0L);
}

static void release_all(struct target *t)
{
	size_t kept = 0;

	remote_leave_threads(t);
	for (size_t i = 0; i < t->nthreads; i++) {
		struct thread *th = &t->threads[i];
		/* Those in an event stop wait for target_poll(). */
		if (th->tid == t->exit_held || (t->exec_pending && th->tid == t->pid))
			th->state = THREAD_RUNNING;
		else
			release(th);
		if (th->tid)
			t->threads[kept++] = *th;
	}
	t->nthreads = kept;
	t->stopped = false;
	t->view_valid = false;
	/* A thread killed meanwhile must be waited for, or it stays a zombie in its process. */
	for (int i = 0; i < 20; i++) {
		bool leaving = false;
		target_let_go(t);
		for (size_t k = 0; k < t->nthreads && !leaving; k++)
			leaving = t->threads[k].state == THREAD_LEAVING;
		if (!leaving)
			break;
		target_sleep(0.0005);
	}
	/* From here on many threads that were woken meanwhile may want our processor. */
	t->pause = target_now() - t->stop_began;
	target_restore_priority(t);
}

/* ---- public ---- */

static struct err *stop_once(struct target *t)
{
	target_raise_priority(t);
	t->stop_began = target_now();
	naps_begin(&t->naps);
	for (size_t i = 0; i < t->nthreads; i++) {
		if (t->threads[i].watched)
			ptrace(PTRACE_INTERRUPT, t->threads[i].tid, 0, 0L);
	}
	struct err *err = stop_new_threads(t);
	if (err)
		release_all(t);
	else
		t->stopped = true;
	return err;
}

/* Whether it makes sense to try; NULL: it does. */
static struct err *can_stop(struct target *t)
{
	struct proc_stat stat;

	if (t->left)
		return err_new(ERR_DENIED, "process %d runs with rights of its own (setuid, capabilities): attach to it as root "
			       "(sudo heaptop -p %d)", t->pid, t->pid);
	if (ending(t))
		return ended_error(t);
	if (!t->launched && t->start && (!proc_stat(t->pid, 0, &stat) || stat.start != t->start))
		return target_gone(t);
	return NULL;
}

struct err *target_try_stop(struct target *t)
{
	struct err *err = t->stopped ? NULL : can_stop(t);

	return err || t->stopped ? err : stop_once(t);
}

struct err *target_stop(struct target *t)
{
	if (t->stopped)
		return NULL;
	struct err *err = can_stop(t);
	if (err)
		return err;
	double deadline = target_now() + STOP_PATIENCE;
	for (;;) {
		err = stop_once(t);
		if (!err)
			return NULL;
		if (err->code != ERR_BUSY || ending(t) || target_now() > deadline)
			return err;
		err_free(err);
		/* those that come out of their wait stop now, and are let go */
		for (double until = target_now() + RUN_BETWEEN; target_now() < until;) {
			target_let_go(t);
			target_sleep(0.001);
		}
	}
}

struct err *target_resume(struct target *t)
{
	if (t->exited)
		return target_gone(t);
	if (!t->stopped)
		return NULL;
	release_all(t);
	return NULL;
}

struct target *target_new(pid_t pid)
{
	struct target *t = xcalloc(1, sizeof(*t));
	struct proc_status status;
	struct proc_stat stat;

	t->pid = t->live = pid;
	t->mem = t->maps.fd = -1;
	t->status = -1;
	t->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	t->ns_pid = proc_status(pid, 0, &status) ? status.ns_pid : pid;
	t->start = proc_stat(pid, 0, &stat) ? stat.start : 0;
	return t;
}

struct target *target_new_child(const struct target *parent, pid_t pid, bool shares)
{
	struct target *t = xcalloc(1, sizeof(*t));

	t->pid = t->live = pid;
	t->mem = t->maps.fd = t->pidfd = -1;	/* its end is reported by wait(2) */
	t->status = -1;
	t->launched = t->follow = t->born = true;
	t->shares = shares;
	t->parent = parent->pid;
	t->command = xstrdup(parent->command ? parent->command : "");
	t->way = parent->way;
	struct thread *th = target_add_thread(t, pid);
	th->watched = th->fresh = true;
	return t;
}

void target_delete(struct target *t)
{
	target_family_leave(t);
	target_close_mem(t);
	target_free_maps(t);
	if (t->pidfd >= 0)
		close(t->pidfd);
	free(t->command);
	naps_deinit(&t->naps);
	free(t->threads);
	free(t->view);
	free(t);
}

/*
 * Before anything is touched: a thread that stays in an uninterruptible wait couldn't be
 * stopped, and once seized not be let go either.
 */
static struct err *check_waits(pid_t pid)
{
	double deadline = target_now() + 1.0;

	for (;;) {
		CLEANUP_FREE pid_t *tids = NULL;
		size_t n = proc_tasks(pid, &tids);
		pid_t waiting = 0;
		for (size_t i = 0; i < n && !waiting; i++) {
			struct proc_stat stat;
			if (proc_stat(pid, tids[i], &stat) && stat.state == 'D')
				waiting = tids[i];
		}
		if (!waiting)
			return NULL;
		if (target_now() > deadline)
			return err_new(ERR_BUSY, "process %d: thread %d waits in the kernel (a disk, or "
				       "the start of another program by vfork): try again later", pid,
				       waiting);
		target_sleep(0.01);
	}
}

struct err *target_attach(pid_t pid, struct target **ret)
{
	struct proc_status status;
	struct err *err = target_check(pid);

	*ret = NULL;
	if (!err)
		err = check_waits(pid);
	if (err)
		return err;
	struct target *t = target_new(pid);
	t->command = proc_command(pid);
	if (!proc_status(pid, pid, &status) || !status.has_mm)
		target_find_live(t);	/* its first thread has left */
	err = target_stop(t);
	if (!err) {
		err = target_open_mem(t);
		if (err)
			release_all(t);
	}
	if (err) {
		target_destroy(t);
		return err;
	}
	*ret = t;
	return NULL;
}

/* The threads still traced while the target runs have to be stopped to be let go. */
static void let_all_go(struct target *t)
{
	double deadline = target_now() + STOP_PATIENCE;

	for (size_t i = t->nthreads; i-- > 0;) {
		struct thread *th = &t->threads[i];
		pid_t tid = th->tid;
		bool held = tid == t->exit_held || (t->exec_pending && tid == t->pid);
		th->watched = false;
		th->state = THREAD_LEAVING;
		/* A first thread that has left is there no longer. */
		if ((held && ptrace(PTRACE_DETACH, tid, 0, 0L) == 0) ||
		    (!held && ptrace(PTRACE_INTERRUPT, tid, 0, 0L) < 0))
			target_drop_thread(t, tid);
	}
	while (t->nthreads && target_now() < deadline) {
		target_let_go(t);
		if (t->nthreads)
			target_sleep(0.0002);
	}
	if (t->nthreads)
		log_line("process %d: thread %d can't be let go before heaptop ends", t->pid,
			 t->threads[0].tid);
}

void target_destroy(struct target *t)
{
	if (!t)
		return;
	if (t->stopped)
		err_free(target_resume(t));
	if (!t->exited)
		let_all_go(t);
	target_delete(t);
}

bool target_is_stopped(const struct target *t)
{
	return t->stopped;
}

double target_pause(const struct target *t)
{
	return t->pause;
}

pid_t target_pid(const struct target *t)
{
	return t->pid;
}

pid_t target_ns_pid(const struct target *t)
{
	struct proc_status status;

	/* of a child it isn't known beforehand */
	if (!t->ns_pid)
		return proc_status(t->pid, 0, &status) ? status.ns_pid : t->pid;
	return t->ns_pid;
}

pid_t target_parent(const struct target *t)
{
	return t->parent;
}

bool target_is_launched(const struct target *t)
{
	return t->launched;
}

int target_pidfd(const struct target *t)
{
	return t->pidfd;
}

/* Remote calls leave it as it is: they bring their thread back to where it was. */
const struct target_thread *target_threads(struct target *t, size_t *ret_n)
{
	*ret_n = 0;
	if (!t->stopped)
		return NULL;
	if (!t->view_valid) {
		t->view = xreallocarray(t->view, t->nthreads + 1, sizeof(*t->view));
		t->nview = 0;
		for (size_t i = 0; i < t->nthreads; i++) {
			struct cpu_regs regs;
			if (t->threads[i].state != THREAD_STOPPED)
				continue;
			struct err *err = cpu_regs_get(t->threads[i].tid, &regs);
			if (err) {	/* killed meanwhile */
				err_free(err);
				continue;
			}
			t->view[t->nview++] = (struct target_thread){
				.tid = t->threads[i].tid, .pc = cpu_pc(&regs),
				.sp = cpu_sp(&regs), .tp = cpu_tp(&regs),
			};
		}
		t->view_valid = true;
	}
	*ret_n = t->nview;
	return t->view;
}

/* ---- some alone ---- */

struct err *target_let_run(struct target *t, const pid_t *tids, size_t n, double seconds)
{
	if (!t->stopped)
		return err_new(ERR_OTHER, "process %d isn't stopped", t->pid);
	t->caller = 0;	/* what runs may bring all threads under a seccomp filter */
	for (size_t i = 0; i < n; i++) {
		struct thread *th = target_thread(t, tids[i]);
		if (th && th->state == THREAD_STOPPED && ptrace(PTRACE_CONT, th->tid, 0, 0L) == 0)
			th->state = THREAD_RUNNING;
	}
	target_sleep(seconds);
	for (size_t i = 0; i < t->nthreads; i++) {
		if (t->threads[i].state == THREAD_RUNNING)
			ptrace(PTRACE_INTERRUPT, t->threads[i].tid, 0, 0L);
	}
	t->view_valid = false;
	struct err *err = wait_all(t, target_now() + STOP_PATIENCE);
	/* They may have made new threads. */
	if (!err)
		err = stop_new_threads(t);
	if (err)
		release_all(t);
	return err;
}
