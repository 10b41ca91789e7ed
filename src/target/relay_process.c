/*
 * The relay process's loop; see relay_process.h. Only system calls and memory of its own from
 * here on: the process was forked from heaptop and shares nothing with it but the socket.
 */
#include "target/relay_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* Output that heaptop hasn't taken yet. The oldest goes first: the end of a text is what the user wants. */
#define RING_SIZE (1u << 20)
#define CHUNK 65536u

/* What the user typed and the program hasn't room for yet: a terminal takes some KiB ahead. */
#define TYPED_SIZE 65536u
/*
 * When to try again, milliseconds, doubled from the first to the second: a master isn't reliably
 * reported writable again, since the kernel makes room after the program's read has returned.
 */
#define TYPED_MIN_MS 10
#define TYPED_MAX_MS 500

/*
 * How often to look again at a terminal nobody has open while its session lives, milliseconds.
 * The master says POLLHUP all the time then, so there is nothing to wait for.
 */
#define REOPEN_MS 250

struct ring {
	char *data;		/* RING_SIZE bytes */
	size_t head;		/* index of the oldest byte */
	size_t len;
	unsigned long long lost;/* bytes dropped since the last notice */
};

static void ring_push(struct ring *ring, const char *buf, size_t n)
{
	if (n > RING_SIZE) {
		ring->lost += n - RING_SIZE;
		buf += n - RING_SIZE;
		n = RING_SIZE;
	}
	if (ring->len + n > RING_SIZE) {
		size_t drop = ring->len + n - RING_SIZE;
		ring->head = (ring->head + drop) % RING_SIZE;
		ring->len -= drop;
		ring->lost += drop;
	}
	size_t tail = (ring->head + ring->len) % RING_SIZE;
	size_t first = n < RING_SIZE - tail ? n : RING_SIZE - tail;
	memcpy(ring->data + tail, buf, first);
	memcpy(ring->data, buf + first, n - first);
	ring->len += n;
}

/* Send what the socket takes. False: heaptop's end is closed. */
static bool ring_send(struct ring *ring, int sock)
{
	if (ring->lost) {
		/*
		 * The gap is told in the text itself. CAN first: the cut may be inside an escape
		 * sequence. A short write loses part of a notice, never program output.
		 */
		char note[96];
		int n = snprintf(note, sizeof(note),
				 "\x18\r\n[heaptop: %llu bytes of output were dropped here]\r\n",
				 ring->lost);
		ssize_t sent = send(sock, note, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0)
			return errno == EAGAIN || errno == EINTR || errno == ENOBUFS;
		ring->lost = 0;
	}
	while (ring->len) {
		size_t run = RING_SIZE - ring->head;
		if (run > ring->len)
			run = ring->len;
		ssize_t sent = send(sock, ring->data + ring->head, run, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0)
			return errno == EAGAIN || errno == EINTR || errno == ENOBUFS;
		ring->head = (ring->head + (size_t)sent) % RING_SIZE;
		ring->len -= (size_t)sent;
	}
	return true;
}

struct typed {
	char data[TYPED_SIZE];
	size_t len;
	int wait_ms;		/* until the next try */
};

/* Take what was typed in heaptop, as far as there is room. False: heaptop's end is closed. */
static bool typed_receive(struct typed *typed, int sock)
{
	while (typed->len < TYPED_SIZE) {
		ssize_t n = recv(sock, typed->data + typed->len, TYPED_SIZE - typed->len,
				 MSG_DONTWAIT);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		if (n == 0)
			return false;
		typed->len += (size_t)n;
		typed->wait_ms = 0;
	}
	return true;
}

