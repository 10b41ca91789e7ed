/*
 * One frame's address to its name record, by debug info and symbol tables. Slow (opens and
 * reads files); one thread at a time.
 */
#ifndef HEAPTOP_SYMBOL_RESOLVE_H
#define HEAPTOP_SYMBOL_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct modules;
struct name;
struct name_func;
struct resolver;
struct strings;

/* Both are borrowed; `mods` may be NULL: everything is unknown then. */
struct resolver *resolver_create(const struct modules *mods, struct strings *strings);
void resolver_destroy(struct resolver *resolver);

/* A new record (see names_get for the arguments), one block for free(). Never NULL. */
struct name *resolver_name(struct resolver *resolver, uint32_t module, uint64_t vaddr, bool exact);

/* The record that says "unknown": "libfoo.so+0x1f30", or the address alone. Never slow. */
struct name *resolver_unknown(struct resolver *resolver, uint32_t module, uint64_t vaddr);

/* A record of copies of `funcs`; nfuncs at least 1. */
struct name *name_build(struct strings *strings, uint32_t module, const char *module_name,
			const struct name_func *funcs, size_t nfuncs);

#endif
