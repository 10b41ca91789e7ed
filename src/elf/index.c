/*
 * Functions by address. All symbol tables of a file (.dynsym, .symtab, .symtab of its separate
 * debug file) go into one array sorted by start, one entry a start: of several names for one
 * place the best is kept. That takes some tens of milliseconds for a program with 300,000 symbols, and a pass
 * over its tables half of one: the first questions are answered by such passes, so that a screenful of
 * names is there at once and a program that never asks for more has no index.
 *
 * Symbols may lie inside each other (a hand-written label, a cold part within a function).
 * `outer` links each entry to the nearest earlier one that reaches beyond its start; the
 * functions that hold an address are on that chain from the nearest start on: if p isn't on the
 * chain of i, some entry between ended p's claim, p ends before i starts.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "elf/internal.h"

#define SCANS 32		/* questions before the index is built */
#define SCANS_FROM 10000	/* symbols; below it is built at once */
#define SYMBOLS_MAX 50000000u	/* 1.2 GB of table: beyond any real program */

static uint64_t end_of(const struct elf_index_entry *e)
{
	return e->start + e->size;
}

/*
 * Which name of a place is shown: functions before bare labels, exported before local, few leading
 * underscores before many (puts, not _IO_puts; malloc, not __libc_malloc).
 */
static uint8_t rank_of(const Elf64_Sym *sym, const char *name)
{
	unsigned underscores = 0;
	uint8_t rank = 0;

	while (name[underscores] == '_' && underscores < 15)
		underscores++;
	if (name[0] == '_' && (name[1] == 'Z' || name[1] == 'R'))
		underscores = 0;	/* mangled */
	if (ELF64_ST_TYPE(sym->st_info) != STT_NOTYPE)
		rank |= 64;
	if (ELF64_ST_BIND(sym->st_info) != STB_LOCAL)
		rank |= 32;
	if (sym->st_size)
		rank |= 16;
	return rank | (uint8_t)(15 - underscores);
}

static bool in_code(const struct elf_file *file, uint64_t vaddr)
{
	for (size_t i = 0; i < file->nsegs; i++)
		if (file->segs[i].exec && vaddr >= file->segs[i].vaddr &&
		    vaddr - file->segs[i].vaddr < file->segs[i].memsz)
			return true;
	return false;
}

static bool is_wanted(const struct elf_file *file, const Elf64_Sym *sym, const char *name)
{
	int type = ELF64_ST_TYPE(sym->st_info);

	if (sym->st_shndx == SHN_UNDEF || !sym->st_value || !name || !*name ||
	    !in_code(file, sym->st_value))
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	/* labels in assembly; not the marks $x and .L that assemblers leave */
	return type == STT_NOTYPE && name[0] != '$' && name[0] != '.';
}

static struct elf_index_entry entry_of(const struct elf_symtab *t, uint8_t tab, size_t i)
{
	const Elf64_Sym *sym = &t->syms[i];

	return (struct elf_index_entry){
		.start = sym->st_value,
		.size = sym->st_size < UINT32_MAX ? (uint32_t)sym->st_size : UINT32_MAX,
		.name = sym->st_name,
		.tab = tab,
		.rank = rank_of(sym, elf_symtab_name(t, sym->st_name)),
		.global = ELF64_ST_BIND(sym->st_info) != STB_LOCAL,
	};
}

static void add_tab(struct elf_index *index, size_t *cap, const struct elf_file *file, uint8_t tab)
{
	const struct elf_symtab *t = &index->tabs[tab];

	for (size_t i = 0; i < t->n && index->n < SYMBOLS_MAX; i++) {
		const Elf64_Sym *sym = &t->syms[i];
		const char *name = elf_symtab_name(t, sym->st_name);
		if (!is_wanted(file, sym, name))
			continue;
		VEC_GROW(index->items, index->n, *cap);
		index->items[index->n++] = entry_of(t, tab, i);
	}
}

