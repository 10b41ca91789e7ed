/*
 * Rules handed over in advance: what stands on the stacks of a process with many threads, taken
 * while it is stopped, walked while it runs, told to a probe that writes it down.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/err.h"
#include "collect/prefill.h"
#include "elf/modules.h"
#include "spawn.h"
#include "target/target.h"
#include "unwind/unwind.h"

static uint64_t told[4096];
static size_t ntold;

static uint32_t rule_of(void *unwinder, uint64_t pc)
{
	return unwinder_wire_rule(unwinder, pc);
}

static size_t teach(struct probe *p, const uint64_t *pcs, size_t n, probe_rule_fn rule, void *ctx)
{
	size_t ret = 0;

	(void)p;
	for (size_t i = 0; i < n; i++) {
		assert_true(i == 0 || pcs[i] > pcs[i - 1]);	/* each once */
		told[ntold++] = pcs[i];
		ret += rule(ctx, pcs[i]) != 0;
	}
	return ret;
}

static struct probe_ops ops = { .teach = teach };
static struct probe probe = { .ops = &ops };

static size_t told_in(const struct modules *mods, bool main)
{
	size_t ret = 0;

	for (size_t i = 0; i < ntold; i++) {
		const struct module *mod = modules_find(mods, told[i] - 1);
		ret += mod && (main ? mod->is_main : !strncmp(mod->name, "libc", 4));
	}
	return ret;
}

/* Is it where the thread stands? */
static bool is_told(uint64_t pc)
{
	for (size_t i = 0; i < ntold; i++)
		if (told[i] == pc)
			return true;
	return false;
}

static void test_threads(void **state)
{
	struct victim v = { 0 };
	struct target *t;
	bool changed;
	struct modules *mods = modules_create();
	struct unwinder *u = unwinder_create(mods);
	struct prefill *p = prefill_create();

	(void)state;
	assert_true(victim_start(&v, "victim_threads", NULL));
	assert_true(victim_ok(&v));
	assert_null(target_attach(v.pid, &t));
	prefill_take(p, t);
	uint64_t stopped_at[64];
	size_t n;
	const struct target_thread *threads = target_threads(t, &n);
	assert_in_range(n, 16, 64);
	for (size_t i = 0; i < n; i++)
		stopped_at[i] = threads[i].pc;
	assert_null(target_resume(t));
	assert_null(target_refresh_modules(t, mods, &changed));

	/* before the walk there is nothing to tell */
	assert_int_equal(prefill_teach(p, &probe, rule_of, u), 0);
	prefill_walk(p, u);
	/* most stacks are complete; some threads are in a signal handler, or block in one */
	assert_true(unwinder_stats(u)->walks == n);
	assert_in_range(unwinder_stats(u)->ends[UNWIND_END_ROOT], n * 3 / 4, n);
	assert_true(prefill_teach(p, &probe, rule_of, u) > n / 2);
	assert_true(told_in(mods, true) >= 8);	/* jobs that call something, main */
	assert_true(told_in(mods, false) >= 3);	/* thread start, clone, program start */
	for (size_t i = 0; i < n; i++)
		assert_false(is_told(stopped_at[i] + 1));

	prefill_destroy(p);
	unwinder_destroy(u);
	modules_destroy(mods);
	target_destroy(t);
	assert_true(victim_ok(&v));
	assert_int_equal(victim_end(&v), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_threads) };

	if (!may_ptrace()) {
		fprintf(stderr, "PTRACE_SEIZE of an own child is refused: skipped\n");
		return 77;
	}
	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
