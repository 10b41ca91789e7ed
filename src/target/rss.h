/*
 * What a process's RSS is made of, besides its heap: the system's own counters, and of the anonymous memory in
 * them the stacks, the modules' data and what is heaptop's. Nothing is stopped. The collector thread.
 *
 * /proc/PID/smaps would say all of this, and walk the page tables of all memory for it. Here the counters come from
 * /proc/PID/status, which are kept anyway, one reading of maps tells what lies where, and only the
 * stacks and the modules are looked at page by page: 0.1 ms for a small program, 2 to 3 ms for one of 5,000 mappings,
 * whatever the size of its heap.
 */
#ifndef HEAPTOP_TARGET_RSS_H
#define HEAPTOP_TARGET_RSS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pagemap;
struct target;

struct rss_range {
	uint64_t start, end;
};

struct target_rss {		/* bytes */
	uint64_t anon, file, shmem;	/* RssAnon, RssFile, RssShmem */
	uint64_t swap;			/* VmSwap */
	uint64_t stacks;		/* of anon */
	uint64_t data;			/* of anon: modules' pages that were written to, and their bss */
	uint64_t own_anon, own_shmem;	/* in the ranges given; and of code that was written to, as hooks do */
};

/*
 * A stack is a mapping that a thread's stack pointer lies in, or [stack]. The kernel tells the pointers of threads that
 * sleep; for those that run, a mapping with a guard below is taken for one.
 * False: it has gone, or its page maps may not be read.
 */
bool target_rss(struct target *t, const struct rss_range *own, size_t n, struct target_rss *ret);

/* Its page map, as pagemap_open; ours to close. */
int target_pagemap(struct target *t, struct pagemap *ret);
/*
 * Is its memory still there? The page maps of a process that ends tell of ever fewer pages: what they have told counts only if
 * this is so afterwards.
 */
bool target_has_memory(struct target *t);

#endif
