/* Weights of sampled blocks; see weight.h and the formulas in heap.h. */
#include "heap/weight.h"

#include <math.h>

/* Sizes and intervals beyond a user address space are nonsense from a hostile target; bounded,
 * the sums below stay far from 2^64. */
#define MAX_VALUE (1ull << 47)
#define POWERS 48u

struct heap_weight heap_weigh(uint64_t size, uint64_t rate)
{
	if (size > MAX_VALUE)
		size = MAX_VALUE;
	if (rate > MAX_VALUE)
		rate = MAX_VALUE;
	if (rate <= 1)
		return (struct heap_weight){ .bytes = size, .blocks_q10 = 1024 };

	/* the agent never samples an empty block, but it isn't believed */
	double s = size ? (double)size : 1;
	double chance = -expm1(-s / (double)rate);
	double w = 1 / chance;
	double bytes = (double)size * w;
	return (struct heap_weight){
		.bytes = (uint64_t)(bytes + 0.5),
		.blocks_q10 = (uint64_t)(w * 1024 + 0.5),
		.variance = bytes * bytes * (1 - chance),
	};
}

void weights_init(struct weights *weights)
{
	*weights = (struct weights){ 0 };
	for (unsigned i = 0; i < POWERS; i++)
		weights->rates[i] = 1ull << i;
	weights->nrates = POWERS;
}

uint16_t weights_rate(struct weights *weights, uint64_t rate)
{
	if (rate <= 1)
		return 0;
	if (rate > MAX_VALUE)
		rate = MAX_VALUE;
	if (weights->rates[weights->last] == rate)
		return (uint16_t)weights->last;
	unsigned log2 = 63 - (unsigned)__builtin_clzll(rate);
	uint32_t i = POWERS;
	if (rate == 1ull << log2) {
		i = log2;
	} else {
		while (i < weights->nrates && weights->rates[i] != rate)
			i++;
		if (i == WEIGHT_RATES)
			i = log2;
		else if (i == weights->nrates)
			weights->rates[weights->nrates++] = rate;
	}
	weights->last = i;
	return (uint16_t)i;
}

struct heap_weight weights_of(struct weights *weights, uint64_t size, uint16_t rate)
{
	if (rate == 0)
		return heap_weigh(size, 1);
	uint64_t h = (size ^ (uint64_t)rate << 48) * 0x9e3779b97f4a7c15ull;
	struct weight_cell *cell = &weights->cells[h >> 52];
	if (cell->rate != rate + 1u || cell->size != size) {
		cell->size = size;
		cell->rate = rate + 1u;
		cell->weight = heap_weigh(size, weights->rates[rate]);
	}
	return cell->weight;
}
