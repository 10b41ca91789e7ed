/* The launched program's terminal: descriptors, pseudo terminal, heaptop's end; see relay.h. */
#include "target/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "target/relay_process.h"

struct relay {
	int master;	/* a copy, for the size; the relay process's is the one that keeps the
			 * terminal alive. -1: no pty */
	int sock;	/* output from the relay process, typed bytes to it; -1: no pty, or
			 * closed at its end */
	int given[2];	/* the program's descriptors, ours until launched; -1: none */
};

static bool is_terminal_path(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISCHR(st.st_mode))
		return false;
	/* O_NONBLOCK: a serial line without carrier would block the open */
	CLEANUP_CLOSE int fd = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	return fd >= 0 && isatty(fd);
}

struct err *relay_parse(const char *text, enum relay_mode *ret_mode)
{
	if (!text || !*text)
		return err_new(ERR_BAD_INPUT, "--io needs pane, inherit, null, a terminal or a file");
	if (!strcmp(text, "pane"))
		*ret_mode = RELAY_PANE;
	else if (!strcmp(text, "inherit"))
		*ret_mode = RELAY_INHERIT;
	else if (!strcmp(text, "null"))
		*ret_mode = RELAY_NULL;
	else if (!strncmp(text, "/dev/pts/", 9) || is_terminal_path(text))
		*ret_mode = RELAY_TTY;
	else
		*ret_mode = RELAY_FILE;
	return NULL;
}

/*
 * Is this descriptor heaptop's own terminal? TIOCGSID answers for the caller's controlling
 * terminal only, so another terminal, which may be given to the program as it is, says no.
 */
static bool is_ours(int fd)
{
	return tcgetsid(fd) != (pid_t)-1;
}

/* ---- the pseudo terminal ---- */

static struct winsize size_of(int rows, int cols)
{
	struct winsize size = {
		.ws_row = (unsigned short)(rows < 1 ? 1 : rows > 9999 ? 9999 : rows),
		.ws_col = (unsigned short)(cols < 1 ? 1 : cols > 9999 ? 9999 : cols),
	};
	return size;
}

static struct err *open_pty(int like, int rows, int cols, int *ret_master, int *ret_slave)
{
	CLEANUP_CLOSE int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (master < 0)
		return err_errno(errno, "no pseudo terminal for the program");
	if (grantpt(master) < 0 || unlockpt(master) < 0)
		return err_errno(errno, "cannot unlock the program's pseudo terminal");

	/* by the master, since /dev/pts may be another mount than the master's; Linux 4.13 */
	CLEANUP_CLOSE int slave = -1;
#ifdef TIOCGPTPEER
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
#endif
	char name[PATH_MAX];
	if (slave < 0 && ptsname_r(master, name, sizeof(name)) == 0)
		slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return err_errno(errno, "cannot open the program's pseudo terminal");

	/* the user's erase key, flow control, tab expansion; a new pty's own settings are sane too */
	struct termios termios;
	if (tcgetattr(like, &termios) == 0)
		tcsetattr(slave, TCSANOW, &termios);
	struct winsize size = size_of(rows, cols);
	ioctl(master, TIOCSWINSZ, &size);
	fcntl(master, F_SETFL, O_RDWR | O_NONBLOCK);

	*ret_master = master;
	*ret_slave = slave;
	master = slave = -1;
	return NULL;
}

/*
 * Twice forked: the relay is nobody's child, so that its end neither leaves a zombie nor raises
 * SIGCHLD in heaptop.
 */
static struct err *start_process(int master, int sock)
{
	pid_t pid = fork();

	if (pid < 0)
		return err_errno(errno, "cannot start the relay process");
	if (pid == 0) {
		pid_t relay = fork();
		if (relay == 0)
			relay_process_run(master, sock);
		_exit(relay < 0);
	}
	int status;
	while (waitpid(pid, &status, 0) < 0) {
		/* ECHILD: SIGCHLD is ignored and the kernel has reaped it; nothing is known then */
		if (errno != EINTR)
			return NULL;
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return err_new(ERR_OS, "cannot start the relay process");
	return NULL;
}

static struct err *create_pane(struct relay *relay, const bool ours[3], int rows, int cols, int fd[3])
{
	int like = ours[0] ? 0 : ours[1] ? 1 : 2;
	int slave;

	if (!ours[0] && !ours[1] && !ours[2])
		return NULL;
	struct err *err = open_pty(like, rows, cols, &relay->master, &slave);
	if (err)
		return err;
	relay->given[0] = slave;

	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return err_errno(errno, "no socket to the relay process");
	relay->sock = pair[0];
	err = start_process(relay->master, pair[1]);
	close(pair[1]);
	if (err)
		return err;
	for (int i = 0; i < 3; i++) {
		if (ours[i])
			fd[i] = slave;
	}
	return NULL;
}

/* ---- the other modes ---- */

static struct err *create_null(struct relay *relay, const bool ours[3], int fd[3])
{
	relay->given[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (relay->given[0] < 0)
		return err_errno(errno, "/dev/null");
	for (int i = 0; i < 3; i++) {
		if (ours[i])
			fd[i] = relay->given[0];
	}
	return NULL;
}

static struct err *create_file(struct relay *relay, const char *path, const bool ours[3], int fd[3])
{
	struct stat st;

