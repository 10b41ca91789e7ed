/* The command line; see cli.h and heaptop(1). */
#include "cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "config.h"
#include "export/export.h"
#include "target/proclist.h"

enum {
	OPT_OVERHEAD = 256, OPT_IO, OPT_TUI, OPT_VALUE, OPT_VIEW, OPT_GROUP, OPT_PAUSED, OPT_KEYS, OPT_RECORD,
	OPT_BASE, OPT_NAME, OPT_NO_FOLLOW, OPT_PROCESS,
	OPT_MMAP, OPT_PROBE, OPT_FAULTS,
	OPT_ALLOC, OPT_FREE, OPT_REALLOC, OPT_PRESET,
	OPT_DOCTOR,
};

/* One table: getopt's options, their help, in the order of --help. */
static const struct opt {
	struct option o;
	const char *arg, *help;
} opts[] = {
	{ { "pid", required_argument, NULL, 'p' }, "PID", "watch running processes: PID[,PID]… (or a name)" },
	{ { "name", required_argument, NULL, OPT_NAME }, "NAME", "watch all processes of that name" },
	{ { "no-follow", no_argument, NULL, OPT_NO_FOLLOW }, NULL, "not the children of a program" },
	{ { "process", required_argument, NULL, OPT_PROCESS }, "WHICH", "in -b: sum (default), all, or a PID" },
	{ { "input", required_argument, NULL, 'i' }, "FILE", "look at a snapshot (pprof)" },
	{ { "base", required_argument, NULL, OPT_BASE }, "FILE", "compare with this snapshot" },
	{ { "output", required_argument, NULL, 'o' }, "FILE",
	  "write a snapshot at the end: .pb.gz (pprof), .folded, .txt" },
	{ { "rate", required_argument, NULL, 'r' }, "SIZE",
	  "mean bytes between samples, or auto (default)" },
	{ { "exact", no_argument, NULL, 'e' }, NULL, "record every call" },
	{ { "mmap", no_argument, NULL, OPT_MMAP }, NULL, "count the program's own anonymous mappings, too" },
	{ { "probe", required_argument, NULL, OPT_PROBE }, "HOW", "agent (default), or uprobe: nothing is put into the program" },
	{ { "faults", no_argument, NULL, OPT_FAULTS }, NULL, "sample page faults: who touches new memory" },
	{ { "overhead", required_argument, NULL, OPT_OVERHEAD }, "PCT",
	  "what auto may cost the program (default 1%)" },
	{ { "duration", required_argument, NULL, 'D' }, "TIME", "stop after 30s, 5m, …" },
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
	{ { "thread", required_argument, NULL, 'T' }, "TID|NAME", "only blocks of these threads (ids and names, with commas between)" },
	{ { "view", required_argument, NULL, OPT_VIEW }, "NAME", "sites, tree, flame, time, threads, modules or output" },
	{ { "exit-with-program", no_argument, NULL, 'x' }, NULL, "leave when the program ends" },
	{ { "io", required_argument, NULL, OPT_IO }, "WHERE",
	  "program's terminal: pane, inherit, null, FILE, /dev/pts/N" },
	{ { "no-color", no_argument, NULL, 'C' }, NULL, "monochrome" },
	{ { "no-unicode", no_argument, NULL, 'U' }, NULL, "ASCII only" },
	{ { "no-mouse", no_argument, NULL, 'M' }, NULL, "leave the mouse to the terminal" },
	{ { "doctor", no_argument, NULL, OPT_DOCTOR }, NULL,
	  "say what works here, what doesn't, and why" },
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
		const struct opt *o = &opts[i];
		char left[64];
		char letter[8] = "    ";
		if (o->o.val < 256)
			snprintf(letter, sizeof(letter), "-%c, ", o->o.val);
		snprintf(left, sizeof(left), "%s--%s%s%s", letter, o->o.name, o->arg ? "=" : "",
			 o->arg ? o->arg : "");
		printf("  %-28s %s\n", left, o->help);
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

static bool fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static bool fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	CLEANUP_FREE char *text = xvasprintf(fmt, ap);
	va_end(ap);
	text_sanitize(text);
	fprintf(stderr, "heaptop: %s\nTry 'heaptop --help'.\n", text);
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

static bool parse_named(const char *option, struct err *err)
{
	if (!err)
		return true;
	fail("%s: %s", option, err->text);
	err_free(err);
	return false;
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
	case 'r':
		return parse_rate(arg, cli);
	case 'e':
		cli->exact = true;
		return true;
	case OPT_MMAP:
		cli->mmap = true;
		return true;
	case OPT_PROBE:
		/* the last: as on a kernel without session uprobes */
		cli->uprobe_multi = !strcmp(arg, "uprobe-multi");
		cli->uprobe = cli->uprobe_multi || !strcmp(arg, "uprobe");
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
		return parse_named("--alloc", named_add(&cli->named, NAMED_ALLOC, arg));
	case OPT_FREE:
		return parse_named("--free", named_add(&cli->named, NAMED_FREE, arg));
	case OPT_REALLOC:
		return parse_named("--realloc", named_add(&cli->named, NAMED_REALLOC, arg));
	case OPT_PRESET:
		return parse_named("--preset", named_add_preset(&cli->named, arg, PRESET_DIR));
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

bool cli_parse(int argc, char **argv, struct cli *cli)
{
	struct option longs[ARRAY_SIZE(opts) + 1];
	char shorts[2 * ARRAY_SIZE(opts) + 2];
	int sources;

	*cli = (struct cli){
		.mode = CLI_PICK,
		.auto_rate = true,
		.rate = 1,
		.overhead = 0.01,
		.delay = 1,
		.io = RELAY_PANE,
		.follow = true,
	};
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
	if (cli->thread && cli->mode == CLI_INPUT)
		return fail("-T: a snapshot doesn't say which thread a block is of; give -T when it is made");
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
