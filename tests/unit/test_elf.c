/*
 * elf/file.h on the test program itself and on libc: what headers, symbol tables and separate debug
 * files say is compared with what this process knows of itself. Cut and damaged copies must be
 * "not there".
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <libelf.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "elf/file.h"

/* libelf 0.188 loses a section's buffer for some damaged headers; our own losses still tell. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libelf.so\n";
}

char fixture_bss[10000] = { 0 };
int fixture_data = 41;

__attribute__((noinline, used)) int fixture_global(int x)
{
	__asm__ volatile("");
	return x * 3 + fixture_data;
}

__attribute__((noinline, used)) static int fixture_local(int x)
{
	__asm__ volatile("");
	return x * 5 + fixture_global(x);
}

static int first_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	(void)size;
	*(uint64_t *)ctx = info->dlpi_addr;
	return 1;
}

static uint64_t own_bias(void)
{
	uint64_t bias = 0;

	dl_iterate_phdr(first_object, &bias);
	return bias;
}

static uint64_t vaddr_of(const void *p)
{
	return (uint64_t)(uintptr_t)p - own_bias();
}

static struct elf_file *open_path(const char *path)
{
	struct elf_file *file;
	struct err *err = elf_file_open(open(path, O_RDONLY | O_CLOEXEC), path, &file);

	if (err)
		fail_msg("%s", err->text);
	return file;
}

static uint8_t *slurp(const char *path, size_t *ret_len)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0 && !fstat(fd, &st));
	uint8_t *buf = xmalloc((size_t)st.st_size);
	assert_int_equal(read(fd, buf, (size_t)st.st_size), st.st_size);
	close(fd);
	*ret_len = (size_t)st.st_size;
	return buf;
}

static int memfd_of(const void *buf, size_t len)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, buf, len), len);
	return fd;
}

static void test_headers(void **state)
{
	(void)state;
	struct elf_file *file = open_path("/proc/self/exe");
	const char *id = elf_file_build_id(file);

	assert_int_equal(strspn(id, "0123456789abcdef"), strlen(id));
	assert_int_equal(strlen(id) % 2, 0);
	assert_true(elf_file_type(file) == ET_DYN || elf_file_type(file) == ET_EXEC);
	assert_string_equal(elf_file_path(file), "/proc/self/exe");

	struct elf_func func;
	assert_true(elf_file_function_at(file, elf_file_entry(file), &func));
	assert_string_equal(func.name, "_start");

	uint64_t hdr, size;
	assert_true(elf_file_eh_frame_hdr(file, &hdr, &size));
	assert_true(size > 8);
	uint8_t version;
	assert_int_equal(elf_file_read(file, hdr, &version, 1), 1);
	assert_int_equal(version, 1);
	elf_file_unref(file);
}

static void test_not_elf(void **state)
{
	(void)state;
	struct elf_file *file;
	struct err *err = elf_file_open(memfd_of("#!/bin/sh\n", 10), "script", &file);

	assert_non_null(err);
	assert_int_equal(err->code, ERR_BAD_INPUT);
	err_free(err);

	size_t len;
	CLEANUP_FREE uint8_t *buf = slurp("/proc/self/exe", &len);
	buf[EI_CLASS] = ELFCLASS32;
	err = elf_file_open(memfd_of(buf, len), "small", &file);
	assert_non_null(err);
	assert_int_equal(err->code, ERR_UNSUPPORTED);
	err_free(err);
	err = elf_file_open(open("/", O_RDONLY | O_CLOEXEC), "/", &file);
	assert_non_null(err);
	err_free(err);
}

static void test_read(void **state)
{
	(void)state;
	struct elf_file *file = open_path("/proc/self/exe");
	uint8_t code[16];
	char bss[64];
	int data = 0;

	assert_int_equal(elf_file_read(file, vaddr_of((void *)fixture_local), code, sizeof(code)),
			 sizeof(code));
	assert_memory_equal(code, (void *)fixture_local, sizeof(code));
	/* what the file says, not what the process made of it */
	fixture_data = 42;
	assert_int_equal(elf_file_read(file, vaddr_of(&fixture_data), &data, sizeof(data)),
			 sizeof(data));
	assert_int_equal(data, 41);
	memset(fixture_bss, 'x', sizeof(fixture_bss));
	memset(bss, 'y', sizeof(bss));
	assert_int_equal(elf_file_read(file, vaddr_of(fixture_bss + 5000), bss, sizeof(bss)),
			 sizeof(bss));
	for (size_t i = 0; i < sizeof(bss); i++)
		assert_int_equal(bss[i], 0);
	assert_int_equal(elf_file_read(file, UINT64_MAX - 4, bss, sizeof(bss)), 0);
	elf_file_unref(file);
}

