/*
 * Knowing the target's mappings: what a first reading of /proc/PID/maps and a refresh take in time,
 * heap bytes and allocations, and one address looked up in each of the ways there are. The process read
 * has 3,000 mappings of 1,000 ELF files, all of them modules; then one with two files, and one with 972
 * read 450 times, beside what was published of another profiler:
 * 46-50 us, 6.8-9.6 KiB and 9-11 allocations for a reading of a small process, 64-145 MB allocated in
 * 450 readings of 972 files.
 *
 * Each line: name | what was run | figure | target | ok or MISSED; the exit status is 1 if one is
 * missed. Times are the thread's CPU time, medians of interleaved runs.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "elf/modules.h"
#include "line.h"
#include "target/impl.h"
#include "tests/lib/counted.h"
#include "tests/lib/manymaps.h"

#define RUNS 41
#define LOOK_UPS 2000

static int missed;

/* A line of the table; main returns whether one was missed. */
#define line(...) (missed |= bench_line(__VA_ARGS__))

/* Of this thread alone: nothing here waits, and who else is running doesn't count. */
static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec * 1e-3;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *x, size_t n)
{
	qsort(x, n, sizeof(*x), by_value);
	return x[n / 2];
}

struct reading {
	double us;
	struct counted heap;
};

static struct reading read_once(struct target *t, struct modules *mods)
{
	struct reading r;
	bool changed;

	counted_begin();
	double began = now_us();
	struct err *err = target_refresh_modules(t, mods, &changed);
	r.us = now_us() - began;
	r.heap = counted_end();
	if (err) {
		printf("%s\n", err->text);
		exit(2);
	}
	return r;
}

/* What the kernel alone takes for the text. */
static double plain_read(pid_t pid)
{
	static char buf[32768];
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	double began = now_us();
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	while (read(fd, buf, sizeof(buf)) > 0)
		;
	close(fd);
	return now_us() - began;
}

struct readings {
	struct reading first, refresh;	/* refresh: median time; the most calls and bytes of any */
	double plain;			/* us */
	size_t modules;
};

static struct readings measure(struct target *t, struct modules *mods)
{
	double us[RUNS], plain[RUNS];
	struct readings r = { .first = read_once(t, mods) };

	for (int i = 0; i < RUNS; i++) {
		struct reading again = read_once(t, mods);
		us[i] = again.us;
		plain[i] = plain_read(t->pid);
		if (again.heap.calls > r.refresh.heap.calls)
			r.refresh.heap.calls = again.heap.calls;
		if (again.heap.bytes > r.refresh.heap.bytes)
			r.refresh.heap.bytes = again.heap.bytes;
	}
	r.refresh.us = median(us, RUNS);
	r.plain = median(plain, RUNS);
	r.modules = modules_count(mods);
	return r;
}

static void start(struct manymaps *m, size_t files)
{
	if (manymaps_start(m, files, files))
		return;
	manymaps_end(m);
	printf("bench_maps: can't map %zu files as code here (TMPDIR on a file system with noexec?)\n", files);
	exit(77);
}

/* ---- one address ---- */

struct list {
	uint64_t addrs[4096];
	size_t n;
};

static bool collect(void *ctx, const struct mapping *m)
{
	struct list *list = ctx;

	if (m->prot & PROT_EXEC && m->end <= INT64_MAX && list->n < ARRAY_SIZE(list->addrs))
		list->addrs[list->n++] = m->start + (m->end - m->start) / 2;
	return true;
}

static bool count_mapping(void *ctx, const struct mapping *m)
{
	(void)m;
	++*(size_t *)ctx;
	return true;
}

static double table_ns(const struct modules *mods, const struct list *list)
{
	size_t found = 0;
	double began = now_us();

	for (size_t i = 0; i < LOOK_UPS; i++)
		found += modules_find(mods, list->addrs[i * 7919 % list->n]) != NULL;
	double ns = (now_us() - began) * 1e3 / LOOK_UPS;
	return found == LOOK_UPS ? ns : 1e12;
}

static double query_ns(struct target *t, const struct list *list)
{
	struct mapping m;
	size_t found = 0;
	double began = now_us();

	for (size_t i = 0; i < LOOK_UPS; i++)
		found += target_mapping_at(t, list->addrs[i * 7919 % list->n], &m);
	double ns = (now_us() - began) * 1e3 / LOOK_UPS;
	return found == LOOK_UPS ? ns : 1e12;
}

static double text_ns(struct target *t, size_t *ret_lines)
{
	*ret_lines = 0;
	double began = now_us();
	err_free(target_each_mapping(t, count_mapping, ret_lines));
	return (now_us() - began) * 1e3;
}

