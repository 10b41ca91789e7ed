/* Heaptop's side of a terminal, for tests of the relay; see side.h. */
#include "tests/lib/side.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "target/relay.h"
#include "tests/lib/pty.h"

struct shared *shared;

bool side_init(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	return shared != MAP_FAILED;
}

void sleep_ms(long ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

bool reached(volatile int *flag)
{
	for (int i = 0; i < LIMIT_MS / 5 && !*flag; i++)
		sleep_ms(5);
	return *flag;
}

pid_t start_program(const int fd[3], bool new_session, int (*program)(void))
{
	fflush(NULL);	/* or the program flushes it again */
	pid_t pid = fork();
	if (pid)
		return pid;
	if (new_session)
		setsid();
	bool have_terminal = false;
	for (int i = 0; i < 3; i++) {
		if (fd[i] >= 0)
			dup2(fd[i], i);
		if (new_session && fd[i] >= 0 && isatty(i) && !have_terminal)
			have_terminal = ioctl(i, TIOCSCTTY, 0) == 0;
	}
	for (int i = 3; i < 64; i++)
		close(i);
	int code = program();
	fflush(NULL);
	_exit(code);
}

struct relay *launch_pane(int (*program)(void))
{
	struct relay *relay;
	int fd[3];
	bool new_session;
	struct err *err = relay_create(RELAY_PANE, NULL, 24, 80, &relay, fd, &new_session);

	if (err) {
		printf("%s\r\n", err->text);
		exit(1);
	}
	shared->program = start_program(fd, new_session, program);
	relay_launched(relay);
	return relay;
}

char *read_all(struct relay *relay, const char *until)
{
	static char text[1 << 16];
	size_t n = 0;

	text[0] = '\0';
	while (n < sizeof(text) - 1) {
		struct pollfd fd = { .fd = relay_fd(relay), .events = POLLIN };
		if (poll(&fd, 1, LIMIT_MS) <= 0)
			break;
		long got = relay_read(relay, text + n, sizeof(text) - 1 - n);
		if (got < 0)
			break;
		n += (size_t)got;
		text[n] = '\0';
		if (until && n >= strlen(until) && !strcmp(text + n - strlen(until), until))
			break;
	}
	return text;
}

int exit_code(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void run_side_with(int (*side)(void *), const char *const file[3])
{
	struct pty_spec spec = { .func = side, .rows = 30, .cols = 100, .term = "xterm" };

	for (int i = 0; i < 3 && file; i++)
		spec.file[i] = file[i];
	memset(shared, 0, sizeof(*shared));
	struct pty *pty = pty_start(&spec);
	assert_non_null(pty);
	bool ended = pty_wait(pty, LIMIT_MS);
	int code = pty_exit_code(pty);
	if (code) {
		char *text = screen_dump(pty->screen);
		print_message("%s", text);
		free(text);
	}
	pty_destroy(pty);
	if (shared->program > 0)
		kill(shared->program, SIGKILL);
	assert_true(ended);
	assert_int_equal(code, 0);
}

void run_side(int (*side)(void *))
{
	run_side_with(side, NULL);
}
