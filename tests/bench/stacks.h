/*
 * A recorded stream of allocation stacks, for benchmarks: the file is the 8 bytes "HTSTACK1", then a
 * record for each allocation in the order they happened: u16 n (at least 1), then n times u64, the
 * frames' addresses (frame_addr of heap/tree.h, or absolute), innermost first. Little endian, no padding.
 */
#ifndef HEAPTOP_TESTS_BENCH_STACKS_H
#define HEAPTOP_TESTS_BENCH_STACKS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

#define STACKS_MAGIC "HTSTACK1"
#define STACKS_MAX_FRAMES 4096u

struct stacks {
	uint64_t *addrs;	/* all frames, stack after stack */
	size_t naddrs, addrs_cap;
	uint32_t *lens;		/* frames of each stack */
	size_t n, lens_cap;
};

static inline void stacks_add(struct stacks *s, const uint64_t *addrs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		VEC_GROW(s->addrs, s->naddrs, s->addrs_cap);
		s->addrs[s->naddrs++] = addrs[i];
	}
	VEC_GROW(s->lens, s->n, s->lens_cap);
	s->lens[s->n++] = n;
}

static inline void stacks_free(struct stacks *s)
{
	free(s->addrs);
	free(s->lens);
	memset(s, 0, sizeof(*s));
}

/* At most `max` stacks. A record that is cut off at the end of the file is left out. */
static inline struct err *stacks_read(const char *path, size_t max, struct stacks *ret)
{
	FILE *file = fopen(path, "rbe");
	char magic[8];
	uint16_t n;
	uint64_t addrs[STACKS_MAX_FRAMES];

	if (!file)
		return err_new(ERR_NOT_FOUND, "%s: can't be opened", path);
	if (fread(magic, 1, 8, file) != 8 || memcmp(magic, STACKS_MAGIC, 8)) {
		fclose(file);
		return err_new(ERR_BAD_INPUT, "%s: no recorded stacks", path);
	}
	while (ret->n < max && fread(&n, sizeof(n), 1, file) == 1) {
		if (!n || n > STACKS_MAX_FRAMES || fread(addrs, 8, n, file) != n)
			break;
		stacks_add(ret, addrs, n);
	}
	fclose(file);
	return NULL;
}

#endif
