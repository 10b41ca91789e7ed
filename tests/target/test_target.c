/*
 * target/ on real processes: refusals, stopping and letting go without a trace, memory, remote
 * system calls, launching, and each way a program can end or become another one.
 */
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pwd.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/err.h"
#include "elf/file.h"
#include "elf/modules.h"
#include "spawn.h"
#include "target/proclist.h"
#include "target/target.h"

#define assert_fine(call) check_fine(call, #call, __LINE__)
static void check_fine(struct err *err, const char *what, int line)
{
	if (!err)
		return;
	print_error("%s: %s\n", what, err->text);
	err_free(err);
	_fail(__FILE__, line);
}

static void expect_refusal(pid_t pid, enum err_code code, const char *words)
{
	struct err *err = target_check(pid);

	assert_non_null(err);
	if (!strstr(err->text, words) || strchr(err->text, '\n') || err->code != code)
		fail_msg("\"%s\" (code %d) instead of \"%s\"", err->text, err->code, words);
	struct target *t;
	struct err *attach_err = target_attach(pid, &t);
	assert_non_null(attach_err);
	assert_int_equal(attach_err->code, code);
	assert_null(t);
	err_free(attach_err);
	err_free(err);
}

/* ---- refusals ---- */

static void test_refuse_absent(void **state)
{
	(void)state;
	expect_refusal(0x7ffffff0, ERR_NOT_FOUND, "no such process");
	expect_refusal(-1, ERR_NOT_FOUND, "no such process");
	expect_refusal(getpid(), ERR_UNSUPPORTED, "itself");
}

static void test_refuse_zombie(void **state)
{
	(void)state;
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	while (victim_state(child) != 'Z')
		usleep(1000);
	expect_refusal(child, ERR_NOT_FOUND, "zombie");
	waitpid(child, NULL, 0);
}

static void test_refuse_kernel_thread(void **state)
{
	(void)state;
	if (access("/proc/2/stat", F_OK) < 0)
		skip();	/* a PID namespace has none */
	expect_refusal(2, ERR_UNSUPPORTED, "kernel thread");
}

static void test_refuse_traced(void **state)
{
	(void)state;
	struct victim v;
	int status;

	assert_true(victim_start(&v, "victim_ends", "wait"));
	pid_t tracer = fork();
	if (tracer == 0) {
		if (ptrace(PTRACE_SEIZE, v.pid, 0, 0) < 0)
			_exit(1);
		raise(SIGSTOP);
		_exit(0);
	}
	waitpid(tracer, &status, WUNTRACED);
	assert_true(WIFSTOPPED(status));
	char words[64];
	snprintf(words, sizeof(words), "already traced by test_target (pid %d)", tracer);
	expect_refusal(v.pid, ERR_BUSY, words);
	kill(tracer, SIGKILL);
	waitpid(tracer, NULL, 0);
	assert_int_equal(victim_end(&v), 0);
}

static void test_refuse_thread(void **state)
{
	(void)state;
	struct victim v;
	struct target *t;
	size_t n;
	pid_t other = 0;

	assert_true(victim_start(&v, "victim_threads", NULL));
	assert_fine(target_attach(v.pid, &t));
	const struct target_thread *threads = target_threads(t, &n);
	for (size_t i = 0; i < n; i++) {
		if (threads[i].tid != v.pid)
			other = threads[i].tid;
	}
	assert_int_equal(other != 0, 1);
	assert_fine(target_resume(t));
	target_destroy(t);
	char words[64];
	snprintf(words, sizeof(words), "is a thread of process %d", v.pid);
	/* Short-lived ones may have gone. */
	struct err *err = target_check(other);
	assert_non_null(err);
	assert_true(strstr(err->text, words) || strstr(err->text, "no such"));
	err_free(err);
	assert_int_equal(victim_end(&v), 0);
}

