/*
 * Displacing instructions: bytes in, thunk out; refusals; and moved functions that still
 * compute the same when run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "probe/hook.h"

#define NEAR 0x7f0000000000ull
#define CODE (HOOK_RECORD + sizeof(struct wire_hook) + 7 + 5)	/* where the relocated instructions begin */

static const struct wire_hook malloc_hook = { .kind = WIRE_HOOK_MALLOC, .args = { .size = 1 } };
static const struct wire_hook calloc_hook = { .kind = WIRE_HOOK_ALLOC, .index = 9, .args = { .count = 1, .size = 2 } };
static struct hook_plan plan;
static char reason[HOOK_REASON];
static uint8_t thunk[HOOK_THUNK_MAX];

static bool plan_of(const void *code, size_t len, uint64_t size)
{
	*reason = 0;
	return hook_plan(code, len, size, NEAR, &plan, reason);
}

#define BYTES(...) ((const uint8_t[]){ __VA_ARGS__ }), sizeof((const uint8_t[]){ __VA_ARGS__ })

static void test_prologue(void **unused)
{
	(void)unused;
	uint64_t to;
	struct wire_hook h;

	/* push r15; push r14; mov edi, ebx; ret */
	assert_true(plan_of(BYTES(0x41, 0x57, 0x41, 0x56, 0x89, 0xfb, 0xc3), 7));
	assert_int_equal(plan.displaced, 6);
	assert_true(hook_thunk(&plan, NEAR + 0x10000, NEAR + 0x20000, &calloc_hook, thunk, &to));
	memcpy(&h, thunk + HOOK_RECORD, sizeof(h));
	assert_true(to == NEAR + 0x10000 + HOOK_RECORD + sizeof(h));
	assert_true(h.original == NEAR + 0x10000 + CODE);
	assert_true(h.instead == h.original && h.at == NEAR);
	assert_int_equal(h.kind, WIRE_HOOK_ALLOC);
	assert_int_equal(h.args.count, 1);
	assert_int_equal(h.args.size, 2);
	assert_int_equal(h.index, 9);
	assert_memory_equal(thunk + CODE, plan.code, 6);
	assert_true(hook_is_jump(thunk + CODE + 6, NEAR + 0x10000 + CODE + 6, &to));
	assert_true(to == NEAR + 6);
	assert_true(hook_is_jump(thunk + CODE - 5, NEAR + 0x10000 + CODE - 5, &to));
	assert_true(to == NEAR + 0x20000);
}

static void test_relative(void **unused)
{
	(void)unused;
	uint64_t to;
	int32_t d;

	/* mov 0x12345(%rip), %rax: refers to the same address from elsewhere */
	assert_true(plan_of(BYTES(0x48, 0x8b, 0x05, 0x45, 0x23, 0x01, 0x00, 0xc3), 8));
	assert_int_equal(plan.displaced, 7);
	assert_true(hook_thunk(&plan, NEAR - 0x10000, NEAR - 0x20000, &malloc_hook, thunk, &to));
	memcpy(&d, thunk + CODE + 3, 4);
	assert_true(NEAR - 0x10000 + CODE + 7 + (uint64_t)(int64_t)d == NEAR + 7 + 0x12345);
	/* cmpb $0, 0x100(%rip): the displacement isn't last */
	assert_true(plan_of(BYTES(0x80, 0x3d, 0x00, 0x01, 0x00, 0x00, 0x00, 0xc3), 8));
	assert_true(hook_thunk(&plan, NEAR - 0x10000, NEAR - 0x20000, &malloc_hook, thunk, &to));
	memcpy(&d, thunk + CODE + 2, 4);
	assert_true(NEAR - 0x10000 + CODE + 7 + (uint64_t)(int64_t)d == NEAR + 7 + 0x100);
	/* test %rdi,%rdi; je +0x40; push: a short branch becomes a long one */
	assert_true(plan_of(BYTES(0x48, 0x85, 0xff, 0x74, 0x40, 0x53, 0x53), 0x100));
	assert_true(hook_thunk(&plan, NEAR + 0x10000, NEAR + 0x20000, &malloc_hook, thunk, &to));
	assert_int_equal(thunk[CODE + 3], 0x0f);
	assert_int_equal(thunk[CODE + 4], 0x84);
	memcpy(&d, thunk + CODE + 5, 4);
	assert_true(NEAR + 0x10000 + CODE + 9 + (uint64_t)(int64_t)d == NEAR + 5 + 0x40);
	/* jmp rel32 */
	assert_true(plan_of(BYTES(0xe9, 0x00, 0x10, 0x00, 0x00, 0x90), 5));
	assert_true(hook_thunk(&plan, NEAR + 0x10000, NEAR + 0x20000, &malloc_hook, thunk, &to));
	assert_true(hook_is_jump(thunk + CODE, NEAR + 0x10000 + CODE, &to));
	assert_true(to == NEAR + 0x1005);
	/* out of reach */
	assert_false(hook_thunk(&plan, NEAR + (3ull << 30), NEAR + (3ull << 30), &malloc_hook, thunk, &to));
	uint8_t jump[HOOK_PATCH];
	assert_false(hook_jump(NEAR, NEAR + (3ull << 30), jump));
	assert_true(hook_jump(NEAR, NEAR - (1ull << 30), jump));
	assert_true(hook_is_jump(jump, NEAR, &to));
	assert_true(to == NEAR - (1ull << 30));
}

