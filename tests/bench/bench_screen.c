/*
 * What the screen makes one wait for: its first frame on a snapshot of 100,000 traces, its answer to a key on every
 * screen there, and what it costs when nothing happens, in processor time and in bytes to the terminal.
 *
 *	bench_screen
 *
 * heaptop runs on a pseudo terminal, so what is measured is what a user's terminal gets: from the key's byte to
 * the first byte of the frame that answers it. Medians of several rounds; the worst is printed, too.
 */
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "export/export.h"
#include "heap/heap.h"
#include "heap/view.h"
#include "line.h"
#include "symbol/names.h"
#include "tests/lib/pty.h"
#include "tests/lib/whole.h"

#define TRACES 100000
#define FUNCTIONS 3000
#define DEPTH 24
#define ROWS 40
#define COLS 120
#define WAIT_MS 20000
#define FIRST_MS 100.0
#define KEY_MS 10.0
#define KEY_ROUNDS 15
#define LOOK_MS 700
#define IDLE_CPU 1.0		/* percent of a processor */
#define IDLE_BYTES 1024.0	/* a second */

static bool quick;
static const char *heaptop;
static int missed;

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), compare_double);
	return values[n / 2];
}

/* ---- the snapshot ---- */

/* C++ as it is: most names have arguments, some have templates. */
static void put_name(struct names *names, uint32_t k)
{
	char function[160], file[40];

	snprintf(function, sizeof(function), k % 3 ? "scene::Node%u::visit(Context const&, unsigned long)" :
		 "std::vector<scene::Vertex%u, std::allocator<scene::Vertex> >::_M_realloc_insert<int>(int*, int&&)", k);
	snprintf(file, sizeof(file), "src/node%u.cpp", k / 10);
	struct name_func nf = { .function = function, .linkage = function, .file = file, .line = 10 + k % 10 * 40 };
	for (int exact = 0; exact < 2; exact++)
		names_put(names, 1 + k % 8, 0x1000 + k * 64, exact, (const char *[]){ "scene", "libnode.so.1", "libmesh.so.2",
			  "libc.so.6", "libgl.so.1", "libphysics.so.3", "libaudio.so.1", "libnet.so.4" }[k % 8], &nf, 1);
}

/* Stack k: few functions outside, more of them inside, and so that no two are the same. */
static void stack_of(uint32_t k, uint64_t *addrs)
{
	uint32_t rest = k;

	for (uint32_t d = 0; d < DEPTH; d++) {
		uint32_t choice = d % 3 == 2 ? rest % 6 : 0;
		if (d % 3 == 2)
			rest /= 6;
		uint32_t f = d + 1 == DEPTH ? k % 1000 + 2000 : d * 60 + choice * 7 + (d > 16 ? k % 5 : 0);
		addrs[DEPTH - 1 - d] = frame_addr(1 + f % 8, 0x1000 + f * 64);
	}
}

static struct err *write_snapshot(const char *path)
{
	struct heap *heap = heap_create(NULL);
	struct names *names = names_create(NULL);
	struct view_info info = { .command = (char *)"./scene --load all.json", .state = VIEW_SNAPSHOT, .rate = 1 };
	struct export_options options = { .value = REPORT_LIVE_BYTES };
	uint64_t addrs[DEPTH];

	for (uint32_t k = 0; k < FUNCTIONS; k++)
		put_name(names, k);
	for (uint32_t k = 0; k < TRACES; k++) {
		stack_of(k, addrs);
		heap_alloc_whole(heap, 0x10000 + k * 16, 100 + k % 977, 1, 1000000000u, 0, addrs, DEPTH, 0);
	}
	struct view *view = heap_publish(heap, &info, 2000000000u);
	printf("# %zu traces of %u nodes\n", view->ntraces, view->nnodes);
	struct err *err = export_write(path, view, names, NULL, &options, NULL);
	view_unref(view);
	names_destroy(names);
	heap_destroy(heap);
	return err;
}

/* ---- heaptop on a terminal ---- */

static struct pty *run(char *const *argv)
{
	struct pty *pty = pty_start(&(struct pty_spec){ .argv = argv, .rows = ROWS, .cols = COLS, .term = "xterm-256color" });

	if (!pty)
		exit(2);
	return pty;
}

static void expect(struct pty *pty, const char *text)
{
	if (pty_expect(pty, text, WAIT_MS))
		return;
	fprintf(stderr, "never on the screen: %s\n", text);
	exit(2);
}

