/* See worker.h. */
#include "base/worker.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/mem.h"

struct list {
	struct worker_job *first, **end;
};

struct worker {
	const char *name;
	unsigned busy;		/* the owner's alone */
	bool started;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t given;
	struct list todo, ready;	/* under lock */
	bool stop;		/* under lock */
};

static void list_init(struct list *list)
{
	list->first = NULL;
	list->end = &list->first;
}

static void list_add(struct list *list, struct worker_job *job)
{
	job->next = NULL;
	*list->end = job;
	list->end = &job->next;
}

static struct worker_job *list_take(struct list *list)
{
	struct worker_job *job = list->first;

	if (job && !(list->first = job->next))
		list->end = &list->first;
	return job;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		struct worker_job *job = list_take(&w->todo);
		if (!job && w->stop)
			break;
		if (!job) {
			pthread_cond_wait(&w->given, &w->lock);
			continue;
		}
		pthread_mutex_unlock(&w->lock);
		job->run(job);
		pthread_mutex_lock(&w->lock);
		list_add(&w->ready, job);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

struct worker *worker_create(const char *name)
{
	struct worker *w = xcalloc(1, sizeof(*w));

	w->name = name;
	list_init(&w->todo);
	list_init(&w->ready);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->given, NULL);
	return w;
}

void worker_destroy(struct worker *w)
{
	struct worker_job *job;

	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->given);
	pthread_mutex_unlock(&w->lock);
	if (w->started)
		pthread_join(w->thread, NULL);
	while ((job = list_take(&w->ready))) {
		job->cancelled = true;
		job->done(job);
	}
	pthread_cond_destroy(&w->given);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

/* Signals are for the threads that wait for them, except those a fault of its own raises. */
static void start(struct worker *w)
{
	sigset_t all, old;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	sigdelset(&all, SIGABRT);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	w->started = !pthread_create(&w->thread, NULL, work, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (w->started)
		pthread_setname_np(w->thread, w->name);
}

void worker_give(struct worker *w, struct worker_job *job)
{
	w->busy++;
	if (!w->started)
		start(w);
	if (!w->started)
		job->run(job);
	pthread_mutex_lock(&w->lock);
	list_add(w->started ? &w->todo : &w->ready, job);
	pthread_cond_signal(&w->given);
	pthread_mutex_unlock(&w->lock);
}

bool worker_poll(struct worker *w)
{
	bool any = false;

	for (;;) {
		pthread_mutex_lock(&w->lock);
		struct worker_job *job = list_take(&w->ready);
		pthread_mutex_unlock(&w->lock);
		if (!job)
			return any;
		w->busy--;
		any = true;
		job->done(job);
	}
}

bool worker_busy(const struct worker *w)
{
	return w->busy > 0;
}
