/*
 * Debug info, in the file itself or in a separate file: by build-id under
 * /usr/lib/debug/.build-id, by .gnu_debuglink beside the program, in its .debug folder and below
 * /usr/lib/debug (the places of gdb's manual, "Separate Debug Files"), and the supplementary file
 * dwz makes (.gnu_debugaltlink). A file is taken only if its build-id, or for a debuglink its
 * CRC-32, is the one asked for.
 *
 * libdw would follow an alt link by itself, with a plain open() of whatever path the file names;
 * a FIFO there would hang us for good. So it is opened here, and where it isn't to be had the
 * debug info that would ask for it isn't used at all.
 */
#include <endian.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "elf/internal.h"

#define DEBUG_ROOT "/usr/lib/debug"

/* Memory that debug sections of a file may take: as read, and after inflating. Through mmap only
 * the latter counts. */
#define READ_MAX (1ull << 30)
#define INFLATED_MAX (2ull << 30)
#define SECTIONS_LOOKED 65536u

/* What makes a candidate the right file. */
struct wanted {
	uint8_t id[BUILD_ID_MAX];
	size_t id_len;		/* 0: none known */
	bool has_crc;
	uint32_t crc;
};

static int open_regular(const char *path, struct stat *st)
{
	/* never wait for a FIFO's writer, never become a terminal's owner */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return -1;
	if (fstat(fd, st) || !S_ISREG(st->st_mode)) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool crc_matches(int fd, uint32_t want)
{
	enum { CHUNK = 1 << 16 };
	CLEANUP_FREE uint8_t *buf = xmalloc(CHUNK);
	uLong crc = crc32(0, NULL, 0);
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, buf, CHUNK, at)) > 0) {
		crc = crc32(crc, buf, (uInt)n);
		at += n;
	}
	return n == 0 && crc == want;
}

static bool is_wanted(int fd, Elf *elf, const struct wanted *want)
{
	uint8_t id[BUILD_ID_MAX];
	size_t len = elf_section_build_id(elf, id);

	if (want->id_len && len)
		return len == want->id_len && !memcmp(id, want->id, len);
	return want->has_crc && crc_matches(fd, want->crc);
}

/* Open `path` if it is the wanted ELF file. */
static Elf *open_candidate(const char *path, const struct wanted *want, int *ret_fd,
			   bool *ret_may_map)
{
	struct stat st;
	int fd = open_regular(path, &st);

	if (fd < 0)
		return NULL;
	*ret_may_map = elf_may_map(&st);
	Elf *elf = elf_handle(fd, *ret_may_map);
	if (elf && gelf_getclass(elf) == ELFCLASS64 && is_wanted(fd, elf, want)) {
		*ret_fd = fd;
		return elf;
	}
	elf_end(elf);
	close(fd);
	return NULL;
}

static char *build_id_path(const struct wanted *want)
{
	char hex[2 * BUILD_ID_MAX + 1];

	if (want->id_len < 2)
		return NULL;
	elf_build_id_hex(want->id, want->id_len, hex);
	return xasprintf(DEBUG_ROOT "/.build-id/%.2s/%s.debug", hex, hex + 2);
}

/* "name\0", padded to 4, then the CRC (gdb manual). The name is a plain file name. */
static const char *read_debuglink(Elf *elf, struct wanted *want)
{
	Elf64_Shdr sh;
	Elf_Scn *scn = elf_section(elf, ".gnu_debuglink", &sh);
	Elf_Data *data = scn ? elf_rawdata(scn, NULL) : NULL;

	if (!data || !data->d_buf || data->d_size < 6)
		return NULL;
	const char *name = data->d_buf;
	size_t len = strnlen(name, data->d_size);
	size_t at = (len + 1 + 3) & ~(size_t)3;
	if (!len || at > data->d_size || data->d_size - at < 4 || strchr(name, '/'))
		return NULL;
	uint32_t crc;
	memcpy(&crc, name + at, sizeof(crc));
	want->crc = le32toh(crc);
	want->has_crc = true;
	return name;
}

