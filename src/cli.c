/* The command line; see cli.h and heaptop(1). */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli_config.h"
#include "cli_options.h"
#include "completion.h"
#include "config.h"
#include "export/export.h"
#include "report/failif.h"
#include "report/wrappers.h"
#include "target/proclist.h"
#include "ui/columns.h"
#include "ui/graph.h"

enum {
	OPT_OVERHEAD = 256, OPT_IO, OPT_TUI, OPT_VALUE, OPT_VIEW, OPT_GROUP, OPT_PAUSED, OPT_KEYS, OPT_RECORD,
	OPT_BASE, OPT_NAME, OPT_NO_FOLLOW, OPT_PROCESS,
	OPT_MMAP, OPT_PROBE, OPT_FAULTS,
	OPT_ALLOC, OPT_FREE, OPT_REALLOC, OPT_PRESET,
	OPT_DOCTOR,
	OPT_CONFIG, OPT_THEME, OPT_COLUMNS, OPT_GRAPH, OPT_COPY, OPT_FAIL_IF, OPT_ON_EXIT, OPT_DELAY_START, OPT_COMPLETION, OPT_DUMP, OPT_MIN_SIZE, OPT_WRAPPER,
};

/* One table: getopt's options, their help, in the order of --help. */
static const struct cli_option opts[] = {
	{ { "pid", required_argument, NULL, 'p' }, "PID", "watch running processes: PID[,PID]… (or a name)" },
	{ { "name", required_argument, NULL, OPT_NAME }, "NAME", "watch all processes of that name" },
	{ { "no-follow", no_argument, NULL, OPT_NO_FOLLOW }, NULL, "not the children of a program" },
	{ { "process", required_argument, NULL, OPT_PROCESS }, "WHICH", "in -b: sum (default), all, or a PID" },
	{ { "input", required_argument, NULL, 'i' }, "FILE", "look at a snapshot (pprof)" },
	{ { "base", required_argument, NULL, OPT_BASE }, "FILE", "compare with this snapshot" },
	{ { "output", required_argument, NULL, 'o' }, "FILE",
	  "write a snapshot at the end: .pb.gz (pprof), .folded, .json, .txt" },
	{ { "dump", required_argument, NULL, OPT_DUMP }, "WHEN", "when that is written: exit (default), peak, every=TIME, signal" },
	{ { "rate", required_argument, NULL, 'r' }, "SIZE",
	  "mean bytes between samples, or auto (default)" },
	{ { "exact", no_argument, NULL, 'e' }, NULL, "record every call" },
	{ { "min-size", required_argument, NULL, OPT_MIN_SIZE }, "SIZE", "only blocks of so many bytes and more" },
	{ { "mmap", no_argument, NULL, OPT_MMAP }, NULL, "count the program's own anonymous mappings, too" },
	{ { "probe", required_argument, NULL, OPT_PROBE }, "HOW", "agent (default), or uprobe: nothing is put into the program" },
	{ { "faults", no_argument, NULL, OPT_FAULTS }, NULL, "sample page faults: who touches new memory" },
	{ { "overhead", required_argument, NULL, OPT_OVERHEAD }, "PCT",
	  "what auto may cost the program (default 1%)" },
	{ { "duration", required_argument, NULL, 'D' }, "TIME", "stop after 30s, 5m, …" },
	{ { "delay-start", required_argument, NULL, OPT_DELAY_START }, "TIME", "begin to collect after that" },
	{ { "paused", no_argument, NULL, OPT_PAUSED }, NULL, "start with collection off" },
	{ { "alloc", required_argument, NULL, OPT_ALLOC }, "FUNC(size=N)",
	  "another allocator's function, its size in argument N" },
	{ { "free", required_argument, NULL, OPT_FREE }, "FUNC(ptr=N)", "what frees such a block" },
	{ { "realloc", required_argument, NULL, OPT_REALLOC }, "FUNC(…)",
	  "what reallocates it: ptr=N,size=N" },
	{ { "preset", required_argument, NULL, OPT_PRESET }, "NAME",
	  "those of a known allocator: cpython, glib, apr" },
	{ { "delay", required_argument, NULL, 'd' }, "SECONDS", "between refreshes (default 1)" },
	{ { "batch", no_argument, NULL, 'b' }, NULL, "text on standard output, no screen" },
	{ { "iterations", required_argument, NULL, 'n' }, "N", "stop after N frames (implies -b)" },
	{ { "tui", no_argument, NULL, OPT_TUI }, NULL, "the screen even with -o or into a pipe" },
	{ { "sort", required_argument, NULL, 's' }, "KEY", "order of the sites; help lists" },
	{ { "group", required_argument, NULL, OPT_GROUP }, "NAME", "rows by site, function, stack, module or thread" },
	{ { "value", required_argument, NULL, OPT_VALUE }, "KEY",
	  "what the flame view and .folded files show" },
	{ { "filter", required_argument, NULL, 'f' }, "REGEX", "only these sites; !REGEX: not these" },
	{ { "wrapper", required_argument, NULL, OPT_WRAPPER }, "REGEX", "no sites, but their callers are; !REGEX: sites; help lists" },
	{ { "thread", required_argument, NULL, 'T' }, "TID|NAME", "only blocks of these threads (ids and names, with commas between)" },
	{ { "view", required_argument, NULL, OPT_VIEW }, "NAME", "sites, tree, flame, time, threads, modules or output" },
	{ { "fail-if", required_argument, NULL, OPT_FAIL_IF }, "COND",
	  "exit with 3 if so at the end: live>50M, site~RE, …" },
	{ { "on-exit", required_argument, NULL, OPT_ON_EXIT }, "WHAT",
	  "a signal ends heaptop: kill or detach the program" },
	{ { "exit-with-program", no_argument, NULL, 'x' }, NULL, "leave when the program ends" },
	{ { "io", required_argument, NULL, OPT_IO }, "WHERE",
	  "program's terminal: pane, inherit, null, FILE, /dev/pts/N" },
	{ { "columns", required_argument, NULL, OPT_COLUMNS }, "LIST", "numbers beside the names; help lists" },
	{ { "graph", required_argument, NULL, OPT_GRAPH }, "KIND", "braille, block or ascii" },
	{ { "theme", required_argument, NULL, OPT_THEME }, "NAME", "colours: light, contrast, mono, …; help lists" },
	{ { "copy", required_argument, NULL, OPT_COPY }, "HOW", "what y copies to: auto, terminal or file" },
	{ { "config", required_argument, NULL, OPT_CONFIG }, "FILE", "settings, in place of the usual files" },
	{ { "no-color", no_argument, NULL, 'C' }, NULL, "monochrome" },
	{ { "no-unicode", no_argument, NULL, 'U' }, NULL, "ASCII only" },
	{ { "no-mouse", no_argument, NULL, 'M' }, NULL, "leave the mouse to the terminal" },
	{ { "doctor", no_argument, NULL, OPT_DOCTOR }, NULL,
	  "say what works here, what doesn't, and why" },
	{ { "completion", required_argument, NULL, OPT_COMPLETION }, "SHELL", "print completions for bash, zsh or fish" },
	{ { "keys", no_argument, NULL, OPT_KEYS }, NULL, "list the keys" },
	{ { "record-stacks", required_argument, NULL, OPT_RECORD }, "FILE",
	  "keep every recorded stack, for benchmarks" },
	{ { "quiet", no_argument, NULL, 'q' }, NULL, "no messages but errors" },
	{ { "verbose", no_argument, NULL, 'v' }, NULL, "say more, on standard error" },
	{ { "help", no_argument, NULL, 'h' }, NULL, "this text" },
	{ { "version", no_argument, NULL, 'V' }, NULL, "version and features" },
};

