/*
 * Symbol tables: .dynsym and .symtab through libelf, and .dynsym through the dynamic segment of
 * files whose section headers were cut off. Here they are searched by name, one pass each; by
 * address is index.c. Counts come from the section or the hash tables, never from guesses.
 */
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/ending.h"
#include "base/mem.h"
#include "elf/internal.h"

#define NO_SECTIONS_SYMS_MAX (1u << 22)	/* symbols believed from a bare dynamic segment */
#define NO_SECTIONS_STR_MAX (1u << 28)

static size_t up_to_last_nul(const char *strs, size_t len)
{
	const char *nul = len ? memrchr(strs, 0, len) : NULL;

	return nul ? (size_t)(nul - strs) + 1 : 0;
}

const char *elf_symtab_name(const struct elf_symtab *tab, uint32_t st_name)
{
	return st_name < tab->strs_len ? tab->strs + st_name : NULL;
}

bool elf_symtab_read(Elf *elf, uint32_t type, struct elf_symtab *ret)
{
	Elf_Scn *scn = NULL;

	for (int i = 0; i < 65536 && (scn = elf_nextscn(elf, scn)); i++) {
		Elf64_Shdr *sh = elf64_getshdr(scn);
		if (!sh || sh->sh_type != type || sh->sh_entsize != sizeof(Elf64_Sym))
			continue;
		Elf_Scn *str_scn = elf_getscn(elf, sh->sh_link);
		Elf64_Shdr *str_sh = str_scn ? elf64_getshdr(str_scn) : NULL;
		if (!str_sh || str_sh->sh_type != SHT_STRTAB)
			continue;
		/* elf_getdata: converted and aligned; our formats are the host's own */
		Elf_Data *syms = elf_getdata(scn, NULL);
		Elf_Data *strs = elf_getdata(str_scn, NULL);
		if (!syms || !syms->d_buf || !strs || !strs->d_buf)
			continue;
		ret->syms = syms->d_buf;
		ret->n = syms->d_size / sizeof(Elf64_Sym);
		ret->strs = strs->d_buf;
		ret->strs_len = up_to_last_nul(strs->d_buf, strs->d_size);
		return true;
	}
	return false;
}

struct dynamic {
	uint64_t symtab, strtab, strsz, hash, gnu_hash;
};

/* Values in the file are vaddrs; in a vdso image too. */
static bool read_dynamic(const struct elf_file *file, struct dynamic *ret)
{
	*ret = (struct dynamic){ 0 };
	for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= file->dynamic_size && at < 1 << 16;
	     at += sizeof(Elf64_Dyn)) {
		Elf64_Dyn dyn;
		if (elf_file_read(file, file->dynamic_vaddr + at, &dyn, sizeof(dyn)) != sizeof(dyn))
			break;
		switch (dyn.d_tag) {
		case DT_NULL:
			return ret->symtab && ret->strtab && ret->strsz;
		case DT_SYMTAB:
			ret->symtab = dyn.d_un.d_ptr;
			break;
		case DT_STRTAB:
			ret->strtab = dyn.d_un.d_ptr;
			break;
		case DT_STRSZ:
			ret->strsz = dyn.d_un.d_val;
			break;
		case DT_HASH:
			ret->hash = dyn.d_un.d_ptr;
			break;
		case DT_GNU_HASH:
			ret->gnu_hash = dyn.d_un.d_ptr;
			break;
		}
	}
	return ret->symtab && ret->strtab && ret->strsz;
}

static bool read_u32(const struct elf_file *file, uint64_t vaddr, uint32_t *ret)
{
	return elf_file_read(file, vaddr, ret, sizeof(*ret)) == sizeof(*ret);
}

/*
 * DT_GNU_HASH: nbuckets, symoffset, bloom words, bloom shift, bloom[], buckets[], chains[]. The
 * number of symbols is one past the end of the chain that starts last (the chain's end has bit 0
 * set). https://sourceware.org/legacy-ml/binutils/2006-10/msg00377.html
 */
static uint32_t count_gnu_hash(const struct elf_file *file, uint64_t vaddr)
{
	uint32_t head[4];	/* nbuckets, symoffset, bloom words, shift */
	uint32_t last = 0;

	if (elf_file_read(file, vaddr, head, sizeof(head)) != sizeof(head) ||
	    head[0] > NO_SECTIONS_SYMS_MAX || head[2] > NO_SECTIONS_SYMS_MAX)
		return 0;
	uint64_t buckets = vaddr + sizeof(head) + (uint64_t)head[2] * 8;
	CLEANUP_FREE uint32_t *bucket = xmalloc((size_t)head[0] * 4);
	if (elf_file_read(file, buckets, bucket, (size_t)head[0] * 4) != (size_t)head[0] * 4)
		return 0;
	for (uint32_t i = 0; i < head[0]; i++)
		if (bucket[i] > last)
			last = bucket[i];
	if (last < head[1])
		return head[1];
	uint64_t chains = buckets + (uint64_t)head[0] * 4;
	while (last < NO_SECTIONS_SYMS_MAX) {
		uint32_t chain;
		if (!read_u32(file, chains + (uint64_t)(last - head[1]) * 4, &chain))
			return 0;
		last++;
		if (chain & 1)
			return last;
	}
	return 0;
}