/* In a child, as nobody: what it is told about our own process. */
static void test_refuse_other_user(void **state)
{
	(void)state;
	int fd[2], status;
	char text[512] = "";
	struct victim v;

	if (getuid() != 0)
		skip();
	assert_true(victim_start(&v, "victim_ends", "wait"));
	assert_int_equal(pipe(fd), 0);
	pid_t child = fork();
	if (child == 0) {
		if (setgid(65534) < 0 || setuid(65534) < 0)
			_exit(1);
		struct err *err = target_check(v.pid);
		dprintf(fd[1], "%d %s", err ? (int)err->code : -1, err ? err->text : "");
		_exit(0);
	}
	waitpid(child, &status, 0);
	assert_true(read(fd[0], text, sizeof(text) - 1) > 0);
	close(fd[0]);
	close(fd[1]);
	assert_int_equal(atoi(text), ERR_DENIED);
	assert_non_null(strstr(text, "owned by root: run heaptop as root"));
	assert_int_equal(victim_end(&v), 0);
}

/* A whole 32-bit program: pause(2) for ever. */
static void test_refuse_32bit(void **state)
{
	(void)state;
	char path[] = "/tmp/heaptop-test-XXXXXX";
	struct {
		Elf32_Ehdr e;
		Elf32_Phdr p;
		uint8_t code[9];
	} prog = {
		.e = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, EV_CURRENT },
		       .e_type = ET_EXEC, .e_machine = EM_386, .e_version = EV_CURRENT,
		       .e_entry = 0x8048000 + sizeof(Elf32_Ehdr) + sizeof(Elf32_Phdr),
		       .e_phoff = sizeof(Elf32_Ehdr), .e_ehsize = sizeof(Elf32_Ehdr),
		       .e_phentsize = sizeof(Elf32_Phdr), .e_phnum = 1 },
		.p = { .p_type = PT_LOAD, .p_vaddr = 0x8048000, .p_filesz = sizeof(prog),
		       .p_memsz = sizeof(prog), .p_flags = PF_R | PF_X, .p_align = 4096 },
		.code = { 0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7 },
	};

	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, &prog, sizeof(prog)), sizeof(prog));
	fchmod(fd, 0700);
	close(fd);
	pid_t child = fork();
	if (child == 0) {
		execl(path, path, (char *)NULL);
		_exit(126);
	}
	usleep(50000);
	bool runs = waitpid(child, NULL, WNOHANG) == 0;
	if (runs) {
		expect_refusal(child, ERR_UNSUPPORTED,
			       "is a 32-bit program: heaptop watches 64-bit programs only");
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);

		struct target *t;
		int code;
		const struct launch_spec spec = { .argv = (char *[]){ path, NULL },
						  .fd = { -1, -1, -1 } };
		struct err *err = target_launch(&spec, &t, &code);
		assert_non_null(err);
		assert_non_null(strstr(err->text, "32-bit"));
		assert_int_equal(code, LAUNCH_FAILED);
		err_free(err);
	}
	unlink(path);
	if (!runs)
		skip();	/* this kernel runs none */
}

/* ---- attached ---- */

static void test_attach_rounds(void **state)
{
	(void)state;
	struct victim v;
	struct target *t;
	int policy = sched_getscheduler(0), nice = getpriority(PRIO_PROCESS, 0);

	assert_true(victim_start(&v, "victim_threads", NULL));
	for (int round = 0; round < 60; round++) {
		int64_t ret;
		size_t n;
		assert_fine(target_attach(v.pid, &t));
		assert_true(target_is_stopped(t));
		const struct target_thread *threads = target_threads(t, &n);
		assert_true(n >= 16);
		assert_true(threads[0].pc && threads[0].sp && threads[0].tp);
		assert_fine(target_syscall(t, SYS_getpid, (uint64_t[6]){ 0 }, &ret));
		assert_int_equal(ret, target_ns_pid(t));
		assert_fine(target_resume(t));
		for (int stop = 0; stop < 5; stop++) {
			assert_fine(target_stop(t));
			assert_fine(target_resume(t));
			assert_int_equal(target_poll(t), TARGET_NOTHING);
		}
		assert_true(target_pause(t) > 0 && target_pause(t) < 2);
		target_destroy(t);
		if (round % 10 == 9)
			assert_true(victim_ok(&v));
	}
	assert_true(victim_ok(&v));
	assert_int_equal(victim_end(&v), 0);
	assert_int_equal(sched_getscheduler(0), policy);
	assert_int_equal(getpriority(PRIO_PROCESS, 0), nice);
}

