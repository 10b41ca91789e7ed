/*
 * What happens to a target that runs: stops of the watched threads of a launched program (passed
 * on without delay), its exec, its end; and the end of an attached one.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "target/impl.h"
#include "target/proc.h"

enum stop_kind target_stop_kind(int status, int *ret_sig)
{
	*ret_sig = 0;
	if (!WIFSTOPPED(status))
		return STOP_DEAD;
	*ret_sig = WSTOPSIG(status);
	switch (status >> 16) {
	case 0:
		if (*ret_sig == (SIGTRAP | 0x80))
			return STOP_SYSCALL;
		return STOP_SIGNAL;
	case PTRACE_EVENT_STOP:
		return *ret_sig == SIGTRAP ? STOP_TRAP : STOP_GROUP;
	case PTRACE_EVENT_EXEC:
		return STOP_EXEC;
	case PTRACE_EVENT_EXIT:
		return STOP_EXIT;
	default:
		return STOP_OTHER;
	}
}

void target_set_exited(struct target *t, int status)
{
	t->exited = true;
	t->stopped = false;
	t->status = status;
	t->exit_held = 0;
	t->exec_pending = false;
	t->nthreads = 0;
	target_close_mem(t);
	target_close_maps(t);
}

/* Is this thread on its way out: dead, or with a SIGKILL that it can't escape? */
static bool is_dying(const struct target *t, pid_t tid)
{
	struct proc_status status;
	struct proc_stat stat;

	return !proc_status(t->pid, tid, &status) || !proc_stat(t->pid, tid, &stat) ||
	       stat.state == 'Z' || stat.state == 'X' || stat.flags & PROC_PF_EXITING ||
	       status.signals & 1ull << (SIGKILL - 1);
}

/*
 * Does the whole process end with `tid`, which stands in PTRACE_EVENT_EXIT? exit_group says so by
 * itself. Otherwise it does unless another thread goes on: after a fatal signal, or when another
 * thread ends the process, each other thread has a SIGKILL pending or is exiting. (Between taking
 * the SIGKILL and being marked as exiting it shows neither, hence the second looks.) A thread that
 * goes on means that this one alone ends, or that the other one does an exec.
 */
static bool process_ends(struct target *t, pid_t tid)
{
	struct cpu_regs regs;
	struct err *err = cpu_regs_get(tid, &regs);

	if (err)
		err_free(err);
	else if (cpu_syscall_number(&regs) == SYS_exit_group)
		return true;
	for (int look = 0; look < 10; look++) {
		CLEANUP_FREE pid_t *tids = NULL;
		size_t n = proc_tasks(t->pid, &tids);
		bool alive = false;
		for (size_t i = 0; i < n && !alive; i++)
			alive = tids[i] != tid && !is_dying(t, tids[i]);
		if (!alive)
			return true;
		target_sleep(0.001);
	}
	return false;
}

/*
 * Our first look at a thread that has taken the process's id by an exec: it stands in
 * PTRACE_EVENT_EXEC, or, having been seized a little late, it is stopped on its first steps in
 * the new program.
 */
static void catch_exec(struct target *t)
{
	ptrace(PTRACE_INTERRUPT, t->pid, 0, 0L);
	for (int i = 0; i < 2000; i++) {
		int status, sig;
		struct proc_stat stat;
		if (waitpid(t->pid, &status, __WALL | WNOHANG) != t->pid) {
			/* The old first thread after all, and the other one has simply ended. */
			if (!proc_stat(t->pid, 0, &stat) || stat.state == 'Z')
				return;
			target_sleep(0.0001);
			continue;
		}
		switch (target_stop_kind(status, &sig)) {
		case STOP_DEAD:
			target_set_exited(t, status);
			return;
		case STOP_SIGNAL:
			ptrace(PTRACE_INTERRUPT, t->pid, 0, 0L);
			ptrace(PTRACE_CONT, t->pid, 0, (long)sig);
			break;
		case STOP_EXIT:
			t->exit_held = t->pid;
			return;
		default:
			t->exec_pending = true;
			return;
		}
	}
}

/*
 * The first thread had left, and its id belongs to a living thread again that nobody traces:
 * another one has done an exec that we didn't see. Stop it wherever it is by now.
 */
static void seize_unseen(struct target *t)
{
	struct proc_status status;

	if (proc_status(t->pid, 0, &status) && !status.tracer && status.state != 'Z' &&
	    status.state != 'X' && ptrace(PTRACE_SEIZE, t->pid, 0, TARGET_WATCH_OPTIONS) == 0)
		catch_exec(t);
}

