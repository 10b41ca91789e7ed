/*
 * Any bytes as a snapshot, and as what is compressed in one. What can be read is written again as it
 * was read: the same totals, the same number of traces, and names fit for a terminal.
 */
#include "base/err.h"
#include "base/mem.h"
#include "export/inflate.h"
#include "export/pprof.h"
#include "heap/classes.h"
#include "heap/view.h"
#include "report/report.h"
#include "symbol/names.h"
#include "tests/fuzz/fuzz.h"

#define UNPACKED_MAX (1u << 20)

struct read_back {
	struct view *view;
	struct names *names;
};

static bool read_bytes(const void *bytes, size_t len, struct read_back *ret)
{
	struct err *err = pprof_read(bytes, len, "fuzz", &ret->view, &ret->names);

	if (err)
		FUZZ_ASSERT(fuzz_is_clean(err->text));
	err_free(err);
	return !err;
}

static void drop(struct read_back *r)
{
	view_unref(r->view);
	names_destroy(r->names);
}

static void look(struct report *report)
{
	size_t n;
	const struct report_site *sites = report_sites(report, REPORT_LIVE_BYTES, false, &n);

	for (size_t i = 0; i < n; i++) {
		FUZZ_ASSERT(fuzz_is_clean(sites[i].function));
		FUZZ_ASSERT(!sites[i].file || fuzz_is_clean(sites[i].file));
		FUZZ_ASSERT(!sites[i].module || fuzz_is_clean(sites[i].module));
	}
	for (int inverted = 0; inverted < 2; inverted++) {
		struct report_tree *tree = report_tree(report, inverted);
		const struct report_cell *cell = report_tree_root(tree);
		for (int depth = 0; cell && depth < 20; depth++) {
			const struct report_cell *const *kids =
				report_tree_children(tree, cell, REPORT_LIVE_BYTES, &n);
			cell = n ? kids[0] : NULL;
		}
	}
}

static void run_profile(const uint8_t *data, size_t len)
{
	struct read_back first, second;
	char *text = NULL;
	size_t size = 0;

	if (!read_bytes(data, len, &first))
		return;
	FUZZ_ASSERT(fuzz_is_clean(first.view->info.command ? first.view->info.command : ""));
	struct report *report = report_create(first.names, true);
	report_set_view(report, first.view);
	look(report);
	FILE *out = open_memstream(&text, &size);
	struct err *err = pprof_write(out, report, first.names, NULL, false);
	FUZZ_ASSERT(!err);
	fclose(out);
	FUZZ_ASSERT(read_bytes(text, size, &second));
	const struct trace_stats *a = &first.view->totals.s, *b = &second.view->totals.s;
	FUZZ_ASSERT(a->live_bytes == b->live_bytes && a->live_q10 == b->live_q10);
	FUZZ_ASSERT(a->alloc_bytes == b->alloc_bytes && a->alloc_q10 == b->alloc_q10);
	FUZZ_ASSERT(a->peak_bytes == b->peak_bytes && a->temp_bytes == b->temp_bytes);
	FUZZ_ASSERT(first.view->nthreads == second.view->nthreads);
	for (size_t i = 0; i < first.view->nthreads; i++)
		FUZZ_ASSERT(fuzz_is_clean(first.view->threads[i].name));
	if (first.view->classes_fresh) {
		const struct classes *c = first.view->classes;
		FUZZ_ASSERT(second.view->classes_fresh && second.view->classes->n == c->n);
		for (size_t i = 0; i < c->n; i++)
			FUZZ_ASSERT(c->cells[i].thread == CLASS_NO_THREAD || c->cells[i].thread < c->nthreads);
		for (uint32_t i = 0; i < c->nthreads; i++)
			FUZZ_ASSERT(fuzz_is_clean(c->threads[i].name));
	}
	free(text);
	report_destroy(report);
	drop(&second);
	drop(&first);
}

/* A gzip member around the bytes, so that most of them get to the decompressor. */
static void run_inflate(const uint8_t *data, size_t len)
{
	static const uint8_t head[10] = { 0x1f, 0x8b, 8 };
	CLEANUP_FREE uint8_t *file = xmalloc(sizeof(head) + len);
	uint8_t *ret = NULL;
	size_t n = 0;

	memcpy(file, head, sizeof(head));
	memcpy(file + sizeof(head), data, len);
	struct err *err = inflate_gzip(file, sizeof(head) + len, UNPACKED_MAX, &ret, &n);
	if (!err) {
		FUZZ_ASSERT(n <= UNPACKED_MAX);
		free(ret);
	}
	err_free(err);
}

static void run_pprof(const uint8_t *data, size_t len)
{
	if (!len)
		return;
	run_profile(data, len);
	run_inflate(data, len);
}

const struct fuzz_target fuzz_pprof = { "pprof", 4096, run_pprof };