static int by_start(const void *a, const void *b)
{
	const struct elf_index_entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;	/* best first */
	if (x->tab != y->tab)
		return x->tab < y->tab ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

/* Those with one start, [from, to), best first. */
static void sort_run(struct elf_index_entry *items, size_t from, size_t to)
{
	if (to - from > 1)
		qsort(items + from, to - from, sizeof(*items), by_start);
}

/*
 * By start and, where that is the same, best first. Addresses of code are close together, so counting
 * their digits from the lowest up takes three passes, where comparing takes twenty.
 */
static void sort(struct elf_index_entry *items, size_t n)
{
	enum { BITS = 11, DIGITS = 1 << BITS };
	uint64_t lo = UINT64_MAX, hi = 0;
	struct elf_index_entry *from = items, *spare = n < 64 ? NULL : malloc(n * sizeof(*spare)), *to = spare;

	if (!spare) {	/* few, or too many for another array */
		sort_run(items, 0, n);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		lo = items[i].start < lo ? items[i].start : lo;
		hi = items[i].start > hi ? items[i].start : hi;
	}
	for (unsigned shift = 0; shift < 64 && (hi - lo) >> shift; shift += BITS) {
		size_t place[DIGITS] = { 0 }, sum = 0;
		for (size_t i = 0; i < n; i++)
			place[(from[i].start - lo) >> shift & (DIGITS - 1)]++;
		for (size_t d = 0; d < DIGITS; d++) {
			size_t count = place[d];
			place[d] = sum;
			sum += count;
		}
		for (size_t i = 0; i < n; i++)
			to[place[(from[i].start - lo) >> shift & (DIGITS - 1)]++] = from[i];
		struct elf_index_entry *swap = from;
		from = to;
		to = swap;
	}
	if (from != items)
		memcpy(items, from, n * sizeof(*items));
	free(spare);
	size_t run = 0;
	for (size_t i = 1; i <= n; i++) {
		if (i < n && items[i].start == items[run].start)
			continue;
		sort_run(items, run, i);
		run = i;
	}
}

/* Keep the best name of each start, with the largest size any of its names has. */
static void keep_best(struct elf_index *index)
{
	size_t n = 0;

	for (size_t i = 0; i < index->n; i++) {
		if (n && index->items[n - 1].start == index->items[i].start) {
			if (index->items[n - 1].size < index->items[i].size)
				index->items[n - 1].size = index->items[i].size;
			continue;
		}
		index->items[n++] = index->items[i];
	}
	index->n = n;
}

static void link_outer(struct elf_index *index)
{
	for (size_t i = 0; i < index->n; i++) {
		struct elf_index_entry *e = &index->items[i];
		uint32_t p = i ? (uint32_t)i - 1 : INDEX_NONE;
		while (p != INDEX_NONE && end_of(&index->items[p]) <= e->start)
			p = index->items[p].outer;
		e->outer = p;
	}
}

static void set_tabs(struct elf_file *file)
{
	struct elf_index *index = &file->index;

	index->tabs_set = true;
	elf_file_dwarf(file);	/* opens the separate debug file */
	elf_file_read_tabs(file);
	index->tabs[0] = file->dynsym;
	index->tabs[1] = file->symtab;
	if (file->debug.elf && file->debug.fd >= 0)
		elf_symtab_read(file->debug.elf, SHT_SYMTAB, &index->tabs[2]);
}

static void build(struct elf_file *file)
{
	struct elf_index *index = &file->index;
	size_t cap = 0;

	index->built = true;
	for (uint8_t tab = 0; tab < INDEX_TABS; tab++)
		add_tab(index, &cap, file, tab);
	if (!index->n)
		return;
	sort(index->items, index->n);
	keep_best(index);
	link_outer(index);
}

/* The last entry with start <= vaddr, INDEX_NONE if there is none. */
static uint32_t last_at_or_before(const struct elf_index *index, uint64_t vaddr)
{
	size_t lo = 0, hi = index->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (index->items[mid].start <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? (uint32_t)lo - 1 : INDEX_NONE;
}

/* Assembly without .size reaches as far as the next symbol, but not into the next segment. */
static bool reaches(const struct elf_file *file, uint64_t start, uint64_t vaddr)
{
	if (!in_code(file, vaddr))
		return false;
	for (size_t i = 0; i < file->nsegs; i++) {
		const struct elf_segment *seg = &file->segs[i];
		if (seg->vaddr <= vaddr && seg->vaddr > start)
			return false;
	}
	return true;
}

/* Index of the entry whose function holds vaddr, INDEX_NONE if there is none. */
static uint32_t find_entry(const struct elf_file *file, uint64_t vaddr)
{
	const struct elf_index *index = &file->index;
	uint32_t nearest = last_at_or_before(index, vaddr);

	for (uint32_t i = nearest; i != INDEX_NONE; i = index->items[i].outer)
		if (vaddr < end_of(&index->items[i]))
			return i;
	if (nearest == INDEX_NONE || index->items[nearest].size ||
	    !reaches(file, index->items[nearest].start, vaddr))
		return INDEX_NONE;
	return nearest;
}

/* ---- without the index ---- */

/*
 * The start of the function that holds vaddr, 0 if there is none: the largest start of one that
 * covers it, else the largest start at all (*ret_nearest), if all symbols there have no size.
 */
static uint64_t scan_start(const struct elf_file *file, uint64_t vaddr, bool *ret_nearest)
{
	uint64_t covering = 0, nearest = 0;

	for (size_t tab = 0; tab < INDEX_TABS; tab++) {
		const struct elf_symtab *t = &file->index.tabs[tab];
		for (size_t i = 0; i < t->n; i++) {
			const Elf64_Sym *sym = &t->syms[i];
			uint64_t start = sym->st_value;
			/* most are done with here: what is left is nearer than all before */
			bool covers = vaddr - start < (sym->st_size < UINT32_MAX ? sym->st_size : UINT32_MAX);
			if (start > vaddr || (start <= nearest && !(covers && start > covering)) ||
			    !is_wanted(file, sym, elf_symtab_name(t, sym->st_name)))
				continue;
			nearest = start > nearest ? start : nearest;
			covering = covers && start > covering ? start : covering;
		}
	}
	*ret_nearest = !covering;
	return covering ? covering : nearest;
}

/* What keep_best() would leave of the symbols at `start`. */
static struct elf_index_entry scan_best(const struct elf_file *file, uint64_t start)
{
	struct elf_index_entry best = { 0 };
	uint32_t size = 0;

	for (uint8_t tab = 0; tab < INDEX_TABS; tab++) {
		const struct elf_symtab *t = &file->index.tabs[tab];
		for (size_t i = 0; i < t->n; i++) {
			const Elf64_Sym *sym = &t->syms[i];
			if (sym->st_value != start ||
			    !is_wanted(file, sym, elf_symtab_name(t, sym->st_name)))
				continue;
			struct elf_index_entry e = entry_of(t, tab, i);
			size = e.size > size ? e.size : size;
			if (!best.start || by_start(&e, &best) < 0)
				best = e;
		}
	}
	best.size = size;
	return best;
}

static bool scan(const struct elf_file *file, uint64_t vaddr, struct elf_index_entry *ret)
{
	bool nearest;
	uint64_t start = scan_start(file, vaddr, &nearest);

	if (!start)
		return false;
	*ret = scan_best(file, start);
	return !nearest || (!ret->size && reaches(file, start, vaddr));
}

/* By passes over the tables for now. */
static bool may_scan(struct elf_index *index)
{
	size_t n = 0;

	for (size_t tab = 0; tab < INDEX_TABS; tab++)
		n += index->tabs[tab].n;
	return !index->built && n > SCANS_FROM && index->scans++ < SCANS;
}

bool elf_file_function_at(struct elf_file *file, uint64_t vaddr, struct elf_func *ret)
{
	struct elf_index *index = &file->index;
	struct elf_index_entry e = { 0 };
	bool found;

	elf_file_dwarf_lock(file);
	if (!index->tabs_set)
		set_tabs(file);
	if (may_scan(index)) {
		found = scan(file, vaddr, &e);
	} else {
		if (!index->built)
			build(file);
		uint32_t i = find_entry(file, vaddr);
		found = i != INDEX_NONE;
		if (found)
			e = index->items[i];
	}
	elf_file_dwarf_unlock(file);
	if (!found)
		return false;
	/* the tables don't change once read */
	*ret = (struct elf_func){
		.vaddr = e.start,
		.size = e.size,
		.name = elf_symtab_name(&index->tabs[e.tab], e.name),
		.global = e.global,
	};
	return true;
}

void elf_index_deinit(struct elf_index *index)
{
	free(index->items);
}