static void test_refusals(void **unused)
{
	(void)unused;
	/* push; call: its return address would lie in the thunk */
	assert_false(plan_of(BYTES(0x53, 0xe8, 0, 0, 0, 0, 0x5b, 0xc3), 8));
	assert_non_null(strstr(reason, "call"));
	assert_false(plan_of(BYTES(0xff, 0x15, 0, 0, 0, 0, 0xc3), 7));
	/* ret, then the next function */
	assert_false(plan_of(BYTES(0x31, 0xc0, 0xc3, 0x53, 0x48, 0x89, 0xfb), 3));
	assert_string_equal(reason, "shorter than the patch");
	/* ret, then padding */
	assert_true(plan_of(BYTES(0x31, 0xc0, 0xc3, 0x66, 0x90, 0xcc), 3));
	assert_int_equal(plan.displaced, HOOK_PATCH);
	assert_true(plan_of(BYTES(0xc3, 0x0f, 0x1f, 0x80, 0, 0, 0, 0), 1));
	assert_false(plan_of(BYTES(0xc3, 0xcc, 0xcc), 1));	/* and then the file ends */
	/* push; push; mov; jmp back to the second */
	assert_false(plan_of(BYTES(0x41, 0x57, 0x41, 0x56, 0x89, 0xfb, 0xeb, 0xfa), 8));
	assert_non_null(strstr(reason, "branches back"));
	/* the same to the entry itself is fine: it comes through the hook again */
	assert_true(plan_of(BYTES(0x41, 0x57, 0x41, 0x56, 0x89, 0xfb, 0xeb, 0xf8), 8));
	assert_false(plan_of(BYTES(0x0f, 0x05, 0x90, 0x90, 0x90, 0xc3), 6));	/* syscall */
	assert_false(plan_of(BYTES(0xcc, 0x90, 0x90, 0x90, 0x90, 0xc3), 6));	/* somebody's breakpoint */
	assert_false(plan_of(BYTES(0xe2, 0x10, 0x90, 0x90, 0x90, 0xc3), 6));	/* loop */
	assert_false(plan_of(BYTES(0x06, 0x90, 0x90, 0x90, 0x90, 0xc3), 6));	/* no instruction */
	assert_false(plan_of(BYTES(0x48, 0x8b), 0));	/* cut */
}

static void test_scan(void **unused)
{
	(void)unused;
	uint8_t text[64] = { 0 };
	struct hook_window w[2] = { { .lo = 0x1000, .hi = 0x1006 }, { .lo = 0x2000, .hi = 0x2005 } };
	int32_t d = 0x2003 - (0x4000 + 12);

	text[6] = 0x0f;		/* jne at 0x4006 */
	text[7] = 0x85;
	memcpy(text + 8, &d, 4);
	hook_scan_text(text, sizeof(text), 0x4000, w, 2);
	assert_false(w[0].hit);
	assert_true(w[1].hit);
	w[1].hit = false;
	d -= 3;			/* to the entry */
	memcpy(text + 8, &d, 4);
	hook_scan_text(text, sizeof(text), 0x4000, w, 2);
	assert_false(w[1].hit);
	d = 0x1005 - (0x4000 + 64);
	text[59] = 0xe8;	/* the last five bytes */
	memcpy(text + 60, &d, 4);
	hook_scan_text(text, sizeof(text), 0x4000, w, 2);
	assert_true(w[0].hit);
	assert_int_equal(w[0].nhits, 1);
	assert_true(w[0].hits[0] == 0x4000 + 59);
	hook_scan_text(text, 4, 0x4000, w, 2);
	assert_true(hook_has_indirect_call(BYTES(0x53, 0xff, 0x15, 0, 0, 0, 0)));
	assert_true(hook_has_indirect_call(BYTES(0xff, 0xe0)));
	assert_false(hook_has_indirect_call(BYTES(0xe8, 0, 0, 0, 0, 0xeb, 0x10, 0xc3)));
}

/* shr $9, %eax has a byte that looks like the opcode of a call. */
static void test_seems(void **unused)
{
	(void)unused;
	bool read;

	assert_false(hook_is_branch_at(BYTES(0x53, 0xc1, 0xe8, 0x09, 0x25, 0xf8, 0xff, 0x1f, 0, 0xc3), 2, &read));
	assert_true(read);
	assert_true(hook_is_branch_at(BYTES(0x53, 0xe8, 0x09, 0x25, 0xf8, 0xff, 0xc3), 1, &read));
	assert_true(hook_is_branch_at(BYTES(0x53, 0xf2, 0x0f, 0x85, 0x09, 0x25, 0xf8, 0xff, 0xc3), 2, &read));
	assert_false(hook_is_branch_at(BYTES(0x06, 0xe8, 0x09, 0x25, 0xf8, 0xff, 0xc3), 1, &read));
	assert_false(read);
}

