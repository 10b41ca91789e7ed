/*
 * What the files of elf/ share about an open ELF file, and nobody else sees.
 *
 * Two locks, so that reading a big program's names never holds up the unwinder: `lock` guards
 * the file's own libelf handle, its symbol tables and CFI; `debug_lock` the handle for debug info
 * and the symbol index. Both are recursive (the public functions lock by themselves, callers
 * may hold a lock around several). Order: debug_lock before lock.
 */
#ifndef HEAPTOP_ELF_INTERNAL_H
#define HEAPTOP_ELF_INTERNAL_H

#include <elf.h>
#include <elfutils/libdw.h>
#include <libelf.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "elf/file.h"

#define BUILD_ID_MAX 64		/* bytes; SHA-1 has 20 */

/* A PT_LOAD whose sums are known not to overflow and that lies in page-congruent places. */
struct elf_segment {
	uint64_t offset, vaddr;
	uint64_t filesz, memsz;
	bool exec;
};

/* One symbol table as libelf handed it out; the memory is the handle's. */
struct elf_symtab {
	const Elf64_Sym *syms;
	size_t n;
	const char *strs;
	size_t strs_len;	/* up to and with its last NUL: an st_name below is a string */
};

/* A libdw handle with all that has to be released with it. */
struct elf_debug {
	int fd;			/* -1: none of its own */
	Elf *elf;
	Dwarf *dwarf;
	int alt_fd;		/* the supplementary file made by dwz */
	Elf *alt_elf;
	Dwarf *alt;
};

struct elf_index_entry {
	uint64_t start;
	uint32_t size;
	uint32_t outer;		/* nearest earlier entry reaching beyond our start, or INDEX_NONE */
	uint32_t name;		/* st_name in table `tab` */
	uint8_t tab;
	uint8_t rank;		/* which of several names of one place is shown: highest */
	bool global;
};
#define INDEX_NONE UINT32_MAX
#define INDEX_TABS 3		/* .dynsym, .symtab, .symtab of the separate debug file */

/* Every function of the file by address: one entry a start. */
struct elf_index {
	bool tabs_set, built;
	unsigned scans;		/* questions answered without it */
	struct elf_index_entry *items;
	size_t n;
	struct elf_symtab tabs[INDEX_TABS];
};

struct elf_file {
	int refs;		/* atomic; to 0 only by elf_shared_drop */
	struct elf_file *next_shared;	/* shared.c's, under its lock */

	/* Immutable once open. */
	int fd;
	char *path;
	char build_id[2 * BUILD_ID_MAX + 1];
	uint16_t machine, type;
	uint64_t entry;
	struct elf_segment *segs;
	size_t nsegs;
	uint64_t eh_hdr_vaddr, eh_hdr_size;	/* size 0: none */
	uint64_t dynamic_vaddr, dynamic_size;
	uint64_t size, dev, inode;
	struct timespec mtime;
	bool may_map;		/* nobody but root can shorten it under our feet */

	pthread_mutex_t lock;
	Elf *elf;
	bool tabs_read;
	struct elf_symtab dynsym, symtab;	/* symtab: of a stripped program, that of its separate file */
	struct elf_debug symbols;		/* that file; no DWARF */
	void *dynsym_mem, *dynstr_mem;	/* copies, where there are no section headers */
	bool eh_tried;
	Dwarf_CFI *eh_cfi;
	bool debug_cfi_tried;
	struct elf_debug debug_frame;	/* its own handle: used under `lock` */
	Dwarf_CFI *debug_cfi;

	pthread_mutex_t debug_lock;
	bool debug_tried;
	struct elf_debug debug;
	struct elf_index index;
};

/* ---- file.c ---- */
/* Loaded with `bias`, some segment puts file offset `offset` at address `start`. */
bool elf_file_fits(const struct elf_file *file, uint64_t start, uint64_t offset, uint64_t bias);
/* Bias of an executable mapping, by the executable segments first; false if none holds offset. */
bool elf_file_exec_bias(const struct elf_file *file, uint64_t start, uint64_t offset,
			uint64_t *ret);
/* A libelf handle on fd; through mmap only if `may_map`, as a file cut short is a SIGBUS. */
Elf *elf_handle(int fd, bool may_map);
/* A regular file owned by root that others can't write to. */
struct stat;
bool elf_may_map(const struct stat *st);

/* ---- shared.c; any thread ---- */
/* The open file of that device, inode, size, modification time and (sanitised) path, with a reference
 * for the caller; or NULL. */
struct elf_file *elf_shared_find(const struct stat *st, const char *path);
/* Let others find `file`. If another thread has added the same one meanwhile, that is returned, with a
 * reference, and `file` not added; else NULL. */
struct elf_file *elf_shared_add(struct elf_file *file, const struct stat *st);
/* Give one reference up. True: it was the last one, nobody will find the file any more, free it. */
bool elf_shared_drop(struct elf_file *file);

/* ---- note.c ---- */
/* Build-id among the notes in buf, as bytes: its length, 0 if there is none. */
size_t elf_note_build_id(const uint8_t *buf, size_t len, uint8_t ret[BUILD_ID_MAX]);
/* Build-id by section headers (program headers of separate debug files point nowhere). */
size_t elf_section_build_id(Elf *elf, uint8_t ret[BUILD_ID_MAX]);
void elf_build_id_hex(const uint8_t *id, size_t len, char ret[2 * BUILD_ID_MAX + 1]);
/* The section of that name with its header, NULL if there is none or it has no bytes here. */
Elf_Scn *elf_section(Elf *elf, const char *name, Elf64_Shdr *ret);

/* ---- symtab.c ---- */
/* The first table of section type `type` (SHT_SYMTAB, SHT_DYNSYM); false if there is none. */
bool elf_symtab_read(Elf *elf, uint32_t type, struct elf_symtab *ret);
/* .dynsym and .symtab of the file itself; under `lock`. */
void elf_file_read_tabs(struct elf_file *file);
/* The string at st_name, NULL if it isn't one. */
const char *elf_symtab_name(const struct elf_symtab *tab, uint32_t st_name);

/* ---- index.c ---- */
void elf_index_deinit(struct elf_index *index);

/* ---- debugfile.c ---- */
/* Debug info of the file, or of its separate debug file if it has none. False: nowhere. Under
 * `lock` or `debug_lock`. `section`: the section that must be there (".debug_info"). */
bool elf_debug_open(struct elf_file *file, const char *section, struct elf_debug *ret);
/* The separate debug file for its symbols alone: nothing of its DWARF is read. False: nowhere. */
bool elf_debug_open_symbols(struct elf_file *file, struct elf_debug *ret);
void elf_debug_close(struct elf_debug *debug);

#endif
