/*
 * Names of frames, on demand, off everyone's thread: a frame is (module id, vaddr); its name record
 * says function, file and line, and the functions inlined there. Asking never waits: the answer
 * is NULL until a worker thread has it. Records are immutable and live as long as the table.
 * names_get is safe from any thread; it never opens a file and takes no lock held while symbols
 * are read.
 *
 * The table also serves snapshots: names_put fills it directly.
 */
#ifndef HEAPTOP_SYMBOL_NAMES_H
#define HEAPTOP_SYMBOL_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct modules;
struct names;

/* One function at an address; inlined callers follow outward. All strings are sanitised. */
struct name_func {
	const char *function;	/* demangled; "libfoo.so+0x1f30" if there is no symbol (then
				 * `unknown` is set) */
	const char *linkage;	/* raw symbol; same as function if not mangled */
	const char *file;	/* source path as in the debug info, NULL if unknown */
	uint32_t line;		/* 0 if unknown */
	bool inlined;		/* this function was inlined into the next one */
	bool unknown;		/* no symbol covers the address */
};

struct name {
	uint32_t module;	/* module id, 0 unknown */
	const char *module_name;/* "libc.so.6", "" if unknown */
	const char *dir;	/* what relative files of its functions are relative to, NULL if unknown */
	uint32_t nfuncs;	/* >= 1; [0] is innermost; the last is the real function */
	const struct name_func *funcs;
};

/* A live table with its worker thread; `mods` is borrowed. NULL mods: filled by names_put only,
 * no thread; what wasn't put is unknown at once. */
struct names *names_create(const struct modules *mods);
void names_destroy(struct names *names);

/*
 * The name of the frame at `vaddr` in `module` (a return address unless `exact`: the line of
 * vaddr - 1 is looked up; design: "-1 except for innermost and signal frames"). NULL: not known
 * yet, and now asked for. Module 0: vaddr is an absolute address without module; answered at once.
 */
const struct name *names_get(struct names *names, uint32_t module, uint64_t vaddr, bool exact);

/* The same, waiting until it is known: for batch, export; never from a screen. */
const struct name *names_wait(struct names *names, uint32_t module, uint64_t vaddr, bool exact);

/* Number of names ever answered: a screen that had NULLs compares it to know whether to look
 * again. */
uint64_t names_generation(const struct names *names);
/* Requests not answered yet. */
size_t names_pending(const struct names *names);

/* Fill an entry (snapshots): everything is copied and sanitised. The first one stays. */
const struct name *names_put(struct names *names, uint32_t module, uint64_t vaddr, bool exact,
			     const char *module_name, const struct name_func *funcs, size_t nfuncs);

/* Demangle (C++ Itanium ABI, Rust legacy and v0) with bounded work; a copy, the symbol itself if
 * it isn't mangled or takes too long. Sanitised. The caller frees. */
char *demangle(const char *linkage);

#endif
