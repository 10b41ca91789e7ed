/* See excerpts.h. */
#include "ui/excerpts.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/worker.h"
#include "symbol/source.h"

struct read_job {
	struct worker_job job;
	const struct source_paths *paths;
	char *file, *dir;
	struct source_text *text;
	struct excerpt *whom;	/* NULL: nobody waits any more */
};

struct excerpt {
	char *file;
	struct source_text *text;	/* NULL: being read */
	struct read_job *job;
	struct excerpts *of;
};

struct excerpts {
	struct excerpt items[EXCERPTS_MAX];
	size_t n, pending;
	struct source_text full;
};

static char too_many[] = "too many source files looked at", nothing[] = "";

struct excerpts *excerpts_create(void)
{
	struct excerpts *e = xcalloc(1, sizeof(*e));

	e->full.error = too_many;
	e->full.path = nothing;
	return e;
}

void excerpts_destroy(struct excerpts *e)
{
	if (!e)
		return;
	for (size_t i = 0; i < e->n; i++) {
		if (e->items[i].job)
			e->items[i].job->whom = NULL;
		source_destroy(e->items[i].text);
		free(e->items[i].file);
	}
	free(e);
}

static void read_run(struct worker_job *job)
{
	struct read_job *r = (struct read_job *)job;

	r->text = source_read(r->paths, r->file, r->dir);
}

static void read_done(struct worker_job *job)
{
	struct read_job *r = (struct read_job *)job;

	if (r->whom) {
		r->whom->text = r->text;
		r->whom->job = NULL;
		r->whom->of->pending--;
	} else {
		source_destroy(r->text);
	}
	free(r->file);
	free(r->dir);
	free(r);
}

const struct source_text *excerpts_get(struct excerpts *e, struct worker *worker, const struct source_paths *paths,
				       const char *file, const char *dir)
{
	static const struct source_paths none;

	for (size_t i = 0; i < e->n; i++)
		if (!strcmp(e->items[i].file, file))
			return e->items[i].text;
	if (e->n == EXCERPTS_MAX)
		return &e->full;
	struct excerpt *x = &e->items[e->n++];
	struct read_job *r = xcalloc(1, sizeof(*r));

	r->job.run = read_run;
	r->job.done = read_done;
	r->paths = paths ? paths : &none;
	r->file = xstrdup(file);
	r->dir = dir ? xstrdup(dir) : NULL;
	r->whom = x;
	*x = (struct excerpt){ .file = xstrdup(file), .job = r, .of = e };
	e->pending++;
	worker_give(worker, &r->job);
	return x->text;
}

bool excerpts_has(const struct excerpts *e, const char *file)
{
	for (size_t i = 0; i < e->n; i++)
		if (!strcmp(e->items[i].file, file))
			return true;
	return false;
}

bool excerpts_pending(const struct excerpts *e)
{
	return e->pending;
}