static void usage(void)
{
	printf("Usage: heaptop [OPTION]... [--] PROGRAM [ARG]...   run a program and watch its heap\n"
	       "       heaptop [OPTION]... -p PID[,PID]...         watch running processes\n"
	       "       heaptop [OPTION]... -i FILE                 look at a snapshot\n"
	       "       heaptop                                     choose a process\n"
	       "       heaptop --doctor [-p PID | PROGRAM]         would it work, and why not?\n"
	       "\nWhich call sites hold memory, which allocate fastest, and the call trees behind "
	       "them, live.\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(opts); i++) {
		const struct cli_option *o = &opts[i];
		char left[64];
		char letter[8] = "    ";
		if (o->o.val < 256)
			snprintf(letter, sizeof(letter), "-%c, ", o->o.val);
		snprintf(left, sizeof(left), "%s--%s%s%s", letter, o->o.name, o->arg ? "=" : "",
			 o->arg ? o->arg : "");
		/* an ellipsis has three bytes */
		int wide = 0;
		for (const char *p = left; *p; p++)
			wide += (*p & 0xc0) != 0x80;
		printf("  %s%*s %s\n", left, wide < 28 ? 28 - wide : 0, "", o->help);
	}
	printf("\nExamples: heaptop ./server --port 80    heaptop -p 4242    "
	       "heaptop -e -o leak.pb.gz ./test\nSee man heaptop.\n");
}

