/*
 * ui_run: the loop that brings a session and the terminal together. Waits with poll for keys,
 * signals, new data, the program's output and what libraries write to descriptor 2; a key is
 * answered at once, everything else is drawn at most some 30 times a second.
 */
#include "ui/ui.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "symbol/names.h"
#include "target/relay.h"
#include "ui/editor.h"
#include "ui/output.h"
#include "ui/restore.h"
#include "ui/screen.h"
#include "ui/script.h"
#include "ui/stderr.h"
#include "ui/tty.h"

#define FRAME_SECONDS 0.033
#define REPLAY_LINES 20
#define NAMES_MS 500		/* to wait at most for names when leaving */

static double clock_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

enum { POLL_TTY, POLL_SIGNAL, POLL_SOURCE, POLL_RELAY, POLL_STDERR, POLLS };

struct loop {
	struct ui *ui;
	struct tty *tty;
	struct relay *relay;
	struct stderr_log *errors;
	bool no_source, no_relay;	/* hung up: nothing more to come */
	int signal;
};

static void fill(struct loop *l, struct pollfd *fds)
{
	const struct ui_source *s = l->ui->source;
	int fd[POLLS] = {
		[POLL_TTY] = tty_fd(l->tty),
		[POLL_SIGNAL] = restore_fd(),
		[POLL_SOURCE] = s->fd && !l->no_source ? s->fd(s->ctx) : -1,
		[POLL_RELAY] = l->relay && !l->no_relay ? relay_fd(l->relay) : -1,
		[POLL_STDERR] = stderr_log_fd(l->errors),
	};

	for (int i = 0; i < POLLS; i++)
		fds[i] = (struct pollfd){ .fd = fd[i], .events = POLLIN };
}

static void take_signals(struct loop *l)
{
	struct ui *ui = l->ui;
	int sig, rows, cols;

	while ((sig = restore_next())) {
		switch (sig) {
		case SIGWINCH:
			tty_resized(l->tty);
			break;
		case SIGTSTP:
			ui->suspend = true;
			continue;
		case SIGCONT:
			tty_continued(l->tty);
			break;
		default:
			l->signal = sig;
			ui->leaving = true;
			ui->leave = UI_LEAVE_SIGNAL;
			continue;
		}
		tty_size(l->tty, &rows, &cols);
		ui_resize(ui, rows, cols);
	}
}

static void take_keys(struct loop *l)
{
	struct ui *ui = l->ui;
	struct key_event ev;

	while (!ui->leaving && tty_key(l->tty, &ev)) {
		if (ev.key == UKEY_RESIZE) {
			int rows, cols;
			tty_resized(l->tty);
			tty_size(l->tty, &rows, &cols);
			ui_resize(ui, rows, cols);
		} else {
			ui_key(ui, &ev);
		}
	}
}

static void suspend(struct loop *l)
{
	int rows, cols;

	l->ui->suspend = false;
	tty_suspend(l->tty);
	tty_size(l->tty, &rows, &cols);
	ui_resize(l->ui, rows, cols);
}

static void edit(struct loop *l)
{
	struct ui *ui = l->ui;
	int rows, cols, sig = 0;

	struct err *err = editor_check(ui->edit_path);
	if (!err) {
		tty_leave(l->tty);
		err = editor_run(ui->edit_path, ui->edit_line, &sig);
		tty_return(l->tty);
		tty_size(l->tty, &rows, &cols);
		ui_resize(ui, rows, cols);
		ui->now = clock_now();
	}
	if (err)
		ui_message(ui, true, "%s", err->text);
	err_free(err);
	free(ui->edit_path);
	ui->edit_path = NULL;
	if (sig) {
		l->signal = sig;
		ui->leaving = true;
		ui->leave = UI_LEAVE_SIGNAL;
	}
}

