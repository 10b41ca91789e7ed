/* See restore.h. */
#include "ui/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"

/* Those that end us: HUP INT QUIT TERM are told to the loop, which leaves in order; the others can't wait. */
static const int polite[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH, SIGTSTP, SIGCONT };
static const int crash[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };

#define ALT_STACK 65536

static struct {
	volatile sig_atomic_t active;
	volatile sig_atomic_t asked;	/* times we were told to end */
	int tty, pipe[2];
	char undo[256];
	size_t len;
	struct termios shell;
	struct sigaction old_polite[ARRAY_SIZE(polite)], old_crash[ARRAY_SIZE(crash)];
	stack_t old_stack;
	sigset_t old_mask;
	void *stack;
	bool at_exit;
} state = { .tty = -1, .pipe = { -1, -1 } };

/* Async-signal-safe. */
static void give_back(void)
{
	if (!state.active)
		return;
	state.active = 0;
	const char *p = state.undo;
	for (size_t left = state.len; left;) {
		ssize_t n = write(state.tty, p, left);
		if (n <= 0)
			break;
		p += n;
		left -= n;
	}
	tcsetattr(state.tty, TCSANOW, &state.shell);
}

static void die(int sig)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };

	give_back();
	sigaction(sig, &dfl, NULL);
	/* blocked while its handler runs: it comes when we return */
	raise(sig);
}

static void on_polite(int sig)
{
	int saved = errno;
	unsigned char byte = (unsigned char)sig;

	if (sig == SIGHUP || sig == SIGINT || sig == SIGQUIT || sig == SIGTERM) {
		/* the loop doesn't answer: end the hard way */
		if (++state.asked > 2) {
			die(sig);
			return;
		}
	}
	if (write(state.pipe[1], &byte, 1) < 0) {
		/* full: it will look all the same */
	}
	errno = saved;
}

void restore_begin(int tty, const char *undo, size_t len, const struct termios *shell)
{
	struct sigaction sa = { .sa_handler = on_polite, .sa_flags = SA_RESTART };

	if (state.pipe[0] < 0 && pipe2(state.pipe, O_CLOEXEC | O_NONBLOCK))
		state.pipe[0] = state.pipe[1] = -1;
	state.tty = tty;
	state.len = len < sizeof(state.undo) ? len : sizeof(state.undo);
	memcpy(state.undo, undo, state.len);
	state.shell = *shell;
	state.asked = 0;
	state.active = 1;
	if (!state.at_exit) {
		state.at_exit = true;
		atexit(give_back);
	}
	sigemptyset(&sa.sa_mask);
	for (size_t i = 0; i < ARRAY_SIZE(polite); i++)
		sigaction(polite[i], &sa, &state.old_polite[i]);
	/* a stack overflow must still find room for its handler */
	state.stack = mmap(NULL, ALT_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (state.stack != MAP_FAILED) {
		stack_t ss = { .ss_sp = state.stack, .ss_size = ALT_STACK };
		sigaltstack(&ss, &state.old_stack);
	}
	sa.sa_handler = die;
	sa.sa_flags = SA_ONSTACK;
	for (size_t i = 0; i < ARRAY_SIZE(crash); i++)
		sigaction(crash[i], &sa, &state.old_crash[i]);
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(polite); i++)
		sigaddset(&set, polite[i]);
	pthread_sigmask(SIG_UNBLOCK, &set, &state.old_mask);
}

void restore_end(void)
{
	if (state.tty < 0)
		return;
	state.active = 0;
	/* first: a terminal that goes sends SIGHUP twice, and the snapshot is still to be written */
	pthread_sigmask(SIG_SETMASK, &state.old_mask, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(polite); i++)
		sigaction(polite[i], &state.old_polite[i], NULL);
	for (size_t i = 0; i < ARRAY_SIZE(crash); i++)
		sigaction(crash[i], &state.old_crash[i], NULL);
	if (state.stack != MAP_FAILED && state.stack) {
		if (!(state.old_stack.ss_flags & SS_DISABLE) && state.old_stack.ss_sp) {
			sigaltstack(&state.old_stack, NULL);
		} else {
			stack_t off = { .ss_flags = SS_DISABLE };
			sigaltstack(&off, NULL);
		}
		munmap(state.stack, ALT_STACK);
		state.stack = NULL;
	}
	close(state.pipe[0]);
	close(state.pipe[1]);
	state.pipe[0] = state.pipe[1] = -1;
	state.tty = -1;
}

int restore_fd(void)
{
	return state.pipe[0];
}

int restore_next(void)
{
	unsigned char byte;

	if (state.pipe[0] < 0 || read(state.pipe[0], &byte, 1) != 1)
		return 0;
	return byte;
}

void restore_stop(void)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL }, ours;

	sigaction(SIGTSTP, &dfl, &ours);
	/* what the terminal would do for Ctrl-Z: stop the job, not just us */
	kill(0, SIGTSTP);
	sigaction(SIGTSTP, &ours, NULL);
}
