/*
 * The agent in real processes: launched and attached to, exact and sampled, taken out again.
 * Skips (77) without ptrace rights. argv[1] or $VICTIMS: where the victims are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "elf/modules.h"
#include "probe/probe.h"
#include "target/target.h"

static const char *victims = "tests/victims";
/* Seconds after which one that runs beside rounds ends by itself: none needs so many, however busy the machine is. */
#define LIFETIME "1000"

#define ok(call) do { \
	struct err *err_ = (call); \
	if (err_) \
		fail_msg("%s: %s", #call, err_->text); \
} while (0)

/* ---- what was seen ---- */

#define SIZES 100000
struct seen {
	uint32_t allocs[SIZES], frees;
	uint32_t unfrees, reallocs;
	uint64_t last_tsc[WIRE_SLOTS], events;
	uint64_t unordered, odd;
	/* live blocks: address -> size, open addressing */
	struct {
		uint64_t addr, size;
	} *live;
	uint64_t mask;
	uint32_t live_of[SIZES];
	uint64_t double_allocs, unknown_frees;
};

static struct seen *seen_new(void)
{
	struct seen *s = calloc(1, sizeof(*s));

	s->mask = (1u << 22) - 1;
	s->live = calloc(s->mask + 1, sizeof(*s->live));
	return s;
}

static void seen_free(struct seen *s)
{
	free(s->live);
	free(s);
}

static uint64_t home(const struct seen *s, uint64_t addr)
{
	return (addr >> 3) * 0x9e3779b97f4a7c15ull >> 20 & s->mask;
}

static bool live_remove(struct seen *s, uint64_t addr, uint64_t *size)
{
	uint64_t i = home(s, addr);

	for (; s->live[i].addr; i = (i + 1) & s->mask) {
		if (s->live[i].addr != addr)
			continue;
		*size = s->live[i].size;
		for (uint64_t j = (i + 1) & s->mask; s->live[j].addr; j = (j + 1) & s->mask) {
			uint64_t h = home(s, s->live[j].addr);
			if (((j - h) & s->mask) >= ((j - i) & s->mask)) {
				s->live[i] = s->live[j];
				i = j;
			}
		}
		s->live[i].addr = 0;
		return true;
	}
	return false;
}

static void live_add(struct seen *s, uint64_t addr, uint64_t size)
{
	uint64_t i = home(s, addr);

	while (s->live[i].addr)
		i = (i + 1) & s->mask;
	s->live[i].addr = addr;
	s->live[i].size = size;
}

static uint64_t last_freed_size;

static void on_event(void *ctx, const struct probe_event *e)
{
	struct seen *s = ctx;
	uint64_t size;

	s->events++;
	/* of each thread; between threads what matters shows in blocks allocated twice and unknown frees */
	s->unordered += e->tsc < s->last_tsc[e->slot];
	s->last_tsc[e->slot] = e->tsc;
	if (e->kind == WIRE_ALLOC) {
		s->odd += !(e->flags & WIRE_F_WALKED) && (!e->regs->ip || !e->regs->sp || !e->stack_bytes);
		if (e->size < SIZES) {
			s->allocs[e->size]++;
			s->live_of[e->size]++;
		}
		if (live_remove(s, e->addr, &size)) {
			s->double_allocs++;
			if (size < SIZES)
				s->live_of[size]--;
		}
		live_add(s, e->addr, e->size);
		s->reallocs += (e->flags & WIRE_F_REALLOC) != 0;
		return;
	}
	if (e->kind == WIRE_UNFREE) {
		s->unfrees++;
		live_add(s, e->addr, last_freed_size);
		if (last_freed_size < SIZES)
			s->live_of[last_freed_size]++;
		return;
	}
	s->frees++;
	if (live_remove(s, e->addr, &size)) {
		if (size < SIZES)
			s->live_of[size]--;
		last_freed_size = size;
	} else {
		s->unknown_frees++;
	}
}

/* ---- running ---- */

struct run {
	struct target *t;
	struct modules *mods;
	struct probe *p;
	struct seen *seen;
};

static void start_launch(struct run *r, char *const *argv, const struct probe_config *config)
{
	static int null = -1;
	if (null < 0)
		null = open("/dev/null", O_RDWR);
	struct launch_spec spec = { .argv = argv, .fd = { null, null, -1 } };
	int code;
	bool changed;

	memset(r, 0, sizeof(*r));
	ok(target_launch(&spec, &r->t, &code));
	r->mods = modules_create();
	ok(target_refresh_modules(r->t, r->mods, &changed));
	r->p = probe_agent_create(config);
	ok(r->p->ops->prepare(r->p, r->t, r->mods));
	ok(r->p->ops->place(r->p, r->t));
	r->seen = seen_new();
	ok(target_resume(r->t));
}

