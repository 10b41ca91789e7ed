/*
 * Several heaps as one: the sum of their newest views, itself published as a view. The frames of all
 * must come from one table of modules, so that equal addresses mean the same code; then equal stacks add up.
 *
 * What the live blocks are like (classes.h) adds up as well: nodes are mapped, threads of one name are one. Blocks of
 * members that have left are as old as they were then.
 *
 * A member's view is taken over by its difference to the one before. A member may leave and its figures stay:
 * then nothing is kept of it but what it added. Peaks add up like all else. One thread: the collector;
 * what is published, any.
 */
#ifndef HEAPTOP_HEAP_MERGE_H
#define HEAPTOP_HEAP_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct merge;
struct merge_member;
struct view;
struct view_info;

/*
 * max_traces: of the sum; further stacks are merged into FRAME_MERGED. 0: as many as a heap has
 * (HEAP_MAX_TRACES).
 */
struct merge *merge_create(uint32_t max_traces);
void merge_destroy(struct merge *m);	/* accepts NULL; its members end with it */

struct merge_member *merge_join(struct merge *m);
/* Its newest view; a reference is held until the next. One of another tree (after an exec) replaces all
 * that was known of the member. */
void merge_take(struct merge *m, struct merge_member *member, struct view *view);
/* The member ends; what its last view said stays in the sum. */
void merge_leave(struct merge *m, struct merge_member *member);

/* A view of the sum. `info` is copied; time: seconds. The caller owns the reference. */
struct view *merge_publish(struct merge *m, const struct view_info *info, double time);

#endif
