/* Classes and threads as comments; see cells.h. */
#include "export/cells.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

#define MAX_ROWS CLASS_NO_THREAD
#define ROW_NUMBERS 12
#define CELL_NUMBERS 6
#define CELL_BYTES (CELL_NUMBERS * 17)	/* of text at most */
#define ENDED 1u
#define CHOSEN 2u

static void write_row(const struct view_thread *t, meta_emit_fn emit, void *ctx)
{
	const struct trace_stats *s = &t->s;
	const uint64_t numbers[ROW_NUMBERS] = {
		s->alloc_bytes, s->alloc_q10, s->free_bytes, s->free_q10, s->samples, s->live_samples,
		meta_double_bits(s->live_var), meta_double_bits(s->alloc_var), meta_float_bits(s->alloc_bps),
		meta_float_bits(s->alloc_cps), meta_float_bits(s->free_bps), meta_float_bits(s->free_cps),
	};
	char text[64 + ROW_NUMBERS * 17 + VIEW_THREAD_NAME];
	int n = snprintf(text, sizeof(text), META_PREFIX "row %" PRIx32 " %" PRIx32 " %x", t->tid, t->merged,
			 (t->ended ? ENDED : 0) | (t->chosen ? CHOSEN : 0));

	for (size_t i = 0; i < ROW_NUMBERS; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, " %" PRIx64, numbers[i]);
	snprintf(text + n, sizeof(text) - (size_t)n, "=%s", t->name);
	emit(ctx, text);
}

void cells_write_threads(const struct view *view, meta_emit_fn emit, void *ctx)
{
	for (size_t i = 0; i < view->nthreads; i++)
		write_row(&view->threads[i], emit, ctx);
	for (uint32_t i = 0; view->classes_fresh && i < view->classes->nthreads; i++) {
		const struct class_thread *t = &view->classes->threads[i];
		char text[96 + VIEW_THREAD_NAME];
		snprintf(text, sizeof(text), META_PREFIX "who %" PRIx32 " %" PRIx32 " %x=%s", t->tid, t->merged,
			 t->ended ? ENDED : 0, t->name);
		emit(ctx, text);
	}
}

void cells_write_sample(const struct view *view, uint32_t node, size_t index, meta_emit_fn emit, void *ctx)
{
	size_t n;

	if (!view->classes_fresh)
		return;
	const struct class_cell *cell = classes_of_node(view->classes, node, &n);
	if (!n)
		return;
	size_t size = 64 + n * CELL_BYTES;
	CLEANUP_FREE char *text = xmalloc(size);
	size_t len = (size_t)snprintf(text, size, META_PREFIX "cells %zx", index);
	for (size_t i = 0; i < n; i++)
		len += (size_t)snprintf(text + len, size - len, " %x %x %x %" PRIx64 " %" PRIx64 " %" PRIx32,
					cell[i].size, cell[i].age, cell[i].thread, cell[i].bytes, cell[i].q10,
					cell[i].samples);
	emit(ctx, text);
}

/* ---- reading ---- */

void cells_init(struct cells *cells)
{
	*cells = (struct cells){ 0 };
	classes_build_init(&cells->build);
}

void cells_deinit(struct cells *cells)
{
	classes_build_deinit(&cells->build);
}

/* "=name", to the end. */
static bool take_name(const char *text, char name[VIEW_THREAD_NAME])
{
	if (*text != '=')
		return false;
	snprintf(name, VIEW_THREAD_NAME, "%s", text + 1);
	text_sanitize(name);
	return true;
}

static bool take_numbers(const char **text, uint64_t *ret, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!meta_take_hex(text, &ret[i]))
			return false;
	return true;
}