static void version(void)
{
	printf("heaptop " PACKAGE_VERSION "\n"
	       "x86-64; agent probe; libunwind, elfutils, Zydis, libiberty, protobuf-c, ncursesw\n"
	       "Licence: GPL-2.0-or-later. No warranty.\n");
}

/* Where the next failure's text goes to instead of the user; set within cli_take alone. */
static char **failed;

static bool fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static bool fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	char *text = xvasprintf(fmt, ap);
	va_end(ap);
	text_sanitize(text);
	if (failed) {
		*failed = text;
		return false;
	}
	fprintf(stderr, "heaptop: %s\nTry 'heaptop --help'.\n", text);
	free(text);
	return false;
}

static bool parse_long(const char *s, long min, long max, long *ret)
{
	char *end;

	errno = 0;
	long v = strtol(s, &end, 10);
	if (errno || end == s || *end || v < min || v > max)
		return false;
	*ret = v;
	return true;
}

static bool parse_key(const char *option, const char *arg, struct cli *cli, enum report_value *ret)
{
	if (!strcmp(arg, "help")) {
		for (int v = 0; v < REPORT_VALUES; v++)
			printf("%-8s %s\n", report_value_name(v), report_value_title(v));
		cli->mode = CLI_DONE;
		return true;
	}
	int v = report_value_parse(arg);
	if (v < 0)
		return fail("%s: no value is called '%s'; %s help lists them", option, arg, option);
	*ret = (enum report_value)v;
	return true;
}

static bool add_pid(struct cli *cli, pid_t pid)
{
	for (size_t i = 0; i < cli->npids; i++)
		if (cli->pids[i] == pid)
			return true;
	if (cli->npids == CLI_PIDS_MAX)
		return fail("-p: more than %d processes", CLI_PIDS_MAX);
	cli->pids[cli->npids++] = pid;
	if (cli->mode != CLI_DONE)
		cli->mode = CLI_ATTACH;
	return true;
}

/* "17", "17,4242"; false if it isn't a list of numbers. */
static bool parse_pids(const char *arg, struct cli *cli, bool *ret_ok)
{
	*ret_ok = true;
	for (const char *at = arg;; ) {
		char *end;
		errno = 0;
		long pid = strtol(at, &end, 10);
		if (errno || end == at || *at < '0' || *at > '9' || (*end && *end != ',') || pid < 1 || pid > 1 << 30)
			return false;
		if (!(*ret_ok = add_pid(cli, (pid_t)pid)) || !*end)
			return true;
		at = end + 1;
	}
}

static bool parse_pid(const char *arg, struct cli *cli)
{
	pid_t found[2];
	bool ok;

	if (parse_pids(arg, cli, &ok))
		return ok;
	if (!*arg || (*arg >= '0' && *arg <= '9') || *arg == '-')
		return fail("-p: '%s' is no process id", arg);
	size_t n = proclist_find(arg, found, ARRAY_SIZE(found));
	if (!n)
		return fail("-p: no process is called '%s'", arg);
	if (n == 1)
		return add_pid(cli, found[0]);
	cli->mode = CLI_PICK;
	cli->name = arg;
	return true;
}