static void typed_write(struct typed *typed, int master)
{
	size_t done = 0;

	while (done < typed->len) {
		ssize_t n = write(master, typed->data + done, typed->len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			done = typed->len;	/* nobody to read it */
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	if (done) {
		memmove(typed->data, typed->data + done, typed->len - done);
		typed->len -= done;
		typed->wait_ms = TYPED_MIN_MS;
	} else if (typed->wait_ms < TYPED_MIN_MS) {
		typed->wait_ms = TYPED_MIN_MS;
	} else if (typed->wait_ms < TYPED_MAX_MS) {
		typed->wait_ms *= 2;
	}
}

static void close_from(int low)
{
	if (syscall(SYS_close_range, (unsigned)low, ~0u, 0) == 0)
		return;
	/* before Linux 5.9, or forbidden by seccomp */
	long max = sysconf(_SC_OPEN_MAX);
	if (max < 0 || max > 65536)
		max = 65536;
	for (long fd = low; fd < max; fd++)
		close((int)fd);
}

/* Descriptors: /dev/null thrice, 3 the master, 4 the socket, no other. */
static void keep_only(int master, int sock)
{
	/* out of the way first, since either may have the other's number to be */
	int high_master = fcntl(master, F_DUPFD, 10);
	int high_sock = fcntl(sock, F_DUPFD, 10);
	if (high_master < 0 || high_sock < 0)
		_exit(1);
	int null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < 3; fd++) {
		if (null < 0)
			close(fd);
		else if (null != fd)
			dup2(null, fd);
	}
	if (dup2(high_master, 3) < 0 || dup2(high_sock, 4) < 0)
		_exit(1);
	close_from(5);
}

static void settle(void)
{
	static const int ignored[] = { SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGTSTP, SIGTTIN,
				       SIGTTOU, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH };
	sigset_t none;

	/* caught signals would run heaptop's handlers here */
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	prctl(PR_SET_NAME, "heaptop-relay");
	/* hold no mount busy */
	if (chdir("/") < 0)
		return;
}

enum drain {
	DRAIN_OK,
	DRAIN_UNUSED,	/* nobody has the slave open */
};

/* Take what the program has written, at most about a chunk, so that the socket gets its turn. */
static enum drain drain_master(int master, struct ring *ring, bool keep)
{
	static char buf[CHUNK];
	size_t total = 0;

	while (total < CHUNK) {
		ssize_t n = read(master, buf, sizeof(buf));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return DRAIN_OK;
		if (n <= 0)
			return DRAIN_UNUSED;	/* EIO: the last slave was closed */
		if (keep)
			ring_push(ring, buf, (size_t)n);
		total += (size_t)n;
	}
	return DRAIN_OK;
}

/*
 * Could the slave be opened again? A program that closed 0, 1 and 2 still has it as its
 * controlling terminal, and closing the master would hang it up. On a master, TIOCGSID tells the
 * session of the slave; it fails once the session's leader has ended.
 */
static bool session_lives(int master)
{
	pid_t sid;

	return ioctl(master, TIOCGSID, &sid) == 0;
}

_Noreturn void relay_process_run(int master, int sock)
{
	struct ring ring = { 0 };

	settle();
	keep_only(master, sock);
	master = 3;
	sock = 4;
	fcntl(master, F_SETFL, O_RDWR | O_NONBLOCK);
	ring.data = mmap(NULL, RING_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	if (ring.data == MAP_FAILED) {
		/* the program must not stall: drain without telling */
		close(sock);
		sock = -1;
	}

	static struct typed typed;
	bool unused = false;
	while (true) {
		if (unused && !session_lives(master))
			break;
		struct pollfd fds[2] = {
			{ .fd = unused ? -1 : master, .events = POLLIN },
			{ .fd = sock, .events = POLLRDHUP },
		};
		if (ring.len || ring.lost)
			fds[1].events |= POLLOUT;
		if (typed.len < TYPED_SIZE)
			fds[1].events |= POLLIN;
		int wait = unused ? REOPEN_MS : -1;
		if (typed.len && (wait < 0 || typed.wait_ms < wait))
			wait = typed.wait_ms;
		if (poll(fds, 2, wait) < 0 && errno != EINTR)
			break;
		unused = drain_master(master, &ring, sock >= 0) == DRAIN_UNUSED;
		if (sock >= 0) {
			/* what was typed last is taken even from an end that has closed */
			bool open = typed.len < TYPED_SIZE
				? typed_receive(&typed, sock)
				: !(fds[1].revents & (POLLHUP | POLLRDHUP | POLLERR));
			if (!open || !ring_send(&ring, sock)) {
				close(sock);
				sock = -1;
				ring.len = 0;
				ring.lost = 0;
			}
		}
		if (typed.len)
			typed_write(&typed, master);
	}

	/* the program's last words wait for heaptop, however slow it is */
	close(master);
	while (sock >= 0 && (ring.len || ring.lost)) {
		struct pollfd fd = { .fd = sock, .events = POLLOUT | POLLRDHUP };
		if (poll(&fd, 1, -1) < 0 && errno != EINTR)
			break;
		if (fd.revents & (POLLHUP | POLLERR | POLLRDHUP) || !ring_send(&ring, sock))
			break;
	}
	_exit(0);
}
