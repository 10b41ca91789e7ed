/*
 * Making records out of an input: most of them well-formed, so that they get somewhere, with hostile
 * numbers in them. For the targets that have rings.
 */
#ifndef HEAPTOP_TESTS_FUZZ_WIRE_RECORDS_H
#define HEAPTOP_TESTS_FUZZ_WIRE_RECORDS_H

#include "tests/fuzz/fuzz.h"
#include "wire/wire.h"

#define RECORD_MAX 2048u

/* Put a record at *head of a ring of `bytes`, and move it on. */
static inline void record_put(struct fuzz_in *in, uint8_t *data, uint64_t bytes, uint64_t nonce, uint64_t *head,
			      uint64_t tsc)
{
	uint8_t buf[RECORD_MAX];
	struct wire_alloc *a = (struct wire_alloc *)buf;
	uint64_t how = fuzz_take(in, 1), kind = how & 15, flags = fuzz_take(in, 1), off, size;
	uint64_t *at = (uint64_t *)(a + 1);
	uint32_t nframes = (uint32_t)fuzz_take(in, 1) % 24, keep = (uint32_t)fuzz_take(in, 1) % 24;

	memset(buf, 0, sizeof(buf));
	a->h.tsc = how & 16 ? fuzz_number(in) : tsc - fuzz_take(in, 1);
	a->h.addr_slot = fuzz_number(in) << 16 | (fuzz_take(in, 1) & 3);
	size = sizeof(a->h);
	if (kind == WIRE_ALLOC) {
		a->size = (uint32_t)fuzz_number(in);
		a->stack = (uint32_t)fuzz_take(in, 1) << 24 | keep << WIRE_STACK_BITS | nframes;
		if (flags & WIRE_F_LARGE)
			*at++ = fuzz_number(in);
		if (flags & WIRE_F_RATE)
			*at++ = fuzz_number(in);
		for (uint32_t i = 0; i < nframes; i++)
			*at++ = fuzz_number(in);
		if (!(flags & WIRE_F_WALKED)) {
			struct wire_copy *c = (struct wire_copy *)at;
			uint64_t words = fuzz_take(in, 1) % 32;
			c->regs.ip = fuzz_number(in);
			c->regs.sp = fuzz_number(in);
			c->regs.saved[0] = fuzz_number(in);
			c->bytes = how & 32 ? fuzz_number(in) : words * 8;
			at = (uint64_t *)(c + 1);
			while (words--)
				*at++ = fuzz_number(in);
		}
		size = (uint64_t)((uint8_t *)at - buf);
	}
	if (how & 64)	/* its length is a lie */
		size = fuzz_number(in) & WIRE_SIZE_MASK;
	if (how & 128)	/* its numbers are */
		a->stack = (uint32_t)fuzz_take(in, 4);
	off = *head & (bytes - 1);
	if (size > bytes - off) {
		uint64_t word = (uint64_t)wire_tag(*head, nonce) << 32 | (bytes - off) | WIRE_PAD;
		memcpy(data + off, &word, sizeof(word));
		*head += bytes - off;
		off = 0;
	}
	a->h.word = (uint64_t)wire_tag(*head, nonce) << 32 | flags << WIRE_FLAGS_SHIFT | kind << WIRE_KIND_SHIFT |
		    size;
	memcpy(data + off, buf, size < RECORD_MAX ? size : RECORD_MAX);
	*head += size;
}

#endif
