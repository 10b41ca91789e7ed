/*
 * Fuzz targets: a function that takes any bytes and must come back, soon, with bounded memory and
 * with what its comment promises still true. The same functions run under libFuzzer (libfuzzer.c, by
 * `make fuzz`) and, over the saved inputs alone, in `make check` (replay.c). No state goes from one
 * input to the next.
 */
#ifndef HEAPTOP_TESTS_FUZZ_FUZZ_H
#define HEAPTOP_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fuzz_target {
	const char *name;	/* of its folder in tests/data/fuzz too */
	size_t max_len;		/* bytes of an input */
	void (*run)(const uint8_t *data, size_t len);
};

extern const struct fuzz_target fuzz_agent, fuzz_cli, fuzz_config, fuzz_elf, fuzz_filter, fuzz_lines, fuzz_maps, fuzz_names,
	fuzz_pprof, fuzz_ring, fuzz_unwind, fuzz_vt;

/* All of them, by name; targets.c. */
extern const struct fuzz_target *const fuzz_targets[];
extern const size_t fuzz_ntargets;
const struct fuzz_target *fuzz_find(const char *name);	/* NULL: there is none */

/* What must be true whatever the input is. */
#define FUZZ_ASSERT(what) ((what) ? (void)0 : fuzz_failed(__FILE__, __LINE__, #what))
_Noreturn void fuzz_failed(const char *file, int line, const char *what);

/* An input taken apart; past its end there are zeroes. */
struct fuzz_in {
	const uint8_t *at, *end;
};

static inline uint64_t fuzz_take(struct fuzz_in *in, size_t bytes)
{
	uint64_t ret = 0;
	size_t n = (size_t)(in->end - in->at);

	memcpy(&ret, in->at, n < bytes ? n : bytes);
	in->at += n < bytes ? n : bytes;
	return ret;
}

static inline bool fuzz_more(const struct fuzz_in *in)
{
	return in->at < in->end;
}

/* A number of any size: a byte says which, so that small and huge ones both come up. */
static inline uint64_t fuzz_number(struct fuzz_in *in)
{
	uint64_t how = fuzz_take(in, 1);

	switch (how >> 6) {
	case 0: return how & 63;
	case 1: return fuzz_take(in, 2);
	case 2: return fuzz_take(in, 8);
	default: return ~0ull - fuzz_take(in, 2);
	}
}

/* A copy with a NUL behind it; the caller frees. */
char *fuzz_string(const uint8_t *data, size_t len);

/* Well-formed UTF-8 without control characters? What the sanitiser promises. */
bool fuzz_is_clean(const char *text);

/* A file of these bytes, without a name; a descriptor. */
int fuzz_memfd(const uint8_t *data, size_t len);

#endif
