/* The table of size, age and thread of live blocks; see classes.h. */
#include "heap/classes.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define FIRST_SLOTS 1024u
#define RADIX_BITS 11u

static const uint64_t age_until[CLASS_AGES] = {
	1000000ull, 10000000ull, 100000000ull, 1000000000ull, 10000000000ull, 60000000000ull,
	600000000000ull, 3600000000000ull, UINT64_MAX,
};

unsigned class_of_size(uint64_t size)
{
	unsigned bits = size ? 64 - (unsigned)__builtin_clzll(size) : 0;

	return bits < CLASS_SIZES ? bits : CLASS_SIZES - 1;
}

unsigned class_of_age(uint64_t ns)
{
	unsigned i = 0;

	while (i + 1 < CLASS_AGES && ns >= age_until[i])
		i++;
	return i;
}

uint64_t class_size_from(unsigned size_class)
{
	return size_class ? 1ull << (size_class - 1) : 0;
}

uint64_t class_age_until(unsigned age_class)
{
	return age_until[age_class < CLASS_AGES ? age_class : CLASS_AGES - 1];
}

struct classes *classes_ref(struct classes *classes)
{
	if (classes)
		__atomic_add_fetch(&classes->refs, 1, __ATOMIC_RELAXED);
	return classes;
}

void classes_unref(struct classes *classes)
{
	if (!classes || __atomic_sub_fetch(&classes->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	free(classes->threads);
	free(classes->cells);
	free(classes);
}

const struct class_cell *classes_of_node(const struct classes *classes, uint32_t node, size_t *ret_n)
{
	size_t low = 0, high = classes->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (classes->cells[middle].node < node)
			low = middle + 1;
		else
			high = middle;
	}
	size_t n = 0;
	while (low + n < classes->n && classes->cells[low + n].node == node)
		n++;
	*ret_n = n;
	return classes->cells + low;
}

/* ---- building ---- */

void classes_build_init(struct classes_build *b)
{
	*b = (struct classes_build){ .nslots = FIRST_SLOTS };
	b->slots = xcalloc(b->nslots, sizeof(*b->slots));
}

void classes_build_deinit(struct classes_build *b)
{
	free(b->slots);
	free(b->threads);
}

/* What tells cells apart within a node, in the order they are put into. */
static inline uint32_t rest_of(const struct class_cell *cell)
{
	return (uint32_t)cell->size << 24 | (uint32_t)cell->age << 16 | cell->thread;
}

static inline size_t home_of(size_t nslots, const struct class_cell *cell)
{
	uint64_t key = (uint64_t)cell->node << 32 | rest_of(cell);
	uint64_t h = (key ^ key >> 29) * 0x9e3779b97f4a7c15ull;

	return (size_t)(h >> 20) & (nslots - 1);
}

static struct class_cell *slot_of(struct class_cell *slots, size_t nslots, const struct class_cell *cell)
{
	size_t i = home_of(nslots, cell);

	while (slots[i].samples && (slots[i].node != cell->node || rest_of(&slots[i]) != rest_of(cell)))
		i = (i + 1) & (nslots - 1);
	return &slots[i];
}

static void grow(struct classes_build *b)
{
	size_t nslots = b->nslots * 2;
	struct class_cell *slots = xcalloc(nslots, sizeof(*slots));

	for (size_t i = 0; i < b->nslots; i++)
		if (b->slots[i].samples)
			*slot_of(slots, nslots, &b->slots[i]) = b->slots[i];
	free(b->slots);
	b->slots = slots;
	b->nslots = nslots;
}

static void add_to(struct class_cell *to, const struct class_cell *cell)
{
	to->bytes += cell->bytes;
	to->q10 += cell->q10;
	to->samples = to->samples > UINT32_MAX - cell->samples ? UINT32_MAX : to->samples + cell->samples;
}

void classes_ahead(const struct classes_build *b, const struct class_cell *cell)
{
	__builtin_prefetch(&b->slots[home_of(b->nslots, cell)], 1);
}

void classes_add(struct classes_build *b, const struct class_cell *cell)
{
	if (!cell->samples || cell->size >= CLASS_SIZES || cell->age >= CLASS_AGES)
		return;
	struct class_cell *slot = slot_of(b->slots, b->nslots, cell);
	if (slot->samples) {
		add_to(slot, cell);
		return;
	}
	*slot = *cell;
	if (++b->n > b->nslots / 8 * 5)
		grow(b);
}

uint16_t classes_thread(struct classes_build *b, const struct class_thread *thread)
{
	if (b->nthreads >= CLASS_NO_THREAD)
		return CLASS_NO_THREAD;
	VEC_GROW(b->threads, b->nthreads, b->threads_cap);
	b->threads[b->nthreads] = *thread;
	return (uint16_t)b->nthreads++;
}

uint16_t classes_thread_by_name(struct classes_build *b, const struct class_thread *thread)
{
	uint32_t many = thread->merged ? thread->merged : 1;

	for (size_t i = 0; i < b->nthreads; i++) {
		struct class_thread *t = &b->threads[i];
		if (strcmp(t->name, thread->name))
			continue;
		t->merged = (t->merged ? t->merged : 1) + many;
		t->tid = 0;
		t->ended = t->ended && thread->ended;
		return (uint16_t)i;
	}
	return classes_thread(b, thread);
}

static int compare_rest(const void *pa, const void *pb)
{
	uint32_t a = rest_of(pa), b = rest_of(pb);

	return a < b ? -1 : a > b;
}

/* Most nodes have a few cells, too few for qsort to be worth its call. */
static void sort_node(struct class_cell *cells, size_t n)
{
	if (n > 12) {
		qsort(cells, n, sizeof(*cells), compare_rest);
		return;
	}
	for (size_t i = 1; i < n; i++) {
		struct class_cell cell = cells[i];
		size_t k = i;
		for (; k > 0 && rest_of(&cells[k - 1]) > rest_of(&cell); k--)
			cells[k] = cells[k - 1];
		cells[k] = cell;
	}
}

/*
 * By node, digit by digit from the lowest: linear, since a table may have a million cells and the collector
 * waits for it. Then each node's by the rest.
 */
static struct class_cell *sorted(struct class_cell *cells, size_t n)
{
	struct class_cell *to = xmalloc((n + 1) * sizeof(*to));
	uint32_t largest = 0;

	for (size_t i = 0; i < n; i++)
		largest = cells[i].node > largest ? cells[i].node : largest;
	for (unsigned shift = 0; shift < 32 && largest >> shift; shift += RADIX_BITS) {
		size_t at[(1u << RADIX_BITS) + 1] = { 0 };
		const uint32_t mask = (1u << RADIX_BITS) - 1;
		for (size_t i = 0; i < n; i++)
			at[(cells[i].node >> shift & mask) + 1]++;
		for (uint32_t d = 1; d <= mask; d++)
			at[d] += at[d - 1];
		for (size_t i = 0; i < n; i++)
			to[at[cells[i].node >> shift & mask]++] = cells[i];
		struct class_cell *other = cells;
		cells = to;
		to = other;
	}
	free(to);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && cells[end].node == cells[i].node; end++)
			continue;
		sort_node(cells + i, end - i);
	}
	return cells;
}

