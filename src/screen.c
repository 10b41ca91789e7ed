/* The screen's source of data, and leaving; see screen.h. */
#include "screen.h"

#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "cli.h"
#include "collect/collect.h"
#include "dump.h"
#include "foresee.h"
#include "heap/view.h"
#include "loader.h"
#include "moment.h"
#include "saver.h"
#include "symbol/names.h"
#include "ui/ui.h"

#define KEEP_FREE (128 << 20)	/* bytes that reading a file has freed and that aren't given back to the kernel */
#define LOAD_MS 15		/* a file read in that time is shown at once, or refused without a screen */
#define KILL_SECONDS 5.0	/* for a killed program to be gone */

struct source {
	struct collector *c;	/* NULL: snapshot */
	const struct cli *cli;
	pid_t other;		/* to be watched instead; 0: none */
	struct view *view;	/* snapshot; NULL: not read yet */
	struct loader *loader;	/* snapshot */
	struct err *failed;	/* snapshot: what is wrong with the file */
	struct names *names;	/* snapshot */
	const struct export_options *options;	/* snapshot: for its saver */
	uint32_t process;	/* the one shown, COLLECT_SUM: all together */
	struct saver *saver;	/* NULL: the snapshot isn't read yet */
	const char *snapshot_name;
	struct dumper *dumper;	/* NULL: snapshot */
	int usr1;		/* signalfd: a snapshot is wanted */
	int fd;			/* epoll over usr1, the collector's and the saver's news */
};

static void listen_to(struct source *s, int fd)
{
	struct epoll_event e = { .events = EPOLLIN };

	epoll_ctl(s->fd, EPOLL_CTL_ADD, fd, &e);
}

/* The snapshot has been read: it can be shown and saved from now on. */
static void take_snapshot(struct source *s)
{
	if (s->view || s->failed || !loader_done(s->loader))
		return;
	s->failed = loader_take(s->loader, &s->view);
	if (s->failed)
		return;
	s->saver = saver_create(NULL, s->view, s->names, s->options);
	listen_to(s, saver_fd(s->saver));
}

static struct view *source_view(void *ctx)
{
	struct source *s = ctx;

	if (!s->c) {
		take_snapshot(s);
		return s->view ? view_ref(s->view) : NULL;
	}
	struct view *view = collector_process_view(s->c, s->process);

	if (view || !s->process)
		return view;
	s->process = COLLECT_SUM;	/* it has ended and been merged with others */
	return collector_view(s->c);
}

static size_t source_processes(void *ctx, struct ui_process **ret)
{
	struct process_list *list = collector_processes(((struct source *)ctx)->c);
	size_t n = list->n;

	*ret = xcalloc(n + 1, sizeof(**ret));
	for (size_t i = 0; i < n; i++) {
		const struct collect_process *p = &list->p[i];
		(*ret)[i] = (struct ui_process){
			.id = p->id, .parent = p->parent, .pid = (int)p->pid, .merged = p->merged,
			.command = xstrdup(p->command ? p->command : ""), .why = xstrdup(p->why ? p->why : ""),
			.state = p->state, .exit_code = p->exit_code, .live_bytes = p->s.live_bytes,
			.rss = p->rss, .threads = p->threads,
		};
	}
	process_list_unref(list);
	return n;
}

static bool source_choose(void *ctx, uint32_t id)
{
	struct source *s = ctx;
	struct view *view = collector_process_view(s->c, id);

	if (!view)
		return false;
	view_unref(view);
	s->process = id;
	return true;
}

static void reset(int fd)
{
	uint64_t n;
	ssize_t got = read(fd, &n, sizeof(n));	/* both are non-blocking eventfds */

	(void)got;
}

static int source_fd(void *ctx)
{
	return ((struct source *)ctx)->fd;
}

static void source_seen(void *ctx)
{
	struct source *s = ctx;

	if (s->c)
		reset(collector_fd(s->c));
	if (s->loader)
		reset(loader_fd(s->loader));
	if (s->saver)
		reset(saver_fd(s->saver));
	struct signalfd_siginfo info;
	if (read(s->usr1, &info, sizeof(info)) == sizeof(info) && s->saver)
		saver_request(s->saver, s->snapshot_name);
	if (s->dumper && dumper_due(s->dumper))
		saver_request(s->saver, s->snapshot_name);
}

static void source_pause(void *ctx, bool paused)
{
	collector_pause(((struct source *)ctx)->c, paused);
}

static void source_choose_threads(void *ctx, const char *which)
{
	collector_choose_threads(((struct source *)ctx)->c, which);
}

static void source_signal(void *ctx, int sig)
{
	struct source *s = ctx;

	collector_kill(s->c, s->process, sig);
}