static void test_offsets(void **state)
{
	(void)state;
	struct elf_file *file = open_path("/proc/self/exe");
	uint64_t vaddr;

	/* what /proc/self/maps says of our code must lead back to it */
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096];
	bool seen = false;
	uint64_t pc = (uint64_t)(uintptr_t)fixture_local;
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		unsigned long start, end, offset;
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) != 3 || pc < start ||
		    pc >= end)
			continue;
		assert_true(elf_file_offset_to_vaddr(file, pc - start + offset, &vaddr));
		assert_int_equal(vaddr, vaddr_of((void *)fixture_local));
		seen = true;
	}
	fclose(maps);
	assert_true(seen);
	assert_false(elf_file_offset_to_vaddr(file, 1ull << 40, &vaddr));
	elf_file_unref(file);
}

static void test_function_at(void **state)
{
	(void)state;
	struct elf_file *file = open_path("/proc/self/exe");
	struct elf_func func;

	assert_true(elf_file_function_at(file, vaddr_of((char *)fixture_local + 3), &func));
	assert_string_equal(func.name, "fixture_local");
	assert_int_equal(func.vaddr, vaddr_of((void *)fixture_local));
	assert_true(func.size > 3);
	assert_false(func.global);
	/* the last byte is in, the one behind isn't the same function any more */
	uint64_t end = func.vaddr + func.size;
	assert_true(elf_file_function_at(file, end - 1, &func));
	assert_string_equal(func.name, "fixture_local");
	if (elf_file_function_at(file, end, &func))
		assert_string_not_equal(func.name, "fixture_local");
	assert_true(elf_file_function_at(file, vaddr_of((void *)fixture_global), &func));
	assert_true(func.global);
	assert_false(elf_file_function_at(file, vaddr_of(&fixture_data), &func));
	assert_false(elf_file_function_at(file, UINT64_MAX, &func));
	elf_file_unref(file);
}

static void test_find_symbol(void **state)
{
	(void)state;
	struct elf_file *file = open_path("/proc/self/exe");

	assert_int_equal(elf_file_find_symbol(file, "fixture_data"), vaddr_of(&fixture_data));
	assert_int_equal(elf_file_find_symbol(file, "fixture_bss"), vaddr_of(fixture_bss));
	assert_int_equal(elf_file_find_symbol(file, "fixture_dat"), 0);
	assert_int_equal(elf_file_find_symbol(file, ""), 0);
	elf_file_unref(file);
}

/* libc's path and load address. */
static const char *libc_path(uint64_t *ret_bias)
{
	static char path[4096];
	void *libc = dlopen("libc.so.6", RTLD_NOW);
	struct link_map *map;

	if (!libc || dlinfo(libc, RTLD_DI_LINKMAP, &map))
		skip();
	snprintf(path, sizeof(path), "%s", map->l_name);
	*ret_bias = map->l_addr;
	return path;
}