/* Of all its threads, from the scheduler: ns, where /proc/PID/stat has ticks of 10 ms. */
static double cpu_ms(pid_t pid)
{
	char path[64], line[128];
	uint64_t sum = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *dir = opendir(path);
	for (struct dirent *d; dir && (d = readdir(dir)); ) {
		snprintf(path, sizeof(path), "/proc/%d/task/%.20s/schedstat", (int)pid, d->d_name);
		FILE *f = d->d_name[0] == '.' ? NULL : fopen(path, "re");
		if (f && fgets(line, sizeof(line), f))
			sum += strtoull(line, NULL, 10);
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return (double)sum / 1e6;
}

/* Until nothing has come for a while. */
static void settle(struct pty *pty, int ms)
{
	while (pty_output(pty, ms))
		;
}

/* A screen's answer to keys. */
struct answer {
	double ms;		/* until its first byte */
	double cpu;		/* ms of processor time: on a busy machine the ms are others' */
	size_t bytes;
};

static struct answer answer(struct pty *pty, const char *keys)
{
	settle(pty, 50);
	size_t before = pty->n_raw;
	double cpu = cpu_ms(pty->pid), start = now_ms();

	pty_send(pty, keys, strlen(keys));
	if (!pty_output(pty, WAIT_MS)) {
		fprintf(stderr, "no answer to the key %s\n", keys);
		exit(2);
	}
	struct answer a = { .ms = now_ms() - start };
	settle(pty, 20);
	a.cpu = cpu_ms(pty->pid) - cpu;
	a.bytes = pty->n_raw - before;
	return a;
}

static void key_line(const char *name, const char *what, const struct answer *answers, size_t n)
{
	double ms[KEY_ROUNDS], cpu[KEY_ROUNDS];
	size_t most = 0;

	for (size_t i = 0; i < n; i++) {
		ms[i] = answers[i].ms;
		cpu[i] = answers[i].cpu;
		most = answers[i].bytes > most ? answers[i].bytes : most;
	}
	double m = median(ms, n);
	missed |= bench_line(name, what, "< 10 ms", m < KEY_MS, "%.1f ms, %.1f at worst; %.1f ms of processor, %zu bytes", m,
			     ms[n - 1], median(cpu, n), most);
}

static void first_frame(const char *snapshot)
{
	char *argv[] = { (char *)heaptop, (char *)"-i", (char *)snapshot, NULL };
	double first[9], rows[9];
	size_t n = quick ? 1 : 9;

	for (size_t i = 0; i < n; i++) {
		double start = now_ms();
		struct pty *pty = run(argv);
		expect(pty, "heaptop");
		first[i] = now_ms() - start;
		expect(pty, "Node");
		rows[i] = now_ms() - start;
		pty_destroy(pty);
	}
	double f = median(first, n), r = median(rows, n);
	missed |= bench_line("screen.first", "heaptop -i of 100,000 traces, start to the first frame", "< 100 ms",
			     f < FIRST_MS, "%.0f ms, %.0f at worst; with its rows %.0f ms", f, first[n - 1], r);
}

/* A key, as many times as there are rounds; those between to come back aren't counted. */
static void key(struct pty *pty, const char *name, const char *what, const char *keys, const char *back)
{
	struct answer answers[KEY_ROUNDS];
	size_t n = quick ? 2 : KEY_ROUNDS;

	for (size_t i = 0; i < n; i++) {
		answers[i] = answer(pty, keys);
		if (back)
			answer(pty, back);
	}
	key_line(name, what, answers, n);
}

/* What happens once a session: in sessions of their own. */
static void once(const char *snapshot, const char *name, const char *what, const char *keys)
{
	char *argv[] = { (char *)heaptop, (char *)"-i", (char *)snapshot, NULL };
	struct answer answers[5];
	size_t n = quick ? 1 : 5;

	for (size_t i = 0; i < n; i++) {
		struct pty *pty = run(argv);
		expect(pty, "Node");
		/* as long as anybody looks at what has come; what is made ready meanwhile is ready */
		pty_pump(pty, LOOK_MS);
		answers[i] = answer(pty, keys);
		pty_destroy(pty);
	}
	key_line(name, what, answers, n);
}

static void keys(const char *snapshot)
{
	char *argv[] = { (char *)heaptop, (char *)"-i", (char *)snapshot, NULL };

	once(snapshot, "screen.tree.first", "the first switch to Tree", "2");
	once(snapshot, "screen.flame.first", "the first switch to Flame", "3");
	struct pty *pty = run(argv);
	expect(pty, "Node");
	key(pty, "screen.sites", "a row down in Sites", "j", NULL);
	key(pty, "screen.page", "a page down in Sites", "\6", NULL);
	key(pty, "screen.sort", "another value to sort by in Sites", "v", NULL);
	key(pty, "screen.find", "a letter more to find in Sites", "/9", "\177");
	pty_send(pty, "\033", 1);
	settle(pty, 100);
	key(pty, "screen.tree", "Sites to Tree", "2", "1");
	pty_send(pty, "2", 1);
	key(pty, "screen.tree.row", "a row down in Tree", "j", "k");
	key(pty, "screen.tree.find", "a letter more to find in Tree", "/9", "\177");
	pty_send(pty, "\033", 1);
	settle(pty, 100);
	key(pty, "screen.flame", "Sites to Flame", "3", "1");
	pty_send(pty, "3", 1);
	key(pty, "screen.flame.row", "a call deeper in Flame", "j", "k");
	key(pty, "screen.flame.find", "a letter more to find in Flame", "/9", "\177");
	pty_destroy(pty);
}

/* ---- nothing happens; much happens ---- */

/* Watch a program for some seconds once its screen has settled. */
static void watch(char *const *argv, int seconds, double *ret_cpu, double *ret_bytes)
{
	struct pty *pty = run(argv);

	expect(pty, "heaptop");
	pty_pump(pty, quick ? 500 : 5000);
	size_t bytes = pty->n_raw;
	double start = now_ms(), cpu = cpu_ms(pty->pid);
	pty_pump(pty, seconds * 1000);
	double ms = now_ms() - start;
	*ret_cpu = 100 * (cpu_ms(pty->pid) - cpu) / ms;
	*ret_bytes = (double)(pty->n_raw - bytes) / ms * 1000;
	/* killed, it would leave the program running, as it should, and beside the next benchmarks */
	kill(pty->pid, SIGTERM);
	if (!pty_wait(pty, WAIT_MS)) {
		fprintf(stderr, "it doesn't end on SIGTERM\n");
		exit(2);
	}
	pty_destroy(pty);
}

static void idle(const char *growth)
{
	char *quiet[] = { (char *)heaptop, (char *)"-d", (char *)"1", (char *)"--", (char *)growth, (char *)"-n", (char *)"2000",
		(char *)"-l", (char *)"50000", (char *)"-q", NULL };
	char *busy[] = { (char *)heaptop, (char *)"-d", (char *)"0.1", (char *)"--", (char *)growth, (char *)"-n", (char *)"200000",
		(char *)"-k", (char *)"4000", NULL };
	double cpu, bytes;

	watch(quiet, quick ? 1 : 20, &cpu, &bytes);
	missed |= bench_line("quiet.screen", "heaptop -d 1 on 120x40 -- growth -n 2000 -l 50000 -q", "<= 1 %", cpu <= IDLE_CPU,
			     "%.2f %% of a processor", cpu);
	missed |= bench_line("quiet.bytes", "to the terminal meanwhile", "<= 1 KiB a second", bytes <= IDLE_BYTES,
			     "%.0f bytes a second", bytes);
	watch(busy, quick ? 1 : 5, &cpu, &bytes);
	missed |= bench_line("busy.bytes", "heaptop -d 0.1 on a program that allocates all the time", "printed", true,
			     "%.0f bytes a frame", bytes / 10);
}

int main(void)
{
	char dir[] = "/tmp/heaptop-bench.XXXXXX";
	const char *build = getenv("abs_top_builddir"), *given = getenv("HEAPTOP");

	quick = getenv("HEAPTOP_QUICK") && *getenv("HEAPTOP_QUICK");
	setenv("LC_ALL", "C.UTF-8", 1);
	if (!mkdtemp(dir)) {
		perror(dir);
		return 2;
	}
	CLEANUP_FREE char *binary = given && *given ? xstrdup(given) : xasprintf("%s/heaptop", build ? build : ".");
	CLEANUP_FREE char *growth = xasprintf("%s/tests/bench/growth", build ? build : ".");
	CLEANUP_FREE char *snapshot = xasprintf("%s/traces.pb.gz", dir);
	heaptop = binary;
	struct err *err = write_snapshot(snapshot);
	if (err) {
		fprintf(stderr, "%s\n", err->text);
		return 2;
	}
	first_frame(snapshot);
	keys(snapshot);
	idle(growth);
	unlink(snapshot);
	rmdir(dir);
	return missed;
}
