/*
 * The launched program's terminal and the relay process: output, typing, size, and that the
 * program is never stalled and never hung up. How a test is run: tests/lib/side.h.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "target/relay.h"
#include "tests/lib/pty.h"
#include "tests/lib/side.h"

/* ---- output, and what the program sees ---- */

static int program_looks(void)
{
	struct winsize size;
	struct termios termios;

	CHECK(isatty(0) && isatty(1) && isatty(2));
	CHECK(ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_row == 24 && size.ws_col == 80);
	CHECK(getsid(0) == getpid());
	CHECK(tcgetpgrp(0) == getpgrp());
	/* the user's erase key */
	CHECK(tcgetattr(0, &termios) == 0 && termios.c_cc[VERASE] == 8);
	int tty = open("/dev/tty", O_RDWR);
	CHECK(tty >= 0);
	CHECK(write(tty, "via tty\n", 8) == 8);
	fprintf(stderr, "error\n");
	printf("all there\n");
	return 7;
}

static int side_output(void *arg)
{
	struct termios termios;

	(void)arg;
	CHECK(tcgetattr(0, &termios) == 0);
	termios.c_cc[VERASE] = 8;
	CHECK(tcsetattr(0, TCSANOW, &termios) == 0);
	struct relay *relay = launch_pane(program_looks);
	CHECK(relay_has_terminal(relay));
	char *text = read_all(relay, NULL);
	CHECK(exit_code(shared->program) == 7);
	if (strcmp(text, "via tty\r\nerror\r\nall there\r\n")) {
		printf("got: %s\r\n", text);
		return 1;
	}
	CHECK(relay_fd(relay) == -1);
	CHECK(relay_read(relay, text, 1) == -1);
	relay_type(relay, "x", 1);
	relay_resize(relay, 1, 1);
	relay_destroy(relay);
	/* the relay process isn't our child */
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	return 0;
}

static void test_output(void **state)
{
	(void)state;
	run_side(side_output);
}

/* A very short program's last words, again and again. */
static int program_short(void)
{
	return write(1, "hello", 5) == 5 ? 0 : 1;
}

static int side_short(void *arg)
{
	(void)arg;
	for (int i = 0; i < 100; i++) {
		struct relay *relay = launch_pane(program_short);
		char *text = read_all(relay, NULL);
		CHECK(!strcmp(text, "hello"));
		CHECK(exit_code(shared->program) == 0);
		relay_destroy(relay);
	}
	return 0;
}

static void test_short(void **state)
{
	(void)state;
	run_side(side_short);
}

/* ---- typing, signals, size ---- */

/* Blocked and waited for, so that it doesn't matter when it comes. */
static bool signal_comes(int sig)
{
	struct timespec limit = { .tv_sec = LIMIT_MS / 1000 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	return sigtimedwait(&set, NULL, &limit) == sig;
}

static void ignore_signal(int sig)
{
	(void)sig;
}

static int program_types(void)
{
	char buf[64];
	struct winsize size;
	sigset_t set;

	/* SIGWINCH isn't even queued without a handler */
	signal(SIGWINCH, ignore_signal);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGWINCH);
	sigprocmask(SIG_BLOCK, &set, NULL);
	CHECK(write(1, "ready", 5) == 5);
	ssize_t n = read(0, buf, sizeof(buf));
	CHECK(n == 6 && !memcmp(buf, "typed\n", 6));
	CHECK(write(1, "Ctrl-C", 6) == 6);
	CHECK(signal_comes(SIGINT));
	CHECK(write(1, "size", 4) == 4);
	CHECK(signal_comes(SIGWINCH));
	CHECK(ioctl(0, TIOCGWINSZ, &size) == 0 && size.ws_row == 11 && size.ws_col == 44);
	CHECK(write(1, "end", 3) == 3);
	CHECK(read(0, buf, sizeof(buf)) == 0);
	return 0;
}

static int side_types(void *arg)
{
	(void)arg;
	struct relay *relay = launch_pane(program_types);
	CHECK(!strcmp(read_all(relay, "ready"), "ready"));
	relay_type(relay, "typ", 3);
	relay_type(relay, "ed\r", 3);
	CHECK(!strcmp(read_all(relay, "Ctrl-C"), "typed\r\nCtrl-C"));
	relay_type(relay, "\003", 1);
	CHECK(!strcmp(read_all(relay, "size"), "^Csize"));
	relay_resize(relay, 11, 44);
	CHECK(!strcmp(read_all(relay, "end"), "end"));
	relay_type(relay, "\004", 1);
	read_all(relay, NULL);
	CHECK(exit_code(shared->program) == 0);
	relay_destroy(relay);
	return 0;
}

static void test_typing(void **state)
{
	(void)state;
	run_side(side_types);
}

/* More than the terminal takes at once: kept, and there in the end. */
#define PASTE 60000

