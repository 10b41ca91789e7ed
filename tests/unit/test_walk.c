/*
 * The agent's walk on made-up stacks: each kind of rule, each way it must stop, and what is kept of the
 * last walk compared with walking anew, over stacks that change at random.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agent/walk.h"

#define WORDS 4096
static uint64_t stack[WORDS];
static struct wire_rules *rules;
static struct wire_walk *kept;

static uint64_t at(size_t word)
{
	return (uint64_t)&stack[word];
}

static void set_rule(uint64_t pc, uint32_t rule)
{
	uint64_t hash = wire_rule_hash(pc), *line = rules->words + wire_rule_line(hash);

	for (unsigned i = 0; i < WIRE_RULE_WAYS; i++) {
		uint64_t *word = &line[(wire_rule_way(hash) + i) % WIRE_RULE_WAYS];
		if (*word && (*word ^ wire_rule_key(hash)) >> WIRE_RULE_BITS)
			continue;
		*word = rule ? wire_rule_key(hash) | rule : 0;
		return;
	}
	fail_msg("a line is full");
}

static struct walk walk_from(struct wire_walk *w, uint64_t pc, size_t sp, uint64_t bp, size_t end)
{
	struct walk walk = { .pc = pc, .sp = at(sp), .bp = bp };

	agent_walk(w, rules, at(end), &walk);
	return walk;
}

static uint64_t frame(const struct wire_walk *w, const struct walk *walk, uint32_t i)
{
	return w->frame[walk->first - i].pc & ((1ull << WIRE_PC_BITS) - 1);
}

static int setup(void **unused)
{
	(void)unused;
	rules = calloc(1, sizeof(*rules));
	kept = calloc(1, sizeof(*kept));
	memset(stack, 0, sizeof(stack));
	return 0;
}

static int teardown(void **unused)
{
	(void)unused;
	free(rules);
	free(kept);
	return 0;
}

/* Every address has its own word: none is taken for another. */
static void test_keys(void **unused)
{
	(void)unused;
	for (uint64_t pc = 1; pc < 1ull << 46; pc = pc * 3 + 1)
		for (uint64_t other = pc + 1; other < 1ull << 46; other = other * 5 + 1) {
			uint64_t a = wire_rule_hash(pc), b = wire_rule_hash(other);
			assert_true(wire_rule_line(a) != wire_rule_line(b) ||
				    wire_rule_key(a) != wire_rule_key(b));
			assert_true((wire_rule_key(a) & ((1u << WIRE_RULE_BITS) - 1)) == 0);
		}
	uint32_t r = wire_rule(WIRE_RULE_DEREF, 255, 0xfffe);
	assert_true(r < 1u << WIRE_RULE_BITS);
	assert_int_equal(wire_rule_kind(r), WIRE_RULE_DEREF);
	assert_int_equal(wire_rule_bp(r), 255);
	assert_int_equal(wire_rule_offset(r), 0xfffe);
}

/*
 * sp-based, then one that saves the frame pointer, one based on it, a realigned one, the outermost:
 *	word	2: ra 0x2000	5: bp -> 12, ra 0x3000 at 6	12: bp 20, 13: ra 0x4000
 */
static void make_stack(void)
{
	stack[2] = 0x2000;
	set_rule(0x1000, wire_rule(WIRE_RULE_SP, 0, 3));		/* CFA = word 3 */
	stack[5] = at(12);
	stack[6] = 0x3000;
	set_rule(0x2000, wire_rule(WIRE_RULE_SP, 2, 4));		/* CFA = word 7 */
	stack[12] = at(20);
	stack[13] = 0x4000;
	set_rule(0x3000, wire_rule(WIRE_RULE_BP, 2, 2));		/* CFA = word 14 */
	stack[18] = at(30);
	stack[20] = 0x77;
	stack[29] = 0x5000;
	set_rule(0x4000, wire_rule(WIRE_RULE_DEREF, 1, (uint16_t)-2));	/* CFA = *(word 18) */
	set_rule(0x5000, wire_rule(WIRE_RULE_END, 0, 0));
}