static void print_stats(struct run *r, const char *what)
{
	struct probe_stats s;

	r->p->ops->stats(r->p, r->t, &s);
	print_message("%s: %lu events, %lu recorded %lu dropped %lu lost %lu nested %lu gap, %lu no slot %lu full "
		      "%lu abandoned %lu bad, %u threads, free_all %d, %lu cycles/event, waited %lu; unordered %lu "
		      "double %lu unknown %lu odd %lu\n", what,
		      r->seen->events, s.recorded, s.dropped, s.lost, s.nested, s.gap, s.no_slot, s.filter_full,
		      s.abandoned, s.bad, s.threads, s.free_all, s.recorded ? s.cycles / s.recorded : 0, s.waited,
		      r->seen->unordered, r->seen->double_allocs, r->seen->unknown_frees, r->seen->odd);
}

static void run_to_end(struct run *r)
{
	for (;;) {
		switch (target_poll(r->t)) {
		case TARGET_EXITING:
			r->p->ops->drain(r->p, r->t, true, on_event, r->seen);
			break;
		case TARGET_EXITED:
			r->p->ops->drain(r->p, r->t, true, on_event, r->seen);
			return;
		case TARGET_EXEC:
			fail_msg("exec");
			break;
		default:
			err_free(r->p->ops->renew(r->p, r->t));
			r->p->ops->drain(r->p, r->t, false, on_event, r->seen);
			poll(NULL, 0, 5);
		}
	}
}

static void finish(struct run *r)
{
	r->p->ops->destroy(r->p);
	target_destroy(r->t);
	modules_destroy(r->mods);
	seen_free(r->seen);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void drain_for(struct run *r, double seconds)
{
	double end = now() + seconds;

	while (now() < end) {
		ok(r->p->ops->renew(r->p, r->t));
		r->p->ops->drain(r->p, r->t, false, on_event, r->seen);
		poll(NULL, 0, 5);
	}
}

/* Attach. False: try again later (a signal handler was at the entry). */
static void start_attach(struct run *r, pid_t pid, const struct probe_config *config)
{
	bool changed;

	memset(r, 0, sizeof(*r));
	r->mods = modules_create();
	ok(target_attach(pid, &r->t));
	ok(target_refresh_modules(r->t, r->mods, &changed));
	r->p = probe_agent_create(config);
	ok(r->p->ops->prepare(r->p, r->t, r->mods));
	ok(r->p->ops->place(r->p, r->t));
	r->seen = seen_new();
	ok(target_resume(r->t));
}

static unsigned take_out(struct run *r)
{
	bool again = true;
	unsigned tries = 0;

	if (!target_is_stopped(r->t))
		ok(target_stop(r->t));
	for (;; tries++) {
		ok(r->p->ops->remove(r->p, r->t, &again));
		if (!again)
			break;
		ok(target_resume(r->t));
		r->p->ops->drain(r->p, r->t, false, on_event, r->seen);
		poll(NULL, 0, 2);
		ok(target_stop(r->t));
	}
	ok(r->p->ops->verify(r->p, r->t));
	r->p->ops->drain(r->p, r->t, true, on_event, r->seen);
	ok(target_resume(r->t));
	return tries;
}

/* ---- victims ---- */

static pid_t spawn(char *const *argv, int *out)
{
	int fds[2] = { -1, -1 };

	if (pipe2(fds, O_CLOEXEC))
		fail_msg("pipe");
	pid_t pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(fds[1], 1);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(fds[1]);
	*out = fds[0];
	return pid;
}

static void expect_line(int fd, const char *start)
{
	char line[200];
	size_t n = 0;

	while (n < sizeof(line) - 1 && read(fd, line + n, 1) == 1 && line[n] != '\n')
		n++;
	line[n] = 0;
	if (strncmp(line, start, strlen(start)))
		fail_msg("got \"%s\" instead of \"%s\"", line, start);
}

static char *path_of(const char *name)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s", victims, name);
	return path;
}

static unsigned maps_lines(pid_t pid)
{
	char path[64], line[512];
	unsigned n = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (strstr(line, "memfd:heaptop"))
			n += 1000;
		n++;
	}
	if (f)
		fclose(f);
	return n;
}

/* ---- tests ---- */