static int program_reads_late(void)
{
	struct termios raw;
	char buf[4096];
	long n = 0;

	CHECK(tcgetattr(0, &raw) == 0);
	cfmakeraw(&raw);
	CHECK(tcsetattr(0, TCSANOW, &raw) == 0);
	CHECK(write(1, "raw", 3) == 3);
	CHECK(reached(&shared->ready));
	while (n < PASTE) {
		ssize_t got = read(0, buf, sizeof(buf));
		CHECK(got > 0);
		for (ssize_t i = 0; i < got; i++)
			CHECK(buf[i] == (char)('a' + (n + i) % 23));
		n += got;
	}
	CHECK(write(1, "!", 1) == 1);
	return 0;
}

static int side_pastes(void *arg)
{
	static char text[PASTE];

	(void)arg;
	struct relay *relay = launch_pane(program_reads_late);
	CHECK(!strcmp(read_all(relay, "raw"), "raw"));
	for (int i = 0; i < PASTE; i++)
		text[i] = (char)('a' + i % 23);
	relay_type(relay, text, PASTE);
	shared->ready = 1;
	CHECK(!strcmp(read_all(relay, "!"), "!"));
	CHECK(exit_code(shared->program) == 0);
	relay_destroy(relay);
	return 0;
}

static void test_paste(void **state)
{
	(void)state;
	run_side(side_pastes);
}

/* ---- never stalled, never hung up ---- */

#define MUCH (10L << 20)

static int program_writes_much(void)
{
	static char lines[4096];

	signal(SIGHUP, SIG_DFL);
	for (size_t i = 0; i < sizeof(lines); i++)
		lines[i] = i % 64 == 63 ? '\n' : 'x';
	for (long n = 0; n < MUCH; n += (long)sizeof(lines)) {
		CHECK(write(1, lines, sizeof(lines)) == (ssize_t)sizeof(lines));
		shared->count = n;
	}
	CHECK(write(1, "the end", 7) == 7);
	shared->done = 1;
	return 3;
}

/* Nobody reads, until the program has ended: it must not wait, and the end of its text is there. */
static int side_never_reads(void *arg)
{
	(void)arg;
	struct relay *relay = launch_pane(program_writes_much);
	CHECK(exit_code(shared->program) == 3);
	char buf[65536];
	char end[8] = "";
	size_t total = 0;
	bool told = false;
	while (true) {
		struct pollfd fd = { .fd = relay_fd(relay), .events = POLLIN };
		CHECK(poll(&fd, 1, LIMIT_MS) > 0);
		long n = relay_read(relay, buf, sizeof(buf) - 1);
		if (n < 0)
			break;
		total += (size_t)n;
		buf[n] = '\0';
		told = told || strstr(buf, "bytes of output were dropped here");
		for (long i = n > 7 ? n - 7 : 0; i < n; i++) {
			memmove(end, end + 1, 6);
			end[6] = buf[i];
		}
	}
	CHECK(!strcmp(end, "the end"));
	CHECK(told);
	/* bounded: the ring and what the socket holds */
	CHECK(total > 1 << 20 && total < 4 << 20);
	relay_destroy(relay);
	return 0;
}

static void test_never_reads(void **state)
{
	(void)state;
	run_side(side_never_reads);
	assert_true(shared->done);
}

static int side_detaches(void *arg)
{
	(void)arg;
	struct relay *relay = launch_pane(program_writes_much);
	while (!shared->count)
		sleep_ms(1);
	relay_destroy(relay);
	CHECK(exit_code(shared->program) == 3);
	return 0;
}

static void test_detached(void **state)
{
	(void)state;
	run_side(side_detaches);
	assert_true(shared->done);
}

static int program_waits(void)
{
	signal(SIGHUP, SIG_DFL);
	shared->ready = 1;
	/* until the side is gone */
	while (kill(shared->side, 0) == 0)
		sleep_ms(5);
	sleep_ms(50);
	return program_writes_much();
}

static int side_waits_to_be_killed(void *arg)
{
	(void)arg;
	shared->side = getpid();
	launch_pane(program_waits);
	pause();
	return 1;
}

static bool process_gone(pid_t pid)
{
	for (int i = 0; i < LIMIT_MS / 5; i++) {
		if (kill(pid, 0) < 0)
			return true;
		/* a zombie of whoever adopted it has ended too */
		char path[64], line[512] = "";
		snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
		FILE *f = fopen(path, "r");
		if (!f)
			return true;
		if (!fgets(line, sizeof(line), f))
			line[0] = '\0';
		fclose(f);
		const char *paren = strrchr(line, ')');
		if (paren && paren[1] && paren[2] == 'Z')
			return true;
		sleep_ms(5);
	}
	return false;
}

