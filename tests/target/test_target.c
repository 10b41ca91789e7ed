/*
 * target/ on a process that ran before: stopping and letting go without a trace, memory, remote
 * system calls, and its end.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/err.h"
#include "elf/modules.h"
#include "fine.h"
#include "spawn.h"
#include "target/target.h"

#define ALARM 300

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
	assert_true(target_has_seccomp(t, 0));
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

/* Killed in the midst of a call: its first thread has nothing to tell before the others' ends are taken. */
static void test_killed_in_call(void **state)
{
	(void)state;
	struct victim v;
	struct target *t;
	int64_t ret;

	for (int round = 0; round < 3; round++) {
		assert_true(victim_start(&v, "victim_jobs", NULL));
		assert_fine(target_attach(v.pid, &t));
		pid_t killer = fork();
		if (killer == 0) {
			usleep(100000);
			kill(v.pid, SIGKILL);
			_exit(0);
		}
		alarm(20);
		struct err *err = target_syscall(t, SYS_pause, (uint64_t[6]){ 0 }, &ret);
		alarm(ALARM);
		assert_non_null(err);
		assert_int_equal(err->code, ERR_GONE);
		err_free(err);
		err_free(target_resume(t));
		target_destroy(t);
		waitpid(killer, NULL, 0);
		victim_end(&v);
		assert_int_equal(victim_state(v.pid), '-');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_attach_rounds),
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_remote_memory),
		cmocka_unit_test(test_group_stopped),
		cmocka_unit_test(test_step_out),
		cmocka_unit_test(test_seccomp),
		cmocka_unit_test(test_attached_end),
		cmocka_unit_test(test_killed_in_call),
	};

	if (!may_ptrace()) {
		fprintf(stderr, "PTRACE_SEIZE of an own child is refused: skipped\n");
		return 77;
	}
	alarm(ALARM);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
