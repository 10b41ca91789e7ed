/*
 * The reader of the rings. Events that may not be handled yet are kept for the next round; where they
 * are, since beside a crowd of busy threads there may be megabytes of them for many rounds, until a thread
 * that was preempted within its record goes on. Their order: the records of one ring come nearly sorted, so the
 * index of a round is a few dozen ascending runs, which are merged by a small heap of runs.
 */
#include "probe/ring.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define HELD_MAX (128u << 20)	/* bytes kept for later at most; beyond that order gives way */
#define RUNS_MAX 4096u
#define ROUND_EVENTS 32768u	/* about 10 ms: whoever wants something of the collector waits as long */

struct entry {
	uint64_t tsc;
	uint64_t off;		/* of the copy in the batch's bytes */
};

struct batch {
	uint8_t *bytes;
	size_t len, cap;
	size_t dead;		/* of len: bytes of events that have been handed over */
	struct entry *entries;
	size_t n, entry_cap;
};

struct ring {
	uint64_t tail;
	uint64_t seen_head;	/* head at the last round, */
	uint64_t seen_tsc;	/* and its TSC: later reservations have a later one */
	uint64_t safe;		/* nothing unread in this ring is older than that */
	uint64_t blocked;	/* position of the record waited for, ~0: none */
	uint64_t since_ns;
	/*
	 * The same at two earlier rounds, RING_ABANDONED_NS and more apart. What is busy before
	 * old_head isn't waited for again: a program that jumps out of signal handlers a thousand
	 * times a second leaves many such records behind one another.
	 */
	uint64_t noted_head, noted_tsc, noted_ns;
	uint64_t old_head, old_tsc;
};

struct run {
	size_t next, end;
};

struct ring_reader {
	struct ring_reader_config config;
	struct ring rings[WIRE_MAX_RINGS];
	struct batch now, held;
	struct run *runs;
	size_t nruns, runs_cap;
	uint64_t tsc, now_ns;
	bool last;
	bool behind;		/* the runs have more than a round hands over; as of the round that read them: */
	uint64_t until;		/* later events are kept, */
	uint64_t lie;		/* and even later ones aren't believed */
	uint64_t abandoned, bad;
};

struct ring_reader *ring_reader_create(const struct ring_reader_config *config)
{
	struct ring_reader *r = xcalloc(1, sizeof(*r));

	r->config = *config;
	for (uint32_t i = 0; i < WIRE_MAX_RINGS; i++)
		r->rings[i].blocked = ~0ull;
	return r;
}

static void batch_free(struct batch *b)
{
	free(b->bytes);
	free(b->entries);
}

void ring_reader_destroy(struct ring_reader *r)
{
	if (!r)
		return;
	batch_free(&r->now);
	batch_free(&r->held);
	free(r->runs);
	free(r);
}

/* Room for `size` bytes more, a multiple of 8. */
static uint8_t *batch_room(struct batch *b, size_t size)
{
	if (b->cap - b->len < size) {
		size_t cap = b->cap ? b->cap : 1u << 16;

		while (cap - b->len < size)
			cap *= 2;
		b->bytes = xreallocarray(b->bytes, cap, 1);
		b->cap = cap;
	}
	return b->bytes + b->len;
}

/* memcpy for records, nearly all of which have three or four words. */
static inline void copy_words(void *to, const void *from, size_t n)
{
	uint64_t *t = to;
	const uint64_t *f = from;

	if (n > 8) {
		memcpy(to, from, n * 8);
		return;
	}
	for (; n; n--)
		*t++ = *f++;
}

static void batch_add(struct batch *b, uint64_t tsc, size_t size)
{
	VEC_GROW(b->entries, b->n, b->entry_cap);
	b->entries[b->n++] = (struct entry){ tsc, b->len };
	b->len += size;
}

/*
 * What is too early to be handed over, for the next round. Its bytes are moved only if less than half of them
 * are still wanted: each at most as often as others were handed over.
 */
