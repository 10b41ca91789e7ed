/*
 * symbol/names.h: names of this program's own code, with lines and inlined functions, asked for
 * from several threads; demangling, also of what was made to hurt.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "elf/file.h"
#include "elf/modules.h"
#include "symbol/names.h"

const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libelf.so\n";	/* see test_elf.c */
}

static void *volatile noted;

__attribute__((noinline)) static void note_caller(void)
{
	noted = __builtin_extract_return_addr(__builtin_return_address(0));
}

static int inner_line, outer_line;

__attribute__((always_inline)) static inline void fixture_inlined(volatile int *x)
{
	*x += 1;
	inner_line = __LINE__ + 1;
	note_caller();
	*x += 2;
}

__attribute__((noinline, used)) static int fixture_outer(volatile int *x)
{
	outer_line = __LINE__ + 1;
	fixture_inlined(x);
	return *x;
}

static int open_exe(void *ctx, const struct mapping *map)
{
	(void)ctx;
	if (map->inode != 1)
		return -1;
	return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
}

/* Our own mappings, each with inode 1, so that they are one file; JIT code in between. */
static struct modules *own_modules(void)
{
	struct modules *mods = modules_create();
	struct mapping maps[64];
	size_t n = 0;
	char line[4096], own[4096];
	ssize_t len = readlink("/proc/self/exe", own, sizeof(own) - 1);
	FILE *file = fopen("/proc/self/maps", "r");

	assert_true(len > 0);
	own[len] = 0;
	assert_non_null(file);
	while (n < 60 && fgets(line, sizeof(line), file)) {
		unsigned long start, end, offset;
		char prot[8];
		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "%lx-%lx %7s %lx", &start, &end, prot, &offset) != 4 ||
		    !strstr(line, own))
			continue;
		maps[n++] = (struct mapping){
			.start = start, .end = end, .offset = offset, .dev = 1, .inode = 1,
			.prot = prot[2] == 'x' ? PROT_READ | PROT_EXEC : PROT_READ,
			.path = "/x/own",
		};
	}
	fclose(file);
	maps[n] = (struct mapping){
		.start = UINT64_MAX - 0x2000, .end = UINT64_MAX - 0x1000, .prot = PROT_EXEC,
		.path = "",
	};
	assert_true(n > 0);
	assert_true(modules_update(mods, maps, n + 1, open_exe, NULL));
	return mods;
}

static const struct module *own_module(const struct modules *mods, uint64_t pc)
{
	const struct module *mod = modules_find(mods, pc);

	assert_non_null(mod);
	assert_non_null(mod->file);
	return mod;
}

