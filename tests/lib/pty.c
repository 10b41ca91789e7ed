/* A raw terminal for tests; see pty.h. */
#include "pty.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/* What the leader tells: first the pid, later the status. */
struct news {
	pid_t pid;
	int status;
};

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void redirect(const struct pty_spec *spec, int slave)
{
	for (int i = 0; i < 3; i++) {
		int fd = slave;
		if (spec->file[i])
			fd = open(spec->file[i], i ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY, 0666);
		if (fd < 0) {
			perror(spec->file[i]);
			_exit(125);
		}
		dup2(fd, i);
	}
}

static _Noreturn void command(const struct pty_spec *spec, int slave)
{
	/* the foreground group, as a shell would make it */
	setpgid(0, 0);
	signal(SIGTTOU, SIG_IGN);
	tcsetpgrp(slave, getpid());
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	redirect(spec, slave);
	for (int fd = 3; fd < 256; fd++)
		close(fd);
	unsetenv("LINES");
	unsetenv("COLUMNS");
	if (spec->term)
		setenv("TERM", spec->term, 1);
	else
		unsetenv("TERM");
	if (spec->func) {
		int code = spec->func(spec->arg);
		fflush(NULL);
		_exit(code);
	}
	execvp(spec->argv[0], spec->argv);
	perror(spec->argv[0]);
	_exit(127);
}