static void keep_rest(struct ring_reader *r)
{
	struct batch *from = &r->now, *to = &r->held;
	bool move = from->dead > from->len / 2;

	for (size_t i = 0; i < r->nruns; i++) {
		for (size_t k = r->runs[i].next; k < r->runs[i].end; k++) {
			const struct entry *entry = &from->entries[k];
			const struct wire_head *h = (const struct wire_head *)(from->bytes + entry->off);
			size_t size = move || entry->tsc > r->lie ? h->word & WIRE_SIZE_MASK : 0;
			if (entry->tsc > r->lie) {
				r->bad++;
				from->dead += size;
				continue;
			}
			if (move)
				memcpy(batch_room(to, size), h, size);
			batch_add(to, entry->tsc, size);
			if (!move)
				to->entries[to->n - 1].off = entry->off;
		}
	}
	r->nruns = 0;
	r->behind = false;
	if (!move) {
		struct batch b = *to;
		to->bytes = from->bytes;
		to->len = from->len;
		to->cap = from->cap;
		to->dead = from->dead;
		from->bytes = b.bytes;
		from->cap = b.cap;
	}
	from->len = from->dead = 0;
	from->n = 0;
}

void ring_reader_begin(struct ring_reader *r, uint64_t tsc, uint64_t now_ns, bool last)
{
	r->now_ns = now_ns;
	r->last = last;
	if (r->behind && last)
		keep_rest(r);
	if (r->behind)
		return;
	struct batch b = r->now;
	r->now = r->held;
	r->held = b;
	r->held.len = r->held.dead = 0;
	r->held.n = 0;
	r->tsc = tsc;
}

bool ring_reader_behind(const struct ring_reader *r)
{
	return r->behind;
}

uint64_t ring_reader_tail(const struct ring_reader *r, uint32_t i)
{
	return r->rings[i].tail;
}

uint64_t ring_reader_abandoned(const struct ring_reader *r)
{
	return r->abandoned;
}

uint64_t ring_reader_bad(const struct ring_reader *r)
{
	return r->bad;
}

/* What follows a wire_alloc, one piece after the other; NULL once it would end behind `end`. */
static const uint64_t *take(const uint64_t **at, const uint64_t *end, size_t words)
{
	const uint64_t *ret = *at;

	if (!ret || words > (size_t)(end - ret)) {
		*at = NULL;
		return NULL;
	}
	*at = ret + words;
	return ret;
}

static bool decode_alloc(const struct wire_alloc *a, const uint64_t *end, struct probe_event *e)
{
	const uint64_t *at = (const uint64_t *)(a + 1), *word;

	e->size = a->size;
	e->rate = 1;
	e->seq = (uint8_t)(a->stack >> 24);
	e->keep = a->stack >> WIRE_STACK_BITS & WIRE_STACK_MAX;
	e->nframes = a->stack & WIRE_STACK_MAX;
	if (e->nframes + e->keep > WIRE_MAX_FRAMES)
		return false;
	if (e->flags & WIRE_F_LARGE && (word = take(&at, end, 1)))
		e->size = *word;
	if (e->flags & WIRE_F_RATE && (word = take(&at, end, 1)))
		e->rate = *word;
	e->regs = NULL;
	e->stack = NULL;
	e->stack_bytes = 0;
	e->frames = take(&at, end, e->nframes);
	if (e->flags & WIRE_F_WALKED)
		return at && e->nframes + e->keep > 0;
	const struct wire_copy *copy = (const struct wire_copy *)take(&at, end, sizeof(*copy) / 8);
	if (!copy || e->keep || copy->bytes > WIRE_MAX_STACK || copy->bytes & 7)
		return false;
	e->regs = &copy->regs;
	e->stack_bytes = (uint32_t)copy->bytes;
	e->stack = (const uint8_t *)take(&at, end, copy->bytes / 8);
	return e->stack;
}

bool ring_decode(const struct wire_head *h, struct probe_event *e)
{
	size_t size = h->word & WIRE_SIZE_MASK;

	e->kind = (enum wire_kind)wire_kind(h->word);
	e->flags = wire_flags(h->word);
	e->slot = h->addr_slot & 0xffff;
	e->tsc = h->tsc;
	e->addr = h->addr_slot >> 16;
	if (e->slot >= WIRE_SLOTS)
		return false;
	if (e->kind == WIRE_FREE || e->kind == WIRE_UNFREE)
		return true;
	if (e->kind == WIRE_UNMAP && size >= sizeof(struct wire_range)) {
		e->size = ((const struct wire_range *)h)->bytes;
		return true;
	}
	if (e->kind == WIRE_THREAD) {
		if (size < sizeof(struct wire_thread) || e->addr >= WIRE_TID_TAKEN)
			return false;
		e->name = ((const struct wire_thread *)h)->name;
		e->sp = ((const struct wire_thread *)h)->sp;
		return true;
	}
	return e->kind == WIRE_ALLOC && size >= sizeof(struct wire_alloc) &&
	       decode_alloc((const struct wire_alloc *)h, (const uint64_t *)((const uint8_t *)h + size), e);
}

