/*
 * Entry points that the user names: parsed from words such as "pool_get(size=2)", alone or from a preset's
 * file. No process. The words are the user's own, files and words alike are still checked.
 *
 *	WHERE(KEY=VALUE,...)
 *	WHERE	symbol, module!symbol, module+0xOFFSET (as heaptop shows it), 0xADDRESS
 *	KEY	size, count, ptr, out, align: number of the argument, from 1 to 6; bytes: a fixed
 *		size; and the word int: size and count are C ints
 */
#ifndef HEAPTOP_PROBE_NAMED_H
#define HEAPTOP_PROBE_NAMED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probe/entries.h"

struct err;

enum named_role { NAMED_ALLOC, NAMED_FREE, NAMED_REALLOC };

struct named {
	char *text;		/* as given */
	char *module;		/* last component of its path, or that up to a dot; NULL: any */
	char *symbol;		/* NULL: by offset */
	uint64_t offset;	/* vaddr in the module; without one, a runtime address */
	struct entry entry;	/* its name is symbol or text */
	bool optional;		/* from a preset: if it isn't there, nothing is said */
};

struct named_list {
	struct named *items;
	size_t n, cap;
};

/* Add one. ERR_BAD_INPUT names what is wrong. */
struct err *named_add(struct named_list *list, enum named_role role, const char *text);

/*
 * Add those of a preset: NAME's file in $XDG_CONFIG_HOME/heaptop/presets (~/.config), else in `dir`. Lines
 * alloc=..., free=..., realloc=...; what begins with # is a comment. ERR_NOT_FOUND: no such
 * preset, the text lists those there are.
 */
struct err *named_add_preset(struct named_list *list, const char *name, const char *dir);

/* Is `name`, a module's, the one it says? */
bool named_in_module(const struct named *named, const char *name);

void named_list_deinit(struct named_list *list);

#endif
