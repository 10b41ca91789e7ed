/*
 * elf/modules.h: mappings in, modules out. The mappings are made up; the files behind them are
 * this program, libc and memory files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "elf/file.h"
#include "elf/modules.h"

#define RX (PROT_READ | PROT_EXEC)
#define RW (PROT_READ | PROT_WRITE)

static int opened;		/* calls of open_fn */
static int fixed_fd = -1;	/* what it returns for "/fixed" */

static int open_fn(void *ctx, const struct mapping *map)
{
	(void)ctx;
	opened++;
	if (!strcmp(map->path, "[vdso]")) {
		int fd = memfd_create("vdso", MFD_CLOEXEC);
		ssize_t n = write(fd, (void *)(uintptr_t)map->start, map->end - map->start);
		assert_int_equal(n, map->end - map->start);
		return fd;
	}
	if (!strcmp(map->path, "/fixed"))
		return fcntl(fixed_fd, F_DUPFD_CLOEXEC, 0);
	return open(map->path, O_RDONLY | O_CLOEXEC);
}

static bool update(struct modules *mods, const struct mapping *maps, size_t n)
{
	return modules_update(mods, maps, n, open_fn, NULL);
}

/* File offset and vaddr of the executable segment of a file. */
static void code_segment(const char *path, uint64_t *ret_offset, uint64_t *ret_vaddr)
{
	Elf64_Ehdr eh;
	Elf64_Phdr ph;
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	assert_int_equal(fread(&eh, sizeof(eh), 1, file), 1);
	for (int i = 0; i < eh.e_phnum; i++) {
		fseek(file, (long)(eh.e_phoff + i * sizeof(ph)), SEEK_SET);
		assert_int_equal(fread(&ph, sizeof(ph), 1, file), 1);
		if (ph.p_type == PT_LOAD && ph.p_flags & PF_X) {
			*ret_offset = ph.p_offset & ~0xfffull;
			*ret_vaddr = ph.p_vaddr & ~0xfffull;
			fclose(file);
			return;
		}
	}
	fail();
}

static struct mapping file_map(const char *path, uint64_t start, uint64_t inode)
{
	uint64_t offset = 0, vaddr = 0;

	code_segment(path, &offset, &vaddr);
	return (struct mapping){
		.start = start + vaddr, .end = start + vaddr + 0x3000, .offset = offset,
		.dev = 7, .inode = inode, .prot = RX, .path = path,
	};
}

static const char *libc_path(void)
{
	struct link_map *map;
	void *libc = dlopen("libc.so.6", RTLD_NOW);

	if (!libc || dlinfo(libc, RTLD_DI_LINKMAP, &map))
		skip();
	return map->l_name;
}

static void test_basics(void **state)
{
	(void)state;
	struct modules *mods = modules_create();
	const uint64_t base = 0x555500000000, lib = 0x7f0000000000;
	struct mapping maps[] = {
		file_map("/proc/self/exe", base, 1),
		{ .start = base + 0x900000, .end = base + 0x910000, .prot = RW, .path = "[heap]" },
		file_map(libc_path(), lib, 2),
	};

	opened = 0;
	assert_true(update(mods, maps, 3));
	assert_int_equal(opened, 2);
	assert_int_equal(modules_count(mods), 2);
	const struct module *exe = modules_find(mods, maps[0].start);
	assert_non_null(exe);
	assert_int_equal(exe->id, 1);
	assert_int_equal(exe->bias, base);
	assert_string_equal(exe->name, "exe");
	assert_true(exe->is_main);
	assert_ptr_equal(modules_find(mods, maps[0].end - 1), exe);
	assert_null(modules_find(mods, maps[0].end));
	assert_null(modules_find(mods, maps[0].start - 1));
	assert_int_equal(modules_range_start(mods, maps[0].end - 1), maps[0].start);
	assert_int_equal(modules_range_start(mods, maps[0].end), 0);
	assert_null(modules_find(mods, maps[1].start));
	assert_null(modules_find(mods, UINT64_MAX));
	const struct module *libc = modules_find(mods, maps[2].start + 5);
	assert_non_null(libc);
	assert_string_equal(libc->name, "libc.so.6");
	assert_int_equal(libc->bias, lib);
	assert_false(libc->is_main);
	assert_non_null(libc->file);
	assert_ptr_equal(module_get(mods, 2), libc);
	assert_null(module_get(mods, 0));
	assert_null(module_get(mods, 3));

	/* the heap growing is no change; nothing is opened again */
	maps[1].end += 0x10000;
	assert_false(update(mods, maps, 3));
	assert_int_equal(opened, 2);

	/* text split by mprotect: the same module */
	struct mapping split[] = { maps[0], maps[2], maps[2] };
	split[1].end = split[2].start = maps[2].start + 0x1000;
	split[2].offset += 0x1000;
	assert_true(update(mods, split, 3));
	assert_int_equal(modules_count(mods), 2);
	assert_ptr_equal(modules_find(mods, maps[2].start + 0x2000), libc);

	/* unmapped, then back elsewhere: gone keeps its id, another bias is another module */
	assert_true(update(mods, maps, 2));
	assert_true(libc->gone);
	assert_false(exe->gone);
	assert_null(modules_find(mods, maps[2].start));
	assert_true(update(mods, maps, 3));
	assert_false(libc->gone);
	assert_ptr_equal(modules_find(mods, maps[2].start), libc);
	maps[2].start += 0x100000;
	maps[2].end += 0x100000;
	assert_true(update(mods, maps, 3));
	const struct module *moved = modules_find(mods, maps[2].start);
	assert_int_equal(moved->id, 3);
	assert_int_equal(moved->bias, lib + 0x100000);
	assert_ptr_equal(moved->file, libc->file);
	assert_true(libc->gone);
	modules_destroy(mods);
}

