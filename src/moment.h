/*
 * What is watched, as it was at one moment: the sum of all processes, their list, and the view of each. It stays so
 * while they go on, or are let go. Any thread.
 */
#ifndef HEAPTOP_MOMENT_H
#define HEAPTOP_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

struct collector;
struct process_list;
struct view;

struct moment {
	struct view *sum;
	struct process_list *list;
	struct view **views;	/* of each in the list; NULL: merged with others just then */
};

/* Fresh, see collector_view_now(); `whole`: with what the live blocks are like, see collector_view_whole(). */
struct moment *moment_take(struct collector *c, bool whole);
void moment_free(struct moment *m);	/* accepts NULL */

#endif
