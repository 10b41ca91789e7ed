/*
 * A program that uses its terminal and writes down in FILE what it saw, a line each:
 *
 *	tty look FILE		which of 0, 1, 2 are terminals, their size, is there a /dev/tty
 *	tty flood FILE BYTES	write that much on the output, then "done"
 *	tty read FILE		lines of the input as "line: ...", signals INT, HUP, WINCH as they
 *				come (blocked meanwhile, so none is lost), "eof" at the end
 *	tty tick FILE SECONDS	write on the output 20 times a second; "tick N" for each that was
 *				written; a SIGHUP ends it
 * The first line is "ready PID". It allocates a little all the time.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

static FILE *notes;

__attribute__((format(printf, 1, 2))) static void note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(notes, fmt, ap);
	va_end(ap);
	fputc('\n', notes);
	fflush(notes);
}

static void note_size(const char *what)
{
	struct winsize size;

	for (int fd = 0; fd < 3; fd++) {
		if (ioctl(fd, TIOCGWINSZ, &size) == 0) {
			note("%s %dx%d", what, size.ws_col, size.ws_row);
			return;
		}
	}
	note("%s none", what);
}

static int look(void)
{
	int tty = open("/dev/tty", O_RDWR);

	note("isatty %d %d %d", isatty(0), isatty(1), isatty(2));
	note("tty %d", tty >= 0);
	note("leader %d", getsid(0) == getpid());
	note_size("size");
	printf("looked\n");
	return 0;
}

static int flood(long bytes)
{
	static char lines[4096];

	for (size_t i = 0; i < sizeof(lines); i++)
		lines[i] = i % 64 == 63 ? '\n' : 'x';
	for (long done = 0; done < bytes;) {
		free(malloc(100));
		size_t n = bytes - done < (long)sizeof(lines) ? (size_t)(bytes - done) : sizeof(lines);
		ssize_t got = write(1, lines, n);
		if (got < 0) {
			note("write: %s", strerror(errno));
			return 1;
		}
		done += got;
	}
	note("done");
	printf("the end of the flood\n");
	return 0;
}

static void note_signal(int fd)
{
	struct signalfd_siginfo info;

	if (read(fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGWINCH)
		note_size("resized");
	else
		note("SIG%s", sigabbrev_np((int)info.ssi_signo));
}

static void winched(int sig)
{
	(void)sig;
}

static int read_lines(void)
{
	char buf[4096], line[4097];
	size_t n = 0;
	sigset_t set;

	/* without a handler it isn't even queued */
	signal(SIGWINCH, winched);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGWINCH);
	sigprocmask(SIG_BLOCK, &set, NULL);
	struct pollfd fds[2] = {
		{ .fd = 0, .events = POLLIN },
		{ .fd = signalfd(-1, &set, 0), .events = POLLIN },
	};
	printf("type something\n");
	fflush(stdout);
	while (poll(fds, 2, 120000) > 0) {
		if (fds[1].revents)
			note_signal(fds[1].fd);
		if (!fds[0].revents)
			continue;
		ssize_t got = read(0, buf, sizeof(buf));
		if (got <= 0) {
			note("eof");
			return 0;
		}
		for (ssize_t i = 0; i < got; i++) {
			if (buf[i] != '\n' && n < sizeof(line) - 1) {
				line[n++] = buf[i];
				continue;
			}
			line[n] = '\0';
			note("line: %s", line);
			free(malloc(n + 1));
			n = 0;
		}
	}
	return 1;
}

static int tick(double seconds)
{
	struct timespec pause = { .tv_nsec = 50000000 };

	for (int i = 0; i < seconds * 20; i++) {
		free(malloc(1000));
		if (printf("tick %d\n", i) < 0 || fflush(stdout) != 0) {
			note("write: %s", strerror(errno));
			return 1;
		}
		note("tick %d", i);
		nanosleep(&pause, NULL);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[1] : "";

	notes = argc > 2 ? fopen(argv[2], "we") : NULL;
	if (!notes) {
		fprintf(stderr, "usage: tty look|flood|read|tick FILE [N]\n");
		return 2;
	}
	note("ready %d", (int)getpid());
	if (!strcmp(mode, "look"))
		return look();
	if (!strcmp(mode, "flood"))
		return flood(argc > 3 ? atol(argv[3]) : 10L << 20);
	if (!strcmp(mode, "read"))
		return read_lines();
	if (!strcmp(mode, "tick"))
		return tick(argc > 3 ? atof(argv[3]) : 60);
	return 2;
}
