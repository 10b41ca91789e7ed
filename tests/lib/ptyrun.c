/*
 * ptyrun: drive a command on a raw terminal from a shell test. The actions are done in the order
 * given; the first one that fails prints why and the screen, and ends with 1.
 *
 *	ptyrun [SETTING]... [ACTION]... -- COMMAND [ARG]...
 *
 * Settings:
 *	--size COLSxROWS	80x24 otherwise
 *	--term TERM		xterm-256color otherwise; "" unsets it
 *	--timeout SECONDS	for each wait, 20 otherwise
 *	--stdin FILE, --stdout FILE, --stderr FILE	instead of the terminal
 * Actions:
 *	--expect TEXT		until the text is in a row of the screen
 *	--gone TEXT		until it is in none
 *	--send BYTES		type; \e \r \n \t \\ \xHH and \^C (any control character) are known
 *	--signal NAME		to the command: HUP, INT, ...
 *	--resize COLSxROWS
 *	--exec SHELL		run a shell command, with $PTY_PID; its failure is one
 *	--pause MS		let it run on, and read its output meanwhile
 *	--wait			until the command ends
 *	--status N		it has ended with this code (128 + signal)
 *	--check-restored	the terminal is as it was at the start
 *	--check-screen		and the alternate screen had been open
 *	--dump FILE, --raw FILE	the screen, or all bytes that came; "-" is stdout
 * Without --wait the command is killed at the end.
 */
#include "pty.h"

#include <getopt.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	O_SIZE = 256, O_TERM, O_TIMEOUT, O_STDIN, O_STDOUT, O_STDERR,
	O_EXPECT, O_GONE, O_SEND, O_SIGNAL, O_RESIZE, O_EXEC, O_PAUSE, O_WAIT, O_STATUS,
	O_RESTORED, O_SCREEN, O_DUMP, O_RAW,
};

static const struct option options[] = {
	{ "size", required_argument, NULL, O_SIZE },
	{ "term", required_argument, NULL, O_TERM },
	{ "timeout", required_argument, NULL, O_TIMEOUT },
	{ "stdin", required_argument, NULL, O_STDIN },
	{ "stdout", required_argument, NULL, O_STDOUT },
	{ "stderr", required_argument, NULL, O_STDERR },
	{ "expect", required_argument, NULL, O_EXPECT },
	{ "gone", required_argument, NULL, O_GONE },
	{ "send", required_argument, NULL, O_SEND },
	{ "signal", required_argument, NULL, O_SIGNAL },
	{ "resize", required_argument, NULL, O_RESIZE },
	{ "exec", required_argument, NULL, O_EXEC },
	{ "pause", required_argument, NULL, O_PAUSE },
	{ "wait", no_argument, NULL, O_WAIT },
	{ "status", required_argument, NULL, O_STATUS },
	{ "check-restored", no_argument, NULL, O_RESTORED },
	{ "check-screen", no_argument, NULL, O_SCREEN },
	{ "dump", required_argument, NULL, O_DUMP },
	{ "raw", required_argument, NULL, O_RAW },
	{ 0 }
};

struct action {
	int what;
	const char *arg;
};

static int timeout_ms = 20000;

static void usage(const char *text)
{
	fprintf(stderr, "ptyrun: %s\n", text);
	exit(2);
}

static void parse_size(const char *text, int *rows, int *cols)
{
	if (sscanf(text, "%dx%d", cols, rows) != 2 || *rows < 1 || *cols < 1 || *rows > 2000
	    || *cols > 2000)
		usage("a size is COLSxROWS");
}

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
		: c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static void type(struct pty *pty, const char *text)
{
	char *buf = malloc(strlen(text) + 1);
	size_t n = 0;

	if (!buf)
		abort();
	for (const char *p = text; *p; p++) {
		if (*p != '\\' || !p[1]) {
			buf[n++] = *p;
			continue;
		}
		p++;
		if (*p == 'x' && hex(p[1]) >= 0 && hex(p[2]) >= 0) {
			buf[n++] = (char)(hex(p[1]) << 4 | hex(p[2]));
			p += 2;
		} else if (*p == '^' && p[1]) {
			buf[n++] = (char)(*++p & 31);
		} else {
			buf[n++] = *p == 'e' ? '\033' : *p == 'r' ? '\r' : *p == 'n' ? '\n'
				: *p == 't' ? '\t' : *p;
		}
	}
	pty_send(pty, buf, n);
	free(buf);
}