static void source_other(void *ctx, pid_t pid)
{
	((struct source *)ctx)->other = pid;
}

static char *source_foresee(void *ctx, pid_t pid)
{
	return foresee(((struct source *)ctx)->cli, pid);
}

static char *source_refused(void *ctx)
{
	return collector_refused(((struct source *)ctx)->c);
}

static void source_set_refresh(void *ctx, double seconds)
{
	collector_set_refresh(((struct source *)ctx)->c, seconds);
}

static void source_want_classes(void *ctx, bool want)
{
	collector_want_classes(((struct source *)ctx)->c, want);
}

static void source_want_faults(void *ctx, bool want)
{
	collector_want_faults(((struct source *)ctx)->c, want);
}

static void source_want_res(void *ctx, bool want)
{
	collector_want_res(((struct source *)ctx)->c, want);
}

static void source_save(void *ctx, const char *path)
{
	struct source *s = ctx;

	if (s->saver)
		saver_request(s->saver, path);
}

static char *source_status(void *ctx)
{
	struct source *s = ctx;

	return s->saver ? saver_status(s->saver) : xstrdup("");
}

static bool source_failed(void *ctx)
{
	return ((struct source *)ctx)->failed != NULL;
}

static void source_open(struct source *s)
{
	sigset_t set;

	/* blocked by main before any thread was started */
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	s->usr1 = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	s->fd = epoll_create1(EPOLL_CLOEXEC);
	listen_to(s, s->usr1);
	if (s->c)
		listen_to(s, collector_fd(s->c));
	if (s->loader)
		listen_to(s, loader_fd(s->loader));
	if (s->saver)
		listen_to(s, saver_fd(s->saver));
	if (s->dumper && dumper_fd(s->dumper) >= 0)
		listen_to(s, dumper_fd(s->dumper));
}

/* A file, a time, a condition are about one process. */
static bool can_change(const struct cli *cli)
{
	return cli->mode != CLI_RUN && cli->npids == 1 && !cli->output && !cli->duration && !cli->nfail_if;
}

/* One value is for all screens: -s is meant for Sites, --value for Flame. */
static enum report_value first_value(const struct cli *cli)
{
	bool by_value = cli->view == UI_FLAME || cli->sort == REPORT_LIVE_BYTES;

	return by_value && cli->value != REPORT_LIVE_BYTES ? cli->value : cli->sort;
}

static struct err *run(const struct cli *cli, struct source *s, struct names *names,
		       struct relay *relay, enum ui_leave *ret_leave, int *ret_signal)
{
	s->snapshot_name = cli->output ? cli->output : "heaptop.%p.pb.gz";
	source_open(s);
	CLEANUP_FREE char *title = NULL, *waiting = NULL;
	struct view *first = source_view(s);
	if (first)
		title = xstrdup(first->info.command ? first->info.command : "");
	else if (!s->c)
		waiting = xasprintf("reading %s …", cli->input);
	view_unref(first);
	struct ui_source source = {
		.ctx = s, .view = source_view, .fd = source_fd, .seen = source_seen,
		.processes = s->c ? source_processes : NULL, .choose = s->c ? source_choose : NULL,
		.pause = s->c ? source_pause : NULL, .signal = s->c ? source_signal : NULL,
		.refused = s->c ? source_refused : NULL,
		.other = s->c && can_change(cli) ? source_other : NULL, .foresee = source_foresee,
		.choose_threads = s->c ? source_choose_threads : NULL,
		.set_refresh = s->c ? source_set_refresh : NULL,
		.want_classes = s->c ? source_want_classes : NULL,
		.want_faults = s->c ? source_want_faults : NULL, .want_res = s->c ? source_want_res : NULL,
		.save = source_save, .status = source_status, .failed = s->c ? NULL : source_failed, .waiting = waiting,
		.base = cli->base_view, .base_names = cli->base_names, .base_name = cli->base,
		.mods = s->c ? collector_modules(s->c) : NULL,
		.live = s->c != NULL, .launched = s->c && cli->mode == CLI_RUN,
	};
	struct ui_options options = {
		.view = cli->view, .value = first_value(cli), .filter = cli->filter, .wrappers = cli->wrappers, .group = cli->group,
		.delay = cli->delay, .duration = s->c ? cli->duration : 0,
		.no_color = cli->no_color, .no_unicode = cli->no_unicode,
		.no_mouse = cli->no_mouse, .exit_with_program = cli->exit_with_program, .paused = cli->paused,
		.title = title, .script = getenv("HEAPTOP_SCRIPT"),
		.snapshot_name = s->snapshot_name,
		.themes = &cli->themes, .theme = cli->theme, .hidden_columns = cli->hidden_columns,
		.graph = cli->graph, .copy = cli->copy, .source_paths = &cli->source_paths,
		.config_path = cli->config_path,
	};
	struct err *err = NULL;
	if (!s->failed)	/* else without a screen that would open and close */
		err = ui_run(&source, names, relay, &options, ret_leave, ret_signal);
	close(s->fd);
	close(s->usr1);
	return err;
}