static void check_libc(struct elf_file *file, uint64_t bias)
{
	const char *const names[] = { "malloc", "calloc", "no_such_function", "mall" };
	struct elf_func out[8];
	void *libc = dlopen("libc.so.6", RTLD_NOW);
	size_t n = elf_file_find_functions(file, names, ARRAY_SIZE(names), out, ARRAY_SIZE(out));

	assert_int_equal(n, 2);
	for (size_t i = 0; i < n; i++) {
		const char *name = strncmp(out[i].name, "malloc", 6) ? "calloc" : "malloc";
		assert_int_equal(out[i].vaddr + bias, (uintptr_t)dlsym(libc, name));
		assert_true(out[i].global);
	}
	assert_int_equal(elf_file_find_functions(file, names, ARRAY_SIZE(names), out, 1), 1);
}

static void test_find_functions(void **state)
{
	(void)state;
	uint64_t bias;
	struct elf_func out[4];
	struct elf_file *file = open_path(libc_path(&bias));

	check_libc(file, bias);
#ifdef __x86_64__
	/* an IFUNC: its symbol is the resolver's address */
	const char *const ifunc_name[] = { "strchr" };
	assert_int_equal(elf_file_find_functions(file, ifunc_name, 1, out, 4), 0);
	assert_true(elf_file_find_symbol(file, "strchr") != 0);
#endif
	elf_file_unref(file);

	/* our own, in .symtab only */
	const char *const names[] = { "fixture_global", "fixture_local", "main" };
	file = open_path("/proc/self/exe");
	assert_int_equal(elf_file_find_functions(file, names, 3, out, 4), 3);
	assert_true(out[0].global && out[1].global && !out[2].global);
	assert_string_equal(out[2].name, "fixture_local");
	elf_file_unref(file);
}

static void test_no_sections(void **state)
{
	(void)state;
	uint64_t bias;
	size_t len;
	CLEANUP_FREE uint8_t *buf = slurp(libc_path(&bias), &len);
	Elf64_Ehdr eh;
	struct elf_file *file;

	memcpy(&eh, buf, sizeof(eh));
	eh.e_shoff = 0;
	eh.e_shnum = eh.e_shstrndx = 0;
	memcpy(buf, &eh, sizeof(eh));
	assert_null(elf_file_open(memfd_of(buf, len), "libc", &file));
	check_libc(file, bias);
	assert_non_null(elf_file_eh_cfi(file, NULL));
	elf_file_unref(file);
}

/* The last function .dynsym has; its index shows whether symbols are counted to the end. */
static const char *last_function(const uint8_t *buf, uint64_t *ret_vaddr)
{
	Elf64_Ehdr eh;
	const char *last = NULL;

	memcpy(&eh, buf, sizeof(eh));
	for (int i = 0; i < eh.e_shnum; i++) {
		Elf64_Shdr sh, str;
		memcpy(&sh, buf + eh.e_shoff + i * sizeof(sh), sizeof(sh));
		if (sh.sh_type != SHT_DYNSYM)
			continue;
		memcpy(&str, buf + eh.e_shoff + sh.sh_link * sizeof(sh), sizeof(str));
		for (uint64_t at = 0; at < sh.sh_size; at += sizeof(Elf64_Sym)) {
			Elf64_Sym sym;
			memcpy(&sym, buf + sh.sh_offset + at, sizeof(sym));
			if (ELF64_ST_TYPE(sym.st_info) == STT_FUNC && sym.st_shndx && sym.st_value) {
				last = (const char *)buf + str.sh_offset + sym.st_name;
				*ret_vaddr = sym.st_value;
			}
		}
	}
	return last;
}

/* libelf has DT_GNU_HASH only (Debian's libc has DT_HASH too, which is what counts there). */
static void test_gnu_hash(void **state)
{
	(void)state;
	Dl_info info;
	size_t len;
	struct elf_file *file;
	uint64_t vaddr = 0;

	if (!dladdr((void *)elf_version, &info) || !strstr(info.dli_fname, "libelf"))
		skip();
	CLEANUP_FREE uint8_t *buf = slurp(info.dli_fname, &len);
	CLEANUP_FREE char *last = xstrdup(last_function(buf, &vaddr));
	memset(buf + offsetof(Elf64_Ehdr, e_shoff), 0, 8);
	memset(buf + offsetof(Elf64_Ehdr, e_shnum), 0, 4);
	assert_null(elf_file_open(memfd_of(buf, len), "libelf", &file));
	assert_int_equal(elf_file_find_symbol(file, last), vaddr);
	elf_file_unref(file);
}

