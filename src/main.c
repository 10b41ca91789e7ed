/* heaptop: top for the heap. Parse, open, run, close. */
#include "config.h"

#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ending.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli.h"
#include "collect/collect.h"
#include "doctor.h"
#include "export/export.h"
#include "foresee.h"
#include "headless.h"
#include "heap/view.h"
#include "report/failif.h"
#include "saver.h"
#include "screen.h"
#include "symbol/names.h"
#include "target/relay.h"
#include "ui/ui.h"

static int fail(struct err *err, int code)
{
	/* of several processes each has its line */
	for (const char *line = err->text; *line; line += strcspn(line, "\n"), line += *line == '\n')
		fprintf(stderr, "heaptop: %.*s\n", (int)strcspn(line, "\n"), line);
	err_free(err);
	return code;
}

/* What a missing right or facility has stopped, --doctor knows more of. */
static struct err *point_to_doctor(struct err *err, const struct cli *cli)
{
	if (err->code != ERR_DENIED && err->code != ERR_UNSUPPORTED && err->code != ERR_BUSY)
		return err;
	char *text = cli->mode == CLI_RUN ? xasprintf("%s; heaptop --doctor tells more", err->text) :
		xasprintf("%s; heaptop --doctor -p %d tells more", err->text, (int)cli->pids[0]);
	free(err->text);
	err->text = text;
	return err;
}

/* The screen is left out where nobody would see it; *ret_why says why it can't be opened. */
static bool wants_screen(const struct cli *cli)
{
	struct stat st;

	if (getenv("HEAPTOP_SCRIPT"))
		return true;
	if (cli->tui)
		return true;
	if (cli->batch || cli->output)
		return false;
	if (!fstat(STDOUT_FILENO, &st) && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
		return false;
	return true;
}

/* Decide between screen and text; a screen that was only assumed falls back to text. */
static struct err *choose_front(struct cli *cli, bool *ret_screen)
{
	*ret_screen = wants_screen(cli);
	if (!*ret_screen) {
		cli->batch = cli->batch || !cli->output;
		return NULL;
	}
	if (getenv("HEAPTOP_SCRIPT"))
		return NULL;
	struct err *err = ui_available();
	if (!err)
		return NULL;
	if (cli->tui || cli->mode == CLI_PICK)
		return err;
	fprintf(stderr, "heaptop: no screen: %s; going on in batch mode\n", err->text);
	err_free(err);
	*ret_screen = false;
	cli->batch = true;
	return NULL;
}

/* A descriptor stays open for each file the target has mapped. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/*
 * Exit code with --fail-if: each condition that is true of the last view is told, and so is what can't be
 * said; that is a failure of ours, so that nobody takes it for a success.
 */
static int judge(const struct cli *cli, struct view *view, struct names *names, const struct modules *mods, int code)
{
	bool met = false, unsaid = false;

	if (!cli->nfail_if)
		return code;
	struct report *report = report_create(names, true);
	report_set_modules(report, mods);
	report_set_wrappers(report, cli->wrappers);
	report_set_view(report, view);
	for (size_t i = 0; i < cli->nfail_if; i++) {
		CLEANUP_FREE char *text = NULL;
		enum failif_verdict verdict = failif_judge(cli->fail_if[i], report, &text);
		text_sanitize(text);
		met |= verdict == FAILIF_TRUE;
		unsaid |= verdict == FAILIF_UNKNOWN;
		if (verdict != FAILIF_FINE)
			fprintf(stderr, "heaptop: --fail-if=%s\n", text);
	}
	report_destroy(report);
	return met ? EXIT_CONDITION : unsaid && !code ? cli->mode == CLI_RUN ? EXIT_LAUNCH_FAILED : EXIT_FAILED : code;
}

static struct export_options export_options(const struct cli *cli)
{
	return (struct export_options){ .value = cli->value, .filter = cli->filter, .wrappers = cli->wrappers };
}

static int view_snapshot(struct cli *cli, bool screen)
{
	struct view *view;
	struct names *names;
	int sig;

	struct export_options options = export_options(cli);
	if (screen)
		return screen_show(cli, &options, judge);
	struct err *err = headless_read(cli->input, &view, &names, &sig);
	if (err)
		return fail(err, EXIT_FAILED);
	if (sig)
		return 128 + sig;
	struct saver *saver = saver_create(NULL, view, names, &options);
	int code = headless_show(cli, view, names, saver);
	saver_destroy(saver);
	code = judge(cli, view, names, NULL, code);
	view_unref(view);
	names_destroy(names);
	return code;
}

static struct err *make_terminal(const struct cli *cli, bool screen, struct relay **ret,
				 struct launch_spec *spec)
{
	enum relay_mode mode = cli->io_given ? cli->io : screen ? RELAY_PANE : RELAY_INHERIT;
	struct winsize size = { .ws_row = 24, .ws_col = 80 };

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_row || !size.ws_col)
		size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	return relay_create(mode, cli->io_path, size.ws_row, size.ws_col, ret, spec->fd,
			    &spec->new_session);
}

