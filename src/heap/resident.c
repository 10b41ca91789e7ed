/* Resident bytes by trace; see resident.h. */
#include "heap/resident.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/ticks.h"
#include "heap/live.h"
#include "heap/ranges.h"
#include "heap/traces.h"
#include "heap/weight.h"

#define DEPTH 16u		/* blocks within blocks; what is deeper cuts the outer one off */
#define RUNS 512u
#define GAP_BYTES (256u << 10)	/* of addresses between blocks that it is cheaper to look at than to ask again */
#define ASK_BYTES (256ull << 20)	/* of addresses asked for at a time */
#define MAX_ADDRESS (1ull << 56)
#define RADIX_BITS 11u

struct item {
	uint64_t start, end;
	uint32_t trace;
	uint16_t rate;		/* as live_block has it; of mappings 0, which is exact */
	bool thinned, chosen;
};

/* Bytes of a block that lie side by side with no other block between. */
struct segment {
	uint64_t start, end;
	const struct item *item;	/* NULL: there is none */
};

struct resident {
	struct item *items, *scratch;
	size_t n, cap;
	uint32_t thinned;
	bool busy;

	/* where the pass is */
	size_t next;			/* first item that hasn't begun */
	const struct item *open[DEPTH];	/* that have, the innermost last */
	size_t nopen;
	uint64_t at;			/* up to here segments have been made */
	struct segment segment;		/* the current one, */
	uint64_t anon, file, swapped;	/* and its bytes so far */
	uint64_t asked;			/* up to here runs are known, */
	size_t ask_next;		/* first item that wasn't asked for yet, */
	uint64_t ask_end;		/* and where those before it end */

	struct resident_sum *making, *sums;
	size_t nmaking, making_cap, nsums, sums_cap;
	struct resident_totals making_totals, totals;
};

struct resident *resident_create(void)
{
	return xcalloc(1, sizeof(struct resident));
}

void resident_destroy(struct resident *r)
{
	if (!r)
		return;
	free(r->items);
	free(r->scratch);
	free(r->making);
	free(r->sums);
	free(r);
}

bool resident_busy(const struct resident *r)
{
	return r->busy;
}

const struct resident_sum *resident_sums(const struct resident *r, size_t *ret_n)
{
	*ret_n = r->nsums;
	return r->sums;
}

const struct resident_totals *resident_totals(const struct resident *r)
{
	return &r->totals;
}

/* ---- taking in ---- */

static void add_item(struct resident *r, const struct resident_source *source, uint64_t start, uint64_t bytes,
		     const struct item *item)
{
	/* whatever the target claims: the sums must not wrap */
	if (!bytes || start >= MAX_ADDRESS || bytes > MAX_ADDRESS || item->trace >= r->nmaking)
		return;
	VEC_GROW(r->items, r->n, r->cap);
	r->items[r->n] = *item;
	r->items[r->n].start = start;
	r->items[r->n].end = start + bytes;
	r->n++;
	r->making[item->trace].node = source->traces->items[item->trace].node;
}

/* Which of the small blocks: any bits of the address will do, but for those that say its size class. */
static bool left_out(uint64_t addr, uint32_t thinned)
{
	return thinned > 1 && (addr * 0x9e3779b97f4a7c15ull >> 33) % thinned;
}

static void take_in(struct resident *r, const struct resident_source *source)
{
	const struct live *live = source->live;
	uint32_t max = source->max ? source->max : RESIDENT_MAX;

	r->n = 0;
	r->thinned = (uint32_t)(live->count / max) + 1;
	for (size_t i = 0; i < live_slots(live); i++) {
		const struct live_block *block = live_slot(live, i);
		bool small = block->size < RESIDENT_KEEP;
		if (!block->addr || (small && left_out(block->addr, r->thinned)))
			continue;
		struct item item = {
			.trace = block->trace,
			.rate = block->rate,
			.thinned = small && r->thinned > 1,
			.chosen = source->chosen && source->chosen(source->ctx, block->thread),
		};
		add_item(r, source, block->addr, block->size, &item);
	}
	for (size_t i = 0; i < source->ranges->nnodes; i++) {
		const struct range_node *node = &source->ranges->nodes[i];
		struct item item = { .trace = source->ranges->mappings[node->mapping].trace };
		if (node->start < node->end)
			add_item(r, source, node->start, node->end - node->start, &item);
	}
}