/* Copies of all stacks, as much of them as there is room for. */
static void test_stacks(void **state)
{
	static const size_t rooms[] = { 1 << 20, 16 * 100, 0 };
	static uint8_t bytes[1 << 20], now[TARGET_STACK_BYTES];
	static struct target_stack stacks[TARGET_STACKS_MAX];
	struct victim v;
	struct target *t;
	size_t n;

	(void)state;
	assert_true(victim_start(&v, "victim_threads", NULL));
	assert_fine(target_attach(v.pid, &t));
	const struct target_thread *threads = target_threads(t, &n);
	for (int k = 0; k < 3; k++) {
		size_t used = 0, whole = 0, each = rooms[k] / n;
		assert_int_equal(target_stacks(t, stacks, bytes, rooms[k]), n);
		for (size_t i = 0; i < n; i++) {
			const struct target_stack *s = &stacks[i];
			assert_int_equal(s->tid, threads[i].tid);
			assert_int_equal(s->regs.ip, threads[i].pc);
			assert_int_equal(s->regs.sp, threads[i].sp);
			assert_true(s->len <= each && s->len <= TARGET_STACK_BYTES);
			assert_true(s->bytes >= bytes && s->bytes + s->len <= bytes + rooms[k]);
			assert_fine(target_read(t, s->regs.sp, now, s->len));
			assert_memory_equal(now, s->bytes, s->len);
			used += s->len;
			/* up to where the stack ends, or the first thread's, of which nothing is known */
			whole += s->len == threads[i].tp - s->regs.sp ||
				 (i == 0 && s->len > 500);
		}
		assert_in_range(used, k == 2 ? 0 : n * 90, rooms[k]);
		assert_in_range(whole, k ? 0 : n - 1, k ? n / 2 : n);	/* one is on its signal stack */
	}
	assert_fine(target_resume(t));
	assert_int_equal(target_stacks(t, stacks, bytes, sizeof(bytes)), 0);
	target_destroy(t);
	assert_true(victim_ok(&v));
	assert_int_equal(victim_end(&v), 0);
}

static void test_remote_memory(void **state)
{
	(void)state;
	struct victim v;
	struct target *t;
	int64_t addr, ret;
	struct modules *mods = modules_create();
	bool changed;
	char back[16];

	assert_true(victim_start(&v, "victim_threads", NULL));
	assert_fine(target_attach(v.pid, &t));
	assert_fine(target_refresh_modules(t, mods, &changed));
	assert_true(changed);
	assert_true(modules_count(mods) >= 3);
	for (size_t i = 1; i <= modules_count(mods); i++) {
		const struct module *m = module_get(mods, (uint32_t)i);
		assert_non_null(m->file);
		uint64_t gap = target_find_gap(t, m->bias + 0x1000, m->bias + 0x100000, 100000);
		assert_int_not_equal(gap, 0);
		assert_int_equal(gap & 4095, 0);
		assert_true(gap < m->bias ? m->bias + 0x100000 - gap < 2ull << 30
					  : gap + 100000 - m->bias < 2ull << 30);
		assert_fine(target_syscall(t, SYS_mmap,
					   (uint64_t[6]){ gap, 102400, PROT_READ | PROT_WRITE,
						MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
						(uint64_t)-1, 0 }, &addr));
		assert_int_equal(addr, gap);
		assert_fine(target_write(t, gap + 5000, "heaptop", 8));
		assert_fine(target_read(t, gap + 5000, back, 8));
		assert_string_equal(back, "heaptop");
		/* Up to the end of the mapping and no further. */
		uint8_t buf[8192];
		assert_int_equal(target_read_some(t, gap + 102400 - 100, buf, sizeof(buf)), 100);
		assert_int_equal(target_read_some(t, 0, buf, 8), 0);
		/* Read-only to the program, but not to its tracer. */
		assert_fine(target_syscall(t, SYS_mprotect, (uint64_t[6]){ gap, 102400, PROT_READ }, &ret));
		assert_int_equal(ret, 0);
		struct err *err = target_write(t, gap, "x", 1);
		assert_non_null(err);
		err_free(err);
		assert_fine(target_write_text(t, gap, "text", 5));
		assert_fine(target_read(t, gap, back, 5));
		assert_string_equal(back, "text");
		assert_fine(target_syscall(t, SYS_munmap, (uint64_t[6]){ gap, 102400 }, &ret));
		assert_int_equal(ret, 0);
	}
	/* An error of the kernel is a value, not a failure to call. */
	assert_fine(target_syscall(t, SYS_munmap, (uint64_t[6]){ 1, 1 }, &ret));
	assert_int_equal(ret, -EINVAL);
	uint64_t lo, hi;
	assert_true(target_stack_bounds(t, 0, &lo, &hi));
	size_t n;
	const struct target_thread *threads = target_threads(t, &n);
	for (size_t i = 0; i < n; i++) {
		if (threads[i].tid == v.pid)
			assert_true(threads[i].sp >= lo && threads[i].sp < hi);
		else if (target_stack_bounds(t, threads[i].sp, &lo, &hi))
			assert_true(threads[i].sp >= lo && threads[i].sp < hi);
	}
	assert_fine(target_resume(t));
	struct err *err = target_write_text(t, lo, "x", 1);
	assert_non_null(err);	/* not while it runs */
	err_free(err);
	assert_fine(target_refresh_modules(t, mods, &changed));
	assert_true(victim_ok(&v));
	target_destroy(t);
	modules_destroy(mods);
	assert_int_equal(victim_end(&v), 0);
}