/* What a function leads to: straight away, anywhere, through a stub. */
static void test_leads(void **unused)
{
	(void)unused;
	uint64_t to, out[4];

	/* test; je (not taken); call: straight to it */
	assert_true(hook_straight(BYTES(0x48, 0x85, 0xff, 0x74, 0x06, 0xe8, 0x00, 0x10, 0, 0, 0xc3, 0xc3), NEAR, &to));
	assert_true(to == NEAR + 10 + 0x1000);
	/* a return comes first */
	assert_false(hook_straight(BYTES(0x48, 0x85, 0xff, 0x74, 0x01, 0xc3, 0xe8, 0x00, 0x10, 0, 0), NEAR, &to));
	/* a jump within is followed, one through a register can't be */
	assert_true(hook_straight(BYTES(0xeb, 0x01, 0xc3, 0xe9, 0x00, 0x10, 0, 0), NEAR, &to));
	assert_true(to == NEAR + 8 + 0x1000);
	assert_false(hook_straight(BYTES(0xff, 0xe0), NEAR, &to));
	assert_false(hook_straight(BYTES(0xeb, 0xfe), NEAR, &to));
	assert_int_equal(hook_leaves_for(BYTES(0x74, 0x05, 0xe8, 0x00, 0x10, 0, 0, 0xeb, 0x20), NEAR, out, 4), 2);
	assert_true(out[0] == NEAR + 7 + 0x1000 && out[1] == NEAR + 9 + 0x20);
	assert_true(hook_is_stub(BYTES(0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0x00, 0x10, 0, 0), NEAR, &to));
	assert_true(to == NEAR + 10 + 0x1000);
	assert_false(hook_is_stub(BYTES(0xe9, 0x00, 0x10, 0, 0), NEAR, &to));
}

/* ---- run them ---- */

int f_branch(int x);
int f_data(int x);
int f_jump(int x);
__asm__(".text\n"
	"f_branch:\n\ttest %edi, %edi\n\tje 1f\n\tjs 2f\n\tlea 1(%rdi), %eax\n\tret\n"
	"1:\tmov $77, %eax\n\tret\n2:\tmov $-1, %eax\n\tret\n"
	".balign 16\nf_data:\n\tmov 3f(%rip), %eax\n\tadd %edi, %eax\n\tret\n3:\t.long 1000\n"
	".balign 16\nf_jump:\n\tjmp 4f\n\t.balign 64\n4:\tmov %edi, %eax\n\tneg %eax\n\tret\n");

static void test_run(void **unused)
{
	(void)unused;
	static int (*const fns[])(int) = { f_branch, f_data, f_jump };
	static const int in[] = { 0, 5, -5 };
	uint8_t *at = mmap((void *)(((uint64_t)f_branch & ~0xfffull) - (16 << 20)), 4096, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t to;

	for (size_t i = 0; i < 3; i++) {
		assert_true(hook_plan((const void *)fns[i], HOOK_LOOK, i == 2 ? 0x50 : 0, (uint64_t)fns[i], &plan, reason));
		assert_true(hook_thunk(&plan, (uint64_t)at + i * HOOK_THUNK_MAX, (uint64_t)at, &malloc_hook,
				       at + i * HOOK_THUNK_MAX, &to));
	}
	assert_int_equal(mprotect(at, 4096, PROT_READ | PROT_EXEC), 0);
	for (size_t i = 0; i < 3; i++) {
		int (*moved)(int) = (int (*)(int))(at + i * HOOK_THUNK_MAX + CODE);
		for (size_t k = 0; k < 3; k++)
			assert_int_equal(moved(in[k]), fns[i](in[k]));
	}
	munmap(at, 4096);
}

/* Whatever bytes: no crash, and what is accepted has a thunk or is out of reach. */
static void test_random(void **unused)
{
	(void)unused;
	uint32_t x = 12345;
	unsigned accepted = 0;

	for (unsigned round = 0; round < 100000; round++) {
		uint8_t code[40];
		uint64_t to;
		size_t len = sizeof(code) - round % 40;

		for (size_t i = 0; i < sizeof(code); i++) {
			x = x * 1664525u + 1013904223u;
			code[i] = (uint8_t)(x >> 24);
		}
		if (!plan_of(code, len, round % 3 ? round % 60 : 0))
			continue;
		accepted++;
		assert_true(plan.displaced >= HOOK_PATCH && plan.displaced <= HOOK_WINDOW);
		hook_thunk(&plan, NEAR + 0x10000, NEAR + 0x20000, &malloc_hook, thunk, &to);
	}
	assert_true(accepted > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_prologue), cmocka_unit_test(test_relative), cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_scan), cmocka_unit_test(test_seems), cmocka_unit_test(test_leads),
		cmocka_unit_test(test_run), cmocka_unit_test(test_random),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
