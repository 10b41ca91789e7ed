/*
 * Starting a program and bringing it, and what it later turns into by exec, to the place where its
 * libraries are mapped and none of their constructors has run. See start.c for that place.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "target/impl.h"

/*
 * What heaptop itself was started with: exec keeps the signal mask, the ignored signals and the
 * limit of descriptors, and heaptop changes them for itself. Taken before main() runs, written
 * never again.
 */
static sigset_t inherited_mask, inherited_ignored;
static struct rlimit inherited_files;

__attribute__((constructor)) static void note_inherited_signals(void)
{
	sigprocmask(SIG_BLOCK, NULL, &inherited_mask);
	getrlimit(RLIMIT_NOFILE, &inherited_files);
	sigemptyset(&inherited_ignored);
	for (int sig = 1; sig < NSIG; sig++) {
		struct sigaction action;
		if (sigaction(sig, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
			sigaddset(&inherited_ignored, sig);
	}
}

extern char **environ;

static bool is_unset(const struct launch_spec *spec, const char *entry)
{
	for (size_t i = 0; i < ARRAY_SIZE(spec->unset_env) && spec->unset_env[i]; i++) {
		size_t len = strlen(spec->unset_env[i]);
		if (strncmp(entry, spec->unset_env[i], len) == 0 && entry[len] == '=')
			return true;
	}
	return false;
}

static char **make_environment(const struct launch_spec *spec)
{
	size_t n = 0, kept = 0;

	while (environ && environ[n])
		n++;
	char **ret = xcalloc(n + 1, sizeof(*ret));
	for (size_t i = 0; i < n; i++) {
		if (!is_unset(spec, environ[i]))
			ret[kept++] = environ[i];
	}
	return ret;
}

/* ---- the child; between fork and exec of a process with threads: async-signal-safe calls only ---- */

static void child_descriptors(const struct launch_spec *spec)
{
	int moved[3];

	/* First out of the way of 0-2, since they may be given in any order. */
	for (int i = 0; i < 3; i++)
		moved[i] = spec->fd[i] < 0 ? -1 : fcntl(spec->fd[i], F_DUPFD_CLOEXEC, 3);
	for (int i = 0; i < 3; i++) {
		if (spec->fd[i] >= 0 && (moved[i] < 0 || dup2(moved[i], i) < 0))
			_exit(LAUNCH_FAILED);
	}
	if (!spec->new_session)
		return;
	setsid();
	for (int i = 0; i < 3; i++) {
		if (spec->fd[i] >= 0 && isatty(i)) {
			ioctl(i, TIOCSCTTY, 0);
			break;
		}
	}
}

static void child_signals(void)
{
	struct sigaction action = { .sa_handler = SIG_DFL };

	for (int sig = 1; sig < NSIG; sig++) {
		action.sa_handler = sigismember(&inherited_ignored, sig) == 1 ? SIG_IGN : SIG_DFL;
		sigaction(sig, &action, NULL);
	}
	sigprocmask(SIG_SETMASK, &inherited_mask, NULL);
	setrlimit(RLIMIT_NOFILE, &inherited_files);
}

/* Held on `go` until it is traced, then becomes the program; an errno into `report` if it can't. */
__attribute__((noreturn))
static void child_main(const struct launch_spec *spec, char **env, int go, int report)
{
	char byte;

	if (read(go, &byte, 1) != 1)
		_exit(LAUNCH_FAILED);	/* heaptop has died */
	child_descriptors(spec);
	child_signals();
	execvpe(spec->argv[0], spec->argv, env);
	int errnum = errno;
	while (write(report, &errnum, sizeof(errnum)) < 0 && errno == EINTR)
		;
	_exit(errnum == ENOENT || errnum == ENOTDIR ? LAUNCH_NOT_FOUND : LAUNCH_NOT_EXECUTABLE);
}

/* ---- the parent ---- */

/* The child has reported why it couldn't become the program, or died without a word. */
static struct err *exec_error(const struct launch_spec *spec, int report, int *ret_exit)
{
	int errnum = 0;
	CLEANUP_FREE char *name = xstrdup(spec->argv[0]);

	text_sanitize(name);
	if (read(report, &errnum, sizeof(errnum)) != (ssize_t)sizeof(errnum)) {
		*ret_exit = LAUNCH_FAILED;
		return err_new(ERR_OTHER, "%s: was ended before it could start", name);
	}
	if (errnum == ENOENT || errnum == ENOTDIR) {
		*ret_exit = LAUNCH_NOT_FOUND;
		if (!strchr(name, '/'))
			return err_new(ERR_NOT_FOUND, "%s: command not found", name);
		/* A script whose interpreter is missing gives ENOENT, too. */
		if (access(name, F_OK) == 0)
			return err_new(ERR_NOT_FOUND, "%s: its interpreter or dynamic linker doesn't exist",
				       name);
		return err_new(ERR_NOT_FOUND, "%s: no such file", name);
	}
	*ret_exit = LAUNCH_NOT_EXECUTABLE;
	if (errnum == ENOEXEC)
		return err_new(ERR_UNSUPPORTED, "%s: not a program this machine can run", name);
	return err_errno(errnum, "%s: can't be executed", name);
}

/* From the seized, running child to PTRACE_EVENT_EXEC. False: it ended before that. */
static bool wait_for_exec(struct target *t)
{
	for (;;) {
		int status, sig;
		long request = PTRACE_CONT;
		if (target_wait(t, t->pid, &status) < 0) {
			target_set_exited(t, -1);
			return false;
		}
		switch (target_stop_kind(status, &sig)) {
		case STOP_DEAD:
			target_set_exited(t, status);
			return false;
		case STOP_EXEC:
			return true;
		case STOP_SIGNAL:
			break;
		case STOP_GROUP:
			request = PTRACE_LISTEN;
			sig = 0;
			break;
		default:
			sig = 0;
			break;
		}
		ptrace(request, t->pid, 0, (long)sig);
	}
}

static void end_child(struct target *t)
{
	if (t->exited)
		return;
	kill(t->pid, SIGKILL);
	for (;;) {
		int status, sig;
		if (target_wait(t, t->pid, &status) < 0 || target_stop_kind(status, &sig) == STOP_DEAD)
			break;
		ptrace(PTRACE_CONT, t->pid, 0, 0L);
	}
	t->exited = true;
}

/* The program didn't get as far as its start: how it ended is its own answer. */
static struct err *early_end(struct target *t, const struct launch_spec *spec, int *ret_exit)
{
	end_child(t);
	if (t->status < 0 || !WIFEXITED(t->status)) {
		*ret_exit = t->status >= 0 ? 128 + WTERMSIG(t->status) : LAUNCH_FAILED;
		return err_new(ERR_GONE, "%s: was ended before it began", spec->argv[0]);
	}
	*ret_exit = WEXITSTATUS(t->status);
	return err_new(ERR_GONE, "%s: ended before it began, with exit code %d", spec->argv[0],
		       *ret_exit);
}

struct err *target_launch(const struct launch_spec *spec, struct target **ret, int *ret_exit)
{
	int go[2], report[2];

	*ret = NULL;
	*ret_exit = LAUNCH_FAILED;
	if (!spec->argv || !spec->argv[0] || !spec->argv[0][0])
		return err_new(ERR_BAD_INPUT, "no program given");
	if (pipe2(go, O_CLOEXEC) < 0)
		return err_errno(errno, "can't make a pipe");
	CLEANUP_CLOSE int go_read = go[0];
	CLEANUP_CLOSE int go_write = go[1];
	if (pipe2(report, O_CLOEXEC) < 0)
		return err_errno(errno, "can't make a pipe");
	CLEANUP_CLOSE int report_read = report[0];
	int report_write = report[1];
	CLEANUP_FREE char **env = make_environment(spec);

	pid_t pid = fork();
	if (pid == 0) {
		close(go_write);	/* or we would never see its end */
		child_main(spec, env, go_read, report_write);
	}
	int fork_errno = errno;
	close(report_write);
	if (pid < 0)
		return err_errno(fork_errno, "%s: can't start a process", spec->argv[0]);
	if (spec->forked)
		spec->forked(spec->ctx, pid);

	struct target *t = target_new(pid);
	struct err *err = NULL;
	t->launched = true;
	t->follow = spec->follow;
	if (!target_watch(t, pid)) {
		err = target_seize_error(pid, pid, errno);
		goto fail;
	}
	if (write(go_write, "", 1) != 1) {
		err = err_errno(errno, "%s: can't be started", spec->argv[0]);
		goto fail;
	}
	if (!wait_for_exec(t)) {
		err = exec_error(spec, report_read, ret_exit);
		goto fail;
	}
	if (target_has_lost_rights(t)) {
		err = err_new(ERR_DENIED, "%s: has rights of its own (setuid, capabilities), which it wouldn't "
			      "get from heaptop: run heaptop as root", spec->argv[0]);
		goto fail;
	}
	t->stop_began = target_now();
	err = target_run_to_start(t, true);
	if (!err && !t->stopped) {
		/* In PTRACE_EVENT_EXIT: let it end, for its exit code. */
		while (!t->exited && ptrace(PTRACE_CONT, pid, 0, 0L) == 0)
			wait_for_exec(t);
		err = early_end(t, spec, ret_exit);
	}
	if (err)
		goto fail;
	*ret_exit = 0;
	*ret = t;
	return NULL;

fail:
	end_child(t);
	target_delete(t);
	return err;
}