/* names_get until the worker has it. */
static const struct name *get(struct names *names, uint32_t module, uint64_t vaddr, bool exact)
{
	for (int i = 0; i < 20000; i++) {
		const struct name *name = names_get(names, module, vaddr, exact);
		if (name)
			return name;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	fail_msg("no answer");
	return NULL;
}

static void test_own(void **state)
{
	(void)state;
	struct modules *mods = own_modules();
	struct names *names = names_create(mods);
	uint64_t pc = (uint64_t)(uintptr_t)note_caller;
	const struct module *mod = own_module(mods, pc);
	uint64_t vaddr = pc - mod->bias;

	assert_int_equal(names_generation(names), 0);
	const struct name *name = get(names, mod->id, vaddr, true);
	assert_string_equal(name->funcs[name->nfuncs - 1].function, "note_caller");
	assert_string_equal(name->funcs[0].linkage, "note_caller");
	assert_string_equal(name->module_name, "own");
	assert_int_equal(name->module, mod->id);
	assert_false(name->funcs[0].unknown);
	assert_true(names_generation(names) >= 1);
	assert_ptr_equal(names_get(names, mod->id, vaddr, true), name);
	assert_ptr_equal(names_wait(names, mod->id, vaddr, true), name);
	assert_int_equal(names_pending(names), 0);

	/* as a return address the first byte belongs to what comes before */
	const struct name *before = names_wait(names, mod->id, vaddr, false);
	assert_string_not_equal(before->funcs[before->nfuncs - 1].function, "note_caller");
	const struct name *inside = names_wait(names, mod->id, vaddr + 1, false);
	assert_string_equal(inside->funcs[0].function, "note_caller");
	names_destroy(names);
	modules_destroy(mods);
}

static void test_inlined(void **state)
{
	(void)state;
	struct modules *mods = own_modules();
	struct names *names = names_create(mods);
	volatile int x = 0;

	fixture_outer(&x);
	uint64_t pc = (uint64_t)(uintptr_t)noted;
	const struct module *mod = own_module(mods, pc);
	const struct name *name = names_wait(names, mod->id, pc - mod->bias, false);
	const struct name_func *last = &name->funcs[name->nfuncs - 1];
	assert_string_equal(last->function, "fixture_outer");
	assert_false(last->inlined);
	if (elf_file_dwarf(mod->file)) {
		assert_int_equal(name->nfuncs, 2);
		assert_string_equal(name->funcs[0].function, "fixture_inlined");
		assert_true(name->funcs[0].inlined);
		assert_int_equal(name->funcs[0].line, inner_line);
		assert_int_equal(last->line, outer_line);
		assert_non_null(strstr(last->file, "test_names.c"));
		/* one copy of each string */
		assert_ptr_equal(last->file, name->funcs[0].file);
	}
	names_destroy(names);
	modules_destroy(mods);
}

static void test_unknown(void **state)
{
	(void)state;
	struct modules *mods = own_modules();
	struct names *names = names_create(mods);
	const struct module *mod = own_module(mods, (uint64_t)(uintptr_t)note_caller);

	/* module 0 and ids never given out: the address, at once for 0 */
	const struct name *name = names_get(names, 0, 0x1234, false);
	assert_non_null(name);
	assert_string_equal(name->funcs[0].function, "0x1234");
	assert_string_equal(name->module_name, "");
	assert_true(name->funcs[0].unknown);
	assert_int_equal(name->nfuncs, 1);
	name = names_wait(names, 99, 0x77, false);
	assert_string_equal(name->funcs[0].function, "0x77");
	name = get(names, mod->id, 1, false);
	assert_string_equal(name->funcs[0].function, "own+0x1");
	assert_true(name->funcs[0].unknown);
	assert_null(name->funcs[0].file);

	const struct module *anon = modules_find(mods, UINT64_MAX - 0x2000);
	name = get(names, anon->id, 0xabc, false);
	assert_string_equal(name->funcs[0].function, "[anon]+0xabc");
	assert_string_equal(name->module_name, "[anon]");
	names_destroy(names);
	modules_destroy(mods);
}

static void test_put(void **state)
{
	(void)state;
	struct names *names = names_create(NULL);
	char text[] = "evil\x1b[2Jname";
	const struct name_func funcs[] = {
		{ .function = text, .file = "a.c", .line = 3, .inlined = true },
		{ .function = "outer", .linkage = "_outer" },
	};

	const struct name *name = names_put(names, 4, 0x10, false, "lib\nx.so", funcs, 2);
	memset(text, 'z', sizeof(text) - 1);
	assert_ptr_equal(names_get(names, 4, 0x10, false), name);
	assert_string_equal(name->funcs[0].function, "evil?[2Jname");
	assert_string_equal(name->funcs[0].linkage, "evil?[2Jname");
	assert_string_equal(name->funcs[1].linkage, "_outer");
	assert_string_equal(name->module_name, "lib?x.so");
	assert_int_equal(name->funcs[0].line, 3);
	assert_null(name->funcs[1].file);
	assert_true(name->funcs[0].inlined);
	/* records are immutable: the first stays */
	assert_ptr_equal(names_put(names, 4, 0x10, false, "other", funcs, 1), name);
	name = names_put(names, 4, 0x20, false, "m", NULL, 0);
	assert_string_equal(name->funcs[0].function, "0x20");
	/* never put: it will never be known */
	assert_string_equal(names_get(names, 4, 0x30, false)->funcs[0].function, "0x30");
	/* many: the table grows under its records */
	for (uint64_t i = 0; i < 5000; i++)
		names_put(names, 5, i, i & 1, "m", &funcs[1], 1);
	assert_string_equal(names_get(names, 4, 0x10, false)->funcs[1].linkage, "_outer");
	assert_string_equal(names_get(names, 5, 4999, true)->funcs[0].function, "outer");
	assert_int_equal(names_pending(names), 0);
	names_destroy(names);
}

struct crowd {
	struct names *names;
	uint32_t module;
	uint64_t vaddr;
};

static void *ask(void *arg)
{
	struct crowd *crowd = arg;

	for (uint64_t i = 0; i < 300; i++) {
		names_get(crowd->names, crowd->module, crowd->vaddr + i * 7, true);
		if (i % 10 == 0 &&
		    !names_wait(crowd->names, crowd->module, crowd->vaddr + i * 7, true))
			return "no answer";
	}
	return NULL;
}

static void test_threads(void **state)
{
	(void)state;
	struct modules *mods = own_modules();
	struct names *names = names_create(mods);
	uint64_t pc = (uint64_t)(uintptr_t)note_caller;
	const struct module *mod = own_module(mods, pc);
	struct crowd crowd = { .names = names, .module = mod->id, .vaddr = pc - mod->bias };
	pthread_t threads[3];
	void *complaint;

	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask, &crowd), 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		pthread_join(threads[i], &complaint);
		assert_null(complaint);
	}
	for (uint64_t i = 0; i < 300; i++)
		get(names, mod->id, crowd.vaddr + i * 7, true);
	assert_int_equal(names_pending(names), 0);
	assert_int_equal(names_generation(names), 300);
	/* leaving with questions open */
	for (uint64_t i = 0; i < 1000; i++)
		names_get(names, mod->id, i * 3, true);
	names_destroy(names);
	modules_destroy(mods);
}