static bool parse_name(const char *arg, struct cli *cli)
{
	pid_t found[CLI_PIDS_MAX];
	size_t n = proclist_find(arg, found, CLI_PIDS_MAX);

	if (!n)
		return fail("--name: no process is called '%s'", arg);
	if (n > CLI_PIDS_MAX)
		return fail("--name: %zu processes are called '%s', more than %d", n, arg, CLI_PIDS_MAX);
	for (size_t i = 0; i < n; i++)
		if (!add_pid(cli, found[i]))
			return false;
	return true;
}

static bool parse_process(const char *arg, struct cli *cli)
{
	long pid;

	if (!strcmp(arg, "sum"))
		cli->process = CLI_SUM;
	else if (!strcmp(arg, "all"))
		cli->process = CLI_ALL;
	else if (parse_long(arg, 1, 1 << 30, &pid))
		cli->process = (pid_t)pid;
	else
		return fail("--process: '%s' is none of sum, all, a process id", arg);
	return true;
}

static bool parse_group(const char *arg, enum report_group *ret)
{
	int group = report_group_parse(arg);

	if (group < 0)
		return fail("--group: '%s' is none of site, function, stack, module, thread", arg);
	*ret = (enum report_group)group;
	return true;
}

static bool parse_view(const char *arg, enum ui_view *ret)
{
	static const char *const names[UI_VIEWS] = { "sites", "tree", "flame", "time", "threads", "modules", "output" };

	for (int i = 0; i < UI_VIEWS; i++) {
		if (!strcmp(arg, names[i])) {
			*ret = (enum ui_view)i;
			return true;
		}
	}
	return fail("--view: '%s' is none of sites, tree, flame, time, threads, modules, output", arg);
}

static bool parse_rate(const char *arg, struct cli *cli)
{
	cli->auto_rate = !strcmp(arg, "auto");
	if (cli->auto_rate)
		return true;
	if (!text_parse_size(arg, &cli->rate) || !cli->rate || cli->rate > 1ull << 40)
		return fail("-r: '%s' is no size such as 512K, or auto", arg);
	return true;
}

static bool parse_percent(const char *arg, double *ret)
{
	char *end;
	double v = strtod(arg, &end);

	if (*end == '%')
		end++;
	if (end == arg || *end || !(v > 0 && v <= 100))
		return fail("--overhead: '%s' is no percentage", arg);
	*ret = v / 100;
	return true;
}

static bool parse_io(const char *arg, struct cli *cli)
{
	struct err *err = relay_parse(arg, &cli->io);

	if (err) {
		fail("--io: %s", err->text);
		err_free(err);
		return false;
	}
	cli->io_given = true;
	cli->io_path = arg;
	return true;
}

static bool parsed(const char *option, struct err *err)
{
	if (!err)
		return true;
	fail("%s: %s", option, err->text);
	err_free(err);
	return false;
}

static bool parse_columns(const char *arg, struct cli *cli)
{
	if (strcmp(arg, "help"))
		return parsed("--columns", columns_parse(arg, &cli->hidden_columns));
	for (enum column_id id = 0; id < COLUMN_IDS; id++)
		if (columns_name(id))
			printf("%-8s %s\n", columns_name(id), columns_help(id));
	cli->mode = CLI_DONE;
	return true;
}

static bool parse_wrapper(const char *arg, struct cli *cli)
{
	if (strcmp(arg, "help"))
		return parsed("--wrapper", wrappers_add(cli->wrappers, arg));
	wrappers_print(stdout);
	cli->mode = CLI_DONE;
	return true;
}

static bool parse_theme(const char *arg, struct cli *cli)
{
	CLEANUP_FREE char *names = themes_names(&cli->themes);

	if (!strcmp(arg, "help")) {
		printf("%s\n", names);
		cli->mode = CLI_DONE;
		return true;
	}
	cli->theme = arg;
	return themes_find(&cli->themes, arg) || fail("--theme: '%s' is none of %s", arg, names);
}