/*
 * ret_refused, if there is one: gets the reason why it can't be attached to, which is printed else. *ret_other: the process
 * that is to be watched now instead; 0: none.
 */
static int watch(struct cli *cli, bool screen, struct err **ret_refused, pid_t *ret_other)
{
	struct collect_config config = {
		.pids = cli->pids, .npids = cli->mode == CLI_RUN ? 0 : cli->npids, .follow = cli->follow,
		.launch = { .argv = cli->argv, .fd = { -1, -1, -1 } },
		.rate = cli->rate, .auto_rate = cli->auto_rate, .exact = cli->exact,
		.mmap = cli->mmap, .uprobe = cli->uprobe, .uprobe_way = cli->uprobe_way,
		.faults = cli->faults, .min_size = cli->min_size,
		.budget = cli->overhead, .refresh = cli->delay < 1 ? cli->delay : 1,
		.paused = cli->paused, .delay_start = cli->delay_start, .record = cli->record, .named = &cli->named, .thread = cli->thread,
	};
	struct relay *relay = NULL;
	struct collector *c = NULL;
	int code = EXIT_FAILED;

	*ret_other = 0;
	struct err *err = cli->output ? export_check(cli->output) : NULL;
	if (cli->mode == CLI_RUN)
		code = EXIT_LAUNCH_FAILED;
	if (!err && cli->mode == CLI_RUN)
		err = make_terminal(cli, screen, &relay, &config.launch);
	if (!err)
		err = collector_start(&config, &c, &code);
	if (relay)
		relay_launched(relay);
	if (err) {
		relay_destroy(relay);
		if (err->code == ERR_INTERRUPTED)
			return fail(err, 128 + ending_pending());
		err = point_to_doctor(err, cli);
		if (!ret_refused)
			return fail(err, code);
		*ret_refused = err;
		return code;
	}
	for (const char *line = collector_refusals(c); *line; line += strcspn(line, "\n") + 1)
		fprintf(stderr, "heaptop: %.*s\n", (int)strcspn(line, "\n"), line);
	struct export_options options = export_options(cli);
	struct saver *saver = saver_create(c, NULL, collector_names(c), &options);
	code = screen ? screen_watch(cli, c, saver, relay, ret_other) : headless_watch(cli, c, saver);
	saver_destroy(saver);
	struct view *last = collector_view(c);
	/* of a program it is its own code */
	if (screen || cli->mode == CLI_RUN || code != EXIT_INTERRUPTED)
		code = judge(cli, last, collector_names(c), collector_modules(c), code);
	view_unref(last);
	collector_destroy(c);
	relay_destroy(relay);
	return code;
}