static void loop_run(struct loop *l)
{
	struct ui *ui = l->ui;
	double drawn = 0;

	ui->now = clock_now();
	double end = ui->options.duration > 0 ? ui->now + ui->options.duration : HUGE_VAL;
	ui_poll(ui);
	while (!ui->leaving) {
		struct pollfd fds[POLLS];
		bool key = false;
		double wait = ui_timeout(ui);
		if (end < HUGE_VAL && (wait < 0 || end - ui->now < wait))
			wait = end > ui->now ? end - ui->now : 0;
		if (ui->dirty) {
			double left = drawn + FRAME_SECONDS - ui->now;
			if (left <= 0) {
				ui_draw(ui);
				tty_mouse(l->tty, ui->mouse_on);
				tty_theme(l->tty, ui->theme);
				tty_draw(l->tty, ui->canvas, ui->clear);
				ui->clear = false;
				drawn = clock_now();
			} else if (wait < 0 || left < wait) {
				wait = left;
			}
		}
		if (!ui->dirty && ui_idle(ui))
			wait = 0;
		fill(l, fds);
		int ms = wait < 0 ? -1 : wait > 3600 ? 3600000 : (int)(wait * 1000) + 1;
		int n = poll(fds, POLLS, ms);
		ui->now = clock_now();
		if (n < 0 && errno != EINTR)
			break;
		if (n > 0) {
			if (fds[POLL_SIGNAL].revents)
				take_signals(l);
			if (fds[POLL_TTY].revents & POLLIN) {
				take_keys(l);
				key = true;
			}
			/* SIGHUP goes to the session's leader alone, a shell perhaps that doesn't mind */
			if (tty_is_gone(fds[POLL_TTY].revents) && !ui->leaving) {
				l->signal = SIGHUP;
				ui->leaving = true;
				ui->leave = UI_LEAVE_SIGNAL;
			}
			if (fds[POLL_SOURCE].revents & POLLIN && ui->source->seen)
				ui->source->seen(ui->source->ctx);
			else if (fds[POLL_SOURCE].revents)
				l->no_source = true;
			if (fds[POLL_RELAY].revents && !(fds[POLL_RELAY].revents & POLLIN))
				l->no_relay = true;
			if (fds[POLL_STDERR].revents)
				stderr_log_read(l->errors);
		}
		if (ui->suspend)
			suspend(l);
		if (ui->edit_path)
			edit(l);
		if (ui->send) {
			tty_send(l->tty, ui->send);
			free(ui->send);
			ui->send = NULL;
		}
		ui_poll(ui);
		if (key)
			drawn = 0;	/* a key is answered at once */
		if (ui->now >= end) {
			ui->leaving = true;
			ui->leave = UI_LEAVE_QUIT;
		}
	}
}

