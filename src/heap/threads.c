/* Statistics per thread; see threads.h. */
#include "heap/threads.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "heap/live.h"

#define WINDOW_STEP 1000000000ull	/* the window of rates: see traces.c */
#define WINDOW_MIN 1500000000ull
#define RATE_MIN 50000000ull
#define WHICH_MAX 256u			/* bytes of one pattern, with NUL; longer ones match nothing */
#define ABSENT_ENDED 2			/* a reading of /proc may miss a thread when others end meanwhile */

void threads_init(struct threads *threads)
{
	*threads = (struct threads){ 0 };
	VEC_GROW(threads->items, 0, threads->cap);
	threads->items[0] = (struct thread){ .used = true };
	threads->n = 1;
}

void threads_deinit(struct threads *threads)
{
	free(threads->items);
	free(threads->spare);
	series_deinit(&threads->series);
}

/* ---- numbers ---- */

/* Give the merged threads' blocks the number of the sum they are counted in. */
static void relabel(struct threads *threads, struct live *live)
{
	for (size_t i = 0; i < live_slots(live); i++) {
		struct live_block *block = live_slot(live, i);
		struct thread *t = &threads->items[block->thread];

		if (!block->addr || !t->into)
			continue;
		block->thread = t->into;
		t->live_samples--;
	}
}

static void give_back(struct threads *threads)
{
	for (size_t i = 1; i < threads->n; i++) {
		struct thread *t = &threads->items[i];
		if (!t->used || !t->into || t->live_samples)
			continue;
		t->used = false;
		VEC_GROW(threads->spare, threads->nspare, threads->spare_cap);
		threads->spare[threads->nspare++] = (uint16_t)i;
	}
}

static uint16_t new_number(struct threads *threads, struct live *live)
{
	/* without the live table: for a sum, whose numbers are kept free */
	size_t i = 0, max = live ? THREADS_MAX - ARRAY_SIZE(threads->sums) : THREADS_MAX;

	if (live && !threads->nspare && threads->n >= max) {
		threads_tidy(threads);
		if (!threads->nspare) {
			relabel(threads, live);
			give_back(threads);
		}
	}
	if (threads->nspare) {
		i = threads->spare[--threads->nspare];
	} else if (threads->n < max) {
		VEC_GROW(threads->items, threads->n, threads->cap);
		i = threads->n++;
	}
	if (i)
		threads->items[i] = (struct thread){ .used = true, .serial = ++threads->serial };
	return (uint16_t)i;
}

/* ---- who is who ---- */

static void set_name(struct thread *t, const char *name)
{
	_Static_assert(sizeof(t->name) > 16, "a name of the kernel's fits");
	memcpy(t->name, name, 16);
	t->name[16] = 0;
	text_sanitize(t->name);
}

static void end(struct thread *t, uint64_t time)
{
	if (t->ended)
		return;
	t->ended = true;
	t->ended_at = time;
}

uint16_t threads_begin(struct threads *threads, struct live *live, uint32_t slot, uint32_t tid, const char *name,
		       uint64_t time)
{
	if (slot >= WIRE_SLOTS)
		return 0;
	uint16_t number = threads->of_slot[slot];
	struct thread *t = &threads->items[number];

	if (!number || t->tid != tid || t->ended) {
		if (number)
			end(t, time);
		/* before the slot has it: the thread before must be free to be merged */
		threads->of_slot[slot] = 0;
		number = new_number(threads, live);
		t = &threads->items[number];
		threads->of_slot[slot] = number;
		if (number)
			t->tid = tid;
	}
	if (number && name && *name)
		set_name(t, name);
	return number;
}

uint16_t threads_unknown(struct threads *threads, struct live *live, uint32_t slot)
{
	return threads_begin(threads, live, slot, 0, NULL, 0);
}

static int compare_tids(const void *pa, const void *pb)
{
	uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;

	return a < b ? -1 : a > b;
}

void threads_present(struct threads *threads, const uint32_t *tids, size_t n, uint64_t time)
{
	for (size_t i = 1; i < threads->n; i++) {
		struct thread *t = &threads->items[i];

		if (!t->used || t->ended || t->merged || !t->tid)
			continue;
		if (n && bsearch(&t->tid, tids, n, sizeof(*tids), compare_tids))
			t->absent = 0;
		else if (!n || ++t->absent >= ABSENT_ENDED)
			end(t, time);
	}
}

