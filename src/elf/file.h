/*
 * An ELF file, not a process: sections, symbols, build-id, bytes, CFI handle. Opened once per
 * distinct file and shared by all processes that have it mapped; the descriptor stays open, so the file can be
 * read after its process has gone. Read lazily; immutable once opened, except for the caches
 * inside, which have their own lock: any thread. The file is untrusted: what is malformed is
 * "not there".
 *
 * Addresses are "vaddr": ELF virtual addresses as linked. A process adds the module's bias.
 */
#ifndef HEAPTOP_ELF_FILE_H
#define HEAPTOP_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct elf_file;	/* reference-counted */

/*
 * Open through `fd` (taken over, closed with the file, also on failure); `path` is for
 * messages and for finding debug files. Only x86-64 and arm64 little-endian ELF64 executables
 * and shared objects; others fail with ERR_UNSUPPORTED / ERR_BAD_INPUT. A file that is open already
 * (same device, inode, size, modification time and path) is not opened again: *ret is the same object,
 * with one more reference. Any thread.
 */
struct err *elf_file_open(int fd, const char *path, struct elf_file **ret);
struct elf_file *elf_file_ref(struct elf_file *file);
void elf_file_unref(struct elf_file *file);	/* accepts NULL */

const char *elf_file_path(const struct elf_file *file);
/* The descriptor it was opened through; the file's. */
int elf_file_fd(const struct elf_file *file);
/* NT_GNU_BUILD_ID as lower-case hex, "" if there is none. */
const char *elf_file_build_id(const struct elf_file *file);
/* ELF e_machine, e_type (ET_DYN or ET_EXEC), e_entry (vaddr). */
int elf_file_machine(const struct elf_file *file);
int elf_file_type(const struct elf_file *file);
uint64_t elf_file_entry(const struct elf_file *file);

/*
 * vaddr of the byte at file offset `offset` by the PT_LOAD segments; false if no segment maps it.
 * The bias of a mapping (start, offset) is start - vaddr(offset), all rounded to pages by the
 * caller's mapping itself.
 */
bool elf_file_offset_to_vaddr(const struct elf_file *file, uint64_t offset, uint64_t *ret);

/* The other way round: file offset of the byte at vaddr; false if it isn't in the file. */
bool elf_file_vaddr_to_offset(const struct elf_file *file, uint64_t vaddr, uint64_t *ret);

/*
 * Bytes of the file image at vaddr (.bss part reads as zeroes): at most len, returns how many
 * from vaddr on are there. What the loader put at bias+vaddr before relocation.
 */
size_t elf_file_read(const struct elf_file *file, uint64_t vaddr, void *buf, size_t len);

struct elf_func {
	uint64_t vaddr;
	uint64_t size;		/* st_size, may be 0 */
	const char *name;	/* points into the file's string table, lives as long as the file */
	bool global;		/* STB_GLOBAL or STB_WEAK */
};

/*
 * Every *defined* STT_FUNC symbol (never IFUNC, never undefined, never with a value of 0)
 * named exactly one of names[0..n) (a version behind '@' aside), from .dynsym and .symtab (of a
 * stripped program: of its separate debug file), each of these names once for each vaddr it has;
 * global and weak ones first.
 * Writes at most `max` to out, returns how many. Symbol counts come from the section, or
 * DT_HASH / DT_GNU_HASH.
 */
size_t elf_file_find_functions(struct elf_file *file, const char *const *names, size_t n,
			       struct elf_func *out, size_t max);

/* vaddr of a defined symbol of any type (e.g. "_r_debug"), 0 if there is none. */
uint64_t elf_file_find_symbol(struct elf_file *file, const char *name);

/*
 * Name of the symbol whose address the dynamic linker writes to vaddr (a slot of the GOT), by the
 * relocations against .dynsym; NULL if there is none. Lives as long as the file.
 */
const char *elf_file_import_at(struct elf_file *file, uint64_t vaddr);

/*
 * The function that contains vaddr, by symbol tables (the largest start <= vaddr whose size
 * covers it, or whose size is 0 and no other starts between). Separate debug files count too
 * (build-id under /usr/lib/debug/.build-id, .gnu_debuglink). False if none.
 */
bool elf_file_function_at(struct elf_file *file, uint64_t vaddr, struct elf_func *ret);

/* Neither the file nor, for a program, its separate debug file has the table of all its symbols. */
bool elf_file_is_stripped(struct elf_file *file);

/*
 * Where the function that holds vaddr starts and how long it is, by the file's own symbol tables in one
 * pass over them: no separate debug file, no index, and so for code that can't wait. Where none holds
 * it, the nearest label before it, with a size of 0; false if there is none either.
 */
bool elf_file_symbol_at(struct elf_file *file, uint64_t vaddr, uint64_t *ret_start, uint64_t *ret_size);

/*
 * libdw's handles for symbol/ and unwind/, NULL where the file has none; they live as long as
 * the file. Calls on them are not thread-safe: hold the lock that goes with the handle
 * around every use. Both locks are recursive, and independent: a long look into debug info
 * doesn't hold up the unwinder.
 * elf_file_eh_cfi: from .eh_frame, by program header where there are no sections;
 * elf_file_debug_cfi: .debug_frame, of the separate debug file if need be. Lock:
 * elf_file_lock .. elf_file_unlock. The addresses in both are vaddrs (*ret_bias is always 0,
 * and ret_bias may be NULL).
 * elf_file_dwarf: debug info, of the separate debug file if there is one (and the bias is the
 * same vaddr space). Lock: elf_file_dwarf_lock .. elf_file_dwarf_unlock.
 */
struct Dwarf_CFI_s;
struct Dwarf;
void elf_file_lock(struct elf_file *file);
void elf_file_unlock(struct elf_file *file);
void elf_file_dwarf_lock(struct elf_file *file);
void elf_file_dwarf_unlock(struct elf_file *file);
struct Dwarf_CFI_s *elf_file_eh_cfi(struct elf_file *file, int64_t *ret_bias);
struct Dwarf_CFI_s *elf_file_debug_cfi(struct elf_file *file);
struct Dwarf *elf_file_dwarf(struct elf_file *file);

/* .eh_frame_hdr: vaddr and size of the section / PT_GNU_EH_FRAME segment; false if none. */
bool elf_file_eh_frame_hdr(const struct elf_file *file, uint64_t *ret_vaddr, uint64_t *ret_size);

#endif
