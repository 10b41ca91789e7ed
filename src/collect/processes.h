/*
 * The processes of a collector, with their newest views: those that are watched, those that have ended, and
 * the sum of all. What is kept of ended ones is bounded: beyond COLLECT_KEPT of them those that ended first
 * are merged, by the name of the program. The collector thread's, but for process_list.
 */
#ifndef HEAPTOP_COLLECT_PROCESSES_H
#define HEAPTOP_COLLECT_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/collect.h"
#include "collect/session.h"

struct merge;
struct merge_member;
struct session;
struct target;
struct view;

struct process {
	uint32_t id, parent;		/* parent 0: launched or attached to */
	pid_t pid;
	struct target *target;		/* a session's, or ours; NULL once it isn't watched any more */
	struct session *session;	/* or NULL: no heap of its own (yet), or ended and closed */
	struct view *view;		/* newest, or NULL */
	struct merge_member *member;	/* its part in the sum, or NULL */
	char *program;			/* name of several ended ones, or NULL; of those also: */
	struct merge *heap;
	struct view_info info;		/* its strings aren't there */
	double time;
	bool changed;			/* since `view` */
	uint32_t merged;		/* processes this is */
	double start;
	enum view_state state;		/* once it isn't watched any more */
	int exit_code;
	char *why;			/* or NULL */
	bool over;			/* neither running nor held by us */
};

struct processes {
	struct process **list;		/* by id; merged ones as well */
	size_t n, cap;
	uint32_t last_id;
	struct merge *sum;		/* NULL as long as there was only one heap */
	struct view *sum_view;
	double began;			/* monotonic seconds */
};

void processes_init(struct processes *ps);
void processes_deinit(struct processes *ps);

/* A new one; parent 0: launched or attached to. */
struct process *processes_add(struct processes *ps, uint32_t parent, struct target *t, struct session *s);
/* The living process of that pid or target; NULL if there is none. */
struct process *processes_by_pid(const struct processes *ps, pid_t pid);
struct process *processes_by_target(const struct processes *ps, const struct target *t);
struct process *processes_by_id(const struct processes *ps, uint32_t id);

/*
 * It isn't watched any more: its last view is taken, its session closed, unless heaptop launched it or
 * attached to it, and its target with it. One that never had a heap and no reason to be told of is forgotten;
 * `p` may be gone then. why: text for the user, malloc'ed, or NULL.
 */
void processes_end(struct processes *ps, struct process *p, enum view_state state, int exit_code, char *why);

/* Fresh views of all, and the sum. */
void processes_publish(struct processes *ps, enum session_classes classes);
/* The sum, and a list, both with a reference for the caller; after processes_publish. */
struct view *processes_sum(struct processes *ps);
struct process_list *processes_list(const struct processes *ps);

#endif
