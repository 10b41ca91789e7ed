/* Which call a thread sleeps in, from one stop to the next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/syscall.h>

#include "target/cpu.h"
#include "target/naps.h"

/* As they are in a call that was interrupted. */
static struct cpu_regs in_call(long nr, uint64_t pc, uint64_t sp)
{
	struct cpu_regs regs;

	memset(&regs, 0, sizeof(regs));
	regs.r.orig_rax = (uint64_t)nr;
	regs.r.rip = pc;
	regs.r.rsp = sp;
	return regs;
}

static void test_restarted(void **unused)
{
	struct naps naps = { 0 };
	struct cpu_regs first = in_call(SYS_clock_nanosleep, 100, 1000), again = in_call(SYS_restart_syscall, 100, 1000);
	struct cpu_regs other = in_call(SYS_restart_syscall, 100, 2000), poll = in_call(SYS_poll, 100, 1000);

	(void)unused;
	naps_begin(&naps);
	assert_int_equal(naps_call(&naps, 5, &first), SYS_clock_nanosleep);
	assert_int_equal(naps_call(&naps, 3, &again), -1);	/* somebody else has interrupted it */
	/* as often as it is interrupted */
	for (int i = 0; i < 3; i++) {
		naps_begin(&naps);
		assert_int_equal(naps_call(&naps, 5, &again), SYS_clock_nanosleep);
		assert_int_equal(naps_call(&naps, 3, &again), -1);
	}
	/* another call since */
	naps_begin(&naps);
	assert_int_equal(naps_call(&naps, 5, &other), -1);
	naps_begin(&naps);
	assert_int_equal(naps_call(&naps, 5, &again), -1);
	assert_int_equal(naps_call(&naps, 5, &poll), SYS_poll);
	naps_deinit(&naps);
}

static void test_forgotten(void **unused)
{
	struct naps naps = { 0 };
	struct cpu_regs first = in_call(SYS_poll, 100, 1000), again = in_call(SYS_restart_syscall, 100, 1000);

	(void)unused;
	naps_begin(&naps);
	for (int tid = 100; tid > 0; tid--)
		assert_int_equal(naps_call(&naps, tid, &first), SYS_poll);
	/* every other one is still there at the next stop */
	naps_begin(&naps);
	for (int tid = 2; tid <= 100; tid += 2)
		assert_int_equal(naps_call(&naps, tid, &again), SYS_poll);
	naps_begin(&naps);
	assert_int_equal(naps.n, 50);
	for (int tid = 1; tid <= 100; tid++)
		assert_int_equal(naps_call(&naps, tid, &again), tid % 2 ? -1 : SYS_poll);
	naps_deinit(&naps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_restarted),
		cmocka_unit_test(test_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
