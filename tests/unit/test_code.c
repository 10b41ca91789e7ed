/*
 * Frames of code without CFI: functions written here, and all of the C library's, whose CFI must say
 * the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <gnu/libc-version.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "elf/file.h"
#include "elf/modules.h"
#include "unwind/code.h"
#include "unwind/derive.h"
#include "unwind/rules.h"

#if defined(__x86_64__)
/* Each label at_* is a return address. A function made by hand has no CFI. */
__asm__(".text\n"
	".p2align 4\n"
	".globl code_pushes\n.type code_pushes,@function\ncode_pushes:\n"
	"	push %rbp\n	push %rbx\n	push %r12\n	sub $0x20,%rsp\n"
	"	call code_leaf\n"
	".globl at_pushes\nat_pushes:\n"
	"	test %eax,%eax\n	jne 1f\n	xor %ebx,%ebx\n"
	"1:	add $0x20,%rsp\n	pop %r12\n	pop %rbx\n	pop %rbp\n	ret\n"
	".size code_pushes,.-code_pushes\n"

	".p2align 4\n"
	".globl code_frame\n.type code_frame,@function\ncode_frame:\n"
	"	push %rbp\n	mov %rsp,%rbp\n	push %rbx\n	sub %rax,%rsp\n	and $-16,%rsp\n"
	"	call code_leaf\n"
	".globl at_frame\nat_frame:\n"
	"	mov -8(%rbp),%rbx\n	leave\n	ret\n"
	".size code_frame,.-code_frame\n"

	".p2align 4\n"
	".globl code_no_return\n.type code_no_return,@function\ncode_no_return:\n"
	"	push %rbx\n	mov %rdi,%rbx\n	sub $16,%rsp\n"
	"	call code_leaf\n"
	".globl at_no_return\nat_no_return:\n"
	"	mov %ebx,%edi\n	call exit\n"
	".globl at_exit\nat_exit:\n"
	".size code_no_return,.-code_no_return\n"

	/* `dies` ends with the call; what follows without padding is another function */
	".p2align 4\n"
	"	nopl 0(%rax)\n	push %rcx\n	push %rcx\n	push %rcx\n	sub $8, %rsp\n	call abort\n"
	".globl at_dies\nat_dies:\n"
	"	push %rbx\n	mov %edi,%ebx\n	pop %rbx\n	ret\n"

	".p2align 4\n"
	".globl code_switch\n.type code_switch,@function\ncode_switch:\n"
	"	push %rcx\n	call code_leaf\n"
	".globl at_switch\nat_switch:\n"
	"	jmp *%rax\n	pop %rcx\n	ret\n"

	".p2align 4\n"
	".globl code_leaf\n.type code_leaf,@function\ncode_leaf:\n"
	"	ret\n"
	".size code_leaf,.-code_leaf\n");
#else
#error "code for this CPU is missing"
#endif

extern const char at_pushes[], at_frame[], at_no_return[], at_exit[], at_dies[], at_switch[];

static struct elf_file *open_file(const char *path)
{
	struct elf_file *file = NULL;

	assert_null(elf_file_open(open(path, O_RDONLY | O_CLOEXEC), path, &file));
	return file;
}

static uint64_t own_bias(struct elf_file *file)
{
	return (uint64_t)(uintptr_t)at_pushes - elf_file_find_symbol(file, "at_pushes");
}

/* The rule at a return address of this program. */
static bool rule_at(const char *addr, struct rule *r)
{
	struct elf_file *file = open_file("/proc/self/exe");

	*r = (struct rule){ .kind = RULE_FP };
	bool ret = code_rule(file, (uint64_t)(uintptr_t)addr - own_bias(file) - 1, r);
	elf_file_unref(file);
	return ret;
}