uint16_t threads_next(struct threads *threads, uint32_t *ret_tid)
{
	for (size_t i = 0; i < WIRE_SLOTS; i++) {
		uint16_t number = threads->of_slot[threads->named];
		const struct thread *t = &threads->items[number];

		threads->named = (threads->named + 1) % WIRE_SLOTS;
		if (number && t->tid && !t->ended) {
			*ret_tid = t->tid;
			return number;
		}
	}
	return 0;
}

void threads_name(struct threads *threads, uint16_t number, const char *name)
{
	if (number && number < threads->n && *name)
		set_name(&threads->items[number], name);
}

/* "400", "io-*": one of the list that begins at `which`, up to its comma or end. */
static bool match_one(const struct thread *thread, const char *which, size_t len)
{
	char tid[16], pattern[WHICH_MAX];

	if (!len || len >= sizeof(pattern))
		return false;
	memcpy(pattern, which, len);
	pattern[len] = '\0';
	snprintf(tid, sizeof(tid), "%" PRIu32, thread->tid);
	return (thread->tid && !strcmp(pattern, tid)) || (*thread->name && !fnmatch(pattern, thread->name, 0));
}

bool threads_match(const struct thread *thread, const char *which)
{
	for (;;) {
		size_t len = 0;
		while (which[len] && which[len] != ',')
			len += which[len] == '\\' && which[len + 1] ? 2 : 1;
		if (match_one(thread, which, len))
			return true;
		if (!which[len])
			return false;
		which += len + 1;
	}
}

/* ---- ended threads ---- */

/* The number of the sum that threads of this name are counted in; 0: there is no number left for it. */
static uint16_t sum_of(struct threads *threads, const struct thread *t)
{
	const char *name = t->name;
	bool chosen = t->chosen;

	for (int others = 0; others < 2; others++) {
		for (size_t k = 0; k < threads->nsums; k++) {
			const struct thread *sum = &threads->items[threads->sums[k]];
			if (sum->chosen == chosen && !strcmp(sum->name, others ? THREADS_OTHERS : name))
				return threads->sums[k];
		}
		if (threads->nsums < THREADS_NAMES || others)
			break;
	}
	if (threads->nsums == ARRAY_SIZE(threads->sums))
		return 0;
	char copy[VIEW_THREAD_NAME];
	snprintf(copy, sizeof(copy), "%s", threads->nsums < THREADS_NAMES ? name : THREADS_OTHERS);
	uint16_t number = new_number(threads, NULL);
	if (!number)
		return 0;
	struct thread *sum = &threads->items[number];
	memcpy(sum->name, copy, sizeof(copy));
	sum->chosen = chosen;
	sum->ended = true;
	threads->sums[threads->nsums++] = number;
	return number;
}

static void base_add(struct thread_base *dst, const struct thread_base *src)
{
	dst->alloc_bytes += src->alloc_bytes;
	dst->alloc_q10 += src->alloc_q10;
	dst->free_bytes += src->free_bytes;
	dst->free_q10 += src->free_q10;
}

static void merge(struct threads *threads, uint16_t number)
{
	uint16_t into = sum_of(threads, &threads->items[number]);

	if (!into)
		return;
	struct thread *t = &threads->items[number], *sum = &threads->items[into];
	sum->alloc_bytes += t->alloc_bytes;
	sum->alloc_q10 += t->alloc_q10;
	sum->free_bytes += t->free_bytes;
	sum->free_q10 += t->free_q10;
	sum->samples += t->samples;
	sum->live_samples += t->live_samples;
	sum->live_var += t->live_var;
	sum->alloc_var += t->alloc_var;
	base_add(&sum->base[0], &t->base[0]);
	base_add(&sum->base[1], &t->base[1]);
	sum->merged++;
	t->into = into;
	/* whoever gets the number held nothing before */
	series_move(&threads->series, number, into);
}

struct ended {
	uint64_t at;
	uint16_t number;
};