static bool parse_graph(const char *arg, struct cli *cli)
{
	int kind = graph_kind_parse(arg);

	if (kind < 0)
		return fail("--graph: '%s' is none of braille, block, ascii", arg);
	cli->graph = kind;
	return true;
}

static bool parse_word(const char *option, const char *arg, const char *const *words, int *ret)
{
	for (*ret = 0; words[*ret]; ++*ret)
		if (!strcmp(words[*ret], arg))
			return true;
	return fail("%s: '%s' is neither %s%s%s nor %s", option, arg, words[0], words[2] ? ", " : "", words[2] ? words[1] : "",
		    words[2] ? words[2] : words[1]);
}

static bool parse_copy(const char *arg, struct cli *cli)
{
	static const char *const words[] = { "auto", "terminal", "file", NULL };
	int i;

	if (!parse_word("--copy", arg, words, &i))
		return false;
	cli->copy = (enum ui_copy)i;
	return true;
}

static bool parse_on_exit(const char *arg, struct cli *cli)
{
	static const char *const words[] = { "kill", "detach", NULL };
	int i;

	if (!parse_word("--on-exit", arg, words, &i))
		return false;
	cli->on_exit = i ? CLI_EXIT_DETACH : CLI_EXIT_KILL;
	return true;
}

static bool parse_fail_if(const char *arg, struct cli *cli)
{
	struct failif *f = NULL;

	if (!parsed("--fail-if", failif_parse(arg, &f)))
		return false;
	cli->fail_if = xreallocarray(cli->fail_if, cli->nfail_if + 1, sizeof(*cli->fail_if));
	cli->fail_if[cli->nfail_if++] = f;
	return true;
}

/* A suffix that says no format is told before the program runs for hours, not after. */
static bool known_format(const char *path)
{
	enum export_format format;
	struct err *err = export_format_of(path, &format);

	if (!err)
		return true;
	fail("-o: %s", err->text);
	err_free(err);
	return false;
}