static uint64_t load_word(const struct ring_reader *r, const uint8_t *data, uint64_t pos)
{
	const uint64_t *at = (const uint64_t *)(data + (pos & (r->config.ring_bytes - 1)));

	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

static bool word_is_for(const struct ring_reader *r, uint64_t word, uint64_t pos)
{
	return word >> 32 == wire_tag(pos, r->config.nonce);
}

/* Bytes of the record at pos by its first word; 0: that can't be. */
static uint64_t record_size(const struct ring_reader *r, uint64_t word, uint64_t pos, uint64_t head)
{
	uint64_t size = word & WIRE_SIZE_MASK;
	uint64_t room = r->config.ring_bytes - (pos & (r->config.ring_bytes - 1));

	if (!size || size > head - pos || size > room)
		return 0;
	if (word & WIRE_PAD)
		return size == room ? size : 0;
	return size >= sizeof(struct wire_head) ? size : 0;
}

/*
 * The record at pos won't be finished any more. Where to go on: behind it if its size is known,
 * else at the next word that looks like a record's first.
 */
static uint64_t skip_abandoned(const struct ring_reader *r, const uint8_t *data, uint64_t pos, uint64_t head)
{
	uint64_t word = load_word(r, data, pos);

	if (word_is_for(r, word, pos)) {
		uint64_t size = record_size(r, word, pos, head);
		return size ? pos + size : head;
	}
	for (pos += 8; pos < head; pos += 8) {
		word = load_word(r, data, pos);
		if (word_is_for(r, word, pos) && record_size(r, word, pos, head))
			return pos;
	}
	return head;
}

/* Nothing complete at pos: wait for it, or give it up. Returns where to go on. */
static uint64_t wait_for(struct ring_reader *r, struct ring *ring, const uint8_t *data, uint64_t pos,
			 uint64_t head)
{
	if (ring->blocked != pos) {
		ring->blocked = pos;
		ring->since_ns = r->now_ns;
	}
	if (!r->last && pos >= ring->old_head && r->now_ns - ring->since_ns < RING_ABANDONED_NS)
		return pos;
	r->abandoned++;
	ring->blocked = ~0ull;
	return skip_abandoned(r, data, pos, head);
}

static void note_head(const struct ring_reader *r, struct ring *ring, uint64_t head)
{
	if (r->now_ns - ring->noted_ns < RING_ABANDONED_NS)
		return;
	ring->old_head = ring->noted_head;
	ring->old_tsc = ring->noted_tsc;
	ring->noted_head = head;
	ring->noted_tsc = r->tsc;
	ring->noted_ns = r->now_ns;
}

/*
 * Only the record that pos is blocked by is unread. It isn't committed yet, so what depends on it hasn't
 * begun to happen: a thread that was preempted while it recorded holds nobody up.
 */
static bool is_last(const struct ring_reader *r, const uint8_t *data, uint64_t pos, uint64_t head)
{
	uint64_t word = load_word(r, data, pos);

	return word_is_for(r, word, pos) && word & WIRE_BUSY && record_size(r, word, pos, head) == head - pos;
}

uint64_t ring_reader_read(struct ring_reader *r, uint32_t i, uint64_t head, const uint8_t *data)
{
	struct ring *ring = &r->rings[i];
	uint64_t pos = ring->tail;

	if (r->behind)
		return pos;
	if (head - pos > r->config.ring_bytes || head & 7) {
		r->bad++;
		head &= ~7ull;
		pos = head;
	}
	note_head(r, ring, head);
	while (pos != head) {
		uint64_t word = load_word(r, data, pos);

		if (!word_is_for(r, word, pos) || word & WIRE_BUSY) {
			uint64_t next = wait_for(r, ring, data, pos, head);
			if (next == pos)
				break;
			pos = next;
			continue;
		}
		uint64_t size = record_size(r, word, pos, head);
		if (!size) {
			r->bad++;
			pos = head;
			break;
		}
		if (!(word & WIRE_PAD) && wire_kind(word) != WIRE_VOID) {
			struct wire_head *h = (struct wire_head *)batch_room(&r->now, size);
			copy_words(h, data + (pos & (r->config.ring_bytes - 1)), size / 8);
			h->word = word;
			batch_add(&r->now, h->tsc, size);
		}
		pos += size;
	}
	if (pos == head || is_last(r, data, pos, head))
		ring->safe = r->tsc;
	else if (pos >= ring->seen_head)
		ring->safe = ring->seen_tsc;
	else if (pos >= ring->noted_head && ring->safe < ring->noted_tsc)
		ring->safe = ring->noted_tsc;
	else if (pos >= ring->old_head && ring->safe < ring->old_tsc)
		ring->safe = ring->old_tsc;
	ring->seen_head = head;
	ring->seen_tsc = r->tsc;
	ring->tail = pos;
	return pos;
}

/* ---- order ---- */

static int entry_compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->tsc != y->tsc)
		return x->tsc < y->tsc ? -1 : 1;
	return x->off < y->off ? -1 : x->off > y->off;
}

