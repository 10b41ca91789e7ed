/*
 * Notes and sections: finding the build-id (NT_GNU_BUILD_ID, a note of owner "GNU") and sections
 * by name. Note layout: gABI "Note Section": three words, then name and content, each padded
 * to 4 bytes (the notes that pad to 8, .note.gnu.property, lie in a PT_NOTE of their own).
 */
#include <gelf.h>
#include <string.h>

#include "elf/internal.h"

#define SECTIONS_MAX 65536	/* linked files have about 40 */

static size_t pad4(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

size_t elf_note_build_id(const uint8_t *buf, size_t len, uint8_t ret[BUILD_ID_MAX])
{
	while (len >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr nh;
		memcpy(&nh, buf, sizeof(nh));
		buf += sizeof(nh);
		len -= sizeof(nh);
		if (nh.n_namesz > len || pad4(nh.n_namesz) > len)
			break;
		const uint8_t *name = buf;
		buf += pad4(nh.n_namesz);
		len -= pad4(nh.n_namesz);
		if (nh.n_descsz > len)
			break;
		if (nh.n_type == NT_GNU_BUILD_ID && nh.n_namesz == 4 && !memcmp(name, "GNU", 4) &&
		    nh.n_descsz && nh.n_descsz <= BUILD_ID_MAX) {
			memcpy(ret, buf, nh.n_descsz);
			return nh.n_descsz;
		}
		if (pad4(nh.n_descsz) > len)
			break;
		buf += pad4(nh.n_descsz);
		len -= pad4(nh.n_descsz);
	}
	return 0;
}

void elf_build_id_hex(const uint8_t *id, size_t len, char ret[2 * BUILD_ID_MAX + 1])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		ret[2 * i] = digits[id[i] >> 4];
		ret[2 * i + 1] = digits[id[i] & 15];
	}
	ret[2 * len] = 0;
}

size_t elf_section_build_id(Elf *elf, uint8_t ret[BUILD_ID_MAX])
{
	Elf_Scn *scn = NULL;

	for (int i = 0; i < SECTIONS_MAX && (scn = elf_nextscn(elf, scn)); i++) {
		Elf64_Shdr *sh = elf64_getshdr(scn);
		if (!sh || sh->sh_type != SHT_NOTE)
			continue;
		Elf_Data *data = elf_rawdata(scn, NULL);
		if (!data || !data->d_buf)
			continue;
		size_t n = elf_note_build_id(data->d_buf, data->d_size, ret);
		if (n)
			return n;
	}
	return 0;
}

Elf_Scn *elf_section(Elf *elf, const char *name, Elf64_Shdr *ret)
{
	Elf_Scn *scn = NULL;
	size_t strndx;

	if (elf_getshdrstrndx(elf, &strndx))
		return NULL;
	for (int i = 0; i < SECTIONS_MAX && (scn = elf_nextscn(elf, scn)); i++) {
		Elf64_Shdr *sh = elf64_getshdr(scn);
		if (!sh || sh->sh_type == SHT_NOBITS || sh->sh_type == SHT_NULL)
			continue;
		const char *s = elf_strptr(elf, strndx, sh->sh_name);
		if (s && !strcmp(s, name)) {
			*ret = *sh;
			return scn;
		}
	}
	return NULL;
}
