/* See editor.h. */
#include "ui/editor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "ui/restore.h"

#define LOOK_MS 50	/* a child that stops has no descriptor to wait on */

extern char **environ;

struct err *editor_check(const char *path)
{
	if (!access(path, R_OK))
		return NULL;
	return err_prefix(err_errno(errno, "%s", path), "no source here (settings: source-path = FROM=TO)");
}

/* Signals and descriptors as a program expects them: our own go to a log, and some signals are ours. */
static struct err *start(char *const argv[], pid_t *ret)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/tty", O_RDWR, 0);
	posix_spawn_file_actions_adddup2(&files, 0, 1);
	posix_spawn_file_actions_adddup2(&files, 0, 2);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	int errnum = posix_spawn(ret, "/bin/sh", &files, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return errnum ? err_errno(errnum, "/bin/sh") : NULL;
}

/* Until it ends; a stop of it (Ctrl-Z) is one of ours, too, or the shell would never get the terminal back. */
static int wait_for(pid_t pid, int *ret_signal)
{
	int status = 0;

	for (;;) {
		pid_t got = waitpid(pid, &status, WNOHANG | WUNTRACED);
		if (got == pid && WIFSTOPPED(status)) {
			raise(SIGSTOP);
			kill(pid, SIGCONT);
		} else if (got == pid || (got < 0 && errno != EINTR)) {
			return status;
		}
		struct pollfd p = { .fd = restore_fd(), .events = POLLIN };
		poll(&p, 1, LOOK_MS);
		for (int sig; (sig = restore_next()); )
			if (sig == SIGHUP || sig == SIGTERM) {
				*ret_signal = sig;
				kill(pid, sig);
			}
	}
}

struct err *editor_run(const char *path, uint32_t line, int *ret_signal)
{
	const char *visual = getenv("VISUAL"), *editor = getenv("EDITOR");
	const char *name = visual && *visual ? visual : editor && *editor ? editor : "vi";
	struct sigaction ignore = { .sa_handler = SIG_IGN }, old_int, old_quit;
	pid_t pid;

	/* the value may have arguments, so a shell takes it apart; the path, which isn't ours, never is */
	CLEANUP_FREE char *script = xasprintf("%s \"$@\"", name);
	CLEANUP_FREE char *at = xasprintf("+%u", line);
	CLEANUP_FREE char *file = xasprintf("%s%s", *path == '-' || *path == '+' ? "./" : "", path);
	char *argv[] = { (char *)"sh", (char *)"-c", script, (char *)"sh", line ? at : file, line ? file : NULL, NULL };

	*ret_signal = 0;
	struct err *err = start(argv, &pid);
	if (err)
		return err;
	/* Ctrl-C and Ctrl-\ reach all of the terminal's job */
	sigaction(SIGINT, &ignore, &old_int);
	sigaction(SIGQUIT, &ignore, &old_quit);
	int status = wait_for(pid, ret_signal);
	sigaction(SIGINT, &old_int, NULL);
	sigaction(SIGQUIT, &old_quit, NULL);
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return NULL;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return err_new(ERR_NOT_FOUND, "%s: not found; VISUAL or EDITOR names another editor", name);
	if (WIFEXITED(status))
		return err_new(ERR_OTHER, "%s ended with code %d", name, WEXITSTATUS(status));
	return err_new(ERR_OTHER, "%s was ended by signal %d", name, WTERMSIG(status));
}