static void look_ups(struct target *t, const struct modules *mods)
{
	double table[RUNS], query[RUNS], text[RUNS];
	struct list list = { .n = 0 };
	size_t lines = 0;

	err_free(target_each_mapping(t, collect, &list));
	bool has_query = target_has_query(t);
	for (int i = 0; i < RUNS; i++) {
		table[i] = table_ns(mods, &list);
		query[i] = has_query ? query_ns(t, &list) : 0;
		text[i] = text_ns(t, &lines);
	}
	double by_table = median(table, RUNS), by_query = median(query, RUNS), by_text = median(text, RUNS);
	line("maps look-up, table", "modules_find of random addresses, 1,000 modules",
	     "a 1000th of reading the text", by_table <= by_text / 1000, "%.0f ns", by_table);
	if (has_query)
		line("maps look-up, ioctl", "target_mapping_at by PROCMAP_QUERY",
		     "a 50th of reading the text", by_query <= by_text / 50, "%.0f ns", by_query);
	else
		line("maps look-up, ioctl", "target_mapping_at by PROCMAP_QUERY", "-", true,
		     "not in this kernel (Linux 6.11)");
	char what[64];
	snprintf(what, sizeof(what), "target_each_mapping, %zu mappings", lines);
	line("maps look-up, text", what, "3,000 mappings are there", lines >= 3000, "%.0f ns", by_text);
}

/* ---- the three processes ---- */

static void large(void)
{
	struct manymaps m;

	start(&m, 1000);
	struct target *t = target_new(m.pid);
	struct modules *mods = modules_create();
	struct readings r = measure(t, mods);
	const struct counted *first = &r.first.heap, *refresh = &r.refresh.heap;
	static const char what[] = "first target_refresh_modules, 3,000 mappings of 1,000 files";
	static const char again[] = "target_refresh_modules, nothing changed";

	line("maps first, time", what, "200 us a module", r.first.us <= 200.0 * (double)r.modules,
	     "%.0f us", r.first.us);
	line("maps first, bytes", what, "4 KiB a module", first->bytes <= 4096 * r.modules,
	     "%zu bytes, %zu a module", first->bytes, first->bytes / r.modules);
	line("maps first, allocations", what, "20 a module", first->calls <= 20 * r.modules,
	     "%zu, %.1f a module", first->calls, (double)first->calls / (double)r.modules);
	char target[64];
	snprintf(target, sizeof(target), "1.6 times read(2) of it, %.0f us", r.plain);
	line("maps refresh, time", again, target, r.refresh.us <= 1.6 * r.plain, "%.0f us, %.2f times",
	     r.refresh.us, r.refresh.us / r.plain);
	line("maps refresh, bytes", again, "0", refresh->bytes == 0, "%zu", refresh->bytes);
	line("maps refresh, allocations", again, "0", refresh->calls == 0, "%zu", refresh->calls);
	look_ups(t, mods);
	modules_destroy(mods);
	target_delete(t);
	manymaps_end(&m);
}

static void small(void)
{
	struct manymaps m;

	start(&m, 2);
	struct target *t = target_new(m.pid);
	struct modules *mods = modules_create();
	struct readings r = measure(t, mods);

	line("maps small, time", "refresh, a small process", "50 us (published: 46-50)", r.refresh.us <= 50,
	     "%.1f us, %.2f times read(2)", r.refresh.us, r.refresh.us / r.plain);
	line("maps small, bytes", "refresh, a small process", "0 (published: 6.8-9.6 KiB)",
	     r.refresh.heap.bytes == 0, "%zu", r.refresh.heap.bytes);
	line("maps small, allocations", "refresh, a small process", "0 (published: 9-11)",
	     r.refresh.heap.calls == 0, "%zu", r.refresh.heap.calls);
	modules_destroy(mods);
	target_delete(t);
	manymaps_end(&m);
}

static void many_readings(void)
{
	struct manymaps m;
	size_t bytes = 0, calls = 0;

	start(&m, 972);
	struct target *t = target_new(m.pid);
	struct modules *mods = modules_create();
	for (int i = 0; i < 450; i++) {
		struct reading r = read_once(t, mods);
		bytes += r.heap.bytes;
		calls += r.heap.calls;
	}
	line("maps 450 times, bytes", "first reading and 449 refreshes, 972 files",
	     "6.4 MB (published: 64-145)", bytes <= 6400000, "%.2f MB in %zu allocations",
	     (double)bytes / 1e6, calls);
	modules_destroy(mods);
	target_delete(t);
	manymaps_end(&m);
}

int main(void)
{
	struct rlimit limit;

	/* each module's file stays open */
	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	large();
	small();
	many_readings();
	return missed;
}
