/*
 * What a sampled block stands for (the formulas are in heap.h), remembered per (size, interval):
 * programs ask for few distinct sizes, and expm1 costs more than all the rest of an event.
 * Intervals are numbered, so that a live block holds its own in 16 bits and what its free takes
 * away is what its allocation added, whatever the interval is by then.
 */
#ifndef HEAPTOP_HEAP_WEIGHT_H
#define HEAPTOP_HEAP_WEIGHT_H

#include <stdint.h>

#include "heap/heap.h"

#define WEIGHT_RATES 1024u	/* distinct intervals told apart; powers of two always are */
#define WEIGHT_CACHE 4096u

struct weight_cell {
	uint64_t size;
	uint32_t rate;		/* index + 1; 0: empty */
	struct heap_weight weight;
};

struct weights {
	uint64_t rates[WEIGHT_RATES];
	uint32_t nrates;
	uint32_t last;		/* index last asked for */
	struct weight_cell cells[WEIGHT_CACHE];
};

void weights_init(struct weights *weights);
/*
 * Number of an interval. The events' intervals come from the target, so their number is bounded:
 * once WEIGHT_RATES differ, a new one counts as the power of two below it.
 */
uint16_t weights_rate(struct weights *weights, uint64_t rate);
struct heap_weight weights_of(struct weights *weights, uint64_t size, uint16_t rate);

#endif
