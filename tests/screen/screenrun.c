/*
 * screenrun [OPTION]... SCRIPT...: run screen scripts (ui/script.c), each in a process of its own, on the made-up heap
 * of tests/lib/fakeheap.c. No terminal, no process, the clock stands still: the same screens
 * every time. LINES, COLUMNS and the locale count as for heaptop itself.
 *
 *	--rate BYTES	sampled at that rate (1: exact)
 *	--steps N	seconds that have passed (20)
 *	--hostile	names that try to break the screen
 *	--ascii		no Unicode
 *	--snapshot	as opened from a file
 *	--attached, --dropped N
 *	--base N	compare with a file made after N seconds
 *	--processes	as one of several
 *	--threads	several threads; --gap N: heaptop slept N seconds
 *	--launched	as our own child, which q asks about
 *	--keys		print the key table instead
 *	--picker	the process picker instead, on made-up processes: SCRIPT is what is typed
 */
#include <getopt.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "heap/view.h"
#include "target/proclist.h"
#include "tests/lib/fakeheap.h"
#include "ui/pickask.h"
#include "ui/ui.h"

struct source {
	struct fakeheap *heap;
	struct view *view, *base;
};

static struct view *source_view(void *ctx)
{
	return view_ref(((struct source *)ctx)->view);
}

static void source_choose_threads(void *ctx, const char *which)
{
	struct source *s = ctx;

	fakeheap_choose(s->heap, which);
	view_unref(s->view);
	s->view = fakeheap_view(s->heap);
}

/* Told on the standard output, for the test to read. */
static void source_signal(void *ctx, int sig)
{
	(void)ctx;
	printf("signal %d\n", sig);
}

static void source_save(void *ctx, const char *path)
{
	(void)ctx;
	(void)path;
}

/* A shell, what it runs, some of that merged; one that was let go. The view stays the same. */
static size_t source_processes(void *ctx, struct ui_process **ret)
{
	static const struct ui_process list[] = {
		{ 1, 0, 4242, 1, "sh -c ./build --all", "", VIEW_RUNNING, 0, 48 << 10, 3 << 20, 1 },
		{ 2, 1, 4243, 1, "make -j8", "", VIEW_RUNNING, 0, 812 << 10, 9 << 20, 1 },
		{ 3, 2, 0, 117, "cc1plus", "", VIEW_EXITED, 0, 5 << 20, 0, 0 },
		{ 4, 2, 4402, 1, "ld -o program a.o b.o", "", VIEW_EXITED, 1, 31 << 20, 0, 0 },
		{ 5, 1, 4410, 1, "sudo make install", "it runs as another user", VIEW_DETACHED, -1, 0, 0, 0 },
		{ 6, 0, 4500, 1, "sceneview --hd scene.json", "", VIEW_RUNNING, 0, 2 << 20, 508 << 20, 6 },
	};
	size_t n = sizeof(list) / sizeof(list[0]);

	(void)ctx;
	*ret = xcalloc(n, sizeof(**ret));
	for (size_t i = 0; i < n; i++) {
		(*ret)[i] = list[i];
		(*ret)[i].command = xstrdup(list[i].command);
		(*ret)[i].why = xstrdup(list[i].why);
	}
	return n;
}

static bool source_choose(void *ctx, uint32_t id)
{
	(void)ctx;
	return id < 6;
}

static int env_number(const char *name, int otherwise)
{
	const char *text = getenv(name);

	return text && atoi(text) > 0 ? atoi(text) : otherwise;
}