static void test_pushes(void **state)
{
	struct rule r;

	(void)state;
	assert_true(rule_at(at_pushes, &r));
	assert_int_equal(r.kind, RULE_CFA);
	assert_int_equal(r.base, REGS_SP);
	assert_int_equal(r.offset, 0x20 + 4 * 8);
	/* rbp, rbx, r12 and the return address */
	assert_int_equal(r.mask, 1 << 0 | 1 << 1 | 1 << 2 | 1 << REGS_RA);
	assert_int_equal(r.saved[0], -2);
	assert_int_equal(r.saved[1], -3);
	assert_int_equal(r.saved[2], -4);
	assert_int_equal(r.saved[REGS_RA], -1);
}

static void test_frame_pointer(void **state)
{
	struct rule r;

	(void)state;
	assert_true(rule_at(at_frame, &r));
	assert_int_equal(r.kind, RULE_CFA);
	assert_int_equal(r.base, regs_cpu.fp);
	assert_int_equal(r.offset, 16);
	assert_int_equal(r.saved[0], -2);
	assert_int_equal(r.saved[1], -3);
}

/* From the start, then: also where the call itself is the end. */
static void test_no_return(void **state)
{
	const char *const at[] = { at_no_return, at_exit };
	struct rule r;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		assert_true(rule_at(at[i], &r));
		assert_int_equal(r.kind, RULE_CFA);
		assert_int_equal(r.base, REGS_SP);
		assert_int_equal(r.offset, 32);
		assert_int_equal(r.saved[1], -2);
	}
}

static void test_not_told(void **state)
{
	struct rule r;

	(void)state;
	assert_false(rule_at(at_dies, &r));
	assert_int_equal(r.kind, RULE_FP);
	assert_false(rule_at(at_switch, &r));
}

/* ---- against CFI ---- */

#define SAMPLE 16	/* every how manyth call is compared */

struct tally {
	size_t n, agreed, silent, wrong;
};

static void compare(const struct module *mod, uint64_t ra, struct tally *t)
{
	struct rule cfi = { 0 }, code = { 0 };

	derive_rule(mod, ra - 1, &cfi);
	if (cfi.kind != RULE_CFA)
		return;
	t->n++;
	/* a different base can be right as well; a function that ends in exit is the root to us */
	if (!code_rule(mod->file, ra - 1, &code) || code.kind == RULE_ROOT || code.base != cfi.base)
		t->silent++;
	else if (code.offset == cfi.offset)
		t->agreed++;
	else
		t->wrong++;
}

/* Bytes e8 whose target is the start of a function are calls. */
static void test_libc(void **state)
{
	Dl_info info;
	struct link_map *map;
	struct tally t = { 0 };
	size_t calls = 0;

	(void)state;
	assert_true(dladdr1((void *)(uintptr_t)gnu_get_libc_version, &info, (void **)&map, RTLD_DL_LINKMAP));
	struct elf_file *file = open_file(info.dli_fname);
	struct module mod = { .file = file };
	uint64_t vaddr = elf_file_find_symbol(file, "qsort"), exit_addr = elf_file_find_symbol(file, "exit");
	uint64_t lo = (vaddr < exit_addr ? vaddr : exit_addr) & ~0xfffull;
	size_t len = 768u << 10;
	uint8_t *text = malloc(len);
	len = elf_file_read(file, lo, text, len);
	for (size_t i = 0; i + 5 < len; i++) {
		int32_t rel;
		memcpy(&rel, text + i + 1, 4);
		uint64_t to = lo + i + 5 + (uint64_t)(int64_t)rel, start, size;
		if (text[i] != 0xe8 || to % 16 || to < lo || to >= lo + len || calls++ % SAMPLE ||
		    !elf_file_symbol_at(file, to, &start, &size) || start != to)
			continue;
		compare(&mod, lo + i + 5, &t);
	}
	free(text);
	elf_file_unref(file);
	printf("# %s: %zu calls, %zu agree with CFI, %zu not told, %zu wrong\n", info.dli_fname, t.n, t.agreed,
	       t.silent, t.wrong);
	assert_true(t.n >= 50);
	assert_true(t.agreed * 10 >= t.n * 8);
	assert_true(t.wrong * 200 <= t.n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pushes),
		cmocka_unit_test(test_frame_pointer),
		cmocka_unit_test(test_no_return),
		cmocka_unit_test(test_not_told),
		cmocka_unit_test(test_libc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