static uint8_t *damaged;	/* copy of this program, for open_damaged */
static size_t damaged_len;

static int open_damaged(void *ctx, const struct mapping *map)
{
	(void)ctx;
	(void)map;
	int fd = memfd_create("damaged", MFD_CLOEXEC);
	assert_int_equal(write(fd, damaged, damaged_len), damaged_len);
	return fd;
}

/* Bytes changed anywhere behind the headers, mostly in debug info: any name will do. */
static void test_damaged(void **state)
{
	(void)state;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint32_t seed = 4711;

	damaged_len = (size_t)lseek(fd, 0, SEEK_END);
	damaged = xmalloc(damaged_len);
	for (int round = 0; round < 40; round++) {
		assert_int_equal(pread(fd, damaged, damaged_len, 0), damaged_len);
		for (int k = 0; k < 20; k++) {
			seed = seed * 1664525 + 1013904223;
			size_t at = 4096 + seed % (damaged_len - 4096);
			seed = seed * 1664525 + 1013904223;
			damaged[at] = (uint8_t)(seed >> 16);
		}
		struct modules *mods = modules_create();
		const struct mapping map = {
			.start = 0x10000000, .end = 0x20000000, .prot = PROT_EXEC, .path = "/x",
		};
		modules_update(mods, &map, 1, open_damaged, NULL);
		struct names *names = names_create(mods);
		for (uint64_t vaddr = 0x1000; vaddr < 0x9000; vaddr += 301) {
			const struct name *name = names_wait(names, 1, vaddr, true);
			assert_true(name->nfuncs >= 1);
			for (uint32_t i = 0; i < name->nfuncs; i++)
				assert_non_null(name->funcs[i].function);
		}
		names_destroy(names);
		modules_destroy(mods);
	}
	free(damaged);
	close(fd);
}

static void check_demangle(const char *symbol, const char *want)
{
	CLEANUP_FREE char *text = demangle(symbol);

	assert_string_equal(text, want);
}

