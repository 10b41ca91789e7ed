/* See steps.h. */
#include "export/steps.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "heap/view.h"

#define NUMBER 17	/* a blank and a number of 64 bits */

#define THREADS "thread-"

static void write_times(const struct view_series *series, const char *name, meta_emit_fn emit, void *ctx)
{
	char text[64 + SERIES_STEPS * NUMBER];
	int n = snprintf(text, sizeof(text), META_PREFIX "%s", name);

	for (uint32_t k = 0; series && k < series->n; k++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, " %" PRIx64, meta_double_bits(series->times[k]));
	if (series)
		emit(ctx, text);
}

/* What number i of the series held, which now has `live`. */
static void write_held(struct view_series *series, size_t i, uint64_t live, const char *name, size_t index,
		       meta_emit_fn emit, void *ctx)
{
	const uint64_t *held = series ? view_series_of(series, i) : NULL;
	char text[64 + SERIES_STEPS * NUMBER];
	int n = snprintf(text, sizeof(text), META_PREFIX "%s %zx", name, index);
	bool same = true;

	for (uint32_t k = 0; held && k < series->n; k++) {
		same &= held[k] == live;
		n += snprintf(text + n, sizeof(text) - (size_t)n, " %" PRIx64, held[k]);
	}
	if (!same)
		emit(ctx, text);
}

void steps_write(const struct view *view, meta_emit_fn emit, void *ctx)
{
	write_times(view->series, "steps", emit, ctx);
}

void steps_write_sample(const struct view *view, size_t trace, size_t index, meta_emit_fn emit, void *ctx)
{
	write_held(view->series, trace, view_trace(view, trace)->s.live_bytes, "held", index, emit, ctx);
}

void steps_write_threads(const struct view *view, meta_emit_fn emit, void *ctx)
{
	write_times(view->thread_series, THREADS "steps", emit, ctx);
	for (size_t i = 0; i < view->nthreads; i++)
		write_held(view->thread_series, i, view->threads[i].s.live_bytes, THREADS "held", i, emit, ctx);
}

/* ---- reading ---- */

void steps_deinit(struct steps *steps)
{
	free(steps->held);
}

static void read_times(struct steps *steps, const char *text)
{
	uint64_t bits;
	uint32_t n = 0;

	if (steps->n)
		return;
	for (; n < SERIES_STEPS && meta_take_hex(&text, &bits); n++) {
		steps->times[n] = meta_bits_double(bits);
		if (n && !(steps->times[n] > steps->times[n - 1]))
			return;
	}
	if (n >= 2 && !*text)
		steps->n = n;
}

static void read_held(struct steps *steps, size_t nsamples, const char *text)
{
	struct steps_held held = { 0 };
	uint64_t sample;
	uint32_t n = 0;

	if (!meta_take_hex(&text, &sample) || sample >= nsamples || sample > UINT32_MAX)
		return;
	while (n < SERIES_STEPS && meta_take_hex(&text, &held.bytes[n]))
		n++;
	/* without the times there is nothing that it could be at */
	if (!n || n != steps->n || *text)
		return;
	/* a comment may be named a hundred million times in a small file */
	if (steps->nheld >= nsamples)
		return;
	held.sample = (uint32_t)sample;
	VEC_GROW(steps->held, steps->nheld, steps->cap);
	steps->held[steps->nheld++] = held;
}

bool steps_read(struct steps *steps, size_t nsamples, const char *text)
{
	if (!strncmp(text, "steps ", 6))
		read_times(steps, text + 5);
	else if (!strncmp(text, "held ", 5))
		read_held(steps, nsamples, text + 4);
	else
		return false;
	return true;
}

bool steps_read_threads(struct steps *steps, size_t nthreads, const char *text)
{
	size_t n = strlen(THREADS);

	return !strncmp(text, THREADS, n) && steps_read(steps, nthreads, text + n);
}

void steps_finish(const struct steps *steps, const uint32_t *nodes, const struct trace_stats *samples, size_t nsamples,
		  const struct view_trace *traces, size_t n, struct view *view)
{
	if (!steps->n)
		return;
	struct view_series *series = view_series_create(steps->n, n);
	CLEANUP_FREE uint32_t *of_node = xcalloc((size_t)view->nnodes + 1, sizeof(*of_node));
	CLEANUP_FREE bool *told = xcalloc(nsamples + 1, sizeof(*told));

	memcpy(series->times, steps->times, steps->n * sizeof(steps->times[0]));
	for (size_t i = 0; i < n; i++)
		of_node[traces[i].node] = (uint32_t)i;
	for (size_t i = 0; i < steps->nheld; i++) {
		const struct steps_held *held = &steps->held[i];
		uint64_t *to = view_series_of(series, of_node[nodes[held->sample]]);
		/* one sample's is told once */
		for (uint32_t k = 0; to && !told[held->sample] && k < steps->n; k++)
			to[k] += held->bytes[k];
		told[held->sample] = true;
	}
	for (size_t i = 0; i < nsamples; i++) {
		uint64_t *to = told[i] ? NULL : view_series_of(series, of_node[nodes[i]]);
		for (uint32_t k = 0; to && k < steps->n; k++)
			to[k] += samples[i].live_bytes;
	}
	view->series = series;
}

void steps_finish_threads(const struct steps *steps, struct view *view)
{
	if (!steps->n)
		return;
	struct view_series *series = view_series_create(steps->n, view->nthreads);

	memcpy(series->times, steps->times, steps->n * sizeof(steps->times[0]));
	for (size_t i = 0; i < view->nthreads; i++)
		for (uint32_t k = 0; k < steps->n; k++)
			view_series_of(series, i)[k] = view->threads[i].s.live_bytes;
	for (size_t i = 0; i < steps->nheld; i++)
		memcpy(view_series_of(series, steps->held[i].sample), steps->held[i].bytes, steps->n * sizeof(steps->held[i].bytes[0]));
	view->thread_series = series;
}