/*
 * By where they start, and of those that start alike the longer one first. Least significant digits first:
 * as the order of what came before is kept, first by length, but only where two start alike.
 */
static void sort(struct resident *r)
{
	static const size_t places = 1u << RADIX_BITS;
	uint64_t low = UINT64_MAX, high = 0;
	uint32_t count[1u << RADIX_BITS];

	for (size_t i = 0; i < r->n; i++) {
		if (r->items[i].start < low)
			low = r->items[i].start;
		if (r->items[i].start > high)
			high = r->items[i].start;
	}
	r->scratch = xreallocarray(r->scratch, r->cap, sizeof(*r->scratch));
	for (unsigned shift = 0; r->n && shift < 64 && (high - low) >> shift; shift += RADIX_BITS) {
		memset(count, 0, sizeof(count));
		for (size_t i = 0; i < r->n; i++)
			count[(r->items[i].start - low) >> shift & (places - 1)]++;
		uint32_t sum = 0;
		for (size_t k = 0; k < places; k++) {
			uint32_t here = count[k];
			count[k] = sum;
			sum += here;
		}
		for (size_t i = 0; i < r->n; i++)
			r->scratch[count[(r->items[i].start - low) >> shift & (places - 1)]++] = r->items[i];
		struct item *sorted = r->scratch;
		r->scratch = r->items;
		r->items = sorted;
	}
	for (size_t i = 1; i < r->n; i++)
		if (r->items[i].start == r->items[i - 1].start && r->items[i].end > r->items[i - 1].end) {
			struct item shorter = r->items[i - 1];
			r->items[i - 1] = r->items[i];
			r->items[i] = shorter;
		}
}

void resident_begin(struct resident *r, const struct resident_source *source)
{
	size_t ntraces = source->traces->n;

	if (r->making_cap < ntraces) {
		r->making_cap = ntraces + ntraces / 4;
		r->making = xreallocarray(r->making, r->making_cap, sizeof(*r->making));
	}
	r->nmaking = ntraces;
	if (ntraces)
		memset(r->making, 0, ntraces * sizeof(*r->making));
	take_in(r, source);
	sort(r);
	r->next = r->nopen = 0;
	r->at = r->asked = 0;
	r->ask_next = 0;
	r->ask_end = 0;
	r->segment = (struct segment){ 0 };
	r->anon = r->file = r->swapped = 0;
	r->making_totals = (struct resident_totals){ .blocks = r->n, .thinned = r->thinned };
	r->busy = true;
}

/* ---- going through ---- */

/* The next stretch of addresses of one block, the innermost there. False: there is none. */
static bool next_segment(struct resident *r)
{
	for (;;) {
		const struct item *new = r->next < r->n ? &r->items[r->next] : NULL;
		const struct item *open = r->nopen ? r->open[r->nopen - 1] : NULL;

		if (open && r->at >= open->end) {
			r->nopen--;
		} else if (open && (!new || new->start > r->at)) {
			uint64_t end = new && new->start < open->end ? new->start : open->end;
			r->segment = (struct segment){ r->at, end, open };
			r->at = end;
			return true;
		} else if (new) {
			if (r->nopen == DEPTH)
				r->nopen--;
			r->open[r->nopen++] = new;
			r->next++;
			if (!open || new->start > r->at)
				r->at = new->start;
		} else {
			return false;
		}
	}
}

/* What `bytes` of the block stand for. */
static uint64_t stand_for(const struct resident *r, const struct item *item, const struct heap_weight *w,
			  uint64_t bytes)
{
	uint64_t size = item->end - item->start;
	/* sizes beyond what heap_weigh believes are counted as it does */
	unsigned __int128 all = (unsigned __int128)w->bytes * bytes / size;

	return (uint64_t)all * (item->thinned ? r->thinned : 1);
}