static bool parse_option(int opt, const char *arg, struct cli *cli)
{
	switch (opt) {
	case 'p':
		return parse_pid(arg, cli);
	case OPT_NAME:
		return parse_name(arg, cli);
	case OPT_NO_FOLLOW:
		cli->follow = false;
		return true;
	case OPT_PROCESS:
		return parse_process(arg, cli);
	case 'i':
		cli->input = arg;
		cli->mode = CLI_INPUT;
		return true;
	case OPT_BASE:
		cli->base = arg;
		return *arg ? true : fail("--base: the file name is empty");
	case 'o':
		cli->output = arg;
		return *arg ? known_format(arg) : fail("-o: the file name is empty");
	case OPT_DUMP:
		return parsed("--dump", dump_parse(arg, &cli->dump));
	case 'r':
		return parse_rate(arg, cli);
	case OPT_MIN_SIZE:
		if (!text_parse_size(arg, &cli->min_size) || cli->min_size > 1ull << 40)
			return fail("--min-size: '%s' is no size such as 4K", arg);
		return true;
	case 'e':
		cli->exact = true;
		return true;
	case OPT_MMAP:
		cli->mmap = true;
		return true;
	case OPT_PROBE:
		/* the others: as on a kernel without session uprobes, as on one without BPF uprobes */
		cli->uprobe_way = !strcmp(arg, "uprobe-multi") ? 1 : !strcmp(arg, "uprobe-hits") ? 2 : 0;
		cli->uprobe = cli->uprobe_way || !strcmp(arg, "uprobe");
		return cli->uprobe || !strcmp(arg, "agent") || fail("--probe: '%s' is neither agent nor uprobe", arg);
	case OPT_FAULTS:
		cli->faults = true;
		return true;
	case OPT_OVERHEAD:
		return parse_percent(arg, &cli->overhead);
	case 'D':
		if (!text_parse_time(arg, &cli->duration) || cli->duration <= 0)
			return fail("-D: '%s' is no time such as 30s or 5m", arg);
		return true;
	case OPT_PAUSED:
		cli->paused = true;
		return true;
	case 'd':
		if (!text_parse_time(arg, &cli->delay) || cli->delay < 0.05 || cli->delay > 3600)
			return fail("-d: '%s' is no time from 0.05 to 3600 seconds", arg);
		return true;
	case 'b':
		cli->batch = true;
		return true;
	case 'n':
		cli->batch = true;
		if (!parse_long(arg, 1, 1 << 30, &cli->iterations))
			return fail("-n: '%s' is no number of frames", arg);
		return true;
	case OPT_TUI:
		cli->tui = true;
		return true;
	case 's':
		return parse_key("-s", arg, cli, &cli->sort);
	case OPT_VALUE:
		return parse_key("--value", arg, cli, &cli->value);
	case 'f':
		cli->filter = arg;
		return true;
	case 'T':
		cli->thread = arg;
		return *arg || fail("-T: give a thread's id or name");
	case OPT_GROUP:
		return parse_group(arg, &cli->group);
	case OPT_VIEW:
		return parse_view(arg, &cli->view);
	case 'x':
		cli->exit_with_program = true;
		return true;
	case OPT_IO:
		return parse_io(arg, cli);
	case 'C':
		cli->no_color = true;
		return true;
	case 'U':
		cli->no_unicode = true;
		return true;
	case 'M':
		cli->no_mouse = true;
		return true;
	case OPT_KEYS:
		ui_print_keys();
		cli->mode = CLI_DONE;
		return true;
	case OPT_ALLOC:
		return parsed("--alloc", named_add(&cli->named, NAMED_ALLOC, arg));
	case OPT_FREE:
		return parsed("--free", named_add(&cli->named, NAMED_FREE, arg));
	case OPT_REALLOC:
		return parsed("--realloc", named_add(&cli->named, NAMED_REALLOC, arg));
	case OPT_PRESET:
		return parsed("--preset", named_add_preset(&cli->named, arg, PRESET_DIR));
	case OPT_CONFIG:
		cli->config = arg;	/* cli_read has seen to it */
		return true;
	case OPT_THEME:
		return parse_theme(arg, cli);
	case OPT_COLUMNS:
		return parse_columns(arg, cli);
	case OPT_WRAPPER:
		return parse_wrapper(arg, cli);
	case OPT_GRAPH:
		return parse_graph(arg, cli);
	case OPT_COPY:
		return parse_copy(arg, cli);
	case OPT_FAIL_IF:
		return parse_fail_if(arg, cli);
	case OPT_ON_EXIT:
		return parse_on_exit(arg, cli);
	case OPT_DELAY_START:
		if (!text_parse_time(arg, &cli->delay_start) || cli->delay_start <= 0)
			return fail("--delay-start: '%s' is no time such as 30s or 5m", arg);
		cli->paused = true;
		return true;
	case OPT_COMPLETION:
		cli->mode = CLI_DONE;
		return completion_print(arg) || fail("--completion: '%s' is none of bash, zsh, fish", arg);
	case OPT_DOCTOR:
		cli->doctor = true;
		return true;
	case OPT_RECORD:
		cli->record = arg;
		return true;
	case 'q':
		cli->quiet = true;
		return true;
	case 'v':
		cli->verbose = true;
		return true;
	case 'h':
		usage();
		cli->mode = CLI_DONE;
		return true;
	case 'V':
		version();
		cli->mode = CLI_DONE;
		return true;
	default:
		/* getopt has printed what is wrong */
		fprintf(stderr, "Try 'heaptop --help'.\n");
		return false;
	}
}

static void make_getopt(struct option *ret_long, char *ret_short)
{
	*ret_short++ = '+';	/* the program's own options aren't ours */
	for (size_t i = 0; i < ARRAY_SIZE(opts); i++) {
		ret_long[i] = opts[i].o;
		if (opts[i].o.val >= 256)
			continue;
		*ret_short++ = (char)opts[i].o.val;
		if (opts[i].o.has_arg)
			*ret_short++ = ':';
	}
	*ret_short = 0;
	memset(&ret_long[ARRAY_SIZE(opts)], 0, sizeof(*ret_long));
}

