/* See points.h. */
#include "heap/points.h"

#include <string.h>

#include "base/mem.h"

#define STEP 0.95f	/* seconds between points at least */

static void take_in(struct view_point *dst, const struct view_point *src)
{
	if (src->live_bytes > dst->live_bytes)
		dst->live_bytes = src->live_bytes;
	if (src->rss > dst->rss)
		dst->rss = src->rss;
	if (src->alloc_bps > dst->alloc_bps)
		dst->alloc_bps = src->alloc_bps;
}

/* All are complete when they are full: last == each. */
static void halve(struct points *p)
{
	for (size_t i = 0; i < POINTS_OLD / 2; i++) {
		p->old[i] = p->old[2 * i];
		take_in(&p->old[i], &p->old[2 * i + 1]);
	}
	p->nold = POINTS_OLD / 2;
	p->each *= 2;
	p->last = p->each;
}

static void grow_old(struct points *p, const struct view_point *point)
{
	if (!p->each)
		p->each = p->last = 1;
	if (p->nold && p->last < p->each) {
		take_in(&p->old[p->nold - 1], point);
		p->last++;
		return;
	}
	if (p->nold == POINTS_OLD)
		halve(p);
	p->old[p->nold++] = *point;
	p->last = 1;
}

void points_add(struct points *p, const struct view_point *point)
{
	struct view_point *last = p->nrecent ? &p->recent[p->nrecent - 1] : NULL;

	p->has_end = last && point->time > last->time && point->time < last->time + STEP;
	if (p->has_end) {
		p->end = *point;
		return;
	}
	if (last && point->time <= last->time) {
		*last = *point;		/* the same moment again */
		return;
	}
	if (p->nrecent == POINTS_RECENT) {
		grow_old(p, &p->recent[0]);
		p->nrecent--;
		memmove(p->recent, p->recent + 1, p->nrecent * sizeof(p->recent[0]));
	}
	p->recent[p->nrecent++] = *point;
}

void points_publish(const struct points *p, struct view *view)
{
	view->npoints = p->nold + p->nrecent + p->has_end;
	view->points = xcalloc(view->npoints, sizeof(*view->points));
	memcpy(view->points, p->old, p->nold * sizeof(p->old[0]));
	memcpy(view->points + p->nold, p->recent, p->nrecent * sizeof(p->recent[0]));
	if (p->has_end)
		view->points[view->npoints - 1] = p->end;
}