/* Let the target go the way the user chose; false if that failed. */
static bool release(const struct cli *cli, struct collector *c, enum ui_leave leave)
{
	bool kill_it = leave == UI_LEAVE_KILL
		|| (leave == UI_LEAVE_SIGNAL && cli_kills_on_exit(cli));

	if (kill_it) {
		collector_kill(c, COLLECT_SUM, SIGKILL);
		if (collector_wait_end(c, KILL_SECONDS))
			return true;
	}
	struct err *err = collector_detach(c);
	if (err) {
		fprintf(stderr, "heaptop: %s\n", err->text);
		err_free(err);
		return false;
	}
	if (!cli->quiet && *collector_message(c))
		fprintf(stderr, "heaptop: %s\n", collector_message(c));
	return true;
}

static bool last_snapshots(const struct cli *cli, struct saver *saver, struct dumper *dumper)
{
	CLEANUP_FREE char *peak = NULL;

	struct err *err = cli->output && cli->dump.exit ? saver_write(saver, cli->output, NULL) : NULL;
	if (!err)
		err = dumper_finish(dumper, &peak);
	if (!err)
		return true;
	fprintf(stderr, "heaptop: %s\n", err->text);
	err_free(err);
	return false;
}

int screen_watch(const struct cli *cli, struct collector *c, struct saver *saver,
		 struct relay *relay, pid_t *ret_other)
{
	struct source source = { .c = c, .cli = cli, .saver = saver, .dumper = dumper_create(&cli->dump, cli->output, c, saver) };
	enum ui_leave leave = UI_LEAVE_QUIT;
	int sig = 0;
	bool ok = true;

	struct err *err = run(cli, &source, collector_names(c), relay, &leave, &sig);
	if (err) {
		fprintf(stderr, "heaptop: %s\n", err->text);
		err_free(err);
		ok = false;
	}
	/* what is to be written is of now, but names for it may take long to look up: the program is let go before */
	collector_hurry(c);
	struct moment *last = cli->output && cli->dump.exit ? moment_take(c, true) : NULL;
	ok = release(cli, c, leave) && ok;
	*ret_other = leave == UI_LEAVE_OTHER ? source.other : 0;
	/* one that is still being written mustn't replace these */
	saver_finish(saver);
	saver_settle(saver, last);
	ok = last_snapshots(cli, saver, source.dumper) && ok;
	saver_settle(saver, NULL);
	moment_free(last);
	dumper_destroy(source.dumper);
	if (leave == UI_LEAVE_SIGNAL)
		return 128 + sig;
	if (cli->mode == CLI_RUN && collector_exit_code(c) >= 0)
		return collector_exit_code(c);
	return ok ? 0 : cli->mode == CLI_RUN ? EXIT_LAUNCH_FAILED : EXIT_FAILED;
}

int screen_show(const struct cli *cli, const struct export_options *options, screen_judge_fn judge)
{
	struct source source = { .cli = cli, .names = names_create(NULL), .options = options };
	enum ui_leave leave = UI_LEAVE_QUIT;
	int sig = 0;

	/* what reading took and gave back is what the screen takes next: new pages would cost it more than its work */
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_TRIM_THRESHOLD, KEEP_FREE);
	source.loader = loader_create(cli->input, source.names);
	poll(&(struct pollfd){ .fd = loader_fd(source.loader), .events = POLLIN }, 1, LOAD_MS);
	struct err *err = run(cli, &source, source.names, NULL, &leave, &sig);
	if (!err) {
		err = source.failed;
		source.failed = NULL;
	}
	if (err)
		fprintf(stderr, "heaptop: %s\n", err->text);
	int code = err ? EXIT_FAILED : leave == UI_LEAVE_SIGNAL ? 128 + sig : 0;
	/* left before the file was read: nothing can be said of it */
	if (!code && source.view)
		code = judge(cli, source.view, source.names, NULL, code);
	else if (!code && cli->nfail_if)
		code = EXIT_FAILED;
	err_free(err);
	err_free(source.failed);
	saver_destroy(source.saver);
	view_unref(source.view);
	if (loader_destroy(source.loader))
		names_destroy(source.names);
	return code;
}
