/*
 * A place in this very program for a uprobe: the offset in its file of a function, for tests and benchmarks of what
 * heaptop keeps in the kernel.
 */
#ifndef HEAPTOP_TESTS_OWNPOINT_H
#define HEAPTOP_TESTS_OWNPOINT_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ownpoint {
	uintptr_t addr;
	uint64_t offset;
	bool found;
};

static inline int ownpoint_look(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct ownpoint *p = ctx;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum && !p->found; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + h->p_vaddr;

		if (h->p_type != PT_LOAD || p->addr < start || p->addr >= start + h->p_filesz)
			continue;
		p->offset = p->addr - start + h->p_offset;
		p->found = true;
	}
	return 1;	/* the program itself comes first */
}

/* False: it isn't a function of the program's own file. */
static inline bool ownpoint_offset(uintptr_t function, uint64_t *ret)
{
	struct ownpoint p = { .addr = function };

	dl_iterate_phdr(ownpoint_look, &p);
	*ret = p.offset;
	return p.found;
}

#endif
