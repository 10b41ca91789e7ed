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
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
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

static long way_epoll_pwait2(void)
{
	struct epoll_event e;

	return syscall(SYS_epoll_pwait2, epoll_create1(0), &e, 1, &long_time, &open_mask, sizeof(uint64_t));
}

static long way_futex_waitv(void)
{
	static uint32_t words[2];
	struct futex_waitv on[2] = {
		{ .uaddr = (uintptr_t)&words[0], .flags = FUTEX_32 },
		{ .uaddr = (uintptr_t)&words[1], .flags = FUTEX_32 },
	};

	return syscall(SYS_futex_waitv, on, 2, 0, NULL, 0);
}

static long way_sigwaitinfo(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMAX);
	return sigwaitinfo(&set, NULL);
}

static mqd_t new_queue(void)
{
	struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 8 };
	char name[32];

	snprintf(name, sizeof(name), "/victim_wakes.%d", (int)getpid());
	mqd_t q = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
	mq_unlink(name);
	return q == (mqd_t)-1 ? fail() : q;
}

static long way_mq_receive(void)
{
	char text[8];

	return mq_receive(new_queue(), text, sizeof(text), NULL);
}

static long way_mq_send(void)
{
	mqd_t q = new_queue();

	return mq_send(q, "x", 1, 0) ? fail() : mq_send(q, "x", 1, 0);
}

static long way_msgsnd(void)
{
	struct {
		long type;
		char text[1000];
	} m = { .type = 1 };

	is_queue = true;
	id = msgget(IPC_PRIVATE, 0600);
	while (id >= 0 && msgsnd(id, &m, sizeof(m.text), IPC_NOWAIT) == 0)
		;
	return id < 0 ? fail() : msgsnd(id, &m, sizeof(m.text), 0);
}

static long way_semtimedop(void)
{
	struct sembuf op = { .sem_op = -1 };

	id = semget(IPC_PRIVATE, 1, 0600);
	return id < 0 ? fail() : semtimedop(id, &op, 1, &long_time);
}

static long way_waitid(void)
{
	siginfo_t info;

	if (fork() == 0) {
		pause();
		_exit(0);
	}
	return waitid(P_ALL, 0, &info, WEXITED);
}

/*
 * A file that a child has a lock on: of a record, or by flock. The child is waited for without sleeping, which would be
 * taken for the way.
 */
static int locked_file(bool record)
{
	struct flock whole = { .l_type = F_WRLCK };
	int fd = memfd_create("locked", 0), pipes[2];
	ssize_t got;
	char path[32], c;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd < 0 || pipe2(pipes, O_NONBLOCK))
		fail();
	if (fork() == 0) {
		/* of its own: a lock of flock belongs to the opening, and the parent has this one, too */
		int mine = open(path, O_RDWR);
		if ((record ? fcntl(mine, F_SETLK, &whole) : flock(mine, LOCK_EX)) == 0)
			(void)!write(pipes[1], "x", 1);
		close(pipes[1]);
		pause();
		_exit(0);
	}
	close(pipes[1]);
	while ((got = read(pipes[0], &c, 1)) < 0 && errno == EAGAIN)
		sched_yield();
	return got == 1 ? fd : fail();
}

static long way_record_lock(void)
{
	struct flock whole = { .l_type = F_WRLCK };

	return fcntl(locked_file(true), F_SETLKW, &whole);
}

static long way_open_file_lock(void)
{
	struct flock whole = { .l_type = F_WRLCK };

	return fcntl(locked_file(true), F_OFD_SETLKW, &whole);
}

static long way_flock(void)
{
	return flock(locked_file(false), LOCK_EX);
}

static long way_recvmmsg(void)
{
	char c;
	struct iovec iov = { &c, 1 };
	struct mmsghdr m = { .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } };

	return recvmmsg(new_socket(SOCK_DGRAM), &m, 1, 0, NULL);
}

static long way_sendmsg(void)
{
	struct iovec iov = { "x", 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	return sendmsg(full_socket(), &m, 0);
}

static long way_io_getevents(void)
{
	aio_context_t ctx = 0;
	struct io_event e;

	return syscall(SYS_io_setup, 1, &ctx) ? fail() : syscall(SYS_io_getevents, ctx, 1, 1, &e, NULL);
}

static int new_io_uring(void)
{
	struct io_uring_params params = { 0 };

	return (int)syscall(SYS_io_uring_setup, 4, &params);
}

static long way_io_uring_enter(void)
{
	int fd = new_io_uring();

	return fd < 0 ? fail() : syscall(SYS_io_uring_enter, fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
}

/* It may be switched off for all (kernel.io_uring_disabled). */
static bool is_there(const char *name)
{
	int fd = strcmp(name, "io_uring_enter") ? 0 : new_io_uring();

	if (fd > 0)
		close(fd);
	return fd >= 0;
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
	{ "epoll_pwait2", way_epoll_pwait2, true },
	{ "futex_waitv", way_futex_waitv, false },
	{ "sigwaitinfo", way_sigwaitinfo, false },
	{ "mq_receive", way_mq_receive, false },
	{ "mq_send", way_mq_send, false },
	{ "msgsnd", way_msgsnd, false },
	{ "semtimedop", way_semtimedop, false },
	{ "waitid", way_waitid, false },
	{ "record_lock", way_record_lock, false },
	{ "open_file_lock", way_open_file_lock, false },
	{ "flock", way_flock, false },
	{ "recvmmsg", way_recvmmsg, false },
	{ "sendmsg", way_sendmsg, false },
	{ "io_getevents", way_io_getevents, false },
	{ "io_uring_enter", way_io_uring_enter, false },
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
			if (is_there(ways[i].name))
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