/* The segment is done with. */
static void close_segment(struct resident *r, struct weights *weights)
{
	const struct item *item = r->segment.item;
	uint64_t resident = r->anon + r->file;

	if (resident || r->swapped) {
		struct heap_weight w = weights_of(weights, item->end - item->start, item->rate);
		uint64_t anon = stand_for(r, item, &w, r->anon), file = stand_for(r, item, &w, r->file);
		uint64_t swapped = stand_for(r, item, &w, r->swapped);
		struct resident_sum *sum = &r->making[item->trace];
		struct resident_totals *totals = &r->making_totals;
		sum->bytes += anon + file;
		sum->swapped += swapped;
		if (item->chosen) {
			sum->chosen_bytes += anon + file;
			sum->chosen_swapped += swapped;
		}
		totals->anon += anon;
		totals->file += file;
		totals->swapped += swapped;
		/* (W b)^2 (1 - 1/W) = W b (W b - b) */
		double whole = (double)(anon + file);
		if (whole > (double)resident)
			totals->variance += whole * (whole - (double)resident);
	}
	r->anon = r->file = r->swapped = 0;
	r->segment.item = NULL;
}

/* Give the run's bytes to the segments it covers. The last one may go on behind it. */
static void take_run(struct resident *r, struct weights *weights, const struct page_run *run)
{
	for (;;) {
		struct segment *s = &r->segment;
		if (!s->item && !next_segment(r))
			return;
		if (s->end <= run->start) {
			close_segment(r, weights);
			continue;
		}
		if (s->start >= run->end)
			return;
		uint64_t start = s->start > run->start ? s->start : run->start;
		uint64_t end = s->end < run->end ? s->end : run->end;
		if (run->flags & PAGE_SWAPPED)
			r->swapped += end - start;
		else if (run->flags & PAGE_FILE)
			r->file += end - start;
		else
			r->anon += end - start;
		if (s->end > run->end)
			return;
		close_segment(r, weights);
	}
}

/*
 * From the first byte that isn't known about, as far as blocks lie side by side, or nearly so. False: nothing is left.
 */
static bool next_question(struct resident *r, uint64_t *ret_start, uint64_t *ret_end)
{
	if (r->asked >= r->ask_end) {
		if (r->ask_next == r->n)
			return false;
		r->asked = r->items[r->ask_next].start;
		r->ask_end = r->items[r->ask_next++].end;
	}
	for (; r->ask_next < r->n && r->ask_end - r->asked < ASK_BYTES; r->ask_next++) {
		const struct item *item = &r->items[r->ask_next];
		if (item->start > r->ask_end && item->start - r->ask_end > GAP_BYTES)
			break;
		if (item->end > r->ask_end)
			r->ask_end = item->end;
	}
	*ret_start = r->asked;
	*ret_end = r->ask_end - r->asked > ASK_BYTES ? r->asked + ASK_BYTES : r->ask_end;
	return true;
}

static void finish(struct resident *r)
{
	struct resident_sum *sums = r->sums;
	size_t cap = r->sums_cap;

	r->sums = r->making;
	r->nsums = r->nmaking;
	r->sums_cap = r->making_cap;
	r->making = sums;
	r->making_cap = cap;
	r->making_totals.passes = r->totals.passes + 1;
	r->totals = r->making_totals;
	r->busy = false;
}

bool resident_step(struct resident *r, struct weights *weights, resident_runs_fn runs, void *ctx, double seconds,
		   int *ret_errnum)
{
	struct page_run found[RUNS];
	double until = monotonic_seconds() + seconds;
	uint64_t start, end, next;
	size_t n;

	*ret_errnum = 0;
	while (r->busy) {
		bool over = !next_question(r, &start, &end);
		if (over)
			start = end = 0;
		*ret_errnum = runs(ctx, start, end, found, RUNS, &n, &next);
		if (*ret_errnum) {
			r->busy = false;
			break;
		}
		if (over) {
			do
				if (r->segment.item)
					close_segment(r, weights);
			while (next_segment(r));
			finish(r);
			break;
		}
		for (size_t k = 0; k < n; k++)
			take_run(r, weights, &found[k]);
		r->asked = next;
		if (monotonic_seconds() >= until)
			break;
	}
	return !r->busy;
}