static void check_made(const struct walk *walk, uint64_t first)
{
	const uint64_t want[] = { first, 0x2000, 0x3000, 0x4000, 0x5000 };

	assert_true(walk->complete);
	assert_int_equal(walk->n, 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_true(frame(kept, walk, i) == want[i]);
}

static void test_kinds(void **unused)
{
	(void)unused;
	make_stack();
	struct walk w = walk_from(kept, 0x1000, 0, 0, 100);
	check_made(&w, 0x1000);
	/* the same; another innermost frame; a word that ends the walk instead of a rule */
	w = walk_from(kept, 0x1000, 0, 0, 100);
	check_made(&w, 0x1000);
	set_rule(0x1100, wire_rule(WIRE_RULE_SP, 0, 2));
	w = walk_from(kept, 0x1100, 1, 0, 100);
	check_made(&w, 0x1100);
	set_rule(0x5000, wire_rule(WIRE_RULE_SP, 0, 10));
	rules->generation++;
	w = walk_from(kept, 0x1000, 0, 0, 100);
	check_made(&w, 0x1000);
	w = walk_from(kept, 0x1000, 0, 0, 100);
	check_made(&w, 0x1000);
	/* the realigned frame's caller lies elsewhere now, and nothing else has changed */
	stack[18] = at(50);
	stack[49] = 0x6000;
	set_rule(0x6000, wire_rule(WIRE_RULE_END, 0, 0));
	w = walk_from(kept, 0x1000, 0, 0, 100);
	assert_true(w.complete);
	assert_int_equal(w.n, 5);
	assert_true(frame(kept, &w, 4) == 0x6000);
}

static void expect_stop(struct walk w, uint32_t n, uint64_t pc, size_t sp)
{
	assert_false(w.complete);
	assert_int_equal(w.n, n);
	assert_true(w.pc == pc && w.sp == at(sp));
	assert_int_equal(kept->n, 0);
	for (uint32_t i = 0; i < n; i++)
		assert_true(frame(kept, &w, i) == 0x1000u * (i + 1));
}

static void test_stops(void **unused)
{
	(void)unused;
	make_stack();
	set_rule(0x4000, 0);
	expect_stop(walk_from(kept, 0x1000, 0, 0, 100), 3, 0x4000, 14);
	expect_stop(walk_from(kept, 0x9000, 0, 0, 100), 0, 0x9000, 0);
	make_stack();
	/* the end of the stack: a return address beyond it, and no stack at all */
	expect_stop(walk_from(kept, 0x1000, 0, 0, 13), 2, 0x3000, 7);
	expect_stop(walk_from(kept, 0x1000, 0, 0, 0), 0, 0x1000, 0);
	/* a frame pointer that leads down again, or out of the stack */
	stack[5] = at(1);
	expect_stop(walk_from(kept, 0x1000, 0, 0, 100), 2, 0x3000, 7);
	stack[5] = ~0ull - 8;
	expect_stop(walk_from(kept, 0x1000, 0, 0, 100), 2, 0x3000, 7);
	stack[5] = at(12);
	stack[2] = 1ull << WIRE_PC_BITS;	/* no user address */
	expect_stop(walk_from(kept, 0x1000, 0, 0, 100), 1, 1ull << WIRE_PC_BITS, 3);
	stack[2] = 0x2000;
	set_rule(0x1000, wire_rule(WIRE_RULE_SP, 0, 0));
	expect_stop(walk_from(kept, 0x1000, 0, 0, 100), 0, 0x1000, 0);
}

/* One frame a word: as deep as there is room, and one more. */
static void test_depth(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < WORDS; i++)
		stack[i] = 0x1000;
	set_rule(0x1000, wire_rule(WIRE_RULE_SP, 0, 1));
	stack[WIRE_MAX_FRAMES - 1] = 0;
	struct walk w = walk_from(kept, 0x1000, 1, 0, WORDS);
	assert_true(w.complete);
	assert_int_equal(w.n, WIRE_MAX_FRAMES - 1);
	w = walk_from(kept, 0x1000, 0, 0, WORDS);
	assert_false(w.complete);
	assert_int_equal(w.n, WIRE_MAX_FRAMES);
	assert_true(w.sp == at(WIRE_MAX_FRAMES));
	w = walk_from(kept, 0x1000, 2, 0, WORDS);
	assert_int_equal(w.n, WIRE_MAX_FRAMES - 2);
}

static uint32_t random_rule(void)
{
	unsigned kind = (unsigned)rand() % 16, words = 1 + (unsigned)rand() % 6;

	return kind < 10 ? wire_rule(WIRE_RULE_SP, rand() % 2 ? 2 : 0, (uint16_t)(words + 1))
		: kind < 13 ? wire_rule(WIRE_RULE_BP, rand() % 2 ? 2 : 0, 2)
		: kind < 14 ? wire_rule(WIRE_RULE_DEREF, rand() % 2, (uint16_t)-1)
		: kind < 15 ? wire_rule(WIRE_RULE_END, 0, 0) : 0;
}

/* What was kept must never matter to what is found. */
static void test_random(void **unused)
{
	(void)unused;
	struct wire_walk *anew = calloc(1, sizeof(*anew));
	enum { PCS = 24, USED = 160 };
	unsigned complete = 0, reused = 0;

	srand(7);
	for (unsigned round = 0; round < 400; round++) {
		for (unsigned i = 1; i <= PCS; i++)
			set_rule(0x1000 * i, random_rule());
		rules->generation++;
		for (unsigned step = 0; step < 500; step++) {
			if (rand() % 32 == 0) {
				set_rule(0x1000u * (1 + (unsigned)rand() % PCS), random_rule());
				rules->generation++;
			}
			/* a few words a step: return addresses, pointers into the stack, zeroes */
			unsigned changes = step ? (unsigned)rand() % 4 : USED;
			for (unsigned i = 0; i < changes; i++) {
				size_t word = step ? (size_t)rand() % USED : i;
				stack[word] = rand() % 4 ? 0x1000u * (1 + (unsigned)rand() % PCS)
					: rand() % 8 ? at(word + (size_t)rand() % 30) : 0;
			}
			size_t sp = (size_t)rand() % 12, end = rand() % 8 ? USED : (size_t)rand() % USED;
			uint64_t pc = 0x1000u * (1 + (unsigned)rand() % 4);
			uint64_t bp = rand() % 2 ? at(sp + (size_t)rand() % 20) : (uint64_t)rand();
			if (end < sp)
				end = sp;
			uint32_t had = kept->n;
			struct walk a = walk_from(kept, pc, sp, bp, end);
			memset(anew, 0, sizeof(*anew));
			struct walk b = walk_from(anew, pc, sp, bp, end);
			assert_int_equal(a.complete, b.complete);
			complete += a.complete;
			reused += had && a.complete;
			if (!a.complete)
				assert_true(a.pc == b.pc && a.sp == b.sp && a.bp == b.bp);
			assert_int_equal(a.n, b.n);
			for (uint32_t i = 0; i < a.n; i++)
				assert_true(frame(kept, &a, i) == frame(anew, &b, i));
		}
	}
	assert_true(complete > 10000);
	assert_true(reused > 5000);
	free(anew);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_keys), T(test_kinds), T(test_stops), T(test_depth), T(test_random),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
