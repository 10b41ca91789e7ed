/*
 * The allocators' entry points: which argument of which function is the size, the count, the alignment,
 * the block, and what comes back. One table for all allocators; no process, no file. Read-only once created.
 *
 * A family is a set of names with one prefix ("", "je_", "mi_", ...). A prefixed one counts in a module
 * only if malloc, free and realloc are all there with that prefix: "rp_free" alone might free
 * anything.
 */
#ifndef HEAPTOP_PROBE_ENTRIES_H
#define HEAPTOP_PROBE_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/wire.h"

struct entry {
	const char *name;		/* as in the symbol table */
	enum wire_hook_kind kind;
	struct wire_args args;
	/* kind NEW: the function called in its place for a block to be recorded */
	const char *sibling;
	unsigned family;		/* < ENTRIES_FAMILIES; 0: without a prefix, C++ operators among them */
	bool is_operator;		/* C++ operator new or delete */
};

#define ENTRIES_FAMILIES 8u

struct entries;

/* All that are known, with those that change mappings or without; what the functions below return lives as long. */
struct entries *entries_create(bool mmap);
void entries_destroy(struct entries *entries);	/* accepts NULL */

/* Their names, as elf_file_find_functions() wants them. *ret_n: how many. */
const char *const *entries_names(const struct entries *entries, size_t *ret_n);
/* By a symbol's name, a version behind '@' aside; NULL: none. */
const struct entry *entries_find(const struct entries *entries, const char *symbol);

/* Does a module with these entry points define that family? */
bool entries_family_there(const struct entry *const *found, size_t n, unsigned family);

#endif