static void test_twice(void **state)
{
	(void)state;
	struct modules *mods = modules_create();
	struct mapping maps[] = {
		file_map(libc_path(), 0x7f0000000000, 2),
		file_map(libc_path(), 0x7f1000000000, 2),
	};

	assert_true(update(mods, maps, 2));
	const struct module *a = modules_find(mods, maps[0].start);
	const struct module *b = modules_find(mods, maps[1].start);
	assert_true(a && b && a != b);
	assert_ptr_equal(a->file, b->file);
	assert_int_equal(b->bias - a->bias, 0x1000000000);
	modules_destroy(mods);
}

/* Two processes, or one before and after an exec. */
static void test_two_tables(void **state)
{
	(void)state;
	struct modules *one = modules_create(), *two = modules_create();
	const struct mapping a = file_map(libc_path(), 0x7f0000000000, 2);
	const struct mapping b = file_map(libc_path(), 0x7f5500000000, 2);

	assert_true(update(one, &a, 1));
	assert_true(update(two, &b, 1));
	struct elf_file *file = modules_find(one, a.start)->file;
	assert_non_null(file);
	assert_ptr_equal(modules_find(two, b.start)->file, file);
	modules_destroy(one);
	assert_int_not_equal(elf_file_find_symbol(file, "malloc"), 0);
	modules_destroy(two);
}

/* One mapping more or less: nobody else's file is opened or looked at again. */
static void test_one_changed(void **state)
{
	(void)state;
	struct modules *mods = modules_create();
	char paths[50][32];
	struct mapping maps[51];

	for (size_t i = 0; i < 50; i++) {
		snprintf(paths[i], sizeof(paths[i]), "/proc/self/exe");
		maps[i] = file_map(paths[i], 0x555500000000 + (i << 32), 100 + i);
	}
	maps[50] = file_map(libc_path(), 0x7f0000000000, 2);
	opened = 0;
	assert_true(update(mods, maps, 50));
	assert_int_equal(opened, 50);
	struct elf_file *file = modules_find(mods, maps[7].start)->file;
	assert_true(update(mods, maps, 51));
	assert_int_equal(opened, 51);
	maps[50].end += 4096;
	assert_true(update(mods, maps, 51));
	assert_int_equal(opened, 51);
	assert_true(update(mods, maps, 50));
	assert_int_equal(opened, 51);
	assert_int_equal(modules_count(mods), 51);
	assert_ptr_equal(modules_find(mods, maps[7].start)->file, file);
	modules_destroy(mods);
}