/* The process picker; false: left without choosing, *ret_code is the exit code. `pick` remembers what it looked like. */
static bool pick_process(struct cli *cli, struct ui_pick *pick, int *ret_code)
{
	struct ui_options options = {
		.no_color = cli->no_color, .no_unicode = cli->no_unicode,
		.no_mouse = cli->no_mouse, .delay = cli->delay,
		.script = getenv("HEAPTOP_SCRIPT"),
		.themes = &cli->themes, .theme = cli->theme,
	};

	struct err *err = ui_pick(pick, &options);
	*ret_code = err ? fail(err, EXIT_FAILED) : pick->signal ? 128 + pick->signal : 0;
	cli->pids[0] = pick->pid;
	cli->npids = pick->pid ? 1 : 0;
	return !*ret_code && cli->npids;
}

static char *foresee_for(void *ctx, pid_t pid)
{
	return foresee(ctx, pid);
}

/*
 * Choose a process and watch it, or begin with `next`. One that can't be attached to, because it has just ended perhaps, is
 * no reason to leave: the list comes again and says why.
 */
static int pick_and_watch(struct cli *cli, bool screen, pid_t next)
{
	struct ui_pick pick = { .foresee = foresee_for, .ctx = cli };
	struct err *refused = NULL;
	int code = 0;

	snprintf(pick.filter, sizeof(pick.filter), "%s", cli->name ? cli->name : "");
	for (;;) {
		pick.said = refused ? refused->text : NULL;
		if (next) {
			cli->pids[0] = next;
			cli->npids = 1;
		} else if (!pick_process(cli, &pick, &code)) {
			break;
		}
		err_free(refused);
		refused = NULL;
		code = watch(cli, screen, &refused, &next);
		if (!refused && !next)
			break;
	}
	err_free(refused);
	return code;
}

/* What the command line names; then perhaps another one. */
static int watch_named(struct cli *cli, bool screen)
{
	pid_t other;
	int code = watch(cli, screen, NULL, &other);

	return other ? pick_and_watch(cli, screen, other) : code;
}

/* What has only printed, or looks and prints, and a scripted screen, which has no terminal: signals end it as ever. */
static void set_mask(const struct cli *cli, const sigset_t *before)
{
	sigset_t set;

	if (cli->mode == CLI_DONE || cli->doctor) {
		sigprocmask(SIG_SETMASK, before, NULL);
	} else if (getenv("HEAPTOP_SCRIPT")) {
		ending_signals(&set);
		sigprocmask(SIG_UNBLOCK, &set, NULL);
	}
}

/* `before`: the signal mask that heaptop was started with. */
static int run(struct cli *cli, const sigset_t *before)
{
	bool screen;
	int code, sig = 0;

	set_mask(cli, before);
	if (cli->mode == CLI_DONE)
		return cli->exit_code;
	if (cli->doctor)
		return doctor_run(cli);
	log_to_stderr(cli->verbose && !wants_screen(cli));
	struct err *err = choose_front(cli, &screen);
	if (err)
		return fail(err, EXIT_FAILED);
	/* a reader that leaves (| head) shows as a failed write */
	signal(SIGPIPE, SIG_IGN);
	raise_file_limit();
	if (cli->base)
		err = headless_read(cli->base, &cli->base_view, &cli->base_names, &sig);
	if (sig)
		return 128 + sig;
	if (err)
		return fail(err, cli->mode == CLI_RUN ? EXIT_LAUNCH_FAILED : EXIT_FAILED);
	code = cli->mode == CLI_INPUT ? view_snapshot(cli, screen) : cli->mode == CLI_PICK ? pick_and_watch(cli, screen, 0) :
		watch_named(cli, screen);
	view_unref(cli->base_view);
	names_destroy(cli->base_names);
	return code;
}

int main(int argc, char **argv)
{
	struct cli cli;
	sigset_t before;

	ending_block(&before);
	setlocale(LC_ALL, "");
	setlocale(LC_NUMERIC, "C");
	int code = cli_read(argc, argv, &cli) ? run(&cli, &before) : EXIT_USAGE;
	cli_deinit(&cli);
	return code;
}
