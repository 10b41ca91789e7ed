/*
 * The loop without a screen, see headless.h. Signals come in through a descriptor:
 *   SIGINT   attached: detach and end, without a result if it came before the beginning. Launched: the
 *            program got it too; wait for its end; a second one kills it.
 *   SIGTERM, SIGHUP  write the snapshot, then kill a launched program, detach from an attached one.
 *   SIGUSR1  a snapshot now.
 */
#include "headless.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/ending.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/ticks.h"
#include "batch.h"
#include "cli.h"
#include "collect/collect.h"
#include "dump.h"
#include "export/export.h"
#include "heap/view.h"
#include "loader.h"
#include "moment.h"
#include "saver.h"
#include "symbol/names.h"

static void signal_set(sigset_t *set)
{
	ending_signals(set);
	sigaddset(set, SIGUSR1);
}

#define KILL_SECONDS 5.0	/* for a killed program to be gone */

struct loop {
	const struct cli *cli;
	struct collector *c;
	struct saver *saver;
	struct dumper *dumper;
	struct report *report;
	bool launched;
	bool output_gone;	/* nobody reads our frames any more */
	bool failed;		/* something couldn't be written */
	bool process_seen;	/* the one that --process names */
	int interrupts;
	int frames;
	enum {
		GO_ON, LEAVE, LEAVE_KILL
	} next;
};

static void note(const struct loop *l, const char *text)
{
	if (!l->cli->quiet && text && *text)
		fprintf(stderr, "heaptop: %s\n", text);
}

/* path: NULL: nothing was to be written. */
static void wrote(struct loop *l, struct err *err, const char *path)
{
	if (err) {
		fprintf(stderr, "heaptop: %s\n", err->text);
		err_free(err);
		l->failed = true;
	} else if (path) {
		CLEANUP_FREE char *text = xasprintf("wrote %s", path);
		note(l, text);
	}
}

static void snapshot(struct loop *l, const char *path)
{
	CLEANUP_FREE char *written = NULL;
	struct err *err = saver_write(l->saver, path, &written);

	wrote(l, err, written ? written : path);
}

/* False: no more frames are wanted there. A reader that has left is fine, a full disk isn't. */
static bool put_frame(const struct cli *cli, struct report *report, const struct process_list *list, bool *failed)
{
	if (batch_frame(stdout, report, cli->group, cli->sort, list))
		return true;
	if (errno != EPIPE) {
		fprintf(stderr, "heaptop: standard output: %s\n", strerror(errno));
		*failed = true;
	}
	return false;
}

static void view_frame(struct loop *l, struct view *view, const struct process_list *list)
{
	if (l->output_gone)
		return;
	report_set_view(l->report, view);
	l->output_gone = !put_frame(l->cli, l->report, list, &l->failed);
}

static void frame(struct loop *l, const struct moment *m)
{
	for (size_t i = 0; l->cli->process != CLI_SUM && i < m->list->n; i++) {
		if (l->cli->process != CLI_ALL && l->cli->process != m->list->p[i].pid)
			continue;
		if (m->views[i])
			view_frame(l, m->views[i], NULL);
		l->process_seen = true;
	}
	if (l->cli->process == CLI_SUM)
		view_frame(l, m->sum, m->list);
	l->frames++;
}

/* Are frames still wanted? */
static bool has_reader(const struct loop *l)
{
	return l->cli->batch && !l->output_gone;
}

static void frame_of_now(struct loop *l)
{
	struct moment *m = has_reader(l) ? moment_take(l->c, false) : NULL;

	if (m)
		frame(l, m);
	moment_free(m);
}

