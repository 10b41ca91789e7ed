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
		unsigned way = (wire_rule_way(hash) + i) % WIRE_RULE_WAYS;
		uint64_t rule = agent->rules->words[wire_rule_line(hash) + way] ^ wire_rule_key(hash);
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

static uint32_t answer_of(unsigned change, uint64_t pc)
{
	uint32_t r = rule_of(&change, pc);

	return r ? r : WIRE_RULE_COPY;
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
	assert_int_equal(agent_teach(&agent->probe, pcs, N, rule_of, &change), N - 2);
	for (unsigned i = 0; i < N; i++) {
		uint32_t r = find(pcs[i]);
		assert_true(!r || r == answer_of(change, pcs[i]));
		right += r != 0;
	}
	assert_true(right > N - N / 50);	/* a full line loses some */
	/* known rules cost no question, and what is known is no news; a few lines are too full */
	asked = 0;
	for (unsigned i = 0; i < N; i++)
		if (find(pcs[i]))
			assert_int_equal(agent_teach(&agent->probe, &pcs[i], 1, rule_of, &change), 0);
	assert_in_range(asked, N / 16 - N / 100, N / 16 + 1);

	agent_reteach(&agent->probe, rule_of, &change);
	assert_int_equal(agent->rules->generation, 0);	/* nothing has changed */
	change = 1;
	agent_reteach(&agent->probe, rule_of, &change);
	assert_int_equal(agent->rules->generation, 1);
	for (unsigned i = 0; i < N; i++)
		assert_true(!find(pcs[i]) || find(pcs[i]) == answer_of(change, pcs[i]));
}

static uint32_t none(void *ctx, uint64_t pc)
{
	(void)ctx;
	(void)pc;
	return 0;
}

