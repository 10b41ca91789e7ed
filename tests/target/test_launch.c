/*
 * target/ on programs it launches: before their first constructor, what they inherit, job control,
 * and each way a program can end or become another one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/syscall.h>

#include "base/err.h"
#include "elf/file.h"
#include "elf/modules.h"
#include "fine.h"
#include "spawn.h"
#include "target/target.h"

#define MAX_EVENTS 8

/* Run it to its end; the events in order as letters: x exec, e exiting, E exited. */
static const char *run_to_end(struct target *t, void (*at)(struct target *t, enum target_event e))
{
	static char events[MAX_EVENTS + 1];
	size_t n = 0;

	if (target_is_stopped(t))
		assert_fine(target_resume(t));
	for (int i = 0; i < 20000 && n < MAX_EVENTS; i++) {
		enum target_event e = target_poll(t);
		if (e == TARGET_NOTHING) {
			usleep(500);
			continue;
		}
		events[n++] = "-xeE"[e];
		if (at)
			at(t, e);
		if (e == TARGET_EXITED)
			break;
		if (e == TARGET_EXEC) {
			assert_true(target_is_stopped(t));
			assert_fine(target_resume(t));
		}
	}
	events[n] = '\0';
	return events;
}

static struct target *launch(char *const *argv)
{
	struct target *t;
	int code;
	const struct launch_spec spec = { .argv = argv, .fd = { -1, -1, -1 } };

	assert_fine(target_launch(&spec, &t, &code));
	assert_true(target_is_stopped(t) && target_is_launched(t));
	return t;
}

/* The victim's variable: 11 before its constructors, 22 after. */
static int constructed(struct target *t)
{
	struct modules *mods = modules_create();
	bool changed;
	int value = -1;

	assert_fine(target_refresh_modules(t, mods, &changed));
	for (size_t i = 1; i <= modules_count(mods); i++) {
		const struct module *m = module_get(mods, (uint32_t)i);
		uint64_t vaddr = m->file ? elf_file_find_symbol(m->file, "constructed") : 0;
		if (vaddr)
			assert_fine(target_read(t, m->bias + vaddr, &value, sizeof(value)));
	}
	modules_destroy(mods);
	return value;
}

static void still_readable(struct target *t, enum target_event e)
{
	if (e == TARGET_EXITING)
		assert_int_equal(constructed(t), 22);
}

static void test_launch_end(void **state)
{
	(void)state;
	char path[4096];
	snprintf(path, sizeof(path), "%s", victim_path("victim_ends"));
	static const struct {
		const char *how, *arg, *events;
		int code;
	} cases[] = {
		{ "exit", "0", "eE", 0 },
		{ "exit", "7", "eE", 7 },
		{ "signal", "11", "eE", 128 + 11 },
		{ "signal", "15", "eE", 128 + 15 },
		{ "signal", "9", "eE", 128 + 9 },
		{ "thread-exit", "6", "eE", 6 },
		{ "leader-exit", "5", "eE", 5 },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *argv[] = { path, (char *)cases[i].how, (char *)cases[i].arg, NULL };
		struct target *t = launch(argv);
		assert_int_equal(constructed(t), 11);
		const char *events = run_to_end(t, still_readable);
		if (strcmp(events, cases[i].events) != 0 || target_exit_code(t) != cases[i].code)
			fail_msg("%s %s: events %s, code %d", cases[i].how, cases[i].arg, events,
				 target_exit_code(t));
		target_destroy(t);
	}
}

static int seen_at_exec;
static void look_at_exec(struct target *t, enum target_event e)
{
	if (e == TARGET_EXEC)
		seen_at_exec = constructed(t);
}

static void test_launch_exec(void **state)
{
	(void)state;
	char path[4096];
	static const char *const ways[] = { "exec", "thread-exec" };
	snprintf(path, sizeof(path), "%s", victim_path("victim_ends"));
	for (size_t i = 0; i < 2; i++) {
		char *argv[] = { path, (char *)ways[i], path, "exit", "9", NULL };
		struct target *t = launch(argv);
		pid_t pid = target_pid(t);
		seen_at_exec = 0;
		assert_string_equal(run_to_end(t, look_at_exec), "xeE");
		assert_int_equal(seen_at_exec, 11);
		assert_int_equal(target_exit_code(t), 9);
		assert_int_equal(target_pid(t), pid);
		assert_non_null(strstr(target_command(t), "exit 9"));
		target_destroy(t);
	}
}