static void on_signal(struct loop *l, int sig)
{
	switch (sig) {
	case SIGUSR1:
		snapshot(l, l->cli->output ? l->cli->output : "heaptop.%p.pb.gz");
		return;
	case SIGINT:
		if (!l->launched)
			l->next = LEAVE;
		else if (l->interrupts++)
			collector_kill(l->c, COLLECT_SUM, SIGKILL);
		else if (l->cli->io_given && l->cli->io != RELAY_INHERIT)
			/* in a session of its own: the terminal's Ctrl-C doesn't reach it */
			collector_kill(l->c, COLLECT_SUM, SIGINT);
		return;
	default:
		l->next = cli_kills_on_exit(l->cli) ? LEAVE_KILL : LEAVE;
	}
}

/* A launched program is waited for also when no more frames are wanted. */
static bool frames_done(const struct loop *l)
{
	return l->output_gone || (l->cli->iterations && l->frames >= l->cli->iterations);
}

static void wait_for(struct loop *l, int sigfd, double until)
{
	double left = until - monotonic_seconds();
	struct pollfd p[3] = {
		{ .fd = sigfd, .events = POLLIN },
		{ .fd = collector_fd(l->c), .events = POLLIN },
		{ .fd = dumper_fd(l->dumper), .events = POLLIN },
	};

	poll(p, 3, left <= 0 ? 0 : left > 1000 ? 1000000 : (int)(left * 1000) + 1);
	struct signalfd_siginfo info;
	while (read(sigfd, &info, sizeof(info)) == sizeof(info))
		on_signal(l, (int)info.ssi_signo);
	uint64_t n;
	if (p[1].revents && read(p[1].fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		l->next = LEAVE;
	if (dumper_due(l->dumper))
		snapshot(l, l->cli->output);
}

/* Seconds to watch. -p with -o alone means one snapshot: of as long as a frame takes, since at the
 * moment of attaching nothing is known yet. */
static double length(const struct cli *cli)
{
	if (cli->duration > 0)
		return cli->duration;
	if (cli->mode != CLI_RUN && cli->output && !cli->batch && !dump_goes_on(&cli->dump))
		return cli->delay;
	return 1e300;
}

static void watch(struct loop *l, int sigfd)
{
	double start = monotonic_seconds();
	double next_frame = start + l->cli->delay;
	double end = start + length(l->cli);

	while (l->next == GO_ON && collector_state(l->c) == COLLECT_RUNNING) {
		double now = monotonic_seconds();
		if (now >= end) {
			l->next = LEAVE;
			break;
		}
		if (now >= next_frame && !frames_done(l)) {
			frame_of_now(l);
			next_frame += l->cli->delay;
			if (next_frame < now)
				next_frame = now + l->cli->delay;
		}
		if (frames_done(l) && !l->launched) {
			l->next = LEAVE;
			break;
		}
		double until = frames_done(l) || !l->cli->batch ? 1e300 : next_frame;
		wait_for(l, sigfd, until < end ? until : end);
	}
}

/* -D over on a launched program: it isn't ours to kill, it goes on without its hooks. */
static void leave(struct loop *l)
{
	if (l->next == LEAVE_KILL) {
		collector_kill(l->c, COLLECT_SUM, SIGKILL);
		if (collector_wait_end(l->c, KILL_SECONDS))
			return;
	}
	struct err *err = collector_detach(l->c);
	if (err) {
		fprintf(stderr, "heaptop: %s\n", err->text);
		err_free(err);
		l->failed = true;
	} else {
		note(l, collector_message(l->c));
	}
}

static void last_snapshots(struct loop *l)
{
	CLEANUP_FREE char *peak = NULL;

	if (l->cli->dump.exit)
		snapshot(l, l->cli->output);
	wrote(l, dumper_finish(l->dumper, &peak), peak);
}

static int exit_code(const struct loop *l)
{
	int code = collector_exit_code(l->c);

	if (l->launched && code >= 0)
		return code;
	if (l->failed || collector_state(l->c) == COLLECT_FAILED)
		return l->launched ? EXIT_LAUNCH_FAILED : EXIT_FAILED;
	return 0;
}

struct err *headless_read(const char *path, struct view **ret_view, struct names **ret_names, int *ret_signal)
{
	struct names *names = names_create(NULL);
	struct loader *loader = loader_create(path, names);
	struct err *err = NULL;
	sigset_t set;

	*ret_view = NULL;
	*ret_signal = 0;
	ending_signals(&set);	/* and not SIGUSR1: nothing to write yet */
	CLEANUP_CLOSE int sigfd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	while (!loader_done(loader) && !*ret_signal) {
		struct pollfd p[2] = {
			{ .fd = loader_fd(loader), .events = POLLIN }, { .fd = sigfd, .events = POLLIN },
		};
		struct signalfd_siginfo info;
		poll(p, 2, -1);
		if (read(sigfd, &info, sizeof(info)) == sizeof(info))
			*ret_signal = (int)info.ssi_signo;
	}
	if (!*ret_signal)
		err = loader_take(loader, ret_view);
	bool over = loader_destroy(loader);
	if (*ret_view)
		*ret_names = names;
	else if (over)
		names_destroy(names);
	return err;
}

int headless_watch(const struct cli *cli, struct collector *c, struct saver *saver)
{
	struct loop l = {
		.cli = cli, .c = c, .saver = saver, .launched = cli->mode == CLI_RUN,
		.report = report_create(collector_names(c), true),
		.dumper = dumper_create(&cli->dump, cli->output, c, saver),
	};
	sigset_t set;

	report_set_modules(l.report, collector_modules(c));
	report_set_wrappers(l.report, cli->wrappers);
	collector_want_classes(c, cli->batch);
	if (cli->filter)	/* checked by cli_parse */
		err_free(report_set_filter(l.report, cli->filter));
	err_free(report_set_base(l.report, cli->base_view, cli->base_names));
	signal_set(&set);
	CLEANUP_CLOSE int sigfd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	/* while the way in was still being looked for */
	if (!l.launched && ending_pending() == SIGINT) {
		leave(&l);
		report_destroy(l.report);
		dumper_destroy(l.dumper);
		return l.failed ? EXIT_FAILED : EXIT_INTERRUPTED;
	}
	watch(&l, sigfd);
	collector_hurry(c);
	/*
	 * The last state of things, while the target is still there to be looked at. To look up the names in it may take long,
	 * beside a busy program above all: the target is let go before.
	 */
	bool ended = collector_state(c) != COLLECT_RUNNING;
	bool framed = has_reader(&l) && !frames_done(&l) && (ended || l.next != GO_ON);
	struct moment *last = framed || cli->output ? moment_take(c, cli->output) : NULL;
	if (!ended)
		leave(&l);
	saver_settle(saver, last);
	if (framed)
		frame(&l, last);
	if (cli->batch && cli->process > 0 && !l.process_seen)
		fprintf(stderr, "heaptop: --process: process %d was none of those watched\n", (int)cli->process);
	if (cli->output)
		last_snapshots(&l);
	if (ended && collector_state(c) == COLLECT_FAILED)
		fprintf(stderr, "heaptop: %s\n", collector_message(c));
	else if (ended)
		note(&l, collector_message(c));
	saver_settle(saver, NULL);
	moment_free(last);
	report_destroy(l.report);
	dumper_destroy(l.dumper);
	return exit_code(&l);
}

int headless_show(const struct cli *cli, struct view *view, struct names *names,
		  struct saver *saver)
{
	if (cli->output) {
		CLEANUP_FREE char *written = NULL;
		struct err *err = saver_write(saver, cli->output, &written);
		if (err) {
			fprintf(stderr, "heaptop: %s\n", err->text);
			err_free(err);
			return EXIT_FAILED;
		}
	}
	if (!cli->batch && cli->output)
		return 0;
	struct report *report = report_create(names, true);
	report_set_wrappers(report, cli->wrappers);
	if (cli->filter)
		err_free(report_set_filter(report, cli->filter));
	err_free(report_set_base(report, cli->base_view, cli->base_names));
	report_set_view(report, view);
	bool failed = false;
	put_frame(cli, report, NULL, &failed);
	report_destroy(report);
	return failed ? EXIT_FAILED : 0;
}