const struct cli_option *cli_options(size_t *ret_n)
{
	*ret_n = ARRAY_SIZE(opts);
	return opts;
}

bool cli_take(struct cli *cli, const char *name, const char *arg, char **ret_why)
{
	*ret_why = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(opts); i++) {
		if (strcmp(opts[i].o.name, name))
			continue;
		const struct cli before = *cli;
		char *text = NULL;
		failed = &text;
		bool fine = parse_option(opts[i].o.val, arg, cli);
		failed = NULL;
		if (!fine)
			*cli = before;	/* half a change is none */
		/* "--delay: 'x' is no ..." */
		const char *colon = text ? strstr(text, ": ") : NULL;
		*ret_why = text ? xstrdup(*text == '-' && colon ? colon + 2 : text) : NULL;
		free(text);
		return fine;
	}
	*ret_why = xstrdup("there is no such option");
	return false;
}

void cli_keep(struct cli *cli, void *text)
{
	VEC_GROW(cli->kept, cli->nkept, cli->kept_cap);
	cli->kept[cli->nkept++] = text;
}

bool cli_kills_on_exit(const struct cli *cli)
{
	return cli->mode == CLI_RUN && cli->on_exit != CLI_EXIT_DETACH;
}

static void init(struct cli *cli)
{
	*cli = (struct cli){
		.mode = CLI_PICK,
		.auto_rate = true,
		.rate = 1,
		.overhead = 0.01,
		.delay = 1,
		.io = RELAY_PANE,
		.follow = true,
		.dump = { .exit = true },
	};
	cli->wrappers = wrappers_create();
	themes_init(&cli->themes);
}

void cli_deinit(struct cli *cli)
{
	themes_deinit(&cli->themes);
	wrappers_destroy(cli->wrappers);
	source_paths_deinit(&cli->source_paths);
	for (size_t i = 0; i < cli->nfail_if; i++)
		failif_destroy(cli->fail_if[i]);
	free(cli->fail_if);
	for (size_t i = 0; i < cli->nkept; i++)
		free(cli->kept[i]);
	free(cli->kept);
	free(cli->config_path);
}

