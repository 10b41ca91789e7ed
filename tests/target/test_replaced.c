/* An attached process that executes another program: that isn't written to where the old one was. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/err.h"
#include "fine.h"
#include "spawn.h"
#include "target/target.h"

static void ask(struct victim *v, const char *what)
{
	assert_int_equal(write(v->in, what, strlen(what)), (ssize_t)strlen(what));
}

static unsigned long word_of(struct victim *v, uint64_t *ret_addr)
{
	unsigned long addr, value;

	ask(v, "word\n");
	assert_int_equal(sscanf(victim_line(v, 10000), "word %lx %lu", &addr, &value), 2);
	*ret_addr = addr;
	return value;
}

static void test_write(void **state)
{
	(void)state;
	struct victim v = { 0 };
	struct target *t;
	uint64_t addr, again;
	const unsigned long mine = 4711;

	assert_true(victim_start(&v, "victim_replaced", NULL));
	assert_int_equal(word_of(&v, &addr), 17);
	assert_fine(target_attach(v.pid, &t));
	assert_fine(target_resume(t));
	assert_fine(target_write(t, addr, &mine, sizeof(mine)));
	assert_int_equal(word_of(&v, &again), mine);

	ask(&v, "exec\n");
	assert_string_equal(victim_line(&v, 10000), "ready");
	struct err *err = target_write(t, addr, &mine, sizeof(mine));
	assert_non_null(err);
	assert_int_equal(err->errnum, EFAULT);
	err_free(err);
	assert_int_equal(word_of(&v, &again), 17);
	assert_int_equal(again, addr);

	kill(v.pid, SIGKILL);
	victim_end(&v);
	err = target_write(t, addr, &mine, sizeof(mine));
	assert_non_null(err);
	assert_int_equal(err->code, ERR_GONE);
	err_free(err);
	target_destroy(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_write),
	};

	if (!may_ptrace()) {
		fprintf(stderr, "PTRACE_SEIZE of an own child is refused: skipped\n");
		return 77;
	}
	alarm(120);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
