/*
 * Opening ELF files: headers, segments, bytes, CFI handles; see file.h. Headers are read here
 * with pread and checked; section contents, CFI and DWARF are left to libelf and libdw.
 */
#include "elf/file.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "elf/internal.h"

#define PHNUM_MAX 4096		/* real programs have about 15 */
#define NOTES_MAX (1 << 20)	/* bytes of one PT_NOTE that are looked at */

/* Up to len bytes at offset; returns how many the file had. */
static size_t read_at(int fd, uint64_t offset, void *buf, size_t len)
{
	size_t done = 0;

	if (offset > INT64_MAX || len > INT64_MAX - offset)
		return 0;
	while (done < len) {
		ssize_t n = pread(fd, (char *)buf + done, len - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done;
}

static uint64_t page_mask(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE) - 1;
}

static void add_segment(struct elf_file *file, const Elf64_Phdr *ph)
{
	uint64_t end;

	if (!ph->p_memsz || ph->p_filesz > ph->p_memsz)
		return;
	if (__builtin_add_overflow(ph->p_vaddr, ph->p_memsz, &end) ||
	    __builtin_add_overflow(ph->p_offset, ph->p_filesz, &end) || end > INT64_MAX)
		return;
	if ((ph->p_vaddr ^ ph->p_offset) & page_mask())
		return;		/* the loader would refuse it */
	file->segs[file->nsegs++] = (struct elf_segment){
		.offset = ph->p_offset,
		.vaddr = ph->p_vaddr,
		.filesz = ph->p_filesz,
		.memsz = ph->p_memsz,
		.exec = ph->p_flags & PF_X,
	};
}

static void read_notes(struct elf_file *file, const Elf64_Phdr *ph)
{
	uint8_t id[BUILD_ID_MAX];

	if (file->build_id[0] || ph->p_filesz > NOTES_MAX)
		return;
	CLEANUP_FREE uint8_t *buf = xmalloc(ph->p_filesz);
	size_t n = read_at(file->fd, ph->p_offset, buf, ph->p_filesz);
	elf_build_id_hex(id, elf_note_build_id(buf, n, id), file->build_id);
}

static struct err *read_headers(struct elf_file *file)
{
	Elf64_Ehdr eh;
	const char *path = file->path;

	if (read_at(file->fd, 0, &eh, sizeof(eh)) != sizeof(eh) ||
	    memcmp(eh.e_ident, ELFMAG, SELFMAG))
		return err_new(ERR_BAD_INPUT, "%s: not an ELF file", path);
	if (eh.e_ident[EI_CLASS] != ELFCLASS64)
		return err_new(ERR_UNSUPPORTED, "%s: not a 64-bit program", path);
	if (eh.e_ident[EI_DATA] != ELFDATA2LSB ||
	    (eh.e_machine != EM_X86_64 && eh.e_machine != EM_AARCH64))
		return err_new(ERR_UNSUPPORTED, "%s: for another architecture", path);
	if (eh.e_type != ET_EXEC && eh.e_type != ET_DYN)
		return err_new(ERR_UNSUPPORTED, "%s: neither executable nor shared object", path);
	if (!eh.e_phnum || eh.e_phnum > PHNUM_MAX || eh.e_phentsize != sizeof(Elf64_Phdr))
		return err_new(ERR_BAD_INPUT, "%s: malformed program headers", path);
	file->machine = eh.e_machine;
	file->type = eh.e_type;
	file->entry = eh.e_entry;

	size_t size = eh.e_phnum * sizeof(Elf64_Phdr);
	CLEANUP_FREE Elf64_Phdr *phdrs = xmalloc(size);
	if (read_at(file->fd, eh.e_phoff, phdrs, size) != size)
		return err_new(ERR_BAD_INPUT, "%s: malformed program headers", path);

	file->segs = xcalloc(eh.e_phnum, sizeof(*file->segs));
	for (size_t i = 0; i < eh.e_phnum; i++) {
		const Elf64_Phdr *ph = &phdrs[i];
		switch (ph->p_type) {
		case PT_LOAD:
			add_segment(file, ph);
			break;
		case PT_NOTE:
			read_notes(file, ph);
			break;
		case PT_DYNAMIC:
			file->dynamic_vaddr = ph->p_vaddr;
			file->dynamic_size = ph->p_filesz;
			break;
		case PT_GNU_EH_FRAME:
			file->eh_hdr_vaddr = ph->p_vaddr;
			file->eh_hdr_size = ph->p_memsz;
			break;
		}
	}
	if (!file->nsegs)
		return err_new(ERR_BAD_INPUT, "%s: nothing in it to be loaded", path);
	return NULL;
}

bool elf_may_map(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_uid == 0 && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

Elf *elf_handle(int fd, bool may_map)
{
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, may_map ? ELF_C_READ_MMAP : ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF)
		return elf;
	elf_end(elf);
	return NULL;
}

static void lock_init(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

/* All that is known before anything is asked; takes over fd and path. */
static struct err *open_new(int fd, char *path, const struct stat *st, struct elf_file **ret)
{
	struct elf_file *file = xcalloc(1, sizeof(*file));

	file->refs = 1;
	file->fd = fd;
	file->path = path;
	file->debug.fd = file->debug.alt_fd = -1;
	file->debug_frame.fd = file->debug_frame.alt_fd = -1;
	file->symbols.fd = file->symbols.alt_fd = -1;
	lock_init(&file->lock);
	lock_init(&file->debug_lock);
	file->size = (uint64_t)st->st_size;
	file->dev = st->st_dev;
	file->inode = st->st_ino;
	file->mtime = st->st_mtim;
	file->may_map = elf_may_map(st);

	struct err *err = read_headers(file);
	if (!err) {
		file->elf = elf_handle(fd, file->may_map);
		if (!file->elf)
			err = err_new(ERR_BAD_INPUT, "%s: malformed ELF file", file->path);
	}
	if (err) {
		elf_file_unref(file);
		return err;
	}
	*ret = file;
	return NULL;
}

struct err *elf_file_open(int fd, const char *path, struct elf_file **ret)
{
	struct err *err = NULL;
	struct stat st;

	CLEANUP_FREE char *clean = xstrdup(path);
	text_sanitize(clean);
	if (fstat(fd, &st))
		err = err_errno(errno, "%s", clean);
	else if (!S_ISREG(st.st_mode))
		err = err_new(ERR_BAD_INPUT, "%s: not a regular file", clean);
	if (err) {
		if (fd >= 0)
			close(fd);
		return err;
	}

	struct elf_file *other = elf_shared_find(&st, clean);
	if (other) {
		close(fd);
		*ret = other;
		return NULL;
	}
	char *taken = clean;
	clean = NULL;
	err = open_new(fd, taken, &st, ret);
	other = err ? NULL : elf_shared_add(*ret, &st);
	if (other) {
		elf_file_unref(*ret);
		*ret = other;
	}
	return err;
}

struct elf_file *elf_file_ref(struct elf_file *file)
{
	__atomic_add_fetch(&file->refs, 1, __ATOMIC_RELAXED);
	return file;
}

void elf_file_unref(struct elf_file *file)
{
	if (!file || !elf_shared_drop(file))
		return;
	elf_index_deinit(&file->index);
	elf_debug_close(&file->debug);
	elf_debug_close(&file->debug_frame);	/* its CFI ends with it */
	elf_debug_close(&file->symbols);
	if (file->eh_cfi)
		dwarf_cfi_end(file->eh_cfi);
	elf_end(file->elf);
	if (file->fd >= 0)
		close(file->fd);
	pthread_mutex_destroy(&file->lock);
	pthread_mutex_destroy(&file->debug_lock);
	free(file->dynsym_mem);
	free(file->dynstr_mem);
	free(file->segs);
	free(file->path);
	free(file);
}

const char *elf_file_path(const struct elf_file *file)
{
	return file->path;
}

const char *elf_file_build_id(const struct elf_file *file)
{
	return file->build_id;
}

int elf_file_machine(const struct elf_file *file)
{
	return file->machine;
}

int elf_file_type(const struct elf_file *file)
{
	return file->type;
}

uint64_t elf_file_entry(const struct elf_file *file)
{
	return file->entry;
}

/* The loader maps whole pages: a segment's first and last page hold neighbouring bytes too. */
static bool in_pages(const struct elf_segment *seg, uint64_t offset)
{
	uint64_t mask = page_mask();

	return offset >= (seg->offset & ~mask) &&
	       offset < ((seg->offset + seg->filesz + mask) & ~mask);
}

bool elf_file_offset_to_vaddr(const struct elf_file *file, uint64_t offset, uint64_t *ret)
{
	const struct elf_segment *found = NULL;

	for (size_t i = 0; i < file->nsegs; i++) {
		const struct elf_segment *seg = &file->segs[i];
		if (offset >= seg->offset && offset - seg->offset < seg->filesz) {
			found = seg;
			break;
		}
		if (!found && in_pages(seg, offset))
			found = seg;
	}
	if (!found)
		return false;
	*ret = found->vaddr + (offset - found->offset);	/* modulo 2^64: may lie before it */
	return true;
}

bool elf_file_vaddr_to_offset(const struct elf_file *file, uint64_t vaddr, uint64_t *ret)
{
	for (size_t i = 0; i < file->nsegs; i++) {
		const struct elf_segment *seg = &file->segs[i];

		if (vaddr < seg->vaddr || vaddr - seg->vaddr >= seg->filesz)
			continue;
		*ret = seg->offset + (vaddr - seg->vaddr);
		return true;
	}
	return false;
}

int elf_file_fd(const struct elf_file *file)
{
	return file->fd;
}

bool elf_file_fits(const struct elf_file *file, uint64_t start, uint64_t offset, uint64_t bias)
{
	for (size_t i = 0; i < file->nsegs; i++) {
		const struct elf_segment *seg = &file->segs[i];
		if (in_pages(seg, offset) && start - offset == bias + seg->vaddr - seg->offset)
			return true;
	}
	return false;
}

bool elf_file_exec_bias(const struct elf_file *file, uint64_t start, uint64_t offset,
			uint64_t *ret)
{
	uint64_t vaddr;

	for (size_t i = 0; i < file->nsegs; i++) {
		const struct elf_segment *seg = &file->segs[i];
		if (seg->exec && in_pages(seg, offset)) {
			*ret = start - (seg->vaddr + (offset - seg->offset));
			return true;
		}
	}
	if (!elf_file_offset_to_vaddr(file, offset, &vaddr))
		return false;
	*ret = start - vaddr;
	return true;
}

size_t elf_file_read(const struct elf_file *file, uint64_t vaddr, void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		const struct elf_segment *seg = NULL;
		uint64_t at = 0;
		for (size_t i = 0; i < file->nsegs && !seg; i++) {
			at = vaddr + done - file->segs[i].vaddr;
			if (vaddr + done >= file->segs[i].vaddr && at < file->segs[i].memsz)
				seg = &file->segs[i];
		}
		if (!seg)
			break;
		size_t want = len - done;
		if (at >= seg->filesz) {
			if (want > seg->memsz - at)
				want = seg->memsz - at;
			memset((char *)buf + done, 0, want);
			done += want;
			continue;
		}
		if (want > seg->filesz - at)
			want = seg->filesz - at;
		size_t n = read_at(file->fd, seg->offset + at, (char *)buf + done, want);
		done += n;
		if (n < want)
			break;	/* the file is shorter than its headers say */
	}
	return done;
}

bool elf_file_eh_frame_hdr(const struct elf_file *file, uint64_t *ret_vaddr, uint64_t *ret_size)
{
	if (!file->eh_hdr_size)
		return false;
	*ret_vaddr = file->eh_hdr_vaddr;
	*ret_size = file->eh_hdr_size;
	return true;
}

void elf_file_lock(struct elf_file *file)
{
	pthread_mutex_lock(&file->lock);
}

void elf_file_unlock(struct elf_file *file)
{
	pthread_mutex_unlock(&file->lock);
}

void elf_file_dwarf_lock(struct elf_file *file)
{
	pthread_mutex_lock(&file->debug_lock);
}

void elf_file_dwarf_unlock(struct elf_file *file)
{
	pthread_mutex_unlock(&file->debug_lock);
}

Dwarf_CFI *elf_file_eh_cfi(struct elf_file *file, int64_t *ret_bias)
{
	elf_file_lock(file);
	if (!file->eh_tried) {
		file->eh_tried = true;
		file->eh_cfi = dwarf_getcfi_elf(file->elf);
	}
	Dwarf_CFI *cfi = file->eh_cfi;
	elf_file_unlock(file);
	if (ret_bias)
		*ret_bias = 0;	/* libdw resolves pc-relative encodings with sh_addr / p_vaddr */
	return cfi;
}

Dwarf_CFI *elf_file_debug_cfi(struct elf_file *file)
{
	elf_file_lock(file);
	if (!file->debug_cfi_tried) {
		file->debug_cfi_tried = true;
		if (elf_debug_open(file, ".debug_frame", &file->debug_frame))
			file->debug_cfi = dwarf_getcfi(file->debug_frame.dwarf);
		else
			elf_debug_close(&file->debug_frame);
	}
	Dwarf_CFI *cfi = file->debug_cfi;
	elf_file_unlock(file);
	return cfi;
}

Dwarf *elf_file_dwarf(struct elf_file *file)
{
	elf_file_dwarf_lock(file);
	if (!file->debug_tried) {
		file->debug_tried = true;
		elf_debug_open(file, ".debug_info", &file->debug);
	}
	Dwarf *dwarf = file->debug.dwarf;
	elf_file_dwarf_unlock(file);
	return dwarf;
}