static bool parse_arguments(int argc, char **argv, struct cli *cli)
{
	struct option longs[ARRAY_SIZE(opts) + 1];
	char shorts[2 * ARRAY_SIZE(opts) + 2];
	int sources;

	bool attach = false, input = false;
	make_getopt(longs, shorts);
	for (int opt; (opt = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
		if (!parse_option(opt, optarg, cli))
			return false;
		if (cli->mode == CLI_DONE)
			return true;
		attach |= opt == 'p' || opt == OPT_NAME;
		input |= opt == 'i';
	}
	sources = attach + input;
	if (optind < argc) {
		sources++;
		cli->mode = CLI_RUN;
		cli->argv = argv + optind;
	}
	if (sources > 1)
		return fail("give one of: a program to run, -p, -i");
	if (cli->npids && cli->mode == CLI_PICK)
		return fail("-p: several processes are called '%s': use --name=%s for all of them", cli->name,
			    cli->name);
	if (cli->doctor && cli->mode == CLI_INPUT)
		return fail("--doctor looks at the machine, a process or a program, not at a snapshot");
	if (cli->doctor && cli->mode == CLI_PICK && cli->name)
		return fail("-p: several processes are called '%s': give a process id", cli->name);
	if (dump_goes_on(&cli->dump) && cli->mode == CLI_INPUT)
		return fail("--dump: a snapshot doesn't go on; -o writes it once");
	if (dump_goes_on(&cli->dump) && !cli->output)
		return fail("--dump says when the file of -o is written: give -o FILE");
	if ((cli->dump.peak || cli->dump.every > 0) && !strcmp(cli->output, "-"))
		return fail("--dump: peak and every=TIME write several files, or one again and again: -o can't be -");
	if (cli->thread && cli->mode == CLI_INPUT)
		return fail("-T: a snapshot doesn't say which thread a block is of; give -T when it is made");
	if (cli->min_size && cli->mode == CLI_INPUT)
		return fail("--min-size: a snapshot has no blocks to leave out; give it when it is made");
	if (cli->exact && !cli->auto_rate)
		return fail("-e records every call: -r doesn't go with it");
	if (cli->uprobe && cli->mmap)
		return fail("--mmap takes the agent: it doesn't go with --probe=uprobe");
	if ((cli->sort == REPORT_DELTA_BYTES || cli->value == REPORT_DELTA_BYTES) && !cli->base)
		return fail("the value delta needs something to compare with: --base=FILE");
	if (cli->value == REPORT_DELTA_BYTES && cli->output)
		return fail("--value=delta is for the screen, not for files");
	if (cli->batch && cli->tui)
		return fail("-b and --tui exclude each other");
	if (cli->mode == CLI_PICK && (cli->batch || (cli->output && !cli->tui))) {
		if (cli->name)
			return fail("-p: several processes are called '%s': give a process id",
				    cli->name);
		return fail("nothing to watch: name a program to run, or a process with -p");
	}
	if (cli->filter) {
		struct report *r = report_create(NULL, false);
		struct err *err = report_set_filter(r, cli->filter);
		report_destroy(r);
		if (err) {
			fail("-f: %s", err->text);
			err_free(err);
			return false;
		}
	}
	return true;
}

bool cli_parse(int argc, char **argv, struct cli *cli)
{
	init(cli);
	return parse_arguments(argc, argv, cli);
}

/* The value of --config, which decides what is read before all other options; NULL: it isn't given. */
static const char *find_config(int argc, char **argv)
{
	struct option longs[ARRAY_SIZE(opts) + 1];
	char shorts[2 * ARRAY_SIZE(opts) + 2];
	const char *ret = NULL;

	make_getopt(longs, shorts);
	opterr = 0;	/* what is wrong is said when they are parsed */
	for (int opt; (opt = getopt_long(argc, argv, shorts, longs, NULL)) != -1;)
		if (opt == OPT_CONFIG)
			ret = optarg;
	opterr = 1;
	return ret;
}

/* HEAPTOP_OPTS holds options and nothing else: a word of it mustn't become the program, nor take an argument from it. */
static bool check_words(int n, char **words)
{
	struct option longs[ARRAY_SIZE(opts) + 1];
	char shorts[2 * ARRAY_SIZE(opts) + 2];
	bool fine = true;

	make_getopt(longs, shorts);
	optind = 0;
	opterr = 0;
	for (int opt; fine && (opt = getopt_long(n, words, shorts, longs, NULL)) != -1;)
		fine = opt != '?';
	opterr = 1;
	if (!fine)
		return fail("HEAPTOP_OPTS: '%s' is no option, or its argument is missing", words[optind - 1]);
	if (optind < n || (n > 1 && !strcmp(words[n - 1], "--")))
		return fail("HEAPTOP_OPTS: '%s' is no option", words[optind < n ? optind : n - 1]);
	return true;
}

bool cli_read(int argc, char **argv, struct cli *cli)
{
	const char *more = getenv("HEAPTOP_OPTS");
	int nwords = 0;

	init(cli);
	struct err *err = cli_config_read(cli, find_config(argc, argv));
	if (err) {
		fail("%s", err->text);
		err_free(err);
		return false;
	}
	if (argc < 1)
		return fail("there is no argument at all");
	char **words = cli_words(more ? more : "", &nwords);
	cli_keep(cli, words);
	char **all = xcalloc((size_t)argc + (size_t)nwords + 1, sizeof(*all));
	cli_keep(cli, all);
	all[0] = (char *)"heaptop";	/* getopt begins its lines with it, as we do ours */
	memcpy(all + 1, words, (size_t)nwords * sizeof(*all));
	memcpy(all + 1 + nwords, argv + 1, (size_t)(argc - 1) * sizeof(*all));
	if (nwords && !check_words(nwords + 1, all))
		return false;
	optind = 0;	/* glibc: begin anew */
	return parse_arguments(argc + nwords, all, cli);
}