static void test_no_file(void **state)
{
	(void)state;
	struct modules *mods = modules_create();
	struct mapping maps[] = {
		{ .start = 0x10000, .end = 0x20000, .prot = RX, .path = "" },
		{ .start = 0x30000, .end = 0x40000, .prot = RX | RW, .path = "[stack]" },
		{ .start = 0x50000, .end = 0x60000, .prot = RX, .path = "/dev/null", .inode = 5 },
		{ .start = 0x70000, .end = 0x80000, .prot = RX, .path = "/no/su\x1b[31mch",
		  .inode = 6 },
		{ .start = 0x90000, .end = 0xa0000, .prot = PROT_READ, .path = libc_path(),
		  .inode = 2 },
		{ .start = 0xb0000, .end = 0xc0000, .prot = RX, .path = "/etc/passwd", .inode = 9 },
	};

	opened = 0;
	assert_true(update(mods, maps, ARRAY_SIZE(maps)));
	assert_int_equal(opened, 2);	/* neither the device nor what is mapped as data */
	const struct module *anon = modules_find(mods, 0x10000);
	assert_string_equal(anon->path, "[anon]");
	assert_null(anon->file);
	assert_int_equal(anon->bias, 0);
	assert_ptr_equal(modules_find(mods, 0x30000), anon);
	assert_null(modules_find(mods, 0x50000)->file);
	assert_string_equal(modules_find(mods, 0x70000)->name, "su?[31mch");
	assert_null(modules_find(mods, 0x70000)->file);
	assert_null(modules_find(mods, 0x90000));
	assert_null(modules_find(mods, 0xb0000)->file);
	assert_false(anon->is_main);
	assert_false(update(mods, maps, ARRAY_SIZE(maps)));
	modules_destroy(mods);
}

static void test_vdso(void **state)
{
	(void)state;
	uint64_t addr = getauxval(AT_SYSINFO_EHDR);
	if (!addr)
		skip();
	struct modules *mods = modules_create();
	const struct mapping map = {
		.start = addr, .end = addr + 0x1000, .prot = RX, .path = "[vdso]",
	};
	const struct mapping none = { .start = 0x1000, .end = 0x2000, .prot = RX, .path = "" };

	assert_true(update(mods, &map, 1));
	const struct module *vdso = modules_find(mods, addr + 0x800);
	assert_non_null(vdso);
	assert_non_null(vdso->file);
	assert_string_equal(vdso->name, "[vdso]");
	assert_int_equal(vdso->bias, addr);
	assert_false(vdso->is_main);
	assert_true(update(mods, &none, 1));
	assert_true(vdso->gone);
	assert_true(update(mods, &map, 1));
	assert_ptr_equal(modules_find(mods, addr), vdso);
	modules_destroy(mods);
}

/* A file deleted, another one got its inode number and its path: two modules. */
static void test_replaced(void **state)
{
	(void)state;
	struct modules *mods = modules_create();
	struct mapping map = file_map(libc_path(), 0x7f0000000000, 2);
	const struct mapping none = { .start = 0x1000, .end = 0x2000, .prot = RX, .path = "" };

	map.path = "/fixed";
	fixed_fd = open(libc_path(), O_RDONLY | O_CLOEXEC);
	assert_true(update(mods, &map, 1));
	const struct module *first = modules_find(mods, map.start);
	assert_non_null(first->file);
	assert_true(update(mods, &none, 1));
	/* the same bytes and one more: nothing but the file's identity tells them apart */
	char buf[4096];
	off_t at = 0;
	int copy = memfd_create("copy", MFD_CLOEXEC);
	for (ssize_t len; (len = pread(fixed_fd, buf, sizeof(buf), at)) > 0; at += len)
		assert_int_equal(write(copy, buf, (size_t)len), len);
	assert_int_equal(write(copy, "", 1), 1);
	close(fixed_fd);
	fixed_fd = copy;
	assert_true(update(mods, &map, 1));
	const struct module *second = modules_find(mods, map.start);
	assert_true(second != first);
	assert_true(second->file != first->file);
	assert_true(first->gone);
	close(fixed_fd);
	modules_destroy(mods);
}

/* Lines that /proc would never hold. */
static void test_nonsense(void **state)
{
	(void)state;
	struct modules *mods = modules_create();
	const struct mapping maps[] = {
		{ .start = 0x5000, .end = 0x4000, .prot = RX, .path = "" },
		{ .start = 0x6000, .end = 0x8000, .prot = RX, .path = "" },
		{ .start = 0x7000, .end = 0x9000, .prot = RX, .path = "" },
		{ .start = 0x9000, .end = UINT64_MAX, .prot = RX, .path = libc_path(),
		  .offset = UINT64_MAX - 10 },
	};

	assert_true(update(mods, maps, ARRAY_SIZE(maps)));
	assert_non_null(modules_find(mods, 0x6000));
	assert_null(modules_find(mods, 0x5000));
	const struct module *odd = modules_find(mods, 0xa000);
	assert_non_null(odd);
	assert_null(odd->file);
	assert_true(update(mods, NULL, 0));
	assert_null(modules_find(mods, 0x6000));
	modules_destroy(mods);
}