static void read_dynsym_by_segment(struct elf_file *file)
{
	struct dynamic dyn;
	uint32_t n = 0;

	if (!read_dynamic(file, &dyn) || dyn.strsz > NO_SECTIONS_STR_MAX ||
	    dyn.strsz > file->size)
		return;
	/* DT_HASH: nbucket, nchain; nchain is the number of symbols */
	if (!dyn.hash || !read_u32(file, dyn.hash + 4, &n))
		n = dyn.gnu_hash ? count_gnu_hash(file, dyn.gnu_hash) : 0;
	if (!n || n > NO_SECTIONS_SYMS_MAX || n > file->size / sizeof(Elf64_Sym))
		return;
	file->dynsym_mem = xmalloc(n * sizeof(Elf64_Sym));
	file->dynstr_mem = xmalloc(dyn.strsz);
	size_t got = elf_file_read(file, dyn.symtab, file->dynsym_mem, n * sizeof(Elf64_Sym));
	size_t str_got = elf_file_read(file, dyn.strtab, file->dynstr_mem, dyn.strsz);
	file->dynsym = (struct elf_symtab){
		.syms = file->dynsym_mem,
		.n = got / sizeof(Elf64_Sym),
		.strs = file->dynstr_mem,
		.strs_len = up_to_last_nul(file->dynstr_mem, str_got),
	};
}

void elf_file_read_tabs(struct elf_file *file)
{
	elf_file_lock(file);
	if (!file->tabs_read) {
		file->tabs_read = true;
		/* a program may have an allocator in it that only this table tells of */
		if (!elf_symtab_read(file->elf, SHT_SYMTAB, &file->symtab) && file->entry &&
		    elf_debug_open_symbols(file, &file->symbols))
			elf_symtab_read(file->symbols.elf, SHT_SYMTAB, &file->symtab);
		if (!elf_symtab_read(file->elf, SHT_DYNSYM, &file->dynsym))
			read_dynsym_by_segment(file);
	}
	elf_file_unlock(file);
}

bool elf_file_is_stripped(struct elf_file *file)
{
	elf_file_read_tabs(file);
	return !file->symtab.n;
}

static bool is_defined(const Elf64_Sym *sym)
{
	return sym->st_shndx != SHN_UNDEF && sym->st_value;
}

/* .symtab writes versions behind the name ("malloc@@GLIBC_2.2.5"), .dynsym in another table. */
static bool name_is(const char *sym, const char *name)
{
	while (*name && *sym == *name) {
		sym++;
		name++;
	}
	return !*name && (!*sym || *sym == '@');
}

/* The same but for a version? */
static bool same_name(const char *a, const char *b)
{
	size_t len = strcspn(a, "@");

	return len == strcspn(b, "@") && !memcmp(a, b, len);
}

/* Names lie anywhere: they are fetched this many symbols ahead. */
#define AHEAD 16

static void fetch_name(const struct elf_symtab *tab, size_t i)
{
	if (i < tab->n && tab->syms[i].st_name < tab->strs_len)
		__builtin_prefetch(tab->strs + tab->syms[i].st_name);
}

/* Now and then: is the whole look-up no longer wanted? */
static bool is_over(size_t i)
{
	return !(i & 0xffff) && ending_broken_off();
}

/* A number for how a name begins: its first three bytes. */
#define LEADS 4096u

static unsigned lead_of(const char *s)
{
	unsigned h = 0;

	for (unsigned i = 0; i < 3 && s[i] && s[i] != '@'; i++)
		h = h * 61 + (uint8_t)s[i];
	return h % LEADS;
}

struct find {
	const char *const *names;
	size_t n;
	bool lead[LEADS];	/* some name begins like that: spares most comparisons */
	struct found {
		struct elf_func *out;
		size_t n, max;
	} global, local;
};

static void add_found(struct found *found, const struct elf_func *f)
{
	if (found->n == found->max)
		return;
	for (size_t k = 0; k < found->n; k++)
		if (found->out[k].vaddr == f->vaddr && same_name(found->out[k].name, f->name))
			return;
	found->out[found->n++] = *f;
}

static void find_in_tab(struct find *find, const struct elf_symtab *tab)
{
	for (size_t i = 0; i < tab->n && !is_over(i); i++) {
		const Elf64_Sym *sym = &tab->syms[i];
		int bind = ELF64_ST_BIND(sym->st_info);
		fetch_name(tab, i + AHEAD);
		if (ELF64_ST_TYPE(sym->st_info) != STT_FUNC || !is_defined(sym))
			continue;
		const char *name = elf_symtab_name(tab, sym->st_name);
		if (!name || !find->lead[lead_of(name)])
			continue;
		bool match = false;
		for (size_t k = 0; k < find->n && !match; k++)
			match = name_is(name, find->names[k]);
		if (!match)
			continue;
		bool global = bind == STB_GLOBAL || bind == STB_WEAK;
		add_found(global ? &find->global : &find->local, &(struct elf_func){
			.vaddr = sym->st_value, .size = sym->st_size, .name = name, .global = global,
		});
	}
}

