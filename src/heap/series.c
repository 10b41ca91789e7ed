/* See series.h. */
#include "heap/series.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void series_deinit(struct series *series)
{
	for (unsigned i = 0; i < SERIES_STEPS; i++)
		free(series->values[i]);
	*series = (struct series){ 0 };
}

bool series_due(const struct series *series, double time)
{
	return !series->n || time >= series->times[(series->n - 1) % SERIES_STEPS] + SERIES_STEP;
}

/* Traces that come later held nothing before. */
static void room(struct series *series, size_t ntraces)
{
	size_t cap = series->room + series->room / 2;

	if (ntraces <= series->room)
		return;
	if (cap < ntraces)
		cap = ntraces;
	for (unsigned i = 0; i < SERIES_STEPS; i++) {
		series->values[i] = xreallocarray(series->values[i], cap, sizeof(*series->values[i]));
		memset(series->values[i] + series->room, 0, (cap - series->room) * sizeof(*series->values[i]));
	}
	series->room = cap;
}

uint64_t *series_step(struct series *series, double time, size_t ntraces)
{
	unsigned at = series->n++ % SERIES_STEPS;

	room(series, ntraces ? ntraces : 1);
	series->times[at] = time;
	memset(series->values[at], 0, series->room * sizeof(*series->values[at]));
	return series->values[at];
}

void series_move(struct series *series, size_t from, size_t into)
{
	if (from >= series->room)
		return;
	room(series, into + 1);
	for (unsigned i = 0; i < SERIES_STEPS; i++) {
		series->values[i][into] += series->values[i][from];
		series->values[i][from] = 0;
	}
}

struct view_series *series_publish(const struct series *series, size_t ntraces)
{
	uint32_t n = series->n < SERIES_STEPS ? series->n : SERIES_STEPS;
	size_t known = ntraces < series->room ? ntraces : series->room;
	struct view_series *ret = view_series_create(n, ntraces);

	for (uint32_t k = 0; ret && k < n; k++) {
		unsigned at = (series->n - n + k) % SERIES_STEPS;
		ret->times[k] = series->times[at];
		for (size_t i = 0; i < known; i++)
			ret->values[i * n + k] = series->values[at][i];
	}
	return ret;
}

struct view_series *view_series_create(uint32_t n, size_t ntraces)
{
	if (n < 2 || n > SERIES_STEPS)
		return NULL;
	struct view_series *ret = xcalloc(1, sizeof(*ret) + ntraces * n * sizeof(ret->values[0]));

	ret->refs = 1;
	ret->n = n;
	ret->ntraces = ntraces;
	return ret;
}

struct view_series *view_series_ref(struct view_series *series)
{
	if (series)
		__atomic_add_fetch(&series->refs, 1, __ATOMIC_RELAXED);
	return series;
}

void view_series_unref(struct view_series *series)
{
	if (series && !__atomic_sub_fetch(&series->refs, 1, __ATOMIC_ACQ_REL))
		free(series);
}
