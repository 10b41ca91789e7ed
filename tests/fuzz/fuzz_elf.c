/*
 * Any bytes as an ELF file: headers, notes, segments, symbol tables, CFI; rules derived from it and a
 * stack walked with it. The last 16 bytes of the input say which addresses are asked for.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "elf/file.h"
#include "elf/modules.h"
#include "tests/fuzz/fuzz.h"
#include "unwind/derive.h"
#include "unwind/rules.h"
#include "unwind/unwind.h"

#define BASE 0x10000000ull
#define QUESTIONS 16u
#define WORDS 64u

struct bytes {
	const uint8_t *data;
	size_t len;
};

static int open_bytes(void *ctx, const struct mapping *m)
{
	const struct bytes *b = ctx;

	(void)m;
	return fuzz_memfd(b->data, b->len);
}

static void read_string(const char *s)
{
	volatile size_t len = strlen(s);	/* for the sanitizer to see */

	(void)len;
}

static void ask_file(struct elf_file *file, struct fuzz_in in)
{
	static const char *const names[] = { "malloc", "free", "work", "" };
	struct elf_func funcs[8], f;
	uint8_t buf[256];
	uint64_t vaddr, size;

	FUZZ_ASSERT(strlen(elf_file_build_id(file)) <= 128);
	size_t n = elf_file_find_functions(file, names, ARRAY_SIZE(names), funcs, ARRAY_SIZE(funcs));
	FUZZ_ASSERT(n <= ARRAY_SIZE(funcs));
	for (size_t i = 0; i < n; i++) {
		FUZZ_ASSERT(funcs[i].vaddr);
		read_string(funcs[i].name);
	}
	elf_file_find_symbol(file, "_r_debug");
	elf_file_eh_frame_hdr(file, &vaddr, &size);
	for (unsigned i = 0; i < QUESTIONS; i++) {
		uint64_t at = i ? fuzz_number(&in) : elf_file_entry(file);
		if (elf_file_function_at(file, at, &f)) {
			FUZZ_ASSERT(f.vaddr <= at && (!f.size || at - f.vaddr < f.size));
			read_string(f.name);
		}
		FUZZ_ASSERT(elf_file_read(file, at, buf, sizeof(buf)) <= sizeof(buf));
		elf_file_offset_to_vaddr(file, at, &vaddr);
	}
}

static void ask_unwinder(struct bytes *b, struct fuzz_in in)
{
	struct modules *mods = modules_create();
	const struct mapping map = {
		.start = BASE, .end = BASE + (1u << 20), .offset = (fuzz_take(&in, 1) & 1) << 12, .inode = 1,
		.prot = PROT_READ | PROT_EXEC, .path = "/lib/some.so",
	};
	uint64_t words[WORDS], pcs[32];
	enum unwind_end why;
	struct rule rule;

	modules_update(mods, &map, 1, open_bytes, b);
	const struct module *m = modules_find(mods, BASE);
	for (unsigned i = 0; m && i < QUESTIONS; i++)
		derive_rule(m, BASE + (fuzz_take(&in, 2) & 0x1fff), &rule);
	for (unsigned i = 0; i < WORDS; i++)
		words[i] = i & 1 ? BASE + i * 64 : 0x7000 + i * 8;
	struct unwinder *u = unwinder_create(mods);
	const struct wire_regs regs = { .ip = BASE + 0x1000, .sp = 0x7000, .saved = { 0x7080 } };
	const struct stack_copy stack = { 0x7000, (const uint8_t *)words, sizeof(words) };
	for (unsigned i = 0; i < 4; i++) {
		struct wire_regs r = regs;
		r.ip += fuzz_take(&in, 1) * 8;
		size_t n = unwinder_walk(u, &r, &stack, pcs, ARRAY_SIZE(pcs), &why);
		FUZZ_ASSERT(n >= 1 && n <= ARRAY_SIZE(pcs) && why < UNWIND_END_COUNT);
		for (size_t k = 0; k < n; k++)
			unwinder_wire_rule(u, pcs[k]);
	}
	unwinder_destroy(u);
	modules_destroy(mods);
}

static void run_elf(const uint8_t *data, size_t len)
{
	struct bytes b = { data, len < 16 ? len : len - 16 };
	const struct fuzz_in in = { data + b.len, data + len };
	struct elf_file *file;
	struct err *err = elf_file_open(fuzz_memfd(b.data, b.len), "/lib/some.so", &file);

	err_free(err);
	if (err)
		return;
	ask_file(file, in);
	elf_file_unref(file);
	ask_unwinder(&b, in);
}

const struct fuzz_target fuzz_elf = { "elf", 16384, run_elf };
