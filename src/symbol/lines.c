/*
 * From address to compilation unit, function, inlined functions and line, through libdw; see
 * lines.h. libdw's own dwarf_addrdie knows only .debug_aranges, which clang doesn't write, and
 * dwarf_getscopes walks a unit's whole tree at each call. So: a table of all units' ranges for the
 * file, a table of functions for each unit that was asked for, and from there down only
 * the branches that hold the address.
 *
 * Sibling references in a hostile file can make a tree its own branch. So siblings must move
 * forward, depth is bounded, and each walk has a budget of entries.
 */
#include "symbol/lines.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "elf/file.h"

#define INLINE_DEPTH 64		/* inlined frames at one address; gcc's own limit is far below */
#define SCOPE_DEPTH 256		/* blocks and inlines within each other */
#define NAMESPACE_DEPTH 32
#define UNIT_BUDGET 20000000	/* entries and ranges looked at for one unit's table */
#define LOOKUP_BUDGET 2000000	/* for one address */
#define UNITS_BUDGET 50000000	/* for all units' ranges */
#define OVERLAP 64		/* ranges that may begin between one and an address it holds */

struct span {
	uint64_t lo, hi;	/* hi is outside */
	uint64_t what;		/* index of the unit, or offset of the function's entry */
};

struct span_table {
	struct span *items;
	size_t n, cap;
};

struct unit {
	Dwarf_Off off;		/* of its top entry */
	bool read;
	struct span_table funcs;
};

struct lines {
	struct elf_file *file;
	bool read;
	Dwarf *dwarf;
	struct unit *units;
	size_t nunits, units_cap;
	struct span_table ranges;
};

struct lines *lines_create(struct elf_file *file)
{
	struct lines *lines = xcalloc(1, sizeof(*lines));

	lines->file = elf_file_ref(file);
	return lines;
}

void lines_destroy(struct lines *lines)
{
	if (!lines)
		return;
	for (size_t i = 0; i < lines->nunits; i++)
		free(lines->units[i].funcs.items);
	free(lines->units);
	free(lines->ranges.items);
	elf_file_unref(lines->file);
	free(lines);
}

static int by_lo(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return (x->hi < y->hi) - (x->hi > y->hi);	/* inner ones later: found first */
}

static void span_sort(struct span_table *table)
{
	if (table->n)
		qsort(table->items, table->n, sizeof(*table->items), by_lo);
}

static const struct span *span_find(const struct span_table *table, uint64_t vaddr)
{
	size_t lo = 0, hi = table->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (table->items[mid].lo <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (size_t i = lo; i > 0 && lo - i < OVERLAP; i--)
		if (vaddr < table->items[i - 1].hi)
			return &table->items[i - 1];
	return NULL;
}

/* All address ranges of an entry. Those at 0 belonged to code the linker threw away. */
static void add_ranges(struct span_table *table, Dwarf_Die *die, uint64_t what, long *budget)
{
	Dwarf_Addr base, lo, hi;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &lo, &hi)) > 0 && --*budget > 0) {
		if (lo <= 1 || hi <= lo)
			continue;
		VEC_GROW(table->items, table->n, table->cap);
		table->items[table->n++] = (struct span){ .lo = lo, .hi = hi, .what = what };
	}
}

static void read_units(struct lines *lines)
{
	Dwarf_CU *cu = NULL;
	uint8_t type;
	Dwarf_Die die;
	long budget = UNITS_BUDGET;

	lines->read = true;
	lines->dwarf = elf_file_dwarf(lines->file);
	if (!lines->dwarf)
		return;
	/* no `subdie`: libdw would open .dwo files wherever the skeleton says */
	while (!dwarf_get_units(lines->dwarf, cu, &cu, NULL, &type, &die, NULL) && --budget > 0) {
		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue;
		VEC_GROW(lines->units, lines->nunits, lines->units_cap);
		add_ranges(&lines->ranges, &die, lines->nunits, &budget);
		lines->units[lines->nunits++] = (struct unit){ .off = dwarf_dieoffset(&die) };
	}
	span_sort(&lines->ranges);
}

/* To the next sibling, only ever forward. */
static bool next_sibling(Dwarf_Die *die)
{
	Dwarf_Off before = dwarf_dieoffset(die);

	return !dwarf_siblingof(die, die) && dwarf_dieoffset(die) > before;
}

static void read_funcs(struct unit *unit, Dwarf_Die *parent, int depth, long *budget)
{
	Dwarf_Die die;

	if (depth > NAMESPACE_DEPTH || dwarf_child(parent, &die))
		return;
	do {
		switch (dwarf_tag(&die)) {
		case DW_TAG_subprogram:
			add_ranges(&unit->funcs, &die, dwarf_dieoffset(&die), budget);
			break;
		case DW_TAG_namespace:	/* Rust defines its functions in there, and in types */
		case DW_TAG_module:
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
		case DW_TAG_enumeration_type:
			read_funcs(unit, &die, depth + 1, budget);
			break;
		}
	} while (--*budget > 0 && next_sibling(&die));
}

static struct unit *find_unit(struct lines *lines, uint64_t vaddr, Dwarf_Die *ret_die)
{
	const struct span *span = span_find(&lines->ranges, vaddr);

	if (!span)
		return NULL;
	struct unit *unit = &lines->units[span->what];
	if (!dwarf_offdie(lines->dwarf, unit->off, ret_die))
		return NULL;
	if (!unit->read) {
		long budget = UNIT_BUDGET;
		unit->read = true;
		read_funcs(unit, ret_die, 0, &budget);
		span_sort(&unit->funcs);
	}
	return unit;
}

