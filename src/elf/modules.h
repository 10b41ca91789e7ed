/*
 * The modules of one address space: which file's bytes lie where. A module is a loaded ELF
 * file (or the vdso, or anonymous code); its id is stable for the life of the table, also
 * after it was unmapped, since old frames refer to it. Filled from /proc/PID/maps by target/.
 *
 * Memory: 80 bytes and its path two and a bit times for each module there ever was (at most 262,144), 96 for each
 * executable mapping. The open file behind it takes about 1.5 KB, once for all tables, as long as nobody
 * asks for symbols or CFI; it stays open.
 *
 * One writer (the collector thread). Ids, names and files of existing modules never change and
 * may be read by any thread through module_get(); look-ups by address are the writer's alone.
 */
#ifndef HEAPTOP_ELF_MODULES_H
#define HEAPTOP_ELF_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;
struct modules;

struct module {
	uint32_t id;		/* index, 0 is never used: "no module" */
	char *path;		/* as in maps, unescaped, sanitised; "[vdso]", "[anon]" */
	char *name;		/* last component of the path, sanitised */
	struct elf_file *file;	/* NULL if it couldn't be opened or isn't ELF (vdso is: read
				 * from memory) */
	uint64_t dev, inode;
	uint64_t bias;		/* runtime address - vaddr */
	bool is_main;		/* the program itself */
	bool gone;		/* unmapped since */
};

struct modules *modules_create(void);
void modules_destroy(struct modules *mods);
/* As they are now, the same ids, ranges too: what a forked child begins with. */
struct modules *modules_copy(const struct modules *mods);
/*
 * A table for several address spaces has no ranges, only the files that their own tables name: the id there
 * of a module of such a table, which is added if it isn't there. One for the same file, wherever it lies; the vdso
 * is the same everywhere. 0: the table is full.
 */
uint32_t modules_adopt(struct modules *mods, const struct module *of);

/* One executable or other file mapping as /proc/PID/maps has it. */
struct mapping {
	uint64_t start, end, offset, dev, inode;
	uint8_t prot;		/* PROT_READ | PROT_WRITE | PROT_EXEC */
	bool shared;
	const char *path;	/* "" for anonymous; as in maps but unescaped */
	bool deleted;		/* " (deleted)" was cut off the path */
};

/* How a mapping's file is opened: returns a descriptor or -1. ctx is the caller's. */
typedef int (*modules_open_fn)(void *ctx, const struct mapping *map);

/*
 * Replace the address ranges by those of `maps` (sorted by start, n of them). New files are
 * opened with `open_fn`; known ones keep their ids; absent ones become `gone`. Returns true
 * if the set of ranges changed.
 */
bool modules_update(struct modules *mods, const struct mapping *maps, size_t n,
		    modules_open_fn open_fn, void *ctx);

/* The module whose *executable* range holds pc, NULL if none. vaddr = pc - bias. */
const struct module *modules_find(const struct modules *mods, uint64_t pc);

/* Where that range starts; 0 if there is none. What "[anon]" holds is told apart by it. */
uint64_t modules_range_start(const struct modules *mods, uint64_t pc);

size_t modules_count(const struct modules *mods);	/* ids 1 .. count */
/* Any thread; NULL for 0 and for ids not given out. Valid for the table's life. */
const struct module *module_get(const struct modules *mods, uint32_t id);

#endif
