/*
 * A raw terminal for tests: starts a command on a fresh pseudo terminal, types, waits for a text
 * on the screen, sends signals, and tells afterwards whether the terminal is as it was before.
 * No shell in between: an interactive one repairs the terminal's settings and hides the fault.
 *
 * The terminal's session is led by a process of the harness, as a login shell would, so that the
 * command's end doesn't hang it up. Times are in milliseconds.
 */
#ifndef HEAPTOP_TESTS_LIB_PTY_H
#define HEAPTOP_TESTS_LIB_PTY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "screen.h"

struct pty {
	int master;
	int slave;		/* kept open for a look at its settings */
	pid_t leader;
	pid_t pid;		/* the command */
	int control;		/* the leader ends when it is closed */
	int status;		/* wait status once it has ended, else -1 */
	struct screen *screen;
	char *raw;		/* every byte that came */
	size_t n_raw, cap_raw;
	void *before;		/* struct termios at the start */
};

struct pty_spec {
	char *const *argv;	/* or */
	int (*func)(void *arg);	/* run in the child; the result is its exit code */
	void *arg;
	int rows, cols;
	const char *term;	/* TERM; NULL: unset */
	const char *file[3];	/* instead of the terminal: input, outputs; NULL: the terminal */
};

/* NULL on failure, with a message on stderr. */
struct pty *pty_start(const struct pty_spec *spec);
/* Kill what is left and release. */
void pty_destroy(struct pty *pty);

void pty_send(struct pty *pty, const void *buf, size_t len);
void pty_resize(struct pty *pty, int rows, int cols);
/* Read what comes for that long, or less if the command ends. */
void pty_pump(struct pty *pty, int ms);
/* Until some output has come and been taken in; false: none within that time. */
bool pty_output(struct pty *pty, int ms);
bool pty_expect(struct pty *pty, const char *text, int ms);
/* Until the text is not on the screen. */
bool pty_gone(struct pty *pty, const char *text, int ms);
/* Has it ended within that time? Its last output is on the screen then. */
bool pty_wait(struct pty *pty, int ms);
/* The shell's code: exit code or 128 + signal; -1: it runs. */
int pty_exit_code(const struct pty *pty);

/* NULL: settings and modes are as before. Else what isn't. */
const char *pty_left_over(struct pty *pty);

#endif