/* The relay process that holds the master of /dev/pts/`index`; 0: none. */
static pid_t find_relay(long index)
{
	FILE *list = popen("pgrep -x heaptop-relay", "r");
	char path[64], line[128];
	pid_t ret = 0;
	int pid;
	long held;

	while (list && fscanf(list, "%d", &pid) == 1) {
		snprintf(path, sizeof(path), "/proc/%d/fdinfo/3", pid);
		FILE *f = fopen(path, "r");
		while (f && fgets(line, sizeof(line), f)) {
			if (sscanf(line, "tty-index: %ld", &held) == 1 && held == index)
				ret = pid;
		}
		if (f)
			fclose(f);
	}
	if (list)
		pclose(list);
	return ret;
}

static void test_killed(void **state)
{
	struct pty_spec spec = { .func = side_waits_to_be_killed, .rows = 24, .cols = 80,
				 .term = "xterm" };

	(void)state;
	memset(shared, 0, sizeof(*shared));
	struct pty *pty = pty_start(&spec);
	assert_non_null(pty);
	assert_true(reached(&shared->ready));
	kill(pty->pid, SIGKILL);
	assert_true(pty_wait(pty, LIMIT_MS));
	/* heaptop's own terminal goes too, as when its window is closed */
	pty_destroy(pty);
	assert_true(reached(&shared->done));
	assert_true(process_gone(shared->program));
}

/* ---- the relay process itself ---- */

static int program_holds(void)
{
	struct stat st;

	CHECK(fstat(0, &st) == 0);
	shared->count = (long)minor(st.st_rdev);
	shared->ready = 1;
	reached(&shared->done);
	return 0;
}

static int side_looks_at_process(void *arg)
{
	static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1 };
	char path[64], text[4096];
	pid_t relay_pid = 0;

	(void)arg;
	CHECK(open("/etc/passwd", O_RDONLY) >= 0);	/* must not be passed on */
	struct relay *relay = launch_pane(program_holds);
	CHECK(reached(&shared->ready));
	for (int i = 0; i < LIMIT_MS / 10 && !(relay_pid = find_relay(shared->count)); i++)
		sleep_ms(10);
	CHECK(relay_pid);
	CHECK(relay_pid != getpid() && getsid(relay_pid) != getsid(0));
	int count = 0;
	for (int fd = 0; fd < 64; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)relay_pid, fd);
		ssize_t len = readlink(path, text, sizeof(text) - 1);
		if (len < 0)
			continue;
		text[len] = '\0';
		count++;
		CHECK(!strcmp(text, "/dev/null") || strstr(text, "ptmx") || strstr(text, "socket:"));
	}
	CHECK(count == 5);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		CHECK(kill(relay_pid, signals[i]) == 0);
	sleep_ms(50);
	CHECK(kill(relay_pid, 0) == 0);
	relay_destroy(relay);
	sleep_ms(50);
	CHECK(kill(relay_pid, 0) == 0);		/* while the program lives */
	shared->done = 1;
	CHECK(exit_code(shared->program) == 0);
	CHECK(process_gone(relay_pid));
	return 0;
}

static void test_process(void **state)
{
	(void)state;
	run_side(side_looks_at_process);
}

/* Not launched after all: nothing stays behind. */
static int side_never_launches(void *arg)
{
	struct relay *relay;
	int fd[3];
	bool new_session;

	(void)arg;
	struct err *err = relay_create(RELAY_PANE, NULL, 0, -5, &relay, fd, &new_session);
	CHECK(!err);
	sleep_ms(50);
	char byte;
	CHECK(relay_read(relay, &byte, 1) == 0);	/* not closed yet */
	relay_launched(relay);
	CHECK(!strcmp(read_all(relay, NULL), ""));
	CHECK(relay_fd(relay) == -1);
	relay_destroy(relay);
	return 0;
}

static void test_never_launched(void **state)
{
	(void)state;
	run_side(side_never_launches);
}

/* A program that closes its descriptors still has its terminal: it isn't hung up, and may come back. */
static int program_closes(void)
{
	signal(SIGHUP, SIG_DFL);
	close(0);
	close(1);
	close(2);
	sleep_ms(600);
	int tty = open("/dev/tty", O_RDWR);
	if (tty < 0 || write(tty, "back\n", 5) != 5)
		return 1;
	return 5;
}

static int side_closed_program(void *arg)
{
	(void)arg;
	struct relay *relay = launch_pane(program_closes);
	CHECK(!strcmp(read_all(relay, NULL), "back\r\n"));
	CHECK(exit_code(shared->program) == 5);
	relay_destroy(relay);
	return 0;
}

static void test_closed_program(void **state)
{
	(void)state;
	run_side(side_closed_program);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_output),
		cmocka_unit_test(test_short),
		cmocka_unit_test(test_typing),
		cmocka_unit_test(test_paste),
		cmocka_unit_test(test_never_reads),
		cmocka_unit_test(test_detached),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_process),
		cmocka_unit_test(test_never_launched),
		cmocka_unit_test(test_closed_program),
	};

	return side_init() ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
