/*
 * /proc/PID/maps as values, and where there is room in it. Pure functions on text and
 * records: bytes in, values out. The paths in it are the target's choice.
 */
#ifndef HEAPTOP_TARGET_MAPS_H
#define HEAPTOP_TARGET_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mapping;

/*
 * One line of maps, without its newline, into *ret; ret->path points into the line, which is
 * changed (unescaped, " (deleted)" cut off). False if it is malformed.
 */
bool maps_parse_line(char *line, struct mapping *ret);

/* ret->path = path, with " (deleted)" cut off if it is a file's (ret->inode). */
void maps_set_path(struct mapping *ret, char *path);

struct gap_query {
	uint64_t lo, hi;	/* what the gap must be near to, lo <= hi */
	uint64_t reach;		/* at most so far, from either to either end of the gap */
	uint64_t bytes;		/* size, multiple of page */
	uint64_t page;
	uint64_t min_addr;	/* lowest address a mapping may have (vm.mmap_min_addr) */
	uint64_t max_addr;	/* end of user addresses */
	uint64_t brk_start;	/* where a heap not yet there will begin, 0: unknown */
	uint64_t heap_room;	/* kept free behind the heap's end */
	uint64_t stack_room;	/* kept free below [stack] */
};
/* Address of the nearest such gap, 0 if there is none. `maps` is sorted by start. */
uint64_t maps_find_gap(const struct mapping *maps, size_t n, const struct gap_query *q);

#endif