static void *reader(void *arg)
{
	struct modules *mods = arg;
	size_t n;

	do {
		n = modules_count(mods);
		for (uint32_t i = 1; i <= n; i++) {
			const struct module *mod = module_get(mods, i);
			if (!mod || mod->id != i || strncmp(mod->path, "/lib", 4) ||
			    strcmp(mod->name, mod->path + 1))
				return "a module was seen half made";
		}
	} while (n < 600);
	return NULL;
}

static void test_readers(void **state)
{
	(void)state;
	struct modules *mods = modules_create();
	pthread_t thread;
	void *complaint;

	assert_int_equal(pthread_create(&thread, NULL, reader, mods), 0);
	for (uint64_t i = 1; i <= 600; i++) {
		char path[32];
		snprintf(path, sizeof(path), "/lib%lu", (unsigned long)i);
		const struct mapping map = {
			.start = i << 20, .end = (i << 20) + 4096, .prot = RX, .path = path,
			.inode = i,
		};
		assert_true(update(mods, &map, 1));
	}
	assert_int_equal(pthread_join(thread, &complaint), 0);
	if (complaint)
		fail_msg("%s", (char *)complaint);
	modules_destroy(mods);
}

/* What a forked child begins with. */
static void test_copy(void **state)
{
	(void)state;
	struct modules *mods = modules_create();
	struct mapping maps[] = {
		file_map("/proc/self/exe", 0x555500000000, 1),
		{ .start = 0x600000000000, .end = 0x600000001000, .prot = RX, .path = "" },
		file_map(libc_path(), 0x7f0000000000, 2),
	};

	update(mods, maps, 3);
	struct modules *copy = modules_copy(mods);
	modules_destroy(mods);
	assert_int_equal(modules_count(copy), 3);
	for (uint32_t i = 0; i < 3; i++) {
		const struct module *m = modules_find(copy, maps[i].start + 1);
		assert_non_null(m);
		assert_ptr_equal(m, module_get(copy, m->id));
		assert_int_equal(modules_range_start(copy, maps[i].start + 1), maps[i].start);
	}
	/* it isn't read again, and goes on by itself */
	opened = 0;
	assert_false(update(copy, maps, 3));
	maps[2].end += 0x1000;
	assert_true(update(copy, maps, 3));
	assert_int_equal(opened, 0);
	assert_int_equal(modules_count(copy), 3);
	modules_destroy(copy);
}

/* Two processes' files in one table: once each, wherever they lie. */
static void test_adopt(void **state)
{
	(void)state;
	struct modules *shared = modules_create(), *a = modules_create(), *b = modules_create();
	struct mapping of_a[] = {
		file_map("/proc/self/exe", 0x555500000000, 1),
		file_map(libc_path(), 0x7f0000000000, 2),
	};
	struct mapping of_b[] = {
		file_map(libc_path(), 0x7e0000000000, 2),
		{ .start = 0x7e1000000000, .end = 0x7e1000001000, .prot = RX, .path = "" },
	};

	update(a, of_a, 2);
	update(b, of_b, 2);
	assert_int_equal(modules_adopt(shared, module_get(a, 1)), 1);
	assert_int_equal(modules_adopt(shared, module_get(a, 2)), 2);
	const struct module *libc = modules_find(b, of_b[0].start), *anon = modules_find(b, of_b[1].start);
	assert_int_equal(modules_adopt(shared, libc), 2);
	assert_int_equal(modules_adopt(shared, anon), 3);
	assert_int_equal(modules_adopt(shared, anon), 3);
	assert_ptr_equal(module_get(shared, 2)->file, libc->file);
	modules_destroy(a);
	modules_destroy(b);
	assert_string_equal(module_get(shared, 2)->name, "libc.so.6");
	assert_int_equal(modules_count(shared), 3);
	modules_destroy(shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_basics),
		cmocka_unit_test(test_twice),
		cmocka_unit_test(test_two_tables),
		cmocka_unit_test(test_one_changed),
		cmocka_unit_test(test_no_file),
		cmocka_unit_test(test_vdso),
		cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_readers),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_adopt),
	};

	return cmocka_run_group_tests_name("modules", tests, NULL, NULL);
}
