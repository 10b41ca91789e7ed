/*
 * Waits for a signal in the way its first argument names, in one system call, without a race: a
 * program that misses a wake-up sleeps on.
 *
 *	victim_wakes WAY [restart]
 *
 * Prints "ready", and "woken" when the call fails with EINTR after the handler of SIGUSR1 has run;
 * "wrong: ..." and code 1 if it returns in any other way. With "restart" the handler is
 * installed with SA_RESTART, "handled" is printed by it, and the call is expected not to return.
 * SIGUSR1 is blocked outside of the calls that have a mask of their own.
 */
#include <errno.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LONG 1000	/* seconds: for ever, if nothing wakes it */

static volatile sig_atomic_t handled;
static sigset_t masked, open_mask;	/* with SIGUSR1 and without */
static const struct timespec long_time = { LONG, 0 };
static int id = -1;		/* of a queue or a semaphore, to be removed */
static bool is_queue;

static void on_usr1(int sig)
{
	(void)sig;
	handled = 1;
}

static void on_usr1_restart(int sig)
{
	static const char text[] = "handled\n";

	(void)sig;
	(void)!write(1, text, sizeof(text) - 1);
}

static int fail(void)
{
	printf("wrong: can't prepare: %s\n", strerror(errno));
	exit(1);
}

static int new_pipe(int end)
{
	int fd[2];

	return pipe(fd) ? fail() : fd[end];
}

static long way_pause(void)
{
	return syscall(SYS_pause);
}

static long way_sigsuspend(void)
{
	return sigsuspend(&open_mask);
}

static long way_ppoll(void)
{
	return ppoll(NULL, 0, &long_time, &open_mask);
}

static long way_pselect(void)
{
	return pselect(0, NULL, NULL, NULL, &long_time, &open_mask);
}

static long way_select(void)
{
	struct timeval tv = { LONG, 0 };

	return select(0, NULL, NULL, NULL, &tv);
}

static long way_poll(void)
{
	return poll(NULL, 0, LONG * 1000);
}

static long way_epoll_wait(void)
{
	struct epoll_event e;

	return epoll_wait(epoll_create1(0), &e, 1, -1);
}

static long way_epoll_pwait(void)
{
	struct epoll_event e;

	return epoll_pwait(epoll_create1(0), &e, 1, LONG * 1000, &open_mask);
}

static long way_nanosleep(void)
{
	struct timespec left = { 0 };
	long ret = nanosleep(&long_time, &left);

	if (ret < 0 && left.tv_sec < LONG - 100) {
		printf("wrong: %ld s are left\n", (long)left.tv_sec);
		exit(1);
	}
	return ret;
}

static long way_nanosleep_until(void)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += LONG;
	errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	return errno ? -1 : 0;
}

static long way_futex(void)
{
	static uint32_t word;

	return syscall(SYS_futex, &word, FUTEX_WAIT, 0, &long_time, NULL, 0);
}

static long way_futex_forever(void)
{
	static uint32_t word;

	return syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static long way_read(void)
{
	char c;

	return read(new_pipe(0), &c, 1);
}

static long way_write(void)
{
	static char buf[1 << 16];
	int fd = new_pipe(1);

	return write(fd, buf, sizeof(buf)) == sizeof(buf) ? write(fd, buf, 1) : fail();
}

static long way_inotify(void)
{
	char buf[256];

	return read(inotify_init(), buf, sizeof(buf));
}

static int new_socket(int type)
{
	int fd[2];
	struct timeval tv = { LONG, 0 };

	if (socketpair(AF_UNIX, type, 0, fd) || setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) ||
	    setsockopt(fd[0], SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)))
		fail();
	return fd[0];
}

static long way_recv(void)
{
	char c;

	return recv(new_socket(SOCK_DGRAM), &c, 1, 0);
}

static long way_readv(void)
{
	char c;
	struct iovec iov = { &c, 1 };

	return readv(new_socket(SOCK_STREAM), &iov, 1);
}

static int full_socket(void)
{
	static char buf[4096];
	int fd = new_socket(SOCK_STREAM);

	while (send(fd, buf, sizeof(buf), MSG_DONTWAIT) > 0)
		;
	return fd;
}

static long way_send(void)
{
	return send(full_socket(), "x", 1, 0);
}

