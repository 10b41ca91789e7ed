/*
 * Room between the target's mappings, for what is to be placed in it: near to code that must reach it,
 * out of the way of its heap and stack.
 */
#include "target/maps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "elf/modules.h"
#include "target/impl.h"
#include "target/proc.h"

struct gap_search {
	const struct gap_query *q;
	uint64_t low, high;	/* the gap must lie within */
	uint64_t best, best_distance;
};

/* Free space [start, end): the place in it that is nearest to [lo, hi]. */
static void try_gap(struct gap_search *s, uint64_t start, uint64_t end)
{
	uint64_t mask = s->q->page - 1, bytes = s->q->bytes, distance, at;

	if (start < s->low)
		start = s->low;
	if (end > s->high)
		end = s->high;
	start = (start + mask) & ~mask;
	end &= ~mask;
	if (start >= end || end - start < bytes)
		return;
	if (end <= s->q->lo) {		/* below: at its end */
		at = end - bytes;
		distance = s->q->lo - at;
	} else {			/* above, or between: at its start */
		at = start;
		distance = at >= s->q->hi ? at + bytes - s->q->hi : 0;
	}
	if (distance < s->best_distance) {
		s->best = at;
		s->best_distance = distance;
	}
}

uint64_t maps_find_gap(const struct mapping *maps, size_t n, const struct gap_query *q)
{
	struct gap_search s = { .q = q, .best_distance = UINT64_MAX };
	uint64_t from = q->min_addr > q->page ? q->min_addr : q->page;

	s.low = q->hi > q->reach ? q->hi - q->reach : 0;
	s.high = q->lo < UINT64_MAX - q->reach ? q->lo + q->reach : UINT64_MAX;
	for (size_t i = 0; i <= n; i++) {
		uint64_t to = q->max_addr;
		/* A page on either side stays free, so that an overrun still faults. */
		if (i < n && maps[i].start < to) {
			uint64_t room = strcmp(maps[i].path, "[stack]") == 0 ? q->stack_room : 0;
			room += q->page;
			to = maps[i].start > room ? maps[i].start - room : 0;
		}
		if (q->brk_start >= from && q->brk_start < to) {
			/* The heap will come into this gap. */
			try_gap(&s, from, q->brk_start - q->page);
			if (q->brk_start < UINT64_MAX - q->heap_room)
				try_gap(&s, q->brk_start + q->heap_room, to);
		} else {
			try_gap(&s, from, to);
		}
		if (i == n || maps[i].end >= q->max_addr)
			break;
		/* never back: of the kernel's mappings none overlaps another, but nobody else need know that */
		uint64_t next = maps[i].end + q->page;
		if (strcmp(maps[i].path, "[heap]") == 0)
			next += q->heap_room;
		if (next > from)
			from = next;
	}
	return s.best;
}

static uint64_t mmap_min_addr(void)
{
	unsigned long long value = 0;
	FILE *f = fopen("/proc/sys/vm/mmap_min_addr", "re");

	if (f) {
		if (fscanf(f, "%llu", &value) != 1)
			value = 0;
		fclose(f);
	}
	/* 64 KiB as a floor: a null pointer with a small offset must go on faulting. */
	return value > 65536 ? value : 65536;
}

/* The stack may grow to its limit, plus the kernel's guard gap of 1 MiB (stack_guard_gap). */
static uint64_t stack_room(struct target *t)
{
	const uint64_t least = 16u << 20, most = 8ull << 30;
	uint64_t limit = most;
	CLEANUP_FREE char *text = proc_read(t->pid, t->live, "limits", 1 << 16, NULL);
	char *s = text ? strstr(text, "Max stack size") : NULL;

	if (s) {
		s += strlen("Max stack size");
		s += strspn(s, " ");
		if (*s >= '0' && *s <= '9')
			limit = strtoull(s, NULL, 10);
	}
	limit = limit < least ? least : limit > most ? most : limit;
	return limit + (2u << 20);
}

struct map_list {
	struct mapping *maps;	/* their paths: "[stack]", "[heap]" or "", which is all that counts here */
	size_t n, cap;
};

static bool collect(void *ctx, const struct mapping *m)
{
	struct map_list *list = ctx;

	VEC_GROW(list->maps, list->n, list->cap);
	list->maps[list->n] = *m;
	list->maps[list->n++].path = !strcmp(m->path, "[stack]") ? "[stack]"
				   : !strcmp(m->path, "[heap]") ? "[heap]" : "";
	return true;
}

uint64_t target_find_gap(struct target *t, uint64_t lo, uint64_t hi, uint64_t bytes)
{
	struct map_list list = { 0 };
	struct proc_stat stat;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), ret = 0;

	if (lo > hi || !bytes || bytes > 1u << 31)
		return 0;
	struct err *err = target_each_mapping(t, collect, &list);
	if (err) {
		log_line("%s", err->text);
		err_free(err);
		free(list.maps);
		return 0;
	}
	struct gap_query q = {
		.lo = lo, .hi = hi,
		.reach = (2ull << 30) - (64u << 10),
		.bytes = (bytes + page - 1) & ~(page - 1),
		.page = page,
		.min_addr = mmap_min_addr(),
		.max_addr = (1ull << 47) - page,
		.brk_start = proc_stat(t->pid, t->live, &stat) ? stat.start_brk : 0,
		.stack_room = stack_room(t),
	};
	/* Not above the heap at all if that can be had: it may grow far. */
	static const uint64_t heap_rooms[] = { 1ull << 40, 1ull << 30, 64u << 20 };
	for (size_t i = 0; i < ARRAY_SIZE(heap_rooms) && !ret; i++) {
		q.heap_room = heap_rooms[i];
		ret = maps_find_gap(list.maps, list.n, &q);
	}
	free(list.maps);
	return ret;
}