static int signal_number(const char *name)
{
	for (int sig = 1; sig < NSIG; sig++) {
		const char *abbrev = sigabbrev_np(sig);
		if (abbrev && !strcmp(abbrev, name))
			return sig;
	}
	usage("no such signal");
	return 0;
}

static bool run_shell(const struct pty *pty, const char *text)
{
	char pid[32];

	snprintf(pid, sizeof(pid), "%d", (int)pty->pid);
	setenv("PTY_PID", pid, 1);
	fflush(NULL);
	return system(text) == 0;
}

static bool save(const char *path, const void *buf, size_t len)
{
	FILE *f = strcmp(path, "-") ? fopen(path, "w") : stdout;

	if (!f)
		return false;
	bool ok = fwrite(buf, 1, len, f) == len;
	return (f == stdout ? fflush(f) : fclose(f)) == 0 && ok;
}

/* NULL: done. Else why not. */
static const char *act(struct pty *pty, const struct action *action)
{
	int rows, cols;
	char *text;
	bool ok;

	switch (action->what) {
	case O_EXPECT:
		return pty_expect(pty, action->arg, timeout_ms) ? NULL : "not on the screen";
	case O_GONE:
		return pty_gone(pty, action->arg, timeout_ms) ? NULL : "still on the screen";
	case O_SEND:
		type(pty, action->arg);
		return NULL;
	case O_SIGNAL:
		return kill(pty->pid, signal_number(action->arg)) == 0 ? NULL : "no such process";
	case O_RESIZE:
		parse_size(action->arg, &rows, &cols);
		pty_resize(pty, rows, cols);
		return NULL;
	case O_EXEC:
		return run_shell(pty, action->arg) ? NULL : "failed";
	case O_PAUSE:
		pty_pump(pty, atoi(action->arg));
		return NULL;
	case O_WAIT:
		return pty_wait(pty, timeout_ms) ? NULL : "the command still runs";
	case O_STATUS:
		return pty_exit_code(pty) == atoi(action->arg) ? NULL : "another exit code";
	case O_RESTORED:
		return pty_left_over(pty);
	case O_SCREEN:
		return screen_was_alternate(pty->screen) ? NULL : "no screen was opened";
	case O_DUMP:
		text = screen_dump(pty->screen);
		ok = save(action->arg, text, strlen(text));
		free(text);
		return ok ? NULL : "cannot write";
	case O_RAW:
		return save(action->arg, pty->raw, pty->n_raw) ? NULL : "cannot write";
	}
	return "not an action";
}

static const char *action_name(int what)
{
	for (const struct option *o = options; o->name; o++) {
		if (o->val == what)
			return o->name;
	}
	return "?";
}

static void report(struct pty *pty, const struct action *action, const char *why)
{
	char *text = screen_dump(pty->screen);
	size_t len = strlen(text);

	while (len && text[len - 1] == '\n')
		text[--len] = '\0';
	fprintf(stderr, "ptyrun: --%s %s: %s (exit code %d, -1: it runs)\n--- screen\n%s\n---\n",
		action_name(action->what), action->arg ? action->arg : "", why,
		pty_exit_code(pty), text);
	free(text);
}

int main(int argc, char **argv)
{
	struct pty_spec spec = { .rows = 24, .cols = 80, .term = "xterm-256color" };
	struct action *actions = calloc((size_t)argc, sizeof(*actions));
	size_t n = 0;
	int c;

	if (!actions)
		abort();
	/* the screen shows what a UTF-8 terminal would */
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		setlocale(LC_CTYPE, "en_US.UTF-8");
	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (c) {
		case O_SIZE: parse_size(optarg, &spec.rows, &spec.cols); break;
		case O_TERM: spec.term = *optarg ? optarg : NULL; break;
		case O_TIMEOUT: timeout_ms = (int)(atof(optarg) * 1000); break;
		case O_STDIN: spec.file[0] = optarg; break;
		case O_STDOUT: spec.file[1] = optarg; break;
		case O_STDERR: spec.file[2] = optarg; break;
		case '?': usage("see the top of ptyrun.c");
		/* fall through */
		default: actions[n++] = (struct action){ .what = c, .arg = optarg };
		}
	}
	if (optind == argc)
		usage("no command");
	spec.argv = argv + optind;

	struct pty *pty = pty_start(&spec);
	if (!pty)
		return 2;
	int ret = 0;
	for (size_t i = 0; i < n && ret == 0; i++) {
		const char *why = act(pty, &actions[i]);
		if (why) {
			report(pty, &actions[i], why);
			ret = 1;
		}
	}
	pty_destroy(pty);
	free(actions);
	return ret;
}