static void test_cfi(void **state)
{
	(void)state;
	struct elf_file *file = open_path("/proc/self/exe");
	int64_t bias = -1;
	Dwarf_Frame *frame;
	Dwarf_Addr start, end;

	elf_file_lock(file);
	Dwarf_CFI *cfi = elf_file_eh_cfi(file, &bias);
	assert_non_null(cfi);
	assert_int_equal(bias, 0);
	uint64_t pc = vaddr_of((char *)fixture_local + 2);
	assert_int_equal(dwarf_cfi_addrframe(cfi, pc, &frame), 0);
	assert_true(dwarf_frame_info(frame, &start, &end, NULL) >= 0);
	assert_true(start <= pc && pc < end);
	free(frame);
	assert_ptr_equal(elf_file_eh_cfi(file, NULL), cfi);
	elf_file_unlock(file);
	elf_file_unref(file);
}

static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* One object for a file, as long as somebody has it. */
static void test_shared(void **state)
{
	(void)state;
	size_t len;
	CLEANUP_FREE uint8_t *buf = slurp("/proc/self/exe", &len);
	char path[] = "/tmp/test_elf.XXXXXX";
	int fd = mkstemp(path), fds = count_fds();

	assert_int_equal(write(fd, buf, len), len);
	struct elf_file *a = open_path(path), *b = open_path(path);
	assert_ptr_equal(a, b);
	assert_int_equal(count_fds(), fds + 1);
	elf_file_unref(a);
	a = open_path(path);
	assert_ptr_equal(a, b);
	elf_file_unref(a);
	/* still there for b */
	assert_int_not_equal(elf_file_find_symbol(b, "fixture_data"), 0);

	/* under another name it is found by other people, with other debug files beside it */
	struct elf_file *c;
	assert_null(elf_file_open(dup(fd), "/another/name", &c));
	assert_ptr_not_equal(c, b);
	elf_file_unref(c);

	/* written to since: another file, and the next one shares that */
	assert_int_equal(pwrite(fd, "", 1, (off_t)len), 1);
	struct elf_file *d = open_path(path), *e = open_path(path);
	assert_ptr_not_equal(d, b);
	assert_ptr_equal(d, e);
	const struct timespec times[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	assert_int_equal(futimens(fd, times), 0);
	struct elf_file *f = open_path(path);
	assert_ptr_not_equal(f, d);
	elf_file_unref(b);
	elf_file_unref(d);
	elf_file_unref(e);
	elf_file_unref(f);
	assert_int_equal(count_fds(), fds);

	/* not found again once nobody has it */
	a = open_path(path);
	assert_int_equal(count_fds(), fds + 1);
	elf_file_unref(a);
	assert_int_equal(count_fds(), fds);
	close(fd);
	unlink(path);
}

static void *open_and_close(void *arg)
{
	const char *path = arg;

	for (int i = 0; i < 3000; i++) {
		struct elf_file *file;
		struct err *err = elf_file_open(open(path, O_RDONLY | O_CLOEXEC), path, &file);
		if (err)
			return err->text;
		if (!elf_file_entry(file) || (i % 64 == 0 && !elf_file_find_symbol(file, "main")))
			return "it isn't what was opened";
		elf_file_unref(file);
	}
	return NULL;
}

static void test_shared_threads(void **state)
{
	(void)state;
	pthread_t threads[4];
	char *complaint;
	int fds = count_fds();

	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, "/proc/self/exe"), 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(threads[i], (void **)&complaint), 0);
		if (complaint)
			fail_msg("%s", complaint);
	}
	assert_int_equal(count_fds(), fds);
}