/* Different nodes may have become one. */
static size_t united(struct class_cell *cells, size_t n)
{
	size_t to = 0;

	for (size_t i = 1; i < n; i++) {
		struct class_cell *last = &cells[to];
		if (cells[i].node == last->node && rest_of(&cells[i]) == rest_of(last))
			add_to(last, &cells[i]);
		else
			cells[++to] = cells[i];
	}
	return n ? to + 1 : 0;
}

struct classes *classes_finish(const struct classes_build *b, double time, classes_node_fn node_of, void *ctx)
{
	struct classes *classes = xcalloc(1, sizeof(*classes));
	struct class_cell *cells = xmalloc((b->n + 1) * sizeof(*cells));
	size_t n = 0;

	for (size_t i = 0; i < b->nslots; i++) {
		if (!b->slots[i].samples)
			continue;
		cells[n] = b->slots[i];
		if (node_of)
			cells[n].node = node_of(ctx, cells[n].node);
		n++;
	}
	classes->refs = 1;
	classes->time = time;
	classes->cells = sorted(cells, n);
	classes->n = united(classes->cells, n);
	classes->nthreads = (uint32_t)b->nthreads;
	classes->threads = xcalloc(b->nthreads + 1, sizeof(*classes->threads));
	if (b->nthreads)
		memcpy(classes->threads, b->threads, b->nthreads * sizeof(*b->threads));
	return classes;
}
