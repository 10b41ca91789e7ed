/* See trends.h. */
#include "report/trends.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "heap/series.h"
#include "report/internal.h"

static int by_id(const void *pa, const void *pb)
{
	const struct trend *a = pa, *b = pb;

	return a->id < b->id ? -1 : a->id > b->id;
}

static void add_value(struct trend *t, uint64_t value)
{
	if (t->n == REPORT_TREND) {
		memmove(t->values, t->values + 1, (REPORT_TREND - 1) * sizeof(t->values[0]));
		t->n--;
	}
	t->values[t->n++] = value;
}

void trends_put(struct trends *trends, struct trend *now, size_t n)
{
	size_t k = 0;

	if (n)
		qsort(now, n, sizeof(*now), by_id);
	for (size_t i = 0; i < n; i++) {
		uint64_t value = now[i].now;
		while (k < trends->n && trends->items[k].id < now[i].id)
			k++;
		if (k < trends->n && trends->items[k].id == now[i].id)
			now[i] = trends->items[k];
		else
			now[i].n = 0;
		add_value(&now[i], value);
	}
	if (n > trends->cap) {
		trends->cap = n + n / 2;
		trends->items = xreallocarray(trends->items, trends->cap, sizeof(*trends->items));
	}
	if (n)
		memcpy(trends->items, now, n * sizeof(*now));
	trends->n = n;
}

void trends_get(const struct trends *trends, struct report_site *row)
{
	const struct trend key = { .id = row->id };
	const struct trend *t = trends->n ? bsearch(&key, trends->items, trends->n, sizeof(key), by_id) : NULL;

	row->ntrend = t ? t->n : 0;
	if (t)
		memcpy(row->trend, t->values, t->n * sizeof(t->values[0]));
}

void trends_deinit(struct trends *trends)
{
	free(trends->items);
	*trends = (struct trends){ 0 };
}

_Static_assert(SERIES_STEPS <= REPORT_TREND, "a series fits a trend");

bool trends_in_file(const struct report *r)
{
	return r->view && r->view->series && r->view->info.state == VIEW_SNAPSHOT;
}

/* Zeroes, to be added to. */
static void begin(const struct view_series *series, struct report_site *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		memset(rows[i].trend, 0, sizeof(rows[i].trend));
		rows[i].ntrend = series->n;
		rows[i].trend_seconds = series->times[series->n - 1] - series->times[0];
	}
}

void trends_of_file(const struct report *r, struct report_site *rows, size_t n, const uint32_t *of_trace)
{
	if (!trends_in_file(r))
		return;
	struct view_series *series = r->view->series;
	begin(series, rows, n);
	for (size_t i = 0; i < r->view->ntraces; i++) {
		const uint64_t *held = of_trace[i] ? view_series_of(series, i) : NULL;
		for (uint32_t k = 0; held && k < series->n; k++)
			rows[of_trace[i] - 1].trend[k] += held[k];
	}
}

void trends_of_file_threads(const struct report *r, struct report_site *rows, size_t n)
{
	struct view_series *series = r->view->thread_series;

	if (!series || r->view->info.state != VIEW_SNAPSHOT)
		return;
	begin(series, rows, n);
	for (size_t i = 0; i < n; i++) {
		const uint64_t *held = view_series_of(series, i);
		if (held)
			memcpy(rows[i].trend, held, series->n * sizeof(held[0]));
	}
}