static uint32_t always(void *ctx, uint64_t pc)
{
	(void)pc;
	return *(uint32_t *)ctx;
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

/* A module that comes, or a guess that has proved right, where there was no rule; and back. */
static void test_no_rule(void **unused)
{
	(void)unused;
	const uint64_t pcs[] = { 0x401000, 0x402000 };
	uint32_t rule = wire_rule(WIRE_RULE_BP, 2, 2);

	assert_int_equal(agent_teach(&agent->probe, pcs, 2, none, NULL), 2);
	assert_int_equal(agent_teach(&agent->probe, pcs, 2, none, NULL), 0);
	assert_int_equal(find(pcs[0]), WIRE_RULE_COPY);
	agent_reteach(&agent->probe, none, NULL);
	assert_int_equal(find(pcs[0]), WIRE_RULE_COPY);
	assert_int_equal(agent_teach(&agent->probe, pcs, 1, always, &rule), 1);
	assert_int_equal(find(pcs[0]), rule);
	agent_reteach(&agent->probe, always, &rule);
	assert_int_equal(find(pcs[1]), rule);
	/* no walk that was complete can have met one without a rule */
	assert_int_equal(agent->rules->generation, 0);
	agent_reteach(&agent->probe, none, NULL);
	assert_int_equal(find(pcs[1]), 0);
	assert_int_equal(agent->rules->generation, 1);
	assert_int_equal(agent_teach(&agent->probe, pcs, 2, none, NULL), 2);
}

/* As the agent asks. */
static void ask(uint64_t pc)
{
	uint64_t hash = wire_rule_hash(pc);
	uint64_t *line = agent->rules->words + wire_rule_line(hash);

	for (unsigned i = 0; i < WIRE_RULE_WAYS; i++) {
		uint64_t *word = &line[(wire_rule_way(hash) + i) % WIRE_RULE_WAYS];
		if (!*word) {
			*word = wire_rule_key(hash) | WIRE_RULE_PENDING;
			return;
		}
	}
}

static unsigned words(void)
{
	unsigned ret = 0;

	for (unsigned i = 0; i < WIRE_RULE_WORDS; i++)
		ret += agent->rules->words[i] != 0;
	return ret;
}

/* n addresses that share a line, and the way they are looked for at if `way` is right. */
static void same_line(uint64_t *pcs, unsigned n, bool way)
{
	uint64_t pc = 0x7f0000000001, first = wire_rule_hash(pc);

	for (unsigned i = 0; i < n; pc += 2) {
		uint64_t hash = wire_rule_hash(pc);
		if (wire_rule_line(hash) == wire_rule_line(first) &&
		    (!way || wire_rule_way(hash) == wire_rule_way(first)))
			pcs[i++] = pc;
	}
}

static void test_questions(void **unused)
{
	(void)unused;
	uint64_t pcs[4];
	unsigned change = 0;

	/* answered in another place than it was asked in: the first one had been asked before */
	same_line(pcs, 4, true);
	for (unsigned i = 0; i < 3; i++)
		ask(pcs[i]);
	assert_int_equal(find(pcs[2]), WIRE_RULE_PENDING);
	assert_int_equal(agent_teach(&agent->probe, &pcs[2], 1, rule_of, &change), 1);
	assert_int_equal(find(pcs[2]), rule_of(&change, pcs[2]));
	assert_int_equal(words(), 2);			/* it took the first one's place */
	assert_int_equal(find(pcs[1]), WIRE_RULE_PENDING);
	assert_int_equal(agent_teach(&agent->probe, pcs, 2, rule_of, &change), 2);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(find(pcs[i]), rule_of(&change, pcs[i]));
	assert_int_equal(words(), 3);

	/* asked while the answer was under way: it is behind the question, or was written over */
	uint64_t *line = agent->rules->words + wire_rule_line(wire_rule_hash(pcs[0]));
	ask(pcs[0]);
	assert_int_equal(words(), 4);
	for (unsigned i = 0; i < WIRE_RULE_WAYS; i++)
		if ((line[i] ^ wire_rule_key(wire_rule_hash(pcs[1]))) >> WIRE_RULE_BITS == 0)
			line[i] = 0;
	ask(pcs[3]);
	assert_int_equal(find(pcs[1]), 0);
	assert_int_equal(find(pcs[3]), WIRE_RULE_PENDING);
	assert_int_equal(agent_teach(&agent->probe, pcs, 2, rule_of, &change), 0);
	assert_int_equal(words(), 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(find(pcs[i]), rule_of(&change, pcs[i]));
}

/* A question whose event got lost isn't there for ever. */
static void test_lost_question(void **unused)
{
	(void)unused;
	const uint64_t lost = 0x401001, known = 0x402001;
	unsigned change = 0, n = 0;

	for (int reteach = 0; reteach < 2; reteach++) {
		agent_teach(&agent->probe, &known, 1, rule_of, &change);
		ask(lost);
		agent->rules->words[WIRE_RULE_WORDS - 1] = ~0ull;
		assert_int_equal(find(lost), WIRE_RULE_PENDING);
		if (reteach)
			agent_reteach(&agent->probe, rule_of, &change);
		for (n = 0; words() > 1 && n < 100; n++)
			agent_forget_pending(agent);
		assert_int_equal(find(lost), 0);
		assert_int_equal(find(known), rule_of(&change, known));
		assert_in_range(n, reteach ? 0 : 2, reteach ? 0 : 16);
	}
	assert_int_equal(agent->rules->generation, 0);
}

/* In a full line what has no rule makes room for what has one. */
static void test_full_line(void **unused)
{
	(void)unused;
	enum { N = WIRE_RULE_WAYS + 1 };
	uint64_t pcs[N];
	unsigned change = 0;

	same_line(pcs, N, false);
	agent_teach(&agent->probe, pcs, 3, rule_of, &change);
	agent_teach(&agent->probe, &pcs[3], 1, none, NULL);
	agent_teach(&agent->probe, &pcs[4], N - 4, rule_of, &change);
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(find(pcs[i]), i == 3 ? 0 : rule_of(&change, pcs[i]));
	/* and without such, any of them */
	agent_teach(&agent->probe, &pcs[3], 1, rule_of, &change);
	assert_int_equal(find(pcs[3]), rule_of(&change, pcs[3]));
	assert_int_equal(words(), WIRE_RULE_WAYS);
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

	/* a guess, and one that held */
	r = (struct rule){ .kind = RULE_FP };
	assert_int_equal(rule_tell(&r), 0);
	r.held = true;
	assert_int_equal(rule_tell(&r), wire_rule(WIRE_RULE_BP, 2, 2));

	for (int kind = RULE_NONE; kind <= RULE_FP; kind++) {
		r = (struct rule){ .kind = (uint8_t)kind };
		assert_int_equal(rule_tell(&r), kind == RULE_ROOT ? wire_rule(WIRE_RULE_END, 0, 0) : 0);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_table), T(test_take_back), T(test_no_rule), T(test_questions),
		T(test_lost_question), T(test_full_line), T(test_tell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