/* The first questions about a file with many symbols are answered without an index, and alike. */
static void test_scans(void **state)
{
	(void)state;
	enum { N = 32 };
	struct elf_file *file;
	struct elf_func first[N], then;
	uint64_t at[N];
	bool found[N];
	size_t len;

	/* the program with a table of symbols that has each function many times, some nested */
	CLEANUP_FREE uint8_t *buf = slurp("/proc/self/exe", &len);
	Elf64_Ehdr *eh = (Elf64_Ehdr *)buf;
	const Elf64_Shdr *sh = (const Elf64_Shdr *)(buf + eh->e_shoff);
	size_t symtab = 0;
	for (size_t i = 0; i < eh->e_shnum; i++)
		if (sh[i].sh_type == SHT_SYMTAB)
			symtab = i;
	if (!symtab)
		skip();
	size_t n = sh[symtab].sh_size / sizeof(Elf64_Sym), times = 30000 / n + 1;
	size_t grown = (len + 7) / 8 * 8;
	CLEANUP_FREE uint8_t *big = xcalloc(1, grown + times * n * sizeof(Elf64_Sym));
	memcpy(big, buf, len);
	Elf64_Sym *syms = (Elf64_Sym *)(big + grown);
	for (size_t i = 0; i < times * n; i++) {
		memcpy(&syms[i], buf + sh[symtab].sh_offset + i % n * sizeof(*syms), sizeof(*syms));
		if (i >= n && syms[i].st_value) {
			syms[i].st_value += i * 2654435761u % 4096;
			syms[i].st_size = i % 7 ? i * 40503u % 300 : 0;
		}
	}
	Elf64_Shdr *out = (Elf64_Shdr *)(big + eh->e_shoff) + symtab;
	out->sh_offset = grown;
	out->sh_size = times * n * sizeof(*syms);
	assert_null(elf_file_open(memfd_of(big, grown + out->sh_size), "many", &file));

	uint64_t code = vaddr_of((void *)fixture_local) & ~0xfffull;
	size_t hits = 0;
	for (size_t i = 0; i < N; i++) {
		at[i] = i == N - 1 ? 0x10 : code + i * 211;
		found[i] = elf_file_function_at(file, at[i], &first[i]);
		hits += found[i];
	}
	assert_true(hits > N / 2 && !found[N - 1]);
	for (size_t i = 0; i < N; i++) {
		assert_int_equal(elf_file_function_at(file, at[i], &then), found[i]);
		if (!found[i])
			continue;
		assert_int_equal(then.vaddr, first[i].vaddr);
		assert_int_equal(then.size, first[i].size);
		assert_ptr_equal(then.name, first[i].name);
		assert_int_equal(then.global, first[i].global);
	}
	elf_file_unref(file);
}

/* Ask everything; the answers don't matter. */
static void ask_all(int fd)
{
	struct elf_file *file;
	struct err *err = elf_file_open(fd, "damaged", &file);

	if (err) {
		err_free(err);
		return;
	}
	const char *const names[] = { "main", "fixture_global" };
	struct elf_func out[4];
	uint64_t vaddr;
	uint8_t buf[256];
	elf_file_find_functions(file, names, 2, out, 4);
	elf_file_find_symbol(file, "fixture_data");
	for (uint64_t at = 0; at < 0x8000; at += 0x333) {
		elf_file_function_at(file, at, out);
		elf_file_offset_to_vaddr(file, at, &vaddr);
		elf_file_read(file, at, buf, sizeof(buf));
		Dwarf_Frame *frame = NULL;
		Dwarf_CFI *cfi = elf_file_eh_cfi(file, NULL);
		if (cfi && !dwarf_cfi_addrframe(cfi, at, &frame))
			free(frame);
	}
	elf_file_debug_cfi(file);
	elf_file_unref(file);
}

