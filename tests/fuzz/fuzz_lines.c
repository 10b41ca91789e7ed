/*
 * Any bytes as a file with debug info: function, inlined functions, source line of addresses in it, and
 * the name records made of them. The last 16 bytes of the input say which addresses are asked for.
 */
#include <sys/mman.h>

#include "base/err.h"
#include "base/mem.h"
#include "elf/file.h"
#include "elf/modules.h"
#include "symbol/lines.h"
#include "symbol/names.h"
#include "symbol/resolve.h"
#include "symbol/strings.h"
#include "tests/fuzz/fuzz.h"

#define QUESTIONS 12u
#define FRAMES 16u

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

static void look(const struct name *name)
{
	FUZZ_ASSERT(name->nfuncs >= 1 && fuzz_is_clean(name->module_name));
	for (uint32_t i = 0; i < name->nfuncs; i++) {
		const struct name_func *f = &name->funcs[i];
		FUZZ_ASSERT(fuzz_is_clean(f->function) && fuzz_is_clean(f->linkage));
		FUZZ_ASSERT(!f->file || fuzz_is_clean(f->file));
	}
	FUZZ_ASSERT(!name->funcs[name->nfuncs - 1].inlined);
}

static void run_lines(const uint8_t *data, size_t len)
{
	struct bytes b = { data, len < 16 ? len : len - 16 };
	struct fuzz_in in = { data + b.len, data + len };
	const struct mapping map = {
		.start = 0x10000000, .end = 0x10100000, .inode = 1, .prot = PROT_READ | PROT_EXEC, .path = "/lib/some.so",
	};
	struct modules *mods = modules_create();

	modules_update(mods, &map, 1, open_bytes, &b);
	const struct module *m = module_get(mods, 1);
	if (m && m->file) {
		struct strings *strings = strings_create();
		struct resolver *resolver = resolver_create(mods, strings);
		struct lines *lines = lines_create(m->file);
		struct line_frame frames[FRAMES];
		for (unsigned i = 0; i < QUESTIONS; i++) {
			uint64_t at = i ? 0x1000 + fuzz_take(&in, 1) : elf_file_entry(m->file);
			FUZZ_ASSERT(lines_at(lines, at, frames, FRAMES) <= FRAMES);
			struct name *name = resolver_name(resolver, 1, at, i & 1);
			look(name);
			free(name);
		}
		lines_destroy(lines);
		resolver_destroy(resolver);
		strings_destroy(strings);
	}
	modules_destroy(mods);
}

const struct fuzz_target fuzz_lines = { "lines", 16384, run_lines };
