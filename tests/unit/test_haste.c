/* The collector's nice value: less for a while and back, and left alone without the right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collect/haste.h"

static int nice_now(void)
{
	return getpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid));
}

static void test_back_and_forth(void **unused)
{
	struct haste h;
	int before = nice_now();

	(void)unused;
	haste_init(&h);
	haste_begin(&h);
	/* where it isn't permitted all stays as it is */
	int within = nice_now();
	assert_true(h.on ? within < before : within == before);
	assert_true(h.on || geteuid());
	haste_begin(&h);
	assert_int_equal(nice_now(), within);
	haste_end(&h);
	assert_int_equal(nice_now(), before);
	haste_end(&h);
	assert_int_equal(nice_now(), before);
}

/* In a child, since there is no way back. */
static void test_without_right(void **unused)
{
	struct haste h;
	int status;

	(void)unused;
	pid_t pid = fork();
	if (pid == 0) {
		haste_init(&h);
		const struct rlimit none = { 0, 0 };
		int before = nice_now();
		if (setrlimit(RLIMIT_NICE, &none) || (!geteuid() && setresuid(65534, 65534, 65534)))
			_exit(1);
		haste_begin(&h);
		int within = nice_now();
		haste_end(&h);
		_exit(h.on || within != before || nice_now() != before ? 2 : 0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_back_and_forth),
		cmocka_unit_test(test_without_right),
	};

	return cmocka_run_group_tests_name("haste", tests, NULL, NULL);
}
