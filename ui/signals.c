/*
 * Signals for the program that is watched; see signals.h. The menu is in the order of the numbers, as those of other
 * tools, and begins at SIGTERM; typing a number goes to it.
 */
#include "ui/signals.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "ui/modal.h"
#include "ui/processes.h"

#define BOX_COLS 46

/* What people send it for; short, so that it fits beside the name in 40 columns. */
static const struct {
	int number;
	const char *name, *note;
} signals[] = {
	{ SIGHUP, "HUP", "daemons: reload" },
	{ SIGINT, "INT", "as Ctrl-C" },
	{ SIGQUIT, "QUIT", "as Ctrl-\\, core dump" },
	{ SIGILL, "ILL", "" },
	{ SIGTRAP, "TRAP", "" },
	{ SIGABRT, "ABRT", "core dump" },
	{ SIGBUS, "BUS", "" },
	{ SIGFPE, "FPE", "" },
	{ SIGKILL, "KILL", "end it at once" },
	{ SIGUSR1, "USR1", "the program's own" },
	{ SIGSEGV, "SEGV", "" },
	{ SIGUSR2, "USR2", "the program's own" },
	{ SIGPIPE, "PIPE", "" },
	{ SIGALRM, "ALRM", "" },
	{ SIGTERM, "TERM", "ask it to end" },
	{ SIGSTKFLT, "STKFLT", "" },
	{ SIGCHLD, "CHLD", "" },
	{ SIGCONT, "CONT", "go on after STOP" },
	{ SIGSTOP, "STOP", "stop it" },
	{ SIGTSTP, "TSTP", "as Ctrl-Z" },
	{ SIGTTIN, "TTIN", "" },
	{ SIGTTOU, "TTOU", "" },
	{ SIGURG, "URG", "" },
	{ SIGXCPU, "XCPU", "" },
	{ SIGXFSZ, "XFSZ", "" },
	{ SIGVTALRM, "VTALRM", "" },
	{ SIGPROF, "PROF", "" },
	{ SIGWINCH, "WINCH", "" },
	{ SIGIO, "IO", "" },
	{ SIGPWR, "PWR", "" },
	{ SIGSYS, "SYS", "" },
};

struct menu {
	struct modal modal;
	struct menu_rows rows;
	int typed;		/* digits of a number so far */
	char title[80];
};

int signals_parse(const char *name)
{
	char *end;
	long number = strtol(name, &end, 10);

	if (*name >= '0' && *name <= '9')
		return !*end && number > 0 && number <= SIGRTMAX ? (int)number : 0;
	if (!strncasecmp(name, "SIG", 3))
		name += 3;
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (!strcasecmp(name, signals[i].name))
			return signals[i].number;
	return 0;
}

/* "SIGTERM", of a real-time one "signal 34". */
static void name_of(int number, char buf[24])
{
	snprintf(buf, 24, "signal %d", number);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (signals[i].number == number)
			snprintf(buf, 24, "SIG%s", signals[i].name);
}

/* Is there somebody to send to? Else it is said why not. */
static bool can_send(struct ui *ui)
{
	if (!ui->source->signal) {
		ui_message(ui, true, "there is no process behind a snapshot");
	} else if (!ui->view) {
		ui_message(ui, true, "nothing is known of the program yet");
	} else if (ui->view->info.state == VIEW_EXITED || ui->view->info.state == VIEW_DETACHED) {
		ui_message(ui, true, ui->view->info.state == VIEW_EXITED ? "the program has ended" : "the program isn't watched any more");
	} else {
		return true;
	}
	return false;
}

static void send_signal(struct ui *ui, int number)
{
	char name[24];

	/* it may have ended while the menu was open */
	if (!can_send(ui))
		return;
	name_of(number, name);
	ui->source->signal(ui->source->ctx, number);
	ui_message(ui, false, "%s sent to %d", name, ui->view->info.pid);
}

bool signals_command(struct ui *ui, const char *name)
{
	int number = signals_parse(name);

	if (!number) {
		ui_message(ui, true, "no such signal: %s (a name as TERM, or a number up to %d)", name, SIGRTMAX);
		return false;
	}
	if (!can_send(ui))
		return false;
	send_signal(ui, number);
	return true;
}

static void menu_draw(struct ui *ui, struct modal *modal)
{
	struct menu *m = (struct menu *)modal;
	struct canvas *c = ui->canvas;
	struct rect r = box_draw(c, m->rows.n + 2, BOX_COLS, m->title);
	char text[80];

	m->rows.inside = r;
	int top = menu_top(&m->rows);
	for (int i = 0; i < r.rows && top + i < m->rows.n; i++) {
		snprintf(text, sizeof(text), "%2d  SIG%-7s %s", signals[top + i].number, signals[top + i].name, signals[top + i].note);
		canvas_put_cut(c, r.y + i, r.x, r.cols, STYLE_BOX | (top + i == m->rows.cursor ? STYLE_SELECTED : 0), text);
	}
	canvas_clip_all(c);
}

/* A digit: to the row of the number it makes with those before it, or begins one anew. */
static void type_digit(struct menu *m, int digit)
{
	int number = m->typed * 10 + digit;

	for (int attempt = 0; attempt < 2; attempt++, number = digit) {
		for (int i = 0; i < m->rows.n; i++) {
			if (signals[i].number != number)
				continue;
			m->rows.cursor = i;
			m->typed = number;
			return;
		}
	}
	m->typed = 0;
}

static bool menu_key(struct ui *ui, struct modal *modal, const struct key_event *ev)
{
	struct menu *m = (struct menu *)modal;

	if (ev->key >= '0' && ev->key <= '9') {
		type_digit(m, (int)(ev->key - '0'));
		return true;
	}
	m->typed = 0;
	enum menu_did did = menu_rows_key(ui, &m->rows, ev);
	if (did == MENU_CHOSE)
		send_signal(ui, signals[m->rows.cursor].number);
	return did == MENU_STAYS;
}

static void menu_destroy(struct modal *m)
{
	free(m);
}

void signals_open(struct ui *ui)
{
	char several[40];

	if (!can_send(ui))
		return;
	struct menu *m = xcalloc(1, sizeof(*m));
	m->modal = (struct modal){ .draw = menu_draw, .key = menu_key, .destroy = menu_destroy };
	m->rows.n = ARRAY_SIZE(signals);
	while (signals[m->rows.cursor].number != SIGTERM)
		m->rows.cursor++;
	/* of all together it is the first that gets it: p chooses another */
	bool first = !ui->process && processes_name(ui, several, sizeof(several));
	snprintf(m->title, sizeof(m->title), " Signal to %d%s ", ui->view->info.pid, first ? ", the first process (p: others)" : "");
	ui_set_modal(ui, &m->modal);
}