size_t elf_file_find_functions(struct elf_file *file, const char *const *names, size_t n,
			       struct elf_func *out, size_t max)
{
	CLEANUP_FREE struct elf_func *local = xcalloc(max + 1, sizeof(*local));
	struct find find = { .names = names, .n = n, .global = { .out = out, .max = max },
			     .local = { .out = local, .max = max } };

	for (size_t i = 0; i < n; i++)
		find.lead[lead_of(names[i])] = names[i][0] != 0;
	elf_file_read_tabs(file);
	find_in_tab(&find, &file->dynsym);
	find_in_tab(&find, &file->symtab);
	for (size_t i = 0; i < find.local.n; i++)
		add_found(&find.global, &local[i]);
	return find.global.n;
}

static uint64_t find_value(const struct elf_symtab *tab, const char *name)
{
	for (size_t i = 0; i < tab->n && !is_over(i); i++) {
		const Elf64_Sym *sym = &tab->syms[i];
		int type = ELF64_ST_TYPE(sym->st_info);
		fetch_name(tab, i + AHEAD);
		/* a TLS symbol's value is an offset, a section's or file's no place either */
		if (!is_defined(sym) || sym->st_shndx == SHN_ABS || type == STT_TLS ||
		    type == STT_SECTION || type == STT_FILE)
			continue;
		const char *s = elf_symtab_name(tab, sym->st_name);
		if (s && *s == *name && name_is(s, name))
			return sym->st_value;
	}
	return 0;
}

uint64_t elf_file_find_symbol(struct elf_file *file, const char *name)
{
	elf_file_read_tabs(file);
	uint64_t vaddr = find_value(&file->dynsym, name);
	return vaddr ? vaddr : find_value(&file->symtab, name);
}

/* The nearest start not beyond vaddr, of a function that covers it, or else of any label. */
static void nearest(const struct elf_symtab *tab, uint64_t vaddr, uint64_t *start, uint64_t *size,
		    uint64_t *label)
{
	for (size_t i = 0; i < tab->n && !is_over(i); i++) {
		const Elf64_Sym *sym = &tab->syms[i];
		int type = ELF64_ST_TYPE(sym->st_info);
		if ((type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) || !is_defined(sym) ||
		    sym->st_shndx == SHN_ABS || sym->st_value > vaddr)
			continue;
		if (sym->st_value > *label)
			*label = sym->st_value;
		if (vaddr - sym->st_value < sym->st_size && sym->st_value >= *start) {
			*size = sym->st_value > *start || sym->st_size > *size ? sym->st_size : *size;
			*start = sym->st_value;
		}
	}
}

bool elf_file_symbol_at(struct elf_file *file, uint64_t vaddr, uint64_t *ret_start, uint64_t *ret_size)
{
	uint64_t label = 0;

	*ret_start = *ret_size = 0;
	elf_file_read_tabs(file);
	nearest(&file->dynsym, vaddr, ret_start, ret_size, &label);
	nearest(&file->symtab, vaddr, ret_start, ret_size, &label);
	if (!*ret_size)
		*ret_start = label;
	return *ret_start != 0;
}

static const char *import_in(const struct elf_file *file, const Elf_Data *data, uint64_t vaddr)
{
	const Elf64_Rela *rela = data->d_buf;

	for (size_t i = 0; i < data->d_size / sizeof(*rela); i++) {
		uint64_t sym = ELF64_R_SYM(rela[i].r_info);

		if (rela[i].r_offset == vaddr && sym && sym < file->dynsym.n)
			return elf_symtab_name(&file->dynsym, file->dynsym.syms[sym].st_name);
	}
	return NULL;
}

const char *elf_file_import_at(struct elf_file *file, uint64_t vaddr)
{
	const char *ret = NULL;
	Elf_Scn *scn = NULL;

	elf_file_read_tabs(file);
	elf_file_lock(file);
	for (int i = 0; !ret && i < 65536 && (scn = elf_nextscn(file->elf, scn)); i++) {
		const Elf64_Shdr *sh = elf64_getshdr(scn);
		if (!sh || sh->sh_type != SHT_RELA || !(sh->sh_flags & SHF_ALLOC) ||
		    sh->sh_entsize != sizeof(Elf64_Rela))
			continue;
		const Elf_Data *data = elf_getdata(scn, NULL);
		if (data && data->d_buf)
			ret = import_in(file, data, vaddr);
	}
	elf_file_unlock(file);
	return ret;
}