static void read_row(struct view *view, const char *text)
{
	uint64_t v[3 + ROW_NUMBERS];
	struct view_thread t = { 0 };
	struct trace_stats *s = &t.s;

	if (view->nthreads >= MAX_ROWS || !take_numbers(&text, v, ARRAY_SIZE(v)) || !take_name(text, t.name))
		return;
	t.tid = (uint32_t)v[0];
	t.merged = (uint32_t)v[1];
	t.ended = v[2] & ENDED;
	t.chosen = v[2] & CHOSEN;
	if (v[3] < v[5] || v[4] < v[6])
		return;		/* nobody frees more than there was */
	s->alloc_bytes = v[3];
	s->alloc_q10 = v[4];
	s->free_bytes = v[5];
	s->free_q10 = v[6];
	s->live_bytes = v[3] - v[5];
	s->live_q10 = v[4] - v[6];
	s->samples = v[7];
	s->live_samples = v[8];
	s->live_var = meta_bits_double(v[9]);
	s->alloc_var = meta_bits_double(v[10]);
	s->alloc_bps = meta_bits_float(v[11]);
	s->alloc_cps = meta_bits_float(v[12]);
	s->free_bps = meta_bits_float(v[13]);
	s->free_cps = meta_bits_float(v[14]);
	/* doubled when full, as VEC_GROW would with a capacity to keep */
	if (!(view->nthreads & (view->nthreads - 1)))
		view->threads = xreallocarray(view->threads, view->nthreads ? view->nthreads * 2 : 1,
					      sizeof(*view->threads));
	view->threads[view->nthreads++] = t;
}

static void read_who(struct cells *cells, const char *text)
{
	uint64_t v[3];
	struct class_thread t = { 0 };

	if (!take_numbers(&text, v, ARRAY_SIZE(v)) || !take_name(text, t.name))
		return;
	t.tid = (uint32_t)v[0];
	t.merged = (uint32_t)v[1];
	t.ended = v[2] & ENDED;
	classes_thread(&cells->build, &t);
}

static void read_cells(struct cells *cells, size_t nsamples, const char *text)
{
	uint64_t sample, v[CELL_NUMBERS];

	if (!meta_take_hex(&text, &sample) || sample >= nsamples)
		return;
	while (cells->read < CELLS_MAX && take_numbers(&text, v, CELL_NUMBERS)) {
		bool known = v[2] == CLASS_NO_THREAD || v[2] < cells->build.nthreads;
		if (v[0] >= CLASS_SIZES || v[1] >= CLASS_AGES || !known || v[5] > UINT32_MAX)
			return;
		cells->read++;
		classes_add(&cells->build, &(struct class_cell){
			.node = (uint32_t)sample, .size = (uint8_t)v[0], .age = (uint8_t)v[1],
			.thread = (uint16_t)v[2], .bytes = v[3], .q10 = v[4], .samples = (uint32_t)v[5],
		});
	}
}

bool cells_read(struct cells *cells, struct view *view, size_t nsamples, const char *text)
{
	if (!strncmp(text, "row ", 4))
		read_row(view, text + 3);
	else if (!strncmp(text, "who ", 4))
		read_who(cells, text + 3);
	else if (!strncmp(text, "cells ", 6))
		read_cells(cells, nsamples, text + 5);
	else
		return false;
	return true;
}

static uint32_t node_of(void *ctx, uint32_t sample)
{
	return ((const uint32_t *)ctx)[sample];
}

/* A trace's part of what is old; and do its cells make up all of it? */
static bool take_trace(const struct classes *classes, struct view_trace *t)
{
	uint64_t bytes = 0, q10 = 0, old = 0;
	size_t n;
	const struct class_cell *cell = classes_of_node(classes, t->node, &n);

	for (size_t k = 0; k < n; k++) {
		bytes += cell[k].bytes;
		q10 += cell[k].q10;
		old += cell[k].age >= CLASS_AGE_MINUTE ? cell[k].bytes : 0;
	}
	t->s.old_bytes = old < t->s.live_bytes ? old : t->s.live_bytes;
	return bytes == t->s.live_bytes && q10 == t->s.live_q10;
}

void cells_finish(const struct cells *cells, const uint32_t *nodes, struct view *view, struct view_trace *traces, size_t n)
{
	if (!cells->build.n)
		return;
	view->classes = classes_finish(&cells->build, view->time, node_of, (void *)nodes);
	view->classes_fresh = true;
	for (size_t i = 0; i < n; i++)
		view->classes_fresh &= take_trace(view->classes, &traces[i]);
}
