/*
 * Work for a thread of its own: what may wait for a disk, off a thread that mustn't. Jobs run one after
 * the other, in the order they were given; what is to follow on one runs on the thread that gave it, when
 * that next calls worker_poll. A worker belongs to one thread.
 */
#ifndef HEAPTOP_BASE_WORKER_H
#define HEAPTOP_BASE_WORKER_H

#include <stdbool.h>

struct worker;

struct worker_job {
	void (*run)(struct worker_job *job);	/* on the worker's thread */
	void (*done)(struct worker_job *job);	/* on the owner's, exactly once; frees the job */
	bool cancelled;				/* for done: run wasn't called, or nobody is interested */
	struct worker_job *next;		/* worker.c's */
};

/* The thread starts with the first job. `name`: at most 15 bytes, static. */
struct worker *worker_create(const char *name);
/* Waits for what has been given; every done is called, cancelled. Accepts NULL. */
void worker_destroy(struct worker *w);

/* Takes the job over. Without a thread to be had it is run at once. */
void worker_give(struct worker *w, struct worker_job *job);
/* Call done of those that are; true if there were any. */
bool worker_poll(struct worker *w);
/* Are there jobs whose done is still to come? */
bool worker_busy(const struct worker *w);

#endif