static void test_truncated(void **state)
{
	(void)state;
	size_t len;
	CLEANUP_FREE uint8_t *buf = slurp("/proc/self/exe", &len);

	for (size_t cut = 0; cut < 1000 && cut < len; cut += 17)
		ask_all(memfd_of(buf, cut));
	for (size_t i = 1; i < 20; i++)
		ask_all(memfd_of(buf, len / 20 * i));

	/* cut after it was opened */
	int fd = memfd_of(buf, len), dup_fd = dup(fd);
	struct elf_file *file;
	assert_null(elf_file_open(fd, "cut", &file));
	assert_int_equal(ftruncate(dup_fd, 100), 0);
	struct elf_func func;
	uint8_t byte;
	assert_false(elf_file_function_at(file, vaddr_of((void *)fixture_local), &func));
	assert_int_equal(elf_file_read(file, vaddr_of((void *)fixture_local), &byte, 1), 0);
	close(dup_fd);
	elf_file_unref(file);
}

static void test_damaged(void **state)
{
	(void)state;
	size_t len;
	CLEANUP_FREE uint8_t *good = slurp("/proc/self/exe", &len);
	CLEANUP_FREE uint8_t *buf = xmalloc(len);
	uint32_t seed = 12345;
	Elf64_Ehdr eh;

	memcpy(&eh, good, sizeof(eh));
	for (int round = 0; round < 200; round++) {
		memcpy(buf, good, len);
		for (int k = 0; k < 6; k++) {
			/* mostly in the headers and section headers, where it tells */
			seed = seed * 1664525 + 1013904223;
			size_t at = k < 3 ? 16 + seed % 900
				  : k < 5 ? eh.e_shoff + seed % (eh.e_shnum * 64u)
					  : seed % len;
			seed = seed * 1664525 + 1013904223;
			if (at < len)
				buf[at] = (uint8_t)(seed >> 16);
		}
		ask_all(memfd_of(buf, len));
	}
}

static bool shell(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	CLEANUP_FREE char *command = xvasprintf(fmt, ap);
	va_end(ap);
	return !system(command);
}

static void test_debuglink(void **state)
{
	(void)state;
	char dir[] = "/tmp/heaptop-elf-XXXXXX";
	struct elf_func func;
	uint64_t at = vaddr_of((char *)fixture_local + 3);

	if (!shell("objcopy --version >/dev/null 2>&1"))
		skip();
	assert_non_null(mkdtemp(dir));
	assert_true(shell("cp /proc/%d/exe %s/whole && cd %s && mkdir .debug &&"
			  " objcopy --only-keep-debug whole .debug/it.debug && objcopy --strip-all"
			  " -R .note.gnu.build-id --add-gnu-debuglink=.debug/it.debug whole it",
			  getpid(), dir, dir));
	CLEANUP_FREE char *path = xasprintf("%s/it", dir);

	struct elf_file *file = open_path(path);
	assert_string_equal(elf_file_build_id(file), "");
	bool found = elf_file_function_at(file, at, &func);
	assert_true(found);
	assert_string_equal(func.name, "fixture_local");
	elf_file_unref(file);

	/* another file of the same name is not it */
	assert_true(shell("echo >>%s/.debug/it.debug", dir));
	file = open_path(path);
	assert_false(elf_file_function_at(file, at, &func) && !strcmp(func.name, "fixture_local"));
	elf_file_unref(file);

	/* nor is a FIFO, which must not make us wait */
	assert_true(shell("rm %s/.debug/it.debug && mkfifo %s/.debug/it.debug", dir, dir));
	file = open_path(path);
	assert_null(elf_file_dwarf(file));
	elf_file_unref(file);
	shell("rm -r %s", dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_not_elf),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_offsets),
		cmocka_unit_test(test_function_at),
		cmocka_unit_test(test_find_symbol),
		cmocka_unit_test(test_find_functions),
		cmocka_unit_test(test_no_sections),
		cmocka_unit_test(test_gnu_hash),
		cmocka_unit_test(test_cfi),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_shared_threads),
		cmocka_unit_test(test_scans),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_debuglink),
	};

	return cmocka_run_group_tests_name("elf", tests, NULL, NULL);
}
