/*
 * Mappings in the heap model: mmap, munmap, mremap and brk as events; see heap.h. Unlike blocks they may overlap, go in
 * parts and move.
 */
#include "base/mem.h"
#include "heap/model.h"

static struct taken *forget_taken(struct heap *heap, uint32_t slot)
{
	if (slot < WIRE_SLOTS && heap->taken[slot])
		heap->taken[slot]->n = 0;
	return slot < WIRE_SLOTS ? heap->taken[slot] : NULL;
}

/* A part goes. Returns whether it ends its mapping, as a temporary one. */
static bool part_end(struct heap *heap, const struct range_part *part, uint64_t time)
{
	const struct range_mapping *m = &part->mapping;
	uint64_t bytes = part->end - part->start;

	hits_take(&heap->hits, &(struct hit_block){ part->start, bytes, m->time, time, heap->traces.items[m->trace].node });
	if (m->pieces) {
		traces_trim(&heap->traces, m->trace, bytes);
		return false;
	}
	struct heap_weight w = heap_weight_of_mapping(bytes);
	bool temp = time >= m->time && time - m->time < TEMP_NS;
	traces_free(&heap->traces, m->trace, &w, temp);
	heap->free_q10 += w.blocks_q10;
	return temp;
}

/* Make room: what is there is replaced. False: a range that can't be, or the table is full. */
static bool clear_range(struct heap *heap, uint64_t start, uint64_t bytes, uint64_t time)
{
	struct range_part part;

	if (!bytes || start > UINT64_MAX - bytes)
		return false;
	while (ranges_cut(&heap->ranges, start, start + bytes, &part))
		part_end(heap, &part, time);
	return true;
}

/* A piece at [start, end), the first of its mapping or a further one. */
static void add_piece(struct heap *heap, uint32_t *mapping, uint64_t start, uint64_t end, uint32_t node,
		      uint64_t time, uint32_t slot)
{
	struct heap_weight w = heap_weight_of_mapping(end - start);

	if (!ranges_room(&heap->ranges)) {
		heap->untracked++;
		return;
	}
	if (*mapping == UINT32_MAX) {
		const struct range_mapping new = { .time = time, .trace = heap_trace_of(heap, node), .slot = slot };
		*mapping = ranges_begin(&heap->ranges, &new);
		traces_alloc(&heap->traces, new.trace, &w, time);
		heap->alloc_q10 += w.blocks_q10;
	} else {
		traces_grow(&heap->traces, heap->ranges.mappings[*mapping].trace, w.bytes, time);
	}
	heap->alloc_bytes += w.bytes;
	ranges_add(&heap->ranges, *mapping, start, end);
}

void heap_map(struct heap *heap, uint64_t addr, uint64_t bytes, uint64_t time, uint32_t slot,
	      const struct heap_stack *stack)
{
	uint32_t node = heap_node_of_stack(heap, stack, slot), mapping = UINT32_MAX;

	heap_see(heap, time, slot);
	forget_taken(heap, slot);
	if (clear_range(heap, addr, bytes, time) && bytes >= heap->min_size)
		add_piece(heap, &mapping, addr, addr + bytes, node, time, slot);
}

void heap_unmap(struct heap *heap, uint64_t addr, uint64_t bytes, uint64_t time, uint32_t slot)
{
	struct range_part part;

	heap_see(heap, time, slot);
	struct taken *taken = forget_taken(heap, slot);
	if (!bytes || addr > UINT64_MAX - bytes)
		return;
	while (ranges_cut(&heap->ranges, addr, addr + bytes, &part)) {
		uint32_t node = heap->traces.items[part.mapping.trace].node;
		bool temp = part_end(heap, &part, time);

		if (slot >= WIRE_SLOTS)
			continue;
		if (!taken)
			taken = heap->taken[slot] = xcalloc(1, sizeof(*taken));
		taken->start = addr;
		taken->end = addr + bytes;
		if (taken->n < TAKEN_MAX) {
			taken->parts[taken->n].part = part;
			taken->parts[taken->n].node = node;
			taken->parts[taken->n++].temp = temp;
		}
	}
}

/*
 * The known parts at the distances they had from the start, as far as the new length goes; and if it is
 * longer, and the end of the old was known, what is new.
 */
void heap_move(struct heap *heap, uint64_t addr, uint64_t bytes, uint64_t time, uint32_t slot,
	       const struct heap_stack *stack)
{
	uint32_t node = heap_node_of_stack(heap, stack, slot), mapping = UINT32_MAX;
	struct taken *taken = slot < WIRE_SLOTS ? heap->taken[slot] : NULL;

	heap_see(heap, time, slot);
	if (!clear_range(heap, addr, bytes, time) || !taken)
		return;
	for (uint32_t i = 0; i < taken->n; i++) {
		const struct range_part *part = &taken->parts[i].part;
		uint64_t from = part->start - taken->start, to = part->end - taken->start;

		if (part->end >= taken->end || to > bytes)
			to = bytes;
		if (from < to)
			add_piece(heap, &mapping, addr + from, addr + to, node, time, slot);
	}
	taken->n = 0;
}

/* What has taken the place meanwhile stays. Backwards: a mapping was ended by its last part. */
void heap_ununmap(struct heap *heap, uint32_t slot)
{
	struct taken *taken = slot < WIRE_SLOTS ? heap->taken[slot] : NULL;

	for (uint32_t i = taken ? taken->n : 0; i-- > 0;) {
		const struct range_part *part = &taken->parts[i].part;
		uint64_t bytes = part->end - part->start, id = part->mapping.id;
		struct heap_weight w = heap_weight_of_mapping(bytes);
		uint32_t index = part->index, trace = part->mapping.trace;

		if (!ranges_room(&heap->ranges) || !ranges_free(&heap->ranges, part->start, part->end))
			continue;
		if (ranges_is(&heap->ranges, index, id)) {
			trace = heap->ranges.mappings[index].trace;
			traces_untrim(&heap->traces, trace, bytes, heap->now);
		} else if (part->mapping.pieces) {
			continue;	/* the rest of it has gone since */
		} else {
			/* nothing held its trace: it may have been merged, and its record been given away since */
			if (heap->traces.of_node[taken->parts[i].node] != trace + 1)
				trace = traces_merged(&heap->traces, heap->merged_node);
			if (heap->traces.items[trace].s.free_bytes < bytes)
				continue;
			struct range_mapping again = part->mapping;
			again.trace = trace;
			index = ranges_begin(&heap->ranges, &again);
			traces_unfree(&heap->traces, trace, &w, taken->parts[i].temp, heap->now);
			heap->free_q10 -= w.blocks_q10;
			for (uint32_t k = 0; k < i; k++)
				if (taken->parts[k].part.index == part->index &&
				    taken->parts[k].part.mapping.id == id) {
					taken->parts[k].part.index = index;
					taken->parts[k].part.mapping.id = heap->ranges.mappings[index].id;
				}
		}
		ranges_add(&heap->ranges, index, part->start, part->end);
	}
	forget_taken(heap, slot);
}