static void watch_others(struct target *t, pid_t leaving)
{
	CLEANUP_FREE pid_t *tids = NULL;
	size_t n = proc_tasks(t->pid, &tids);
	struct proc_stat stat;
	bool missed = false;

	for (size_t i = 0; i < n; i++) {
		if (tids[i] == leaving)
			continue;
		if (!target_watch(t, tids[i])) {
			missed = true;
		} else if (!proc_stat(t->pid, tids[i], &stat)) {
			/* It has become the first thread by an exec while it was seized. */
			target_drop_thread(t, tids[i]);
			catch_exec(t);
			return;
		}
	}
	/* One that is gone: dead, or become the first thread just before. */
	for (int i = 0; missed && i < 50; i++) {
		seize_unseen(t);
		if (t->exited || t->exec_pending || t->exit_held)
			return;
		if (!proc_stat(t->pid, 0, &stat) || stat.state == 'Z')
			return;
		target_sleep(0.0001);
	}
}

bool target_at_exit(struct target *t, pid_t tid)
{
	if (t->ended) {	/* told already, for another thread */
		ptrace(PTRACE_CONT, tid, 0, 0L);
		return false;
	}
	if (process_ends(t, tid)) {
		t->exit_held = tid;
		return true;
	}
	/*
	 * The others go on, so an exec or the end of the process has to be seen through them.
	 * This one goes first: a thread in the middle of an exec waits for its death and holds
	 * a lock that PTRACE_SEIZE takes. For the same reason none is seized while others are
	 * in our hands, which the exec waits for as well; seize_unseen() sees to it then.
	 */
	bool raised = t->raised, seize = t->nthreads == 1;
	if (seize && !raised)
		target_raise_priority(t);	/* or the new program may be through before we look */
	ptrace(PTRACE_CONT, tid, 0, 0L);
	if (tid == t->pid)
		t->first_left = true;
	if (seize)
		watch_others(t, tid);
	if (seize && !raised)
		target_restore_priority(t);
	if (t->live == tid)
		target_find_live(t);
	return false;
}

/* Let a watched thread go on from a stop. */
static void pass_on(pid_t tid, enum stop_kind kind, int sig)
{
	long request = PTRACE_CONT;

	if (kind == STOP_GROUP)
		request = PTRACE_LISTEN;	/* stays stopped until SIGCONT, still traced */
	if (kind != STOP_SIGNAL)
		sig = 0;
	ptrace(request, tid, 0, (long)sig);	/* ESRCH: killed; wait will tell */
}

/*
 * One report of one watched thread. The list of threads may change: the caller starts anew.
 */
static enum target_event handle_report(struct target *t, pid_t tid, int status)
{
	int sig;
	enum stop_kind kind = target_stop_kind(status, &sig);

	switch (kind) {
	case STOP_DEAD:
		if (tid != t->pid) {
			target_thread_ended(t, tid);
			return TARGET_NOTHING;
		}
		target_set_exited(t, status);
		return TARGET_EXITED;
	case STOP_EXEC:
		/* The thread has its process's id now, whatever it was before. */
		t->exec_pending = true;
		return TARGET_EXEC;
	case STOP_EXIT:
		if (target_at_exit(t, tid)) {
			t->ended = true;
			return TARGET_EXITING;
		}
		return TARGET_NOTHING;
	case STOP_TRAP:
	case STOP_GROUP: {
		struct thread *th = target_thread(t, tid);
		if (th && th->fresh) {
			th->group_stop = kind == STOP_GROUP;
			target_greet(t, th);
		}
		bool born = t->born && tid == t->pid;
		if (born)
			t->born = false;
		if (born && !t->shares) {
			t->stopped = true;
			t->stop_began = target_now();
			th->state = THREAD_STOPPED;
			return TARGET_BORN;
		}
		break;
	}
	case STOP_OTHER:
		target_forked(t, tid, status >> 16);
		break;
	default:
		break;
	}
	pass_on(tid, kind, sig);
	return TARGET_NOTHING;
}

static enum target_event do_exec(struct target *t)
{
	t->exec_pending = false;
	struct err *err = target_run_to_start(t, false);
	if (t->exited)
		return TARGET_EXITED;
	if (t->left)
		return TARGET_LEFT;
	if (err) {
		log_line("%s", err->text);
		err_free(err);
	}
	if (t->exit_held || !t->stopped)
		return TARGET_NOTHING;	/* it ended before it began; the next poll tells */
	return TARGET_EXEC;
}

/* Take the ends of all its other threads: a first one that was killed has nothing to tell before. */
static void reap_others(struct target *t)
{
	CLEANUP_FREE pid_t *tids = NULL;
	size_t n = proc_tasks(t->pid, &tids);

	for (size_t i = 0; i < n; i++) {
		siginfo_t info;
		if (tids[i] != t->pid)	/* not ours, or it lives: nothing happens */
			waitid(P_PID, (id_t)tids[i], &info, WEXITED | WNOHANG | __WALL);
	}
}