struct chain {
	Dwarf_Die dies[INLINE_DEPTH];	/* [0] is the real function, then inward */
	size_t n;
	long budget;
};

static bool has_no_range(Dwarf_Die *die)
{
	return !dwarf_hasattr(die, DW_AT_low_pc) && !dwarf_hasattr(die, DW_AT_ranges);
}

/* Append the inlined functions below `scope` that hold vaddr. True if a branch held it. */
static bool descend(struct chain *chain, Dwarf_Die *scope, uint64_t vaddr, int depth)
{
	Dwarf_Die die;

	if (depth > SCOPE_DEPTH || dwarf_child(scope, &die))
		return false;
	do {
		int tag = dwarf_tag(&die);
		if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_lexical_block &&
		    tag != DW_TAG_try_block && tag != DW_TAG_catch_block)
			continue;
		if (dwarf_haspc(&die, vaddr) > 0) {
			if (tag == DW_TAG_inlined_subroutine && chain->n < INLINE_DEPTH)
				chain->dies[chain->n++] = die;
			descend(chain, &die, vaddr, depth + 1);
			return true;
		}
		if (tag == DW_TAG_lexical_block && has_no_range(&die) &&
		    descend(chain, &die, vaddr, depth + 1))
			return true;
	} while (--chain->budget > 0 && next_sibling(&die));
	return false;
}

static const char *linkage_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;

	/* the second is what gcc wrote before DWARF 4 */
	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		return dwarf_formstring(&attr);
	return NULL;
}

static bool number(Dwarf_Die *die, unsigned at, Dwarf_Word *ret)
{
	Dwarf_Attribute attr;

	return dwarf_attr(die, at, &attr) && !dwarf_formudata(&attr, ret);
}

static const char *compile_dir(Dwarf_Die *unit_die)
{
	Dwarf_Attribute attr;

	return dwarf_attr(unit_die, DW_AT_comp_dir, &attr) ? dwarf_formstring(&attr) : NULL;
}

/* Where an inlined function was called: a line of the function around it. */
static void call_site(Dwarf_Die *unit_die, Dwarf_Die *inlined, struct line_frame *frame)
{
	Dwarf_Files *files;
	size_t n;
	Dwarf_Word file, line;

	if (!number(inlined, DW_AT_call_file, &file) ||
	    dwarf_getsrcfiles(unit_die, &files, &n) || file >= n)
		return;
	/* file 0 is the unit's own since DWARF 5 and was "none" before; libdw says "???" then */
	const char *path = dwarf_filesrc(files, file, NULL, NULL);
	if (!path || !strcmp(path, "???"))
		return;
	frame->file = path;
	if (number(inlined, DW_AT_call_line, &line) && line <= UINT32_MAX)
		frame->line = (uint32_t)line;
}

/*
 * The line table's word on vaddr. LLVM gives line 0 to instructions that belong to several lines
 * at once: then the row before it, as long as that is the same file and still in `scope`.
 */
static void source_line(Dwarf_Die *unit_die, Dwarf_Die *scope, uint64_t vaddr,
			struct line_frame *frame)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit_die, vaddr);

	for (int i = 0; line && i < 8; i++) {
		const char *path = dwarf_linesrc(line, NULL, NULL);
		Dwarf_Addr start;
		int no;
		if (!path || (frame->file && strcmp(frame->file, path)) || dwarf_lineno(line, &no))
			return;
		frame->file = path;
		if (no > 0) {
			frame->line = (uint32_t)no;
			return;
		}
		if (!scope || dwarf_lineaddr(line, &start) || !start ||
		    dwarf_haspc(scope, start - 1) <= 0)
			return;
		line = dwarf_getsrc_die(unit_die, start - 1);
	}
}

static size_t read_frames(struct lines *lines, uint64_t vaddr, struct line_frame *out, size_t max)
{
	Dwarf_Die unit_die;
	struct unit *unit = find_unit(lines, vaddr, &unit_die);

	if (!unit)
		return 0;
	struct chain *chain = xcalloc(1, sizeof(*chain));
	const struct span *func = span_find(&unit->funcs, vaddr);
	if (func && dwarf_offdie(lines->dwarf, func->what, &chain->dies[0])) {
		chain->n = 1;
		chain->budget = LOOKUP_BUDGET;
		descend(chain, &chain->dies[0], vaddr, 0);
	}

	size_t n = 0;
	struct line_frame frame = { 0 };
	source_line(&unit_die, chain->n ? &chain->dies[chain->n - 1] : NULL, vaddr, &frame);
	for (size_t i = chain->n; i-- > 0;) {
		Dwarf_Die *die = &chain->dies[i];
		frame.linkage = linkage_name(die);
		frame.name = dwarf_diename(die);
		frame.inlined = i > 0;
		if (n < max - 1 || i == 0)
			out[n++] = frame;
		frame = (struct line_frame){ 0 };
		if (i)
			call_site(&unit_die, die, &frame);
	}
	if (!chain->n && frame.file)
		out[n++] = frame;
	free(chain);
	const char *dir = compile_dir(&unit_die);
	for (size_t i = 0; i < n; i++)
		out[i].dir = dir;
	return n;
}

size_t lines_at(struct lines *lines, uint64_t vaddr, struct line_frame *out, size_t max)
{
	size_t n = 0;

	if (!max)
		return 0;
	elf_file_dwarf_lock(lines->file);
	if (!lines->read)
		read_units(lines);
	if (lines->dwarf)
		n = read_frames(lines, vaddr, out, max);
	elf_file_dwarf_unlock(lines->file);
	return n;
}