static void test_group_stopped(void **state)
{
	(void)state;
	struct victim v;
	struct target *t;
	int64_t ret;

	assert_true(victim_start(&v, "victim_threads", "stops"));
	kill(v.pid, SIGSTOP);
	while (victim_state(v.pid) != 'T')
		usleep(1000);
	for (int i = 0; i < 10; i++) {
		assert_fine(target_attach(v.pid, &t));
		assert_fine(target_syscall(t, SYS_getpid, (uint64_t[6]){ 0 }, &ret));
		assert_int_equal(ret, v.pid);
		assert_fine(target_resume(t));
		target_destroy(t);
		usleep(2000);
		assert_int_equal(victim_state(v.pid), 'T');
	}
	kill(v.pid, SIGCONT);
	assert_true(victim_ok(&v));

	/* And stopped while it is in our hands. */
	assert_fine(target_attach(v.pid, &t));
	kill(v.pid, SIGSTOP);
	assert_fine(target_syscall(t, SYS_getpid, (uint64_t[6]){ 0 }, &ret));
	assert_int_equal(ret, v.pid);
	assert_fine(target_resume(t));
	target_destroy(t);
	for (int i = 0; i < 1000 && victim_state(v.pid) != 'T'; i++)
		usleep(1000);
	assert_int_equal(victim_state(v.pid), 'T');
	kill(v.pid, SIGCONT);
	assert_true(victim_ok(&v));
	assert_int_equal(victim_end(&v), 0);
}

static void test_step_out(void **state)
{
	(void)state;
	struct victim v;
	struct target *t;
	size_t n;

	assert_true(victim_start(&v, "victim_threads", NULL));
	for (int round = 0; round < 20; round++) {
		struct code_range ranges[64];
		size_t nranges = 0;
		assert_fine(target_attach(v.pid, &t));
		/* Around the pc of whoever runs in user space: not those after a syscall instruction. */
		const struct target_thread *threads = target_threads(t, &n);
		for (size_t i = 0; i < n && nranges < 64; i++) {
			uint8_t before[2];
			if (target_read_some(t, threads[i].pc - 2, before, 2) == 2 &&
			    !(before[0] == 0x0f && before[1] == 0x05) &&
			    target_read_some(t, threads[i].pc, before, 2) == 2 &&
			    !(before[0] == 0x0f && before[1] == 0x05))
				ranges[nranges++] = (struct code_range){ threads[i].pc - 1,
									 threads[i].pc + 1 };
		}
		assert_fine(target_step_out(t, ranges, nranges));
		threads = target_threads(t, &n);
		for (size_t i = 0; i < n; i++) {
			for (size_t k = 0; k < nranges; k++)
				assert_false(threads[i].pc > ranges[k].start &&
					     threads[i].pc < ranges[k].end);
		}
		assert_fine(target_resume(t));
		target_destroy(t);
	}
	assert_true(victim_ok(&v));
	assert_int_equal(victim_end(&v), 0);
}

