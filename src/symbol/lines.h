/*
 * Debug info by address: the function, its source line, and the functions inlined there. For
 * one ELF file; reads lazily, a compilation unit at a time, and keeps what it read. Used by one
 * thread at a time; takes the file's dwarf lock by itself.
 */
#ifndef HEAPTOP_SYMBOL_LINES_H
#define HEAPTOP_SYMBOL_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;
struct lines;

/* Strings are libdw's: raw, alive as long as the file. */
struct line_frame {
	const char *linkage;	/* mangled name, NULL if there is none */
	const char *name;	/* DW_AT_name, NULL if no function is known there */
	const char *file;	/* NULL if unknown */
	uint32_t line;		/* 0 if unknown */
	const char *dir;	/* where it was compiled: what a relative file is relative to; NULL if unknown */
	bool inlined;
};

struct lines *lines_create(struct elf_file *file);
void lines_destroy(struct lines *lines);	/* accepts NULL */

/*
 * The frames at vaddr, innermost first, the real function last; at most max (inner ones are kept
 * with the real one). 0: no debug info covers vaddr. One frame without name: only the line is
 * known.
 */
size_t lines_at(struct lines *lines, uint64_t vaddr, struct line_frame *out, size_t max);

#endif