static void check_counts(const struct seen *s)
{
	static const struct {
		unsigned size, allocs, live;
	} want[] = {
		{ 70001, 3, 0 }, { 70002, 5, 5 }, { 1003, 1000, 0 }, { 1001, 100 + 70, 0 }, { 1005, 50, 50 },
		{ 2001, 20, 0 }, { 20002, 20, 0 }, { 302, 20, 0 }, { 3333, 10, 0 }, { 1201, 30, 0 },
		{ 1280, 31, 0 }, { 1302, 32, 0 }, { 1405, 8, 0 }, { 1409, 9, 9 }, { 1501, 1, 0 }, { 1601, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		if (s->allocs[want[i].size] != want[i].allocs || s->live_of[want[i].size] != want[i].live)
			fail_msg("size %u: %u allocations, %u live instead of %u, %u", want[i].size,
				 s->allocs[want[i].size], s->live_of[want[i].size], want[i].allocs, want[i].live);
	assert_int_equal(s->unfrees, 6);
	assert_int_equal(s->unordered, 0);
	assert_int_equal(s->double_allocs, 0);
}

static void test_counts(void **state)
{
	const struct probe_config *config = *state;
	char *const argv[] = { path_of("victim_counts"), NULL };
	struct run r;

	start_launch(&r, argv, config);
	run_to_end(&r);
	print_stats(&r, "counts");
	check_counts(r.seen);
	assert_int_equal(target_exit_code(r.t), 7);
	finish(&r);
}

/* Until nothing more is recorded: the ring is full, and waited for. */
static void fill_ring(struct run *r)
{
	struct probe_stats s = { 0 };
	uint64_t before;

	do {
		before = s.recorded;
		poll(NULL, 0, 100);
		ok(r->p->ops->renew(r->p, r->t));
		r->p->ops->stats(r->p, r->t, &s);
	} while (!s.recorded || s.recorded != before);
}

/* A ring that is full because it was waited for mustn't drive the rate up when the rate may go up. */
static void test_raise(void **unused)
{
	(void)unused;
	static const struct probe_config config = { .rate = 1, .max_stack = 4096 };
	char *const argv[] = { path_of("known"), "20", "0", "/dev/null", NULL };
	struct probe_stats s;
	struct run r;

	start_launch(&r, argv, &config);
	fill_ring(&r);
	ok(r.p->ops->set_raise(r.p, r.t, true));
	poll(NULL, 0, 100);
	r.p->ops->stats(r.p, r.t, &s);
	assert_int_equal(s.rate, 1);
	assert_int_equal(s.dropped, 0);
	/* once they have been read it may */
	r.p->ops->drain(r.p, r.t, false, on_event, r.seen);
	for (unsigned i = 0; i < 400 && s.rate <= 1; i++) {
		poll(NULL, 0, 50);
		ok(r.p->ops->renew(r.p, r.t));
		r.p->ops->stats(r.p, r.t, &s);
	}
	assert_true(s.rate > 1);
	run_to_end(&r);
	assert_int_equal(target_exit_code(r.t), 0);
	finish(&r);
}

/* The same with another allocator in front of the C library's. */
static void test_preloaded(void **state)
{
	static struct probe_config config = { .exact = true };
	const char *library = *state;
	char *const argv[] = { path_of("victim_counts"), NULL };
	struct run r;
	unsigned hooked = 0;

	if (access(library, R_OK)) {
		print_message("no %s here\n", library);
		skip();
	}
	setenv("LD_PRELOAD", library, 1);
	start_launch(&r, argv, &config);
	unsetenv("LD_PRELOAD");
	for (size_t i = 0; i < r.p->nhooks; i++) {
		const struct probe_hook *h = &r.p->hooks[i];
		const struct module *m = module_get(r.mods, h->module);

		if (!strncmp(library, m->path, 20) && strstr(library, "lib"))
			hooked += h->hooked;
		if (!h->hooked)
			print_message("%s of %s: %s\n", h->name, m->name, h->reason);
	}
	assert_true(hooked >= 6);
	run_to_end(&r);
	print_stats(&r, library);
	check_counts(r.seen);
	assert_int_equal(target_exit_code(r.t), 7);
	finish(&r);
}

static void test_rounds(void **state)
{
	const struct probe_config *config = *state;
	char *const argv[] = { path_of("victim_blocks"), LIFETIME, "16", "500", NULL };
	const char *env = getenv("ROUNDS");
	unsigned rounds = env ? (unsigned)atoi(env) : 50, most = 0;
	uint64_t events = 0;
	double pause = 0;
	int out;
	pid_t pid = spawn(argv, &out);

	expect_line(out, "ready");
	for (unsigned i = 0; i < rounds; i++) {
		struct run r;

		start_attach(&r, pid, config);
		pause = target_pause(r.t) > pause ? target_pause(r.t) : pause;
		drain_for(&r, 0.03);
		unsigned tries = take_out(&r);
		most = tries > most ? tries : most;
		events += r.seen->events;
		assert_int_equal(r.seen->unordered, 0);
		assert_int_equal(r.seen->odd, 0);
		if (i == rounds - 1)
			print_stats(&r, "last round");
		finish(&r);
		assert_true(maps_lines(pid) < 1000);
	}
	print_message("%u rounds, %lu events, %u tries at most, pause %.1f ms at most\n", rounds, events, most,
		      pause * 1e3);
	assert_true(events > 0);
	kill(pid, SIGTERM);
	expect_line(out, "ok");
	close(out);
	int status;
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

/* A heaptop killed at a random moment, then a new one that finds what it left. */
static void test_killed(void **unused)
{
	(void)unused;
	static const struct probe_config config = { .rate = 4096 };
	char *const argv[] = { path_of("victim_blocks"), LIFETIME, "16", "500", NULL };
	const char *env = getenv("KILLS");
	unsigned rounds = env ? (unsigned)atoi(env) : 20, found_rounds = 0;
	int out;
	pid_t pid = spawn(argv, &out);

	expect_line(out, "ready");
	unsigned before = maps_lines(pid);
	for (unsigned i = 0; i < rounds; i++) {
		int placed[2];
		char c;
		if (pipe2(placed, O_CLOEXEC))
			fail_msg("pipe");
		pid_t own = fork();
		if (!own) {
			struct run r;
			start_attach(&r, pid, &config);
			close(placed[1]);
			drain_for(&r, 0.02);
			take_out(&r);
			pause();
		}
		/* At any moment, or every other time at one after the agent was placed. */
		close(placed[1]);
		if (i & 1 && read(placed[0], &c, 1) != 0)
			fail_msg("read");
		close(placed[0]);
		usleep(i * 7919 % (i & 1 ? 25000 : 60000));
		kill(own, SIGKILL);
		waitpid(own, NULL, 0);

		/* The hooks are recognised as such when looking, and taken out before placing. */
		struct run r = { .mods = modules_create(), .p = probe_agent_create(&config) };
		size_t found;
		bool again, changed;
		ok(target_attach(pid, &r.t));
		ok(target_refresh_modules(r.t, r.mods, &changed));
		ok(r.p->ops->prepare(r.p, r.t, r.mods));
		for (size_t k = 0; k < r.p->nhooks; k++)
			if (!r.p->hooks[k].hooked)
				fail_msg("%s: %s", r.p->hooks[k].name, r.p->hooks[k].reason);
		for (unsigned tries = 0;; tries++) {
			ok(probe_agent_cleanup(r.t, r.mods, &found, &again));
			found_rounds += found > 0;
			if (!again || tries == 2000)
				break;
			ok(target_resume(r.t));
			usleep(2000);
			ok(target_stop(r.t));
		}
		assert_false(again);
		ok(r.p->ops->verify(r.p, r.t));
		ok(r.p->ops->place(r.p, r.t));
		r.seen = seen_new();
		ok(target_resume(r.t));
		drain_for(&r, 0.01);
		take_out(&r);
		assert_true(r.seen->events > 0);
		finish(&r);
	}
	print_message("%u kills, hooks found after %u, %u mappings before, %u after\n", rounds, found_rounds, before,
		      maps_lines(pid));
	assert_true(maps_lines(pid) < 1000);
	kill(pid, SIGTERM);
	expect_line(out, "ok");
	close(out);
	int status;
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

static int can_trace(void)
{
	pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(0);
	}
	bool can = !ptrace(PTRACE_SEIZE, pid, NULL, NULL);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return can;
}

int main(int argc, char **argv)
{
	static struct probe_config exact = { .exact = true };
	static struct probe_config exact_private = { .exact = true, .no_memfd = true };
	/* Little stack, so that rings which nobody waits for don't fill up. */
	static struct probe_config all = { .rate = 1, .max_stack = 64 };
	static struct probe_config sampled = { .rate = 16384 };
#define WITH(name, f, config) { name, f, NULL, NULL, &config }
#define LIBRARIES "/usr/lib/x86_64-linux-gnu/"
	const struct CMUnitTest tests[] = {
		WITH("counts, exact", test_counts, exact),
		WITH("counts, exact, private rings", test_counts, exact_private),
		WITH("counts, every call, filter", test_counts, all),
		{ "jemalloc", test_preloaded, NULL, NULL, LIBRARIES "libjemalloc.so.2" },
		{ "tcmalloc", test_preloaded, NULL, NULL, LIBRARIES "libtcmalloc_minimal.so.4" },
		{ "mimalloc", test_preloaded, NULL, NULL, LIBRARIES "libmimalloc.so.2.0" },
		WITH("rounds, sampled", test_rounds, sampled),
		WITH("rounds, exact", test_rounds, exact),
		cmocka_unit_test(test_raise),
		cmocka_unit_test(test_killed),
	};

	if (getenv("TESTS"))
		cmocka_set_test_filter(getenv("TESTS"));
	if (getenv("VICTIMS"))
		victims = getenv("VICTIMS");
	if (argc > 1)
		victims = argv[1];
	if (getenv("TEST_LOG"))
		log_to_stderr(true);
	signal(SIGPIPE, SIG_IGN);
	if (!can_trace()) {
		printf("1..0 # SKIP no right to trace\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