/* The separate debug file: its handle and, for what is found relative to it, its path. */
static Elf *find_separate(struct elf_file *file, int *ret_fd, bool *ret_may_map, char **ret_path)
{
	struct wanted wanted = { 0 }, *want = &wanted;

	/* what the file says of itself, in bytes again */
	for (const char *s = file->build_id; s[0] && s[1]; s += 2) {
		char pair[3] = { s[0], s[1], 0 };
		want->id[want->id_len++] = (uint8_t)strtoul(pair, NULL, 16);
	}
	char *path = build_id_path(want);
	if (path) {
		Elf *elf = open_candidate(path, want, ret_fd, ret_may_map);
		if (elf) {
			*ret_path = path;
			return elf;
		}
		free(path);
	}

	const char *name = read_debuglink(file->elf, want);
	const char *slash = strrchr(file->path, '/');
	if (!name || !slash || file->path[0] != '/')
		return NULL;
	int dir = (int)(slash - file->path);
	char *places[] = {
		xasprintf("%.*s/%s", dir, file->path, name),
		xasprintf("%.*s/.debug/%s", dir, file->path, name),
		xasprintf(DEBUG_ROOT "%.*s/%s", dir, file->path, name),
	};
	Elf *elf = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (!elf) {
			elf = open_candidate(places[i], want, ret_fd, ret_may_map);
			if (elf) {
				*ret_path = places[i];
				continue;
			}
		}
		free(places[i]);
	}
	return elf;
}

/* Bytes a compressed section unfolds to: gABI header, or "ZLIB" + big-endian size (.zdebug_*). */
static uint64_t inflated_size(Elf_Scn *scn, const Elf64_Shdr *sh, bool zdebug)
{
	if (sh->sh_flags & SHF_COMPRESSED) {
		GElf_Chdr ch;
		return gelf_getchdr(scn, &ch) ? ch.ch_size : 0;
	}
	if (!zdebug)
		return 0;
	Elf_Data *data = elf_rawdata(scn, NULL);
	uint64_t size;
	if (!data || !data->d_buf || data->d_size < 12)
		return 0;
	memcpy(&size, (char *)data->d_buf + 4, sizeof(size));
	return be64toh(size);
}

/* libdw loads and inflates all debug sections at once: see first what that would take. */
static bool size_bearable(Elf *elf, bool may_map, const char *path)
{
	uint64_t plain = 0, inflated = 0;
	Elf_Scn *scn = NULL;
	size_t strndx;

	if (elf_getshdrstrndx(elf, &strndx))
		return false;
	for (int i = 0; i < 65536 && (scn = elf_nextscn(elf, scn)); i++) {
		Elf64_Shdr *sh = elf64_getshdr(scn);
		const char *name = sh ? elf_strptr(elf, strndx, sh->sh_name) : NULL;
		if (!name || sh->sh_type == SHT_NOBITS)
			continue;
		bool zdebug = !strncmp(name, ".zdebug", 7);
		if (!zdebug && strncmp(name, ".debug", 6))
			continue;
		uint64_t big = inflated_size(scn, sh, zdebug);
		if (sh->sh_size > READ_MAX * 64 || big > INFLATED_MAX)
			goto too_big;
		plain += sh->sh_size;
		inflated += big;
	}
	if (inflated <= INFLATED_MAX && (may_map || plain <= READ_MAX))
		return true;
too_big:
	log_line("%s: debug info is too big, left unread", path);
	return false;
}

/*
 * libdw (0.188) looks for the end of a string from its offset on, and not whether there is one: of
 * sections of strings the last byte must be a 0. Read after dwarf_begin_elf, which unpacks them.
 */
static bool strings_end(Elf *elf)
{
	size_t names, n = 0;

	if (elf_getshdrstrndx(elf, &names))
		return false;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn)) && n < SECTIONS_LOOKED; n++) {
		GElf_Shdr sh;
		const char *name = gelf_getshdr(scn, &sh) ? elf_strptr(elf, names, sh.sh_name) : NULL;
		if (!name || (strcmp(name, ".debug_str") && strcmp(name, ".zdebug_str") && strcmp(name, ".debug_line_str")))
			continue;
		const Elf_Data *data = elf_getdata(scn, NULL);
		if (data && data->d_size && data->d_buf && ((const char *)data->d_buf)[data->d_size - 1])
			return false;
	}
	return true;
}