static void test_launch_failures(void **state)
{
	(void)state;
	static const struct {
		const char *name, *words;
		int code;
	} cases[] = {
		{ "heaptop-no-such-command", "command not found", LAUNCH_NOT_FOUND },
		{ "/nonexistent/program", "no such file", LAUNCH_NOT_FOUND },
		{ "/etc/passwd", "can't be executed: Permission denied", LAUNCH_NOT_EXECUTABLE },
		{ "/", "can't be executed", LAUNCH_NOT_EXECUTABLE },
		{ "", "no program", LAUNCH_FAILED },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *argv[] = { (char *)cases[i].name, NULL };
		const struct launch_spec spec = { .argv = argv, .fd = { -1, -1, -1 } };
		struct target *t;
		int code = 0;
		struct err *err = target_launch(&spec, &t, &code);
		assert_non_null(err);
		assert_null(t);
		if (!strstr(err->text, cases[i].words) || code != cases[i].code)
			fail_msg("%s: \"%s\", code %d", cases[i].name, err->text, code);
		err_free(err);
	}
}

static void test_launch_inheritance(void **state)
{
	(void)state;
	char path[4096], text[512] = "";
	sigset_t set, old;
	int fd[2], code;
	struct target *t;

	snprintf(path, sizeof(path), "%s", victim_path("victim_ends"));
	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	setenv("HEAPTOP_TEST_HIDDEN", "1", 1);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &old);
	void (*old_pipe)(int) = signal(SIGPIPE, SIG_IGN);
	char *argv[] = { path, "mask", NULL };
	const struct launch_spec spec = { .argv = argv, .fd = { -1, fd[1], -1 }, .new_session = true,
					  .unset_env = { "HEAPTOP_TEST_HIDDEN" } };
	assert_fine(target_launch(&spec, &t, &code));
	signal(SIGPIPE, old_pipe);
	sigprocmask(SIG_SETMASK, &old, NULL);
	close(fd[1]);
	assert_string_equal(run_to_end(t, NULL), "eE");
	ssize_t n = read(fd[0], text, sizeof(text) - 1);
	assert_true(n > 0);
	close(fd[0]);
	assert_null(strstr(text, "blocked 10"));	/* SIGUSR1 */
	assert_null(strstr(text, "ignored 13"));	/* SIGPIPE */
	assert_non_null(strstr(text, "hidden gone"));
	assert_non_null(strstr(text, "session own"));
	target_destroy(t);
}

static void test_launch_stop_and_go(void **state)
{
	(void)state;
	char path[4096];
	int in[2], out[2], code;
	struct target *t;
	int64_t ret;

	snprintf(path, sizeof(path), "%s", victim_path("victim_threads"));
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	char *argv[] = { path, "stops", NULL };
	const struct launch_spec spec = { .argv = argv, .fd = { in[0], out[1], -1 } };
	assert_fine(target_launch(&spec, &t, &code));
	close(in[0]);
	close(out[1]);
	struct victim v = { .pid = target_pid(t), .in = in[1], .out = out[0] };
	/* The first thread is traced while it runs: its signals come through target_poll. */
	for (int round = 0; round < 30; round++) {
		if (!target_is_stopped(t))
			assert_fine(target_stop(t));
		assert_fine(target_syscall(t, SYS_getpid, (uint64_t[6]){ 0 }, &ret));
		assert_int_equal(ret, v.pid);
		assert_fine(target_resume(t));
		for (int i = 0; i < 10; i++) {
			assert_int_equal(target_poll(t), TARGET_NOTHING);
			usleep(300);
		}
	}
	assert_string_equal(victim_line(&v, 10000), (snprintf(path, sizeof(path), "ready %d", v.pid), path));
	assert_true(victim_ok(&v));

	/* Job control works on it, and it may be stopped by us meanwhile. */
	for (int round = 0; round < 3; round++) {
		kill(v.pid, SIGSTOP);
		for (int i = 0; i < 50; i++) {
			target_poll(t);
			usleep(500);
		}
		assert_fine(target_stop(t));
		assert_fine(target_syscall(t, SYS_getpid, (uint64_t[6]){ 0 }, &ret));
		assert_fine(target_resume(t));
		for (int i = 0; i < 20; i++) {
			target_poll(t);
			usleep(500);
		}
		assert_true(write(v.in, "\n", 1) == 1);
		assert_string_equal(victim_line(&v, 50), "");
		kill(v.pid, SIGCONT);
		for (int i = 0; i < 50; i++) {
			target_poll(t);
			usleep(500);
		}
		assert_string_equal(victim_line(&v, 20000), "ok");
	}
	target_destroy(t);	/* and it goes on */
	assert_true(victim_ok(&v));
	assert_int_equal(victim_end(&v), 0);
}