/* The picker has a loop of its own on the terminal: here its model, drawn once, with its styles. */
static int show_picker(const char *typed, bool unicode)
{
	static const struct proc_row made[] = {
		{ 812, 1000, "user", UINT64_C(3) << 30, 31, 0, 93600, "sceneview --hd scene.json", NULL },
		{ 4, 0, "root", UINT64_C(512) << 20, 1, 0, 7200, "dbd --config /etc/dbd.conf", "it runs as another user" },
		{ 4242, 1000, "user", UINT64_C(24) << 20, 6, 0, 61, "漢字 server --port 80", NULL },
		{ 99, 1000, "user", UINT64_C(900) << 10, 1, 0, 2, "[no program]", "it has no allocator that heaptop knows" },
	};
	size_t n = sizeof(made) / sizeof(made[0]);
	struct proc_row *rows = xcalloc(n, sizeof(*rows));
	struct picker p;

	for (size_t i = 0; i < n; i++) {
		rows[i] = made[i];
		rows[i].command = xstrdup(made[i].command);
		rows[i].refusal = made[i].refusal ? xstrdup(made[i].refusal) : NULL;
	}
	struct canvas *c = canvas_create(env_number("LINES", 24), env_number("COLUMNS", 80), unicode);
	picker_init(&p, NULL);
	picker_take(&p, rows, n);
	for (; *typed; typed++)
		picker_key(&p, &(struct key_event){ .key = (unsigned char)*typed });
	/* of the first one it is known what attaching would do */
	picker_tell(&p, 812, xstrdup("Hooks 14 allocator functions of libc.so.6 and 2 other modules.\n"
				     "Its 31 threads stand still for that twice, about 7 ms together.\n"
				     "Then samples, at a cost of 1% of its processor time at most.\nAll of it is undone when you leave."));
	picker_draw(&p, c);
	CLEANUP_FREE char *text = canvas_dump(c);
	CLEANUP_FREE char *styles = canvas_dump_styles(c);
	printf("%s===== styles\n%s", text, styles);
	picker_deinit(&p);
	canvas_destroy(c);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "rate", required_argument, NULL, 'r' }, { "steps", required_argument, NULL, 's' },
		{ "hostile", no_argument, NULL, 'h' }, { "ascii", no_argument, NULL, 'a' },
		{ "snapshot", no_argument, NULL, 'i' }, { "attached", no_argument, NULL, 'p' },
		{ "dropped", required_argument, NULL, 'd' }, { "keys", no_argument, NULL, 'k' }, { "processes", no_argument, NULL, 'P' },
		{ "threads", no_argument, NULL, 't' }, { "gap", required_argument, NULL, 'g' },
		{ "launched", no_argument, NULL, 'l' }, { "picker", no_argument, NULL, 'c' },
		{ "base", required_argument, NULL, 'b' },
		{ NULL, 0, NULL, 0 },
	};
	struct fakeheap_config config = { .rate = 1 };
	struct ui_options ui = { .delay = 1, .title = "./sceneview --hd scene.json" };
	unsigned steps = 20, base = 0;
	bool several = false, launched = false, picker = false;
	int opt, sig;

	setlocale(LC_CTYPE, "");
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 'r': config.rate = strtoull(optarg, NULL, 10); break;
		case 's': steps = (unsigned)atoi(optarg); break;
		case 'h': config.hostile = true; break;
		case 'a': ui.no_unicode = true; break;
		case 'i': config.snapshot = true; break;
		case 'p': config.attached = true; break;
		case 'd': config.dropped = strtoull(optarg, NULL, 10); break;
		case 'b': base = (unsigned)atoi(optarg); break;
		case 't': config.threads = true; break;
		case 'g': config.gap = (uint32_t)atoi(optarg); break;
		case 'P': several = true; break;
		case 'l': launched = true; break;
		case 'c': picker = true; break;
		case 'k': ui_print_keys(); return 0;
		default: return 2;
		}
	}
	if (optind >= argc)
		return 2;
	bool failed = false;
	for (; optind + 1 < argc; optind++) {
		pid_t pid = fork();
		int status;
		if (!pid) {
			argc = optind + 1;
			failed = false;
			break;
		}
		failed |= pid < 0 || waitpid(pid, &status, 0) != pid || status;
	}
	if (picker)
		return show_picker(argv[optind], !ui.no_unicode);
	ui.script = argv[optind];
	struct source source = { .heap = fakeheap_create(&config) };
	for (unsigned i = 0; i < steps; i++) {
		view_unref(source.view);
		fakeheap_step(source.heap);
		source.view = fakeheap_view(source.heap);
		if (i + 1 == base)
			source.base = view_ref(source.view);
	}
	if (!source.view)
		source.view = fakeheap_view(source.heap);
	struct ui_source ops = {
		.ctx = &source, .view = source_view, .save = source_save,
		.signal = config.snapshot ? NULL : source_signal, .live = !config.snapshot, .launched = launched,
		.base = source.base, .base_names = fakeheap_names(source.heap), 
		.base_name = "runs/before.pb.gz", .processes = several ? source_processes : NULL,
		.choose = source_choose, .choose_threads = config.snapshot ? NULL : source_choose_threads,
	};
	enum ui_leave leave;
	struct err *err = ui_run(&ops, fakeheap_names(source.heap), NULL, &ui, &leave, &sig);
	if (err)
		fprintf(stderr, "%s\n", err->text);
	int status = err || failed ? 1 : 0;
	err_free(err);
	view_unref(source.view);
	view_unref(source.base);
	fakeheap_destroy(source.heap);
	return status;
}
