/*
 * Heap allocations of this very program, counted: for tests that something makes none. Linked in,
 * counted.c takes the place of malloc and its kin (under AddressSanitizer it listens to it).
 */
#ifndef HEAPTOP_TESTS_COUNTED_H
#define HEAPTOP_TESTS_COUNTED_H

#include <stddef.h>

struct counted {
	size_t calls, bytes;	/* of malloc, calloc, realloc and the aligned ones; bytes as asked for */
};

/* Start again from zero; on the thread that is to be counted. */
void counted_begin(void);
/* What there was since, on that thread. */
struct counted counted_end(void);

#endif
