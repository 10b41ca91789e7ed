/*
 * Putting a name record together; see resolve.h. Debug info first, since it knows inlined
 * functions and lines; the symbol tables where it has no function (assembly, no debug info).
 */
#include "symbol/resolve.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "elf/file.h"
#include "elf/modules.h"
#include "symbol/lines.h"
#include "symbol/names.h"
#include "symbol/strings.h"

#define FRAMES_MAX 64

struct file_lines {
	struct elf_file *file;	/* owned by `lines` */
	struct lines *lines;
};

struct resolver {
	const struct modules *mods;
	struct strings *strings;
	struct file_lines *files;
	size_t nfiles, cap;
};

struct resolver *resolver_create(const struct modules *mods, struct strings *strings)
{
	struct resolver *resolver = xcalloc(1, sizeof(*resolver));

	resolver->mods = mods;
	resolver->strings = strings;
	return resolver;
}

void resolver_destroy(struct resolver *resolver)
{
	if (!resolver)
		return;
	for (size_t i = 0; i < resolver->nfiles; i++)
		lines_destroy(resolver->files[i].lines);
	free(resolver->files);
	free(resolver);
}

static struct lines *lines_of(struct resolver *resolver, struct elf_file *file)
{
	for (size_t i = 0; i < resolver->nfiles; i++)
		if (resolver->files[i].file == file)
			return resolver->files[i].lines;
	VEC_GROW(resolver->files, resolver->nfiles, resolver->cap);
	struct lines *lines = lines_create(file);
	resolver->files[resolver->nfiles++] = (struct file_lines){ .file = file, .lines = lines };
	return lines;
}

struct name *name_build(struct strings *strings, uint32_t module, const char *module_name,
			const struct name_func *funcs, size_t nfuncs)
{
	struct name *name = xmalloc(sizeof(*name) + nfuncs * sizeof(*funcs));
	struct name_func *copy = (struct name_func *)(name + 1);

	for (size_t i = 0; i < nfuncs; i++) {
		const char *function = funcs[i].function ? funcs[i].function : "";
		copy[i] = funcs[i];
		copy[i].function = strings_intern(strings, function);
		copy[i].linkage = funcs[i].linkage ? strings_intern(strings, funcs[i].linkage)
						   : copy[i].function;
		if (funcs[i].file)
			copy[i].file = strings_intern(strings, funcs[i].file);
	}
	*name = (struct name){
		.module = module,
		.module_name = strings_intern(strings, module_name ? module_name : ""),
		.nfuncs = (uint32_t)nfuncs,
		.funcs = copy,
	};
	return name;
}

/* One unit has them all: what is inlined into it was compiled in its folder, too. */
static void set_dir(struct resolver *resolver, struct name *name, const char *dir)
{
	name->dir = dir ? strings_intern(resolver->strings, dir) : NULL;
}

static const struct module *module_of(const struct resolver *resolver, uint32_t id)
{
	return resolver->mods ? module_get(resolver->mods, id) : NULL;
}

struct name *resolver_unknown(struct resolver *resolver, uint32_t module, uint64_t vaddr)
{
	const struct module *mod = module_of(resolver, module);
	CLEANUP_FREE char *text = mod ? xasprintf("%s+0x%" PRIx64, mod->name, vaddr)
				      : xasprintf("0x%" PRIx64, vaddr);
	const struct name_func func = { .function = text, .unknown = true };

	return name_build(resolver->strings, module, mod ? mod->name : "", &func, 1);
}

/* A symbol without what tools put behind it: the version of "malloc@@GLIBC_2.2.5". */
static char *plain_symbol(const char *symbol)
{
	size_t len = strnlen(symbol, STRINGS_MAX);
	const char *at = memchr(symbol, '@', len);

	return xstrndup(symbol, at && at > symbol ? (size_t)(at - symbol) : len);
}

/* The demangled name, NULL if the symbol isn't mangled. */
static char *try_demangle(const char *symbol)
{
	char *text = demangle(symbol);

	if (strcmp(text, symbol))
		return text;
	free(text);
	return NULL;
}

/*
 * The names of one frame, both to be freed. C++ and Rust: the whole signature, from the debug
 * info, or for local functions from the symbol table. C: the symbol, as the one others link to
 * (malloc, where libc's source says __libc_malloc and its debug info __GI___libc_malloc), but not
 * the compiler's pieces of a function (foo.cold, foo.part.0), which debug info calls foo.
 */
static void name_function(const struct line_frame *frame, const char *symbol, char **ret_function,
			  char **ret_linkage)
{
	CLEANUP_FREE char *plain = symbol ? plain_symbol(symbol) : NULL;
	const char *linkage = frame->linkage;

	*ret_function = linkage ? try_demangle(linkage) : NULL;
	if (!*ret_function && plain) {
		linkage = plain;
		*ret_function = try_demangle(linkage);
	}
	if (*ret_function) {
		*ret_linkage = xstrndup(linkage, STRINGS_MAX);
		return;
	}
	const char *name = frame->name ? frame->name : frame->linkage;
	if (plain && (!name || !strchr(plain, '.')))
		name = plain;
	*ret_function = xstrndup(name ? name : "", STRINGS_MAX);
	*ret_linkage = NULL;
}

struct name *resolver_name(struct resolver *resolver, uint32_t module, uint64_t vaddr, bool exact)
{
	const struct module *mod = module_of(resolver, module);
	struct line_frame frames[FRAMES_MAX];
	struct name_func funcs[FRAMES_MAX];
	uint64_t at = exact || !vaddr ? vaddr : vaddr - 1;
	struct elf_func sym;

	if (!mod || !mod->file)
		return resolver_unknown(resolver, module, vaddr);
	bool has_sym = elf_file_function_at(mod->file, at, &sym) && sym.name;
	size_t n = lines_at(lines_of(resolver, mod->file), at, frames, FRAMES_MAX);
	if (!n) {
		frames[0] = (struct line_frame){ 0 };
		n = 1;
	}
	if (!frames[n - 1].name && !frames[n - 1].linkage && !has_sym) {
		struct name *name = resolver_unknown(resolver, module, vaddr);
		if (!frames[0].file)
			return name;
		/* a line without a function: assembly */
		funcs[0] = name->funcs[0];
		funcs[0].file = frames[0].file;
		funcs[0].line = frames[0].line;
		struct name *ret = name_build(resolver->strings, module, mod->name, funcs, 1);
		set_dir(resolver, ret, frames[0].dir);
		free(name);
		return ret;
	}
	char *owned[2 * FRAMES_MAX];
	for (size_t i = 0; i < n; i++) {
		char *function, *linkage;
		name_function(&frames[i], i == n - 1 && has_sym ? sym.name : NULL, &function,
			      &linkage);
		owned[2 * i] = function;
		owned[2 * i + 1] = linkage;
		funcs[i] = (struct name_func){
			.function = *function ? function : "??",
			.linkage = linkage,
			.file = frames[i].file,
			.line = frames[i].line,
			.inlined = frames[i].inlined,
		};
	}
	struct name *name = name_build(resolver->strings, module, mod->name, funcs, n);
	set_dir(resolver, name, frames[0].dir);
	for (size_t i = 0; i < 2 * n; i++)
		free(owned[i]);
	return name;
}