static long way_write_socket(void)
{
	return write(full_socket(), "x", 1);
}

static int listening(struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct timeval tv = { LONG, 0 };

	*addr = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (fd < 0 || bind(fd, (struct sockaddr *)addr, sizeof(*addr)) || listen(fd, 0) ||
	    getsockname(fd, (struct sockaddr *)addr, &len) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)))
		fail();
	return fd;
}

static long way_accept(void)
{
	struct sockaddr_in addr;

	return accept(listening(&addr), NULL, NULL);
}

/* To one whose queue is full: nobody answers. */
static long way_connect(void)
{
	struct sockaddr_in addr;
	struct timeval tv = { LONG, 0 };

	listening(&addr);
	for (int i = 0; i < 4; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(fd, (struct sockaddr *)&addr, sizeof(addr));
	}
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	return connect(fd, (struct sockaddr *)&addr, sizeof(addr));
}

static long way_sigtimedwait(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMAX);
	return sigtimedwait(&set, NULL, &long_time);
}

static long way_msgrcv(void)
{
	struct {
		long type;
		char text[8];
	} m;

	is_queue = true;
	id = msgget(IPC_PRIVATE, 0600);
	return id < 0 ? fail() : msgrcv(id, &m, sizeof(m.text), 0, 0);
}

static long way_semop(void)
{
	struct sembuf op = { .sem_op = -1 };

	id = semget(IPC_PRIVATE, 1, 0600);
	return id < 0 ? fail() : semop(id, &op, 1);
}

static long way_wait4(void)
{
	if (fork() == 0) {
		pause();
		_exit(0);
	}
	return wait4(-1, NULL, 0, NULL);
}

static const struct {
	const char *name;
	long (*wait)(void);
	bool own_mask;
} ways[] = {
	{ "pause", way_pause, false },
	{ "sigsuspend", way_sigsuspend, true },
	{ "ppoll", way_ppoll, true },
	{ "pselect", way_pselect, true },
	{ "select", way_select, false },
	{ "poll", way_poll, false },
	{ "epoll_wait", way_epoll_wait, false },
	{ "epoll_pwait", way_epoll_pwait, true },
	{ "nanosleep", way_nanosleep, false },
	{ "nanosleep_until", way_nanosleep_until, false },
	{ "futex", way_futex, false },
	{ "futex_forever", way_futex_forever, false },
	{ "read", way_read, false },
	{ "write", way_write, false },
	{ "inotify", way_inotify, false },
	{ "recv", way_recv, false },
	{ "readv", way_readv, false },
	{ "send", way_send, false },
	{ "write_socket", way_write_socket, false },
	{ "accept", way_accept, false },
	{ "connect", way_connect, false },
	{ "sigtimedwait", way_sigtimedwait, false },
	{ "msgrcv", way_msgrcv, false },
	{ "semop", way_semop, false },
	{ "wait4", way_wait4, false },
};

int main(int argc, char **argv)
{
	bool restart = argc > 2 && strcmp(argv[2], "restart") == 0;
	struct sigaction action = {
		.sa_handler = restart ? on_usr1_restart : on_usr1,
		.sa_flags = restart ? SA_RESTART : 0,
	};
	size_t i = 0;

	while (argc > 1 && i < sizeof(ways) / sizeof(ways[0]) && strcmp(ways[i].name, argv[1]))
		i++;
	if (argc < 2 || i == sizeof(ways) / sizeof(ways[0])) {
		for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
			puts(ways[i].name);
		return argc < 2 ? 0 : 2;
	}
	sigaction(SIGUSR1, &action, NULL);
	sigprocmask(SIG_SETMASK, NULL, &open_mask);
	masked = open_mask;
	sigaddset(&masked, SIGUSR1);
	if (ways[i].own_mask)
		sigprocmask(SIG_SETMASK, &masked, NULL);
	printf("ready\n");
	fflush(stdout);
	long ret = ways[i].wait();
	int error = errno;
	if (ret < 0 && error == EINTR && handled)
		printf("woken\n");
	else
		printf("wrong: %ld, %s, %s\n", ret, strerror(error), handled ? "handled" : "no signal");
	if (id >= 0 && is_queue)
		msgctl(id, IPC_RMID, NULL);
	else if (id >= 0)
		semctl(id, 0, IPC_RMID);
	return 0;
}