/* Names of hundreds of thousands of characters, of which the arguments are most: what they are called isn't cut off. */
static void test_folded(void **state)
{
#define HUGE_P "1PIS0_IS0_IS0_IS0_IS0_IS0_IS0_IS0_IS0_IS0_IS0_IS0_IS0_IilES1_ES2_ES3_ES4_ES5_ES6_ES7_ES8_ES9_ESA_ESB_ESC_"
	static const struct { const char *symbol, *before, *after; } names[] = {
		{ "_ZN1QI" HUGE_P "ESD_EE4growEiPSE_", "Q<#", ">::grow(int, P<#" },
		{ "_ZNK1QI" HUGE_P "ESD_EEltIiEEbT_", "bool Q<#", ">::operator< <#" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		CLEANUP_FREE char *text = demangle(names[i].symbol);
		assert_int_equal(strncmp(text, names[i].before, strlen(names[i].before)), 0);
		assert_non_null(strstr(text, names[i].after));
		assert_true(strlen(text) < 100);
	}
	/* of two that differ in their arguments alone the names do, too */
	CLEANUP_FREE char *a = demangle("_ZN1QI" HUGE_P "ESD_EE4growEv"), *b = demangle("_ZN1QI1PIii" HUGE_P "ESD_EE4growEv");
	assert_string_not_equal(a, b);
}

static void test_demangle(void **state)
{
	(void)state;
	check_demangle("malloc", "malloc");
	check_demangle("", "");
	check_demangle("_ZN3foo3barEi", "foo::bar(int)");
	check_demangle("_ZnwmRKSt9nothrow_t", "operator new(unsigned long, std::nothrow_t const&)");
	check_demangle("_ZN3foo3barEi.cold", "foo::bar(int) [clone .cold]");
	check_demangle("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE",
		       "core::fmt::Formatter::pad");
	check_demangle("_RNvCs1234_7mycrate3foo", "mycrate::foo");
	check_demangle("_Znot_mangled", "_Znot_mangled");
	check_demangle("_Z", "_Z");
	check_demangle("i", "i");	/* a type's encoding, were it asked for */
	check_demangle("a\tb\x80", "a?b?");
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void check_bounded(const char *symbol)
{
	double start = seconds();
	CLEANUP_FREE char *text = demangle(symbol);

	assert_true(strlen(text) <= 65536);
	assert_true(seconds() - start < 5);
}

/* Symbols that stand for more text than there is memory, or nest without end. */
static void test_demangle_hostile(void **state)
{
	(void)state;
	CLEANUP_FREE char *s = xcalloc(200000, 1);

	/* each argument holds the one before twice: 2^k */
	size_t n = (size_t)sprintf(s, "_Z1f1AIiiE");
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	for (int i = 0; i < 35; i++)
		n += (size_t)sprintf(s + n, "S_IS%c_S%c_E", digits[i], digits[i]);
	check_bounded(s);
	CLEANUP_FREE char *cut = demangle(s);
	assert_int_equal(strlen(cut), 65536);
	n = (size_t)sprintf(s, "_Z1f1AIiiE");
	for (int i = 0; i < 30; i++)
		n += (size_t)sprintf(s + n, "1AIS%c_S%c_E", digits[i + 1], digits[i + 1]);
	check_bounded(s);
	n = (size_t)sprintf(s, "_Z1f");
	memset(s + n, 'P', 900);
	strcpy(s + n + 900, "i");
	check_bounded(s);
	memset(s + n, 'P', 60000);
	strcpy(s + n + 60000, "i");
	check_bounded(s);
	memset(s + n, 'P', 150000);
	s[n + 150000] = 0;
	check_bounded(s);
	n = (size_t)sprintf(s, "_RNvC1a1fI");
	memset(s + n, 'T', 60000);
	s[n + 60000] = 0;
	check_bounded(s);
	/* Rust v0 back-references: a pair of the pair before */
	n = (size_t)sprintf(s, "_RINvC1a1fTuuE");
	for (int i = 0; i < 30; i++)
		n += (size_t)sprintf(s + n, "TB%d_B%d_E", i ? 8 : 7, i ? 8 : 7);
	strcpy(s + n, "E");
	check_bounded(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_inlined),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_put),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_demangle),
		cmocka_unit_test(test_folded),
		cmocka_unit_test(test_demangle_hostile),
	};

	return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