/* On the normal screen: what the alternate one took with it. */
static void farewell(struct ui *ui, FILE *out)
{
	size_t n;

	if (ui->output) {
		char **lines = output_last_lines(ui->output, REPLAY_LINES, &n);
		for (size_t i = 0; i < n; i++) {
			fprintf(out, "%s\n", lines[i]);
			free(lines[i]);
		}
		free(lines);
	}
	if (!ui->source->live)
		return;
	struct view *view = ui->source->view ? ui->source->view(ui->source->ctx) : NULL;
	if (!view)
		return;
	const struct view_totals *t = &view->totals;
	char a[TEXT_NUMBER], b[TEXT_NUMBER], c[TEXT_NUMBER];
	if (view->info.state == VIEW_EXITED && !view->info.attached && view->info.exit_code) {
		int code = view->info.exit_code;
		bool by_signal = code > 128 && code < 128 + NSIG;
		fprintf(out, "heaptop: the program ended with code %d%s%s\n", code,
			by_signal ? ": " : "", by_signal ? strsignal(code - 128) : "");
	}
	report_set_view(ui->report, view);
	fprintf(out, "heaptop: peak %s at %s, live at the end %s in %s blocks%s\n", text_bytes(a, t->s.peak_bytes),
		text_clock(b, t->peak_time), text_bytes(c, t->s.live_bytes),
		text_count((char[TEXT_NUMBER]){ 0 }, q10_round(t->s.live_q10)),
		ui_sampled(ui) ? " (estimates)" : "");
	const struct report_site *sites = report_sites(ui->report, REPORT_LIVE_BYTES, false, &n);
	/* one that ended at once left no time for its names */
	for (int ms = 0; ms < NAMES_MS && names_pending(ui->names); ms += 10) {
		poll(NULL, 0, 10);
		report_set_view(ui->report, view);
		sites = report_sites(ui->report, REPORT_LIVE_BYTES, false, &n);
	}
	for (size_t i = 0; i < n && i < 3 && sites[i].s.live_bytes; i++) {
		char name[UI_NAME], place[256] = "";
		report_short_name(sites[i].function, name, sizeof(name), true);
		if (sites[i].file && *sites[i].file && sites[i].line)
			snprintf(place, sizeof(place), "  %.200s:%u", ui_basename(sites[i].file), sites[i].line);
		else if (sites[i].file && *sites[i].file)
			snprintf(place, sizeof(place), "  %.200s", ui_basename(sites[i].file));
		fprintf(out, "  %8s  %.100s%s\n", text_bytes(a, sites[i].s.live_bytes), name, place);
	}
	if (view->info.dropped || view->info.gap)
		fprintf(out, "  dropped %s events, missed %s: the numbers are too small by that\n",
			text_count(a, view->info.dropped), text_count(b, view->info.gap));
	if (ui->news && *ui->news)
		fprintf(out, "  %s\n", ui->news);
	view_unref(view);
}

static struct err *run_script(const struct ui_source *source, struct names *names, struct relay *relay,
			      const struct ui_options *options, enum ui_leave *ret_leave)
{
	int rows = 24, cols = 80;
	const char *env_rows = getenv("LINES"), *env_cols = getenv("COLUMNS");

	if (env_rows && atoi(env_rows) > 0)
		rows = atoi(env_rows);
	if (env_cols && atoi(env_cols) > 0)
		cols = atoi(env_cols);
	struct ui *ui = ui_create(source, names, relay, options, rows, cols, tty_want_unicode(options));
	struct err *err = script_run(ui, options->script);
	*ret_leave = ui->leaving ? ui->leave : UI_LEAVE_QUIT;
	ui_destroy(ui);
	return err;
}

struct err *ui_available(void)
{
	return tty_available();
}

struct err *ui_terminal(struct ui_terminal *ret)
{
	return tty_facts(ret);
}

struct err *ui_run(const struct ui_source *source, struct names *names, struct relay *relay,
		   const struct ui_options *options, enum ui_leave *ret_leave, int *ret_signal)
{
	struct loop l = { .relay = relay && relay_has_terminal(relay) ? relay : NULL };
	int rows, cols;

	*ret_leave = UI_LEAVE_QUIT;
	*ret_signal = 0;
	if (options->script)
		return run_script(source, names, l.relay, options, ret_leave);
	struct err *err = tty_open(options, &l.tty);
	if (err)
		return err;
	l.errors = stderr_log_begin();
	tty_size(l.tty, &rows, &cols);
	l.ui = ui_create(source, names, l.relay, options, rows, cols, tty_unicode(l.tty));
	loop_run(&l);
	int fd = fcntl(tty_fd(l.tty), F_DUPFD_CLOEXEC, 3);
	tty_close(l.tty);
	stderr_log_end(l.errors);
	FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (out) {
		/* a terminal that has hung up takes no more */
		if (l.ui->leave != UI_LEAVE_SIGNAL || l.signal != SIGHUP)
			farewell(l.ui, out);
		fclose(out);
	}
	*ret_leave = l.ui->leave;
	*ret_signal = l.signal;
	ui_destroy(l.ui);
	return NULL;
}