/* The ascending runs of the index; with far too many of them, sort: then it is one. */
static void find_runs(struct ring_reader *r)
{
	struct batch *b = &r->now;

	r->nruns = 0;
	for (size_t i = 0; i < b->n; i++) {
		if (i && b->entries[i].tsc >= b->entries[i - 1].tsc) {
			r->runs[r->nruns - 1].end = i + 1;
			continue;
		}
		if (r->nruns == RUNS_MAX) {
			qsort(b->entries, b->n, sizeof(*b->entries), entry_compare);
			r->runs[0] = (struct run){ 0, b->n };
			r->nruns = 1;
			return;
		}
		VEC_GROW(r->runs, r->nruns, r->runs_cap);
		r->runs[r->nruns++] = (struct run){ i, i + 1 };
	}
}

static bool run_before(const struct ring_reader *r, size_t a, size_t b)
{
	return entry_compare(&r->now.entries[r->runs[a].next], &r->now.entries[r->runs[b].next]) < 0;
}

static void sift_down(struct ring_reader *r, size_t i)
{
	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= r->nruns)
			return;
		if (child + 1 < r->nruns && run_before(r, child + 1, child))
			child++;
		if (!run_before(r, child, i))
			return;
		struct run t = r->runs[i];
		r->runs[i] = r->runs[child];
		r->runs[child] = t;
		i = child;
	}
}

static uint64_t horizon(const struct ring_reader *r)
{
	uint64_t t = r->tsc;

	if (r->last || r->now.len - r->now.dead > HELD_MAX)
		return ~0ull;
	for (uint32_t i = 0; i < r->config.nrings; i++)
		if (r->rings[i].safe < t)
			t = r->rings[i].safe;
	return t;
}

/* One event, in its turn. Returns how many were handed over. */
static size_t take_event(struct ring_reader *r, const struct entry *entry, probe_event_fn fn, void *ctx)
{
	const struct wire_head *h = (const struct wire_head *)(r->now.bytes + entry->off);
	struct probe_event e;

	r->now.dead += h->word & WIRE_SIZE_MASK;
	if (entry->tsc > r->lie || !ring_decode(h, &e)) {
		r->bad++;
		return 0;
	}
	fn(ctx, &e);
	return 1;
}

/* The first run's first event has been taken. */
static void next_event(struct ring_reader *r)
{
	struct run *run = &r->runs[0];

	if (++run->next == run->end)
		*run = r->runs[--r->nruns];
	if (r->nruns > 1)
		sift_down(r, 0);
}

size_t ring_reader_finish(struct ring_reader *r, uint64_t tsc, probe_event_fn fn, void *ctx)
{
	size_t n = 0;

	if (!r->behind) {
		r->until = horizon(r);
		r->lie = tsc;
		find_runs(r);
		for (size_t i = r->nruns / 2; i-- > 0;)
			sift_down(r, i);
	}
	while (r->nruns) {
		const struct entry *entry = &r->now.entries[r->runs[0].next];

		r->behind = entry->tsc <= r->until;
		if (!r->behind || (n >= ROUND_EVENTS && !r->last))
			break;
		n += take_event(r, entry, fn, ctx);
		next_event(r);
	}
	r->behind &= r->nruns != 0;
	if (!r->behind)
		keep_rest(r);
	return n;
}