static void test_launch_self_stop(void **state)
{
	(void)state;
	char path[4096];
	snprintf(path, sizeof(path), "%s", victim_path("victim_ends"));
	char *argv[] = { path, "stop", NULL };
	struct target *t = launch(argv);
	int64_t ret;

	assert_fine(target_resume(t));
	for (int i = 0; i < 100; i++) {
		assert_int_equal(target_poll(t), TARGET_NOTHING);
		usleep(500);
	}
	/* Its only thread: it must leave its stop for the call and come back to it. */
	assert_fine(target_stop(t));
	assert_fine(target_syscall(t, SYS_getpid, (uint64_t[6]){ 0 }, &ret));
	assert_int_equal(ret, target_pid(t));
	assert_fine(target_resume(t));
	for (int i = 0; i < 100; i++) {
		assert_int_equal(target_poll(t), TARGET_NOTHING);
		usleep(500);
	}
	kill(target_pid(t), SIGCONT);
	assert_string_equal(run_to_end(t, NULL), "eE");
	assert_int_equal(target_exit_code(t), 3);
	target_destroy(t);
}

/* A library's constructor, with a compiler at hand. */
static void test_launch_before_library_constructor(void **state)
{
	(void)state;
	char dir[] = "/tmp/heaptop-test-XXXXXX", cmd[1024], prog[128];
	struct modules *mods = modules_create();
	bool changed, found = false;
	int value = 0;

	assert_non_null(mkdtemp(dir));
	snprintf(cmd, sizeof(cmd),
		 "cd %s && echo 'int built = 11; void *malloc(unsigned long); void *block;"
		 "__attribute__((constructor)) static void f(void) { block = malloc(100); built = 22; }'"
		 " >lib.c && echo 'extern int built; int main(void) { return built == 22 ? 4 : 1; }'"
		 " >main.c && cc -fno-builtin -shared -fPIC -o libx.so lib.c && "
		 "cc -o main main.c -L. -lx -Wl,-rpath,%s", dir, dir);
	if (system(cmd) == 0) {
		snprintf(prog, sizeof(prog), "%s/main", dir);
		struct target *t = launch((char *[]){ prog, NULL });
		assert_fine(target_refresh_modules(t, mods, &changed));
		for (size_t i = 1; i <= modules_count(mods); i++) {
			const struct module *m = module_get(mods, (uint32_t)i);
			if (strcmp(m->name, "libx.so") != 0)
				continue;
			uint64_t vaddr = elf_file_find_symbol(m->file, "built");
			assert_fine(target_read(t, m->bias + vaddr, &value, sizeof(value)));
			found = true;
		}
		assert_true(found);
		assert_int_equal(value, 11);
		assert_string_equal(run_to_end(t, NULL), "eE");
		assert_int_equal(target_exit_code(t), 4);
		target_destroy(t);
	}
	modules_destroy(mods);
	snprintf(cmd, sizeof(cmd), "rm -r %s", dir);
	assert_int_equal(system(cmd), 0);
	if (!found)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_launch_end),
		cmocka_unit_test(test_launch_exec),
		cmocka_unit_test(test_launch_failures),
		cmocka_unit_test(test_launch_inheritance),
		cmocka_unit_test(test_launch_stop_and_go),
		cmocka_unit_test(test_launch_self_stop),
		cmocka_unit_test(test_launch_before_library_constructor),
	};

	if (!may_ptrace()) {
		fprintf(stderr, "PTRACE_SEIZE of an own child is refused: skipped\n");
		return 77;
	}
	alarm(300);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