static _Noreturn void leader(const struct pty_spec *spec, int slave, int control)
{
	struct news news = { .status = -1 };
	char byte;

	setsid();
	ioctl(slave, TIOCSCTTY, 0);
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGTTOU, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	news.pid = fork();
	if (news.pid == 0)
		command(spec, slave);
	if (write(control, &news, sizeof(news)) < 0)
		_exit(1);
	while (news.pid > 0 && waitpid(news.pid, &news.status, 0) < 0 && errno == EINTR)
		;
	if (write(control, &news, sizeof(news)) < 0)
		_exit(1);
	/* the session lives until the harness has looked at the terminal */
	while (read(control, &byte, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

static bool open_terminal(struct pty *pty, const struct pty_spec *spec)
{
	char name[128];

	pty->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (pty->master < 0 || grantpt(pty->master) < 0 || unlockpt(pty->master) < 0
	    || ptsname_r(pty->master, name, sizeof(name)) != 0)
		return false;
	pty->slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (pty->slave < 0)
		return false;
	struct winsize size = { .ws_row = (unsigned short)spec->rows,
				.ws_col = (unsigned short)spec->cols };
	return ioctl(pty->master, TIOCSWINSZ, &size) == 0
	       && tcgetattr(pty->slave, pty->before) == 0;
}

struct pty *pty_start(const struct pty_spec *spec)
{
	struct pty *pty = calloc(1, sizeof(*pty));
	struct news news;
	int pair[2];

	if (!pty || !(pty->before = calloc(1, sizeof(struct termios))))
		abort();
	pty->master = pty->slave = pty->control = -1;
	pty->status = -1;
	pty->screen = screen_create(spec->rows, spec->cols);
	/* packets, so that a piece of news is read whole */
	if (!open_terminal(pty, spec)
	    || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		goto failed;
	pty->leader = fork();
	if (pty->leader == 0) {
		close(pty->master);
		close(pair[0]);
		leader(spec, pty->slave, pair[1]);
	}
	close(pair[1]);
	pty->control = pair[0];
	if (pty->leader < 0 || read(pty->control, &news, sizeof(news)) != sizeof(news)
	    || news.pid < 0)
		goto failed;
	pty->pid = news.pid;
	return pty;
failed:
	perror("pty");
	pty_destroy(pty);
	return NULL;
}

void pty_destroy(struct pty *pty)
{
	if (!pty)
		return;
	if (pty->pid > 0 && pty->status < 0) {
		kill(pty->pid, SIGKILL);
		pty_wait(pty, 5000);
	}
	if (pty->control >= 0)
		close(pty->control);
	if (pty->leader > 0)
		waitpid(pty->leader, NULL, 0);
	if (pty->master >= 0)
		close(pty->master);
	if (pty->slave >= 0)
		close(pty->slave);
	screen_destroy(pty->screen);
	free(pty->before);
	free(pty->raw);
	free(pty);
}

static void take(struct pty *pty, const char *buf, size_t n)
{
	if (pty->n_raw + n > pty->cap_raw) {
		pty->cap_raw = (pty->n_raw + n) * 2;
		pty->raw = realloc(pty->raw, pty->cap_raw);
		if (!pty->raw)
			abort();
	}
	memcpy(pty->raw + pty->n_raw, buf, n);
	pty->n_raw += n;
	screen_feed(pty->screen, buf, n);
}

/* Wait for output or the end, at most ms; false: neither. */
static bool step(struct pty *pty, int ms)
{
	char buf[16384];
	struct news news;
	struct pollfd fds[2] = {
		{ .fd = pty->master, .events = POLLIN },
		{ .fd = pty->status < 0 ? pty->control : -1, .events = POLLIN },
	};

	if (poll(fds, 2, ms) <= 0)
		return false;
	if (fds[0].revents & POLLIN) {
		ssize_t n = read(pty->master, buf, sizeof(buf));
		if (n > 0) {
			take(pty, buf, (size_t)n);
			return true;
		}
	}
	if (fds[1].revents) {
		if (read(pty->control, &news, sizeof(news)) == sizeof(news))
			pty->status = news.status;
		else
			pty->status = 0xff00;	/* the leader has gone: exit code 255 */
		return true;
	}
	return false;
}

void pty_send(struct pty *pty, const void *buf, size_t len)
{
	const char *p = buf;

	while (len) {
		ssize_t n = write(pty->master, p, len);
		if (n < 0 && errno != EINTR)
			return;
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		}
	}
}

void pty_resize(struct pty *pty, int rows, int cols)
{
	struct winsize size = { .ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols };

	screen_resize(pty->screen, rows, cols);
	ioctl(pty->master, TIOCSWINSZ, &size);
}

void pty_pump(struct pty *pty, int ms)
{
	long end = now_ms() + ms, left;

	while ((left = end - now_ms()) >= 0) {
		bool ended = pty->status >= 0;
		if (!step(pty, ended ? 0 : (int)left) && ended)
			return;
	}
}

bool pty_output(struct pty *pty, int ms)
{
	long end = now_ms() + ms, left;
	size_t before = pty->n_raw;

	while (pty->n_raw == before && (left = end - now_ms()) >= 0)
		if (!step(pty, (int)left) && pty->status >= 0)
			break;
	return pty->n_raw != before;
}

static bool until(struct pty *pty, const char *text, bool there, int ms)
{
	long end = now_ms() + ms;

	while (true) {
		if (screen_contains(pty->screen, text) == there)
			return true;
		long left = end - now_ms();
		bool ended = pty->status >= 0;
		if (left < 0 || (!step(pty, ended ? 0 : (int)left) && ended))
			return screen_contains(pty->screen, text) == there;
	}
}

bool pty_expect(struct pty *pty, const char *text, int ms)
{
	return until(pty, text, true, ms);
}

bool pty_gone(struct pty *pty, const char *text, int ms)
{
	return until(pty, text, false, ms);
}

bool pty_wait(struct pty *pty, int ms)
{
	long end = now_ms() + ms, left;

	while (pty->status < 0 && (left = end - now_ms()) >= 0)
		step(pty, (int)left);
	/* what it wrote before the end lies in the master's buffer */
	while (pty->status >= 0 && step(pty, 0))
		;
	return pty->status >= 0;
}

int pty_exit_code(const struct pty *pty)
{
	if (pty->status < 0)
		return -1;
	return WIFSIGNALED(pty->status) ? 128 + WTERMSIG(pty->status) : WEXITSTATUS(pty->status);
}

const char *pty_left_over(struct pty *pty)
{
	const struct termios *before = pty->before;
	struct termios now;

	pty_pump(pty, 0);
	if (tcgetattr(pty->slave, &now) < 0)
		return "the terminal was hung up";
	if (now.c_lflag != before->c_lflag)
		return "termios: echo, canonical mode or signals (c_lflag) differ";
	if (now.c_iflag != before->c_iflag)
		return "termios: c_iflag differs";
	if (now.c_oflag != before->c_oflag)
		return "termios: c_oflag differs";
	if (now.c_cflag != before->c_cflag)
		return "termios: c_cflag differs";
	if (memcmp(now.c_cc, before->c_cc, sizeof(now.c_cc)) != 0)
		return "termios: special characters (c_cc) differ";
	return screen_left_over(pty->screen);
}
