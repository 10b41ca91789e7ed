/*
 * Statistics per thread: which thread has a slot now, what each has allocated and what of that lives, under
 * its name. The collector thread. heap.c decides what an event means; this only counts.
 *
 * A thread has a number, which its live blocks hold; so what a free takes away is what the same thread's
 * allocation added, whoever frees it. Programs make threads without end, so the number of records is
 * bounded: of the ended ones THREADS_ENDED are kept by themselves, the others are added up by name. What a
 * merged thread's blocks take away later is taken from that sum; its number is used again when its
 * last block has gone, or, when numbers become scarce, when a pass over the live table has given its
 * blocks the sum's number.
 *
 * Names come from the target: cleaned of control characters here.
 */
#ifndef HEAPTOP_HEAP_THREADS_H
#define HEAPTOP_HEAP_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap/heap.h"
#include "heap/series.h"
#include "heap/view.h"
#include "wire/wire.h"

#define THREADS_MAX 65535u	/* records, 13 MB; what they held before, 5 MB */
#define THREADS_ENDED 256u	/* ended threads with a record of their own */
#define THREADS_NAMES 126u	/* sums by name; what has another name goes into two more, chosen or not */
#define THREADS_OTHERS "other names"

/* What rates are computed from: counters at the start of a window. */
struct thread_base {
	uint64_t alloc_bytes, alloc_q10, free_bytes, free_q10;
};

struct thread {
	uint64_t alloc_bytes, alloc_q10, free_bytes, free_q10;	/* as trace_stats has them */
	uint64_t samples, live_samples;
	double live_var, alloc_var;
	struct thread_base base[2];
	uint64_t ended_at;	/* ns */
	uint32_t tid;		/* in the target's PID namespace; 0: not known, or a sum */
	uint32_t serial;	/* another one whenever the number is used again */
	uint32_t merged;	/* a sum: of so many threads */
	uint16_t into;		/* merged: number of the sum; 0: it stands for itself */
	uint16_t row;		/* its row in the newest view */
	uint8_t absent;		/* times in a row that it wasn't in the list of threads */
	bool used, ended;
	bool chosen;		/* by the filter, see heap_choose_threads */
	char name[VIEW_THREAD_NAME];
};

struct threads {
	struct thread *items;	/* number 0: nobody */
	size_t n, cap;
	uint16_t *spare;
	size_t nspare, spare_cap;
	uint16_t of_slot[WIRE_SLOTS];	/* 0: no event came from there yet */
	uint16_t sums[THREADS_NAMES + 2];
	size_t nsums;
	uint32_t serial;
	uint64_t base_time[2];	/* ns */
	struct series series;	/* of live bytes, by number */
	uint16_t named;		/* where the search for the next to be named goes on */
};

struct live;

void threads_init(struct threads *threads);
void threads_deinit(struct threads *threads);

/* The slot's events are thread tid's from here on. `name`: 16 bytes, or NULL. Returns its number. */
uint16_t threads_begin(struct threads *threads, struct live *live, uint32_t slot, uint32_t tid, const char *name,
		       uint64_t time);
/* For a slot that no thread was told for. */
uint16_t threads_unknown(struct threads *threads, struct live *live, uint32_t slot);

/* These threads there are, ascending; who isn't among them twice in a row has ended. None: the process has. */
void threads_present(struct threads *threads, const uint32_t *tids, size_t n, uint64_t time);
/* Threads in turn, to look whether they have another name now: number and id of the next one that hasn't
 * ended; 0: there is none. */
uint16_t threads_next(struct threads *threads, uint32_t *ret_tid);
/* `name`: 16 bytes as in threads_begin, "": leave it. */
void threads_name(struct threads *threads, uint16_t number, const char *name);

/* Is it one of the list `which` (heap_choose_threads): by its id, or does its name match? */
bool threads_match(const struct thread *thread, const char *which);

/* Merge the longest ended beyond THREADS_ENDED, give numbers back. */
void threads_tidy(struct threads *threads);
/* The rows that the view published next will have, in their order, without rates; `view` gets them alone. */
void threads_rows(struct threads *threads, struct view *view);
/* Give the view its rows, and if that is `wanted` what they held before. */
void threads_publish(struct threads *threads, uint64_t time, bool wanted, struct view *view);

static inline uint16_t threads_of_slot(struct threads *threads, struct live *live, uint32_t slot)
{
	if (slot >= WIRE_SLOTS)
		return 0;
	uint16_t number = threads->of_slot[slot];
	return number ? number : threads_unknown(threads, live, slot);
}

static inline void threads_alloc(struct threads *threads, uint16_t number, const struct heap_weight *w)
{
	struct thread *t = &threads->items[number];

	t->ended = false;	/* whatever was thought */
	t->alloc_bytes += w->bytes;
	t->alloc_q10 += w->blocks_q10;
	t->samples++;
	t->live_samples++;
	if (w->variance > 0) {
		t->live_var += w->variance;
		t->alloc_var += w->variance;
	}
}

/* The end of a block, or (sign -1) of that end. */
static inline void threads_count_end(struct thread *t, const struct heap_weight *w, int sign)
{
	if (sign > 0) {
		t->free_bytes += w->bytes;
		t->free_q10 += w->blocks_q10;
		t->live_samples--;
	} else {
		t->free_bytes -= w->bytes;
		t->free_q10 -= w->blocks_q10;
		t->live_samples++;
	}
	if (w->variance > 0) {
		t->live_var -= w->variance * sign;
		/* a sum of doubles doesn't come back to exactly 0 by itself */
		if (!t->live_samples || t->live_var < 0)
			t->live_var = 0;
	}
}

static inline void threads_free(struct threads *threads, uint16_t number, const struct heap_weight *w)
{
	struct thread *t = &threads->items[number];

	if (t->into) {
		t->live_samples--;
		t = &threads->items[t->into];
	}
	threads_count_end(t, w, 1);
}

/* Exactly undoes threads_free. */
static inline void threads_unfree(struct threads *threads, uint16_t number, const struct heap_weight *w)
{
	struct thread *t = &threads->items[number];

	if (t->into) {
		t->live_samples++;
		t = &threads->items[t->into];
	}
	threads_count_end(t, w, -1);
}

#endif