	/* truncated only after the look at what it is; O_NONBLOCK: a FIFO would block the open */
	CLEANUP_CLOSE int out = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK
				     | O_NOCTTY | O_CLOEXEC, 0666);
	if (out < 0 && errno == ELOOP)
		return err_new(ERR_BAD_INPUT, "%s: is a symbolic link: name the file itself", path);
	if (out < 0)
		return err_errno(errno, "%s", path);
	if (fstat(out, &st) < 0)
		return err_errno(errno, "%s", path);
	if (S_ISREG(st.st_mode)) {
		if (st.st_uid != geteuid() || st.st_nlink > 1)
			return err_new(ERR_BAD_INPUT, "%s: has another owner or name: "
				       "choose a new file for the program's output", path);
		if (ftruncate(out, 0) < 0)
			return err_errno(errno, "%s", path);
	} else if (!S_ISCHR(st.st_mode)) {
		return err_new(ERR_BAD_INPUT, "%s: not a regular file", path);
	}
	fcntl(out, F_SETFL, O_APPEND);	/* blocking again, for the program */

	if (ours[0]) {
		fd[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (fd[0] < 0)
			return err_errno(errno, "/dev/null");
		relay->given[1] = fd[0];
	}
	for (int i = 1; i < 3; i++) {
		if (ours[i])
			fd[i] = out;
	}
	relay->given[0] = out;
	out = -1;
	return NULL;
}

static struct err *create_tty(struct relay *relay, const char *path, int fd[3])
{
	CLEANUP_CLOSE int tty = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (tty < 0)
		return err_errno(errno, "%s", path);
	if (!isatty(tty))
		return err_new(ERR_BAD_INPUT, "%s: not a terminal", path);
	if (is_ours(tty))
		return err_new(ERR_BAD_INPUT, "%s: is heaptop's own terminal: give the program "
			       "another one, or --io=pane", path);
	fd[0] = fd[1] = fd[2] = relay->given[0] = tty;
	tty = -1;
	return NULL;
}

struct err *relay_create(enum relay_mode mode, const char *path, int rows, int cols,
			 struct relay **ret, int fd[3], bool *ret_new_session)
{
	struct relay *relay = xcalloc(1, sizeof(*relay));
	struct err *err = NULL;
	bool ours[3];

	relay->master = relay->sock = relay->given[0] = relay->given[1] = -1;
	for (int i = 0; i < 3; i++) {
		fd[i] = -1;
		ours[i] = is_ours(i);
	}
	/*
	 * Whenever the program is kept off our terminal it also leaves our session, even with no
	 * descriptor to replace: it could write over the screen through /dev/tty otherwise, and
	 * would get our terminal's signals.
	 */
	*ret_new_session = mode != RELAY_INHERIT;
	switch (mode) {
	case RELAY_PANE:
		err = create_pane(relay, ours, rows, cols, fd);
		break;
	case RELAY_INHERIT:
		break;
	case RELAY_NULL:
		err = create_null(relay, ours, fd);
		break;
	case RELAY_FILE:
		err = create_file(relay, path, ours, fd);
		break;
	case RELAY_TTY:
		err = create_tty(relay, path, fd);
		break;
	}
	if (err) {
		relay_destroy(relay);
		fd[0] = fd[1] = fd[2] = -1;
		return err;
	}
	*ret = relay;
	return NULL;
}

static void close_and_forget(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void relay_launched(struct relay *relay)
{
	close_and_forget(&relay->given[0]);
	close_and_forget(&relay->given[1]);
}

void relay_destroy(struct relay *relay)
{
	if (!relay)
		return;
	relay_launched(relay);
	close_and_forget(&relay->sock);
	close_and_forget(&relay->master);
	free(relay);
}

/* ---- while the program runs ---- */

bool relay_has_terminal(const struct relay *relay)
{
	return relay->master >= 0;
}

int relay_fd(const struct relay *relay)
{
	return relay->sock;
}

long relay_read(struct relay *relay, void *buf, size_t len)
{
	if (relay->sock < 0)
		return -1;
	ssize_t n;
	do {
		n = recv(relay->sock, buf, len, MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n > 0)
		return n;
	if (len == 0 || (n < 0 && errno == EAGAIN))
		return 0;
	/* no more to poll for, or the screen's loop would spin on it */
	close_and_forget(&relay->sock);
	return -1;
}

void relay_type(struct relay *relay, const void *buf, size_t len)
{
	const char *p = buf;

	/* the relay process keeps 64 KiB, the socket some more; what is beyond is lost */
	while (relay->sock >= 0 && len) {
		ssize_t n = send(relay->sock, p, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		p += n;
		len -= (size_t)n;
	}
}

void relay_resize(struct relay *relay, int rows, int cols)
{
	if (relay->master < 0)
		return;
	struct winsize size = size_of(rows, cols);
	ioctl(relay->master, TIOCSWINSZ, &size);
}
