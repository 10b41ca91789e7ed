/*
 * The time series of a heap: live bytes, resident bytes and allocation rate, a point a second or so,
 * bounded however long it goes on. The newest POINTS_RECENT points stay as they are; older ones are
 * taken together, first two, then four, eight … into one, so that the whole past has one resolution. A
 * point that stands for several has the time of the first and the highest of each of their values: no
 * peak is lost. The collector thread.
 */
#ifndef HEAPTOP_HEAP_POINTS_H
#define HEAPTOP_HEAP_POINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap/view.h"

#define POINTS_RECENT 300u
#define POINTS_OLD 698u		/* even, and with the newest ones and the last not beyond 1000 */

struct points {
	struct view_point old[POINTS_OLD], recent[POINTS_RECENT];
	size_t nold, nrecent;
	uint32_t each;		/* points that one of the old ones stands for, a power of two; 0: 1 */
	uint32_t last;		/* those the newest of the old ones stands for so far */
	struct view_point end;	/* the last one added, if it came too soon to stay */
	bool has_end;
};

/*
 * Zeroed is an empty one. A point less than about a second behind the last one doesn't stay: it is the end of the
 * series, which so has what the view says that it is published with, until the next one is added. Times ascend.
 */
void points_add(struct points *points, const struct view_point *point);
/* Give a view all of them. */
void points_publish(const struct points *points, struct view *view);

#endif