static void test_seccomp(void **state)
{
	(void)state;
	struct victim v;
	struct target *t;
	int64_t ret;

	assert_true(victim_start(&v, "victim_ends", "seccomp"));
	assert_fine(target_attach(v.pid, &t));
	assert_true(target_has_seccomp(t));
	struct err *err = target_syscall(t, SYS_getpid, (uint64_t[6]){ 0 }, &ret);
	assert_non_null(err);
	assert_int_equal(err->code, ERR_DENIED);
	err_free(err);
	assert_fine(target_resume(t));
	target_destroy(t);
	assert_int_equal(victim_end(&v), 0);
}

static void test_attached_end(void **state)
{
	(void)state;
	struct victim v;
	struct target *t;
	struct target_usage usage;

	assert_true(victim_start(&v, "victim_ends", "wait"));
	assert_fine(target_attach(v.pid, &t));
	assert_fine(target_resume(t));
	assert_true(target_usage(t, &usage));
	assert_true(usage.rss > 4096 && usage.threads == 1);
	assert_non_null(strstr(target_command(t), "victim_ends wait"));
	assert_int_equal(target_poll(t), TARGET_NOTHING);
	assert_int_equal(victim_end(&v), 0);
	for (int i = 0; i < 2000 && target_poll(t) != TARGET_EXITED; i++)
		usleep(1000);
	assert_int_equal(target_poll(t), TARGET_EXITED);
	char c;
	struct err *err = target_read(t, 4096, &c, 1);
	assert_non_null(err);
	assert_int_equal(err->code, ERR_GONE);
	err_free(err);
	err = target_stop(t);
	assert_non_null(err);
	assert_int_equal(err->code, ERR_GONE);
	err_free(err);
	target_destroy(t);

	/* Killed while it is stopped. */
	assert_true(victim_start(&v, "victim_threads", NULL));
	assert_fine(target_attach(v.pid, &t));
	kill(v.pid, SIGKILL);
	err_free(target_resume(t));
	target_destroy(t);
	victim_end(&v);	/* a child's status may have been taken with it */
	assert_int_equal(victim_state(v.pid), '-');
}

/* ---- launched ---- */

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

/* ---- the picker's list ---- */

static void test_proclist(void **state)
{
	(void)state;
	struct victim v;
	size_t n;
	bool found = false;

	assert_true(victim_start(&v, "victim_ends", "wait"));
	struct proc_row *rows = proclist_read(&n);
	for (size_t i = 0; i < n; i++) {
		if (i)
			assert_true(rows[i - 1].rss >= rows[i].rss);
		assert_int_not_equal(rows[i].pid, getpid());
		assert_non_null(rows[i].command);
		if (rows[i].pid == v.pid) {
			found = true;
			assert_int_equal(rows[i].uid, getuid());
			assert_non_null(strstr(rows[i].command, "victim_ends wait"));
			assert_int_equal(rows[i].threads, 1);
			assert_null(rows[i].refusal);
			assert_true(rows[i].age < 60 && rows[i].rss > 0);
		}
	}
	proclist_free(rows, n);
	assert_true(found);
	assert_int_equal(victim_end(&v), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refuse_absent),
		cmocka_unit_test(test_refuse_zombie),
		cmocka_unit_test(test_refuse_kernel_thread),
		cmocka_unit_test(test_refuse_traced),
		cmocka_unit_test(test_refuse_thread),
		cmocka_unit_test(test_refuse_other_user),
		cmocka_unit_test(test_refuse_32bit),
		cmocka_unit_test(test_attach_rounds),
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_remote_memory),
		cmocka_unit_test(test_group_stopped),
		cmocka_unit_test(test_step_out),
		cmocka_unit_test(test_seccomp),
		cmocka_unit_test(test_attached_end),
		cmocka_unit_test(test_launch_end),
		cmocka_unit_test(test_launch_exec),
		cmocka_unit_test(test_launch_failures),
		cmocka_unit_test(test_launch_inheritance),
		cmocka_unit_test(test_launch_stop_and_go),
		cmocka_unit_test(test_launch_self_stop),
		cmocka_unit_test(test_launch_before_library_constructor),
		cmocka_unit_test(test_proclist),
	};

	if (!may_ptrace()) {
		fprintf(stderr, "PTRACE_SEIZE of an own child is refused: skipped\n");
		return 77;
	}
	alarm(300);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
