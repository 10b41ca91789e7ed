/* heap_alloc with a whole stack, for tests and benchmarks that have no thread to tell differences from. */
#ifndef HEAPTOP_TESTS_LIB_WHOLE_H
#define HEAPTOP_TESTS_LIB_WHOLE_H

#include "heap/heap.h"

static inline void heap_alloc_whole(struct heap *heap, uint64_t addr, uint64_t size, uint64_t rate, uint64_t time,
				    uint32_t slot, const uint64_t *addrs, size_t n, int why)
{
	heap_alloc(heap, addr, size, rate, time, slot, &(struct heap_stack){ .addrs = addrs, .n = n, .why = why });
}

#endif