pid_t target_wait(struct target *t, pid_t tid, int *ret_status)
{
	bool alone = tid != t->pid || t->nthreads < 2;

	for (;;) {
		siginfo_t info = { 0 };
		struct proc_stat stat;
		pid_t got = waitpid(tid, ret_status, __WALL | (alone ? 0 : WNOHANG));
		if (got == tid || (got < 0 && errno != EINTR))
			return got;
		/* until there is news, of whoever it may be; none is taken */
		if (alone || waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOWAIT | __WALL | __WNOTHREAD) ||
		    info.si_pid == tid)
			continue;
		if (proc_stat(t->pid, 0, &stat) && stat.state == 'Z')
			reap_others(t);
		else
			target_sleep(0.0001);
	}
}

pid_t target_wait_until(pid_t tid, double until, int *ret_status)
{
	double nap = 50e-6;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (;;) {
		pid_t got = waitpid(tid, ret_status, __WALL | WNOHANG);
		if (got > 0 || (got < 0 && errno != EINTR))
			return got;
		if (target_now() > until)
			return 0;
		/* Blocked in all of heaptop's threads, it ends the nap; where it is ignored naps alone must do. */
		const struct timespec ts = { .tv_nsec = (long)(nap * 1e9) };
		sigtimedwait(&set, NULL, &ts);
		if (nap < 10e-3)
			nap *= 1.4;
	}
}

/* One report of the thread that the family has found to have one. */
static enum target_event poll_reported(struct target *t)
{
	pid_t tid = t->reported;
	int status = t->first_status;

	t->reported = 0;
	t->first_status = 0;
	if (t->exec_pending)
		return do_exec(t);
	if (status)
		return handle_report(t, t->pid, status);
	if (!tid)
		return TARGET_NOTHING;
	pid_t got = waitpid(tid, &status, __WALL | WNOHANG);
	if (got == tid && target_thread(t, tid)) {
		enum target_event event = handle_report(t, tid, status);
		return event == TARGET_EXEC ? do_exec(t) : event;
	}
	if (got < 0 && errno == ECHILD && tid == t->pid) {
		target_set_exited(t, -1);	/* somebody else took its status */
		return TARGET_EXITED;
	}
	return TARGET_NOTHING;
}

static enum target_event poll_launched(struct target *t)
{
	bool again = true;

	if (t->first_left)
		seize_unseen(t);
	if (t->family && t->follow)
		return poll_reported(t);

	while (again) {
		again = false;
		if (t->exited)
			return TARGET_EXITED;
		if (t->exec_pending)
			return do_exec(t);
		for (size_t i = 0; i < t->nthreads; i++) {
			struct thread *th = &t->threads[i];
			int status;
			pid_t tid = th->tid;
			if (!th->watched)
				continue;
			pid_t got = waitpid(tid, &status, __WALL | WNOHANG);
			if (got < 0 && errno == ECHILD) {
				if (tid == t->pid) {	/* somebody else took its status */
					target_set_exited(t, -1);
					return TARGET_EXITED;
				}
				target_thread_ended(t, tid);
				again = true;
				break;
			}
			if (got != tid)
				continue;
			enum target_event event = handle_report(t, tid, status);
			if (event == TARGET_EXITING || event == TARGET_EXITED)
				return event;
			again = true;
			break;
		}
	}
	return TARGET_NOTHING;
}

static bool attached_ended(struct target *t)
{
	struct proc_stat stat;

	if (t->pidfd >= 0) {
		struct pollfd p = { .fd = t->pidfd, .events = POLLIN };
		return poll(&p, 1, 0) == 1 && p.revents & POLLIN;
	}
	if (!proc_stat(t->pid, 0, &stat) || (t->start && stat.start != t->start))
		return true;
	return (stat.state == 'Z' || stat.state == 'X') && stat.threads <= 1;
}

/* Let go, but still our child if it was launched: its end is ours to take. */
static enum target_event poll_left(struct target *t)
{
	int status;

	t->reported = 0;
	if (t->parent || waitpid(t->pid, &status, WNOHANG | WUNTRACED) != t->pid || WIFSTOPPED(status))
		return TARGET_NOTHING;
	target_set_exited(t, status);
	return TARGET_EXITED;
}

enum target_event target_poll(struct target *t)
{
	if (t->exited)
		return TARGET_EXITED;
	target_let_go(t);
	if (t->stopped)
		return TARGET_NOTHING;
	if (!t->launched) {
		if (!attached_ended(t))
			return TARGET_NOTHING;
		target_set_exited(t, -1);
		return TARGET_EXITED;
	}
	if (t->left)
		return poll_left(t);
	if (t->exit_held) {
		if (!t->ended) {	/* it was met during a stop */
			t->ended = true;
			return TARGET_EXITING;
		}
		ptrace(PTRACE_CONT, t->exit_held, 0, 0L);
		t->exit_held = 0;
	}
	return poll_launched(t);
}

int target_exit_status(const struct target *t)
{
	return t->exited && t->launched ? t->status : -1;
}

int target_exit_code(const struct target *t)
{
	int status = target_exit_status(t);

	if (status < 0)
		return 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
