/* See pairs.h. */
#include "export/pairs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define PER_LINE 64u		/* pairs */

void pairs_write(const struct view *view, const uint32_t *sample_of, meta_emit_fn emit, void *ctx)
{
	const struct touches *t = view->touches;
	char text[64 + PER_LINE * 27];
	size_t len = 0, in_line = 0;

	for (size_t i = 0; t && i < t->n; i++) {
		const struct touch_pair *p = &t->pairs[i];
		uint32_t sample = p->toucher < view->nnodes ? sample_of[p->toucher] : 0;
		uint32_t owner = p->owner < view->nnodes ? sample_of[p->owner] : 0;
		if (!sample)
			continue;
		if (!len)
			len = (size_t)snprintf(text, sizeof(text), META_PREFIX "touch %" PRIx32, sample - 1);
		len += (size_t)snprintf(text + len, sizeof(text) - len, " %" PRIx32 " %" PRIx64, owner, p->bytes);
		bool ends = i + 1 == t->n || t->pairs[i + 1].toucher != p->toucher;
		if (!ends && ++in_line < PER_LINE)
			continue;
		emit(ctx, text);
		len = in_line = 0;
	}
}

bool pairs_read(struct touch_table *table, size_t nsamples, const char *text)
{
	uint64_t sample, owner, bytes;

	if (strncmp(text, "touch ", 6))
		return false;
	text += 5;
	if (!meta_take_hex(&text, &sample) || sample >= nsamples)
		return true;
	/* beyond the bound the table would count for nobody: a file has no more than one was written with */
	while (table->n < TOUCH_PAIRS_MAX * 2 && meta_take_hex(&text, &owner) && meta_take_hex(&text, &bytes)) {
		if (owner > nsamples || bytes > INT64_MAX)
			return true;
		touch_table_add(table, (uint32_t)sample, owner ? (uint32_t)owner - 1 : TOUCH_NOBODY, bytes);
	}
	return true;
}

static bool adds_up(const struct touches *t, const struct view *view)
{
	CLEANUP_FREE uint64_t *of = xcalloc(view->nnodes + 1, sizeof(*of));

	for (size_t i = 0; i < t->n; i++) {
		if (t->pairs[i].bytes > UINT64_MAX - of[t->pairs[i].toucher])
			return false;
		of[t->pairs[i].toucher] += t->pairs[i].bytes;
	}
	for (size_t i = 0; i < view->ntraces; i++) {
		const struct view_trace *trace = view_trace(view, i);
		if (trace && of[trace->node] != trace->s.fault_bytes)
			return false;
	}
	return true;
}

void pairs_finish(struct touch_table *table, const uint32_t *nodes, struct view *view)
{
	struct touches *read = touch_table_list(table);
	struct touch_table of_nodes = { 0 };

	if (!read)
		return;
	for (size_t i = 0; i < read->n; i++) {
		const struct touch_pair *p = &read->pairs[i];
		touch_table_add(&of_nodes, nodes[p->toucher], p->owner == TOUCH_NOBODY ? TOUCH_NOBODY : nodes[p->owner],
				p->bytes);
	}
	touches_unref(read);
	view->touches = touch_table_list(&of_nodes);
	touch_table_deinit(&of_nodes);
	if (!adds_up(view->touches, view)) {
		touches_unref(view->touches);
		view->touches = NULL;
	}
}
