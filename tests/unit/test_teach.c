/*
 * Rules on their way into the target's table: which can be said in the agent's words, where they
 * go, what a change of the modules takes back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "probe/placed.h"
#include "unwind/rules.h"

static struct agent *agent;
static unsigned asked;

static int setup(void **unused)
{
	(void)unused;
	agent = calloc(1, sizeof(*agent));
	agent->rules = calloc(1, sizeof(*agent->rules));
	agent->taught = calloc(WIRE_RULE_WORDS, sizeof(*agent->taught));
	asked = 0;
	return 0;
}

static int teardown(void **unused)
{
	(void)unused;
	free(agent->rules);
	free(agent->taught);
	free(agent);
	return 0;
}

/* As the agent finds it. */
static uint32_t find(uint64_t pc)
{
	uint64_t hash = wire_rule_hash(pc);

	for (unsigned i = 0; i < WIRE_RULE_WAYS; i++) {
		uint64_t rule = agent->rules->words[wire_rule_line(hash) + i] ^ wire_rule_key(hash);
		if (rule >> WIRE_RULE_BITS == 0 && rule)
			return (uint32_t)rule;
	}
	return 0;
}

/* 0 for multiples of 16; *ctx is added to the offset. */
static uint32_t rule_of(void *ctx, uint64_t pc)
{
	asked++;
	return pc % 16 ? wire_rule(WIRE_RULE_SP, 2, (uint16_t)(pc % 1000 + *(unsigned *)ctx)) : 0;
}

static void test_table(void **unused)
{
	(void)unused;
	enum { N = 20000 };
	static uint64_t pcs[N];
	unsigned change = 0, right = 0;

	for (unsigned i = 0; i < N; i++)
		pcs[i] = 0x7f0000000000 + i * 37;
	pcs[7] = 0;
	pcs[8] = 1ull << WIRE_PC_BITS;
	agent_teach(&agent->probe, pcs, N, rule_of, &change);
	for (unsigned i = 0; i < N; i++) {
		uint32_t r = find(pcs[i]);
		assert_true(!r || r == rule_of(&change, pcs[i]));
		right += r != 0;
	}
	assert_true(right > N * 15 / 16 - N / 50);	/* a full line loses some */
	/* known ones cost no question; a few lines are too full */
	asked = 0;
	for (unsigned i = 0; i < N; i++)
		if (find(pcs[i]))
			agent_teach(&agent->probe, &pcs[i], 1, rule_of, &change);
	assert_int_equal(asked, 0);

	agent_reteach(&agent->probe, rule_of, &change);
	assert_int_equal(agent->rules->generation, 0);	/* nothing has changed */
	change = 1;
	agent_reteach(&agent->probe, rule_of, &change);
	assert_int_equal(agent->rules->generation, 1);
	for (unsigned i = 0; i < N; i++)
		assert_true(!find(pcs[i]) || find(pcs[i]) == rule_of(&change, pcs[i]));
}

static uint32_t none(void *ctx, uint64_t pc)
{
	(void)ctx;
	(void)pc;
	return 0;
}

static void test_take_back(void **unused)
{
	(void)unused;
	const uint64_t pcs[] = { 0x401001, 0x401002 };
	unsigned change = 0;

	agent_teach(&agent->probe, pcs, 2, rule_of, &change);
	assert_true(find(pcs[0]) && find(pcs[1]));
	agent->rules->words[0] = ~0ull;			/* whatever the target writes there */
	agent_reteach(&agent->probe, none, NULL);
	assert_true(!find(pcs[0]) && !find(pcs[1]));
	assert_int_equal(agent->rules->generation, 1);
	agent_teach(&agent->probe, pcs, 2, rule_of, &change);
	assert_true(find(pcs[0]) && find(pcs[1]));
}

static void test_tell(void **unused)
{
	(void)unused;
	const struct rule plain = { .kind = RULE_CFA, .base = REGS_SP, .offset = 48, .mask = 1u << REGS_RA,
				    .saved = { [REGS_RA] = -1 } };
	struct rule r = plain;

	assert_int_equal(rule_tell(&r), wire_rule(WIRE_RULE_SP, 0, 6));
	r.mask |= 1u << regs_cpu.fp;
	r.saved[regs_cpu.fp] = -2;
	assert_int_equal(rule_tell(&r), wire_rule(WIRE_RULE_SP, 2, 6));
	r.base = regs_cpu.fp;
	r.offset = 16;
	assert_int_equal(rule_tell(&r), wire_rule(WIRE_RULE_BP, 2, 2));
	r.saved[regs_cpu.fp] = -256;			/* too far */
	assert_int_equal(rule_tell(&r), 0);
	r.saved[regs_cpu.fp] = -1;			/* where the return address is */
	assert_int_equal(rule_tell(&r), 0);
	r = plain;
	r.offset = 65535 * 8;
	assert_int_equal(rule_tell(&r), wire_rule(WIRE_RULE_SP, 0, 65535));
	r.offset += 8;
	assert_int_equal(rule_tell(&r), 0);
	r.offset = 44;
	assert_int_equal(rule_tell(&r), 0);
	r.offset = -8;
	assert_int_equal(rule_tell(&r), 0);
	r = plain;
	r.base = 1;					/* a register the agent doesn't follow */
	assert_int_equal(rule_tell(&r), 0);
	r = plain;
	r.saved[REGS_RA] = -2;
	assert_int_equal(rule_tell(&r), 0);
	r = plain;
	r.mask = 0;
	assert_int_equal(rule_tell(&r), 0);

	r = plain;
	r.kind = RULE_CFA_DEREF;
	r.base = regs_cpu.fp;
	r.offset = -8;
	r.mask |= 1u << regs_cpu.fp;
	r.base_mask = (uint16_t)(1u << regs_cpu.fp);
	assert_int_equal(rule_tell(&r), wire_rule(WIRE_RULE_DEREF, 1, (uint16_t)-1));
	r.base_mask = 0;
	assert_int_equal(rule_tell(&r), 0);

	for (int kind = RULE_NONE; kind <= RULE_FP; kind++) {
		r = (struct rule){ .kind = (uint8_t)kind };
		assert_int_equal(rule_tell(&r), kind == RULE_ROOT ? wire_rule(WIRE_RULE_END, 0, 0) : 0);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = { T(test_table), T(test_take_back), T(test_tell) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