/* Find the supplementary file if there should be one; false if there should and isn't. */
static bool attach_alt(struct elf_debug *debug, const char *path)
{
	const char *name;
	const void *id;
	ssize_t len = dwelf_dwarf_gnu_debugaltlink(debug->dwarf, &name, &id);

	if (len == 0)
		return true;
	struct wanted want = { 0 };
	if (len < 0 || len > BUILD_ID_MAX)
		return false;
	memcpy(want.id, id, (size_t)len);
	want.id_len = (size_t)len;

	const char *slash = strrchr(path, '/');
	char *places[] = {
		build_id_path(&want),
		name[0] == '/' || !slash ? xstrdup(name)
			: xasprintf("%.*s/%s", (int)(slash - path), path, name),
	};
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		bool may_map = false;
		if (places[i] && !debug->alt_elf)
			debug->alt_elf = open_candidate(places[i], &want, &debug->alt_fd, &may_map);
		if (debug->alt_elf && !debug->alt &&
		    size_bearable(debug->alt_elf, may_map, places[i])) {
			debug->alt = dwarf_begin_elf(debug->alt_elf, DWARF_C_READ, NULL);
			if (debug->alt && !strings_end(debug->alt_elf)) {
				dwarf_end(debug->alt);
				debug->alt = NULL;
			}
		}
		free(places[i]);
	}
	if (!debug->alt)
		return false;
	dwarf_setalt(debug->dwarf, debug->alt);
	return true;
}

static void open_dwarf(struct elf_debug *debug, bool may_map, const char *path)
{
	if (!size_bearable(debug->elf, may_map, path))
		return;
	debug->dwarf = dwarf_begin_elf(debug->elf, DWARF_C_READ, NULL);
	if (debug->dwarf && !strings_end(debug->elf)) {
		log_line("%s: its debug information is damaged", path);
		dwarf_end(debug->dwarf);
		debug->dwarf = NULL;
	}
	if (!debug->dwarf || attach_alt(debug, path))
		return;
	log_line("%s: its supplementary debug file is missing", path);
	dwarf_end(debug->dwarf);
	debug->dwarf = NULL;
}

/* `.debug_info` may also be called `.zdebug_info`. */
static bool has_section(Elf *elf, const char *section)
{
	Elf64_Shdr sh;
	CLEANUP_FREE char *old = xasprintf(".z%s", section + 1);

	return elf_section(elf, section, &sh) || elf_section(elf, old, &sh);
}

bool elf_debug_open(struct elf_file *file, const char *section, struct elf_debug *ret)
{
	bool may_map = file->may_map;
	char *path = NULL;

	ret->fd = ret->alt_fd = -1;
	elf_file_lock(file);
	if (has_section(file->elf, section)) {
		ret->elf = elf_handle(file->fd, may_map);
		path = xstrdup(file->path);
	} else {
		ret->elf = find_separate(file, &ret->fd, &may_map, &path);
	}
	elf_file_unlock(file);
	if (ret->elf && has_section(ret->elf, section))
		open_dwarf(ret, may_map, path);
	free(path);
	return ret->dwarf;
}

bool elf_debug_open_symbols(struct elf_file *file, struct elf_debug *ret)
{
	bool may_map = false;
	char *path = NULL;

	*ret = (struct elf_debug){ .fd = -1, .alt_fd = -1 };
	elf_file_lock(file);
	ret->elf = find_separate(file, &ret->fd, &may_map, &path);
	elf_file_unlock(file);
	free(path);
	return ret->elf != NULL;
}

void elf_debug_close(struct elf_debug *debug)
{
	dwarf_end(debug->dwarf);	/* accepts NULL; doesn't end an alt that was given to it */
	dwarf_end(debug->alt);
	elf_end(debug->elf);
	elf_end(debug->alt_elf);
	if (debug->fd >= 0)
		close(debug->fd);
	if (debug->alt_fd >= 0)
		close(debug->alt_fd);
	*debug = (struct elf_debug){ .fd = -1, .alt_fd = -1 };
}