static int compare_ended(const void *pa, const void *pb)
{
	const struct ended *a = pa, *b = pb;

	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

void threads_tidy(struct threads *threads)
{
	CLEANUP_FREE struct ended *ended = xcalloc(threads->n, sizeof(*ended));
	size_t n = 0;

	for (size_t i = 1; i < threads->n; i++) {
		const struct thread *t = &threads->items[i];
		if (t->used && t->ended && !t->into && !t->merged)
			ended[n++] = (struct ended){ t->ended_at, (uint16_t)i };
	}
	if (n > THREADS_ENDED) {
		qsort(ended, n, sizeof(*ended), compare_ended);
		for (size_t i = 0; i < WIRE_SLOTS; i++)
			if (threads->items[threads->of_slot[i]].ended)
				threads->of_slot[i] = 0;	/* should it speak up again, it is somebody else */
		for (size_t i = 0; i < n - THREADS_ENDED; i++)
			merge(threads, ended[i].number);
	}
	give_back(threads);
}

/* ---- publishing ---- */

static void fill(struct thread *t, int from, double per_second, struct view_thread *ret)
{
	const struct thread_base *base = &t->base[from];
	struct trace_stats *s = &ret->s;

	memcpy(ret->name, t->name, sizeof(ret->name));
	ret->tid = t->tid;
	ret->ended = t->ended;
	ret->chosen = t->chosen;
	ret->merged = t->merged;
	s->alloc_bytes = t->alloc_bytes;
	s->alloc_q10 = t->alloc_q10;
	s->free_bytes = t->free_bytes;
	s->free_q10 = t->free_q10;
	s->live_bytes = t->alloc_bytes - t->free_bytes;
	s->live_q10 = t->alloc_q10 - t->free_q10;
	s->samples = t->samples;
	s->live_samples = t->live_samples;
	s->live_var = t->live_var;
	s->alloc_var = t->alloc_var;
	/* an undone free may lie before the base: then the difference is below 0 */
	int64_t freed = (int64_t)(t->free_bytes - base->free_bytes), frees = (int64_t)(t->free_q10 - base->free_q10);
	s->alloc_bps = (float)((double)(t->alloc_bytes - base->alloc_bytes) * per_second);
	s->alloc_cps = (float)((double)(t->alloc_q10 - base->alloc_q10) / 1024 * per_second);
	s->free_bps = freed > 0 ? (float)((double)freed * per_second) : 0;
	s->free_cps = frees > 0 ? (float)((double)frees / 1024 * per_second) : 0;
}

/* Has number `i` a row of its own? */
static bool listed(const struct thread *t, size_t i)
{
	return t->used && !t->into && (i || t->samples);
}

static void list(struct threads *threads, int from, double per_second, struct view *view)
{
	threads_tidy(threads);
	view->threads = xcalloc(threads->n, sizeof(*view->threads));
	for (size_t i = 0; i < threads->n; i++) {
		struct thread *t = &threads->items[i];
		if (!listed(t, i))
			continue;
		t->row = (uint16_t)view->nthreads;
		fill(t, from, per_second, &view->threads[view->nthreads++]);
	}
}

void threads_rows(struct threads *threads, struct view *view)
{
	list(threads, 0, 0, view);
}

static void take_step(struct threads *threads, double time)
{
	if (!series_due(&threads->series, time))
		return;
	uint64_t *live = series_step(&threads->series, time, threads->n);
	for (size_t i = 0; i < threads->n; i++) {
		const struct thread *t = &threads->items[i];
		if (t->used && !t->into)
			live[i] = t->alloc_bytes - t->free_bytes;
	}
}

/* By number as the series is -> by row as the view's list is. */
static struct view_series *series_of_rows(const struct threads *threads, const struct view *view)
{
	struct view_series *all = series_publish(&threads->series, threads->n);
	struct view_series *ret = all ? view_series_create(all->n, view->nthreads) : NULL;

	if (ret)
		memcpy(ret->times, all->times, sizeof(ret->times));
	for (size_t i = 0; ret && i < threads->n; i++) {
		const struct thread *t = &threads->items[i];
		if (listed(t, i))
			memcpy(view_series_of(ret, t->row), view_series_of(all, i), all->n * sizeof(all->values[0]));
	}
	view_series_unref(all);
	return ret;
}

void threads_publish(struct threads *threads, uint64_t time, bool wanted, struct view *view)
{
	uint64_t since = time > threads->base_time[1] ? time - threads->base_time[1] : 0;
	int from = since >= WINDOW_MIN;
	uint64_t dt = time > threads->base_time[from] ? time - threads->base_time[from] : 0;

	list(threads, from, dt >= RATE_MIN ? 1e9 / (double)dt : 0, view);
	take_step(threads, view->time);
	view->thread_series = wanted ? series_of_rows(threads, view) : NULL;
	if (since < WINDOW_STEP)
		return;
	for (size_t i = 0; i < threads->n; i++) {
		struct thread *t = &threads->items[i];
		if (!listed(t, i))
			continue;
		t->base[0] = t->base[1];
		t->base[1] = (struct thread_base){ t->alloc_bytes, t->alloc_q10, t->free_bytes, t->free_q10 };
	}
	threads->base_time[0] = threads->base_time[1];
	threads->base_time[1] = time;
}
