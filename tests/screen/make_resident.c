/*
 * make_resident FILE [attached|estimated]: the made-up heap of tests/lib/fakeheap.c as a snapshot that also says what is in
 * memory: of each trace another part, some swapped out, some pages touched by another stack; and what RSS is made of.
 * estimated: what was touched is, of each trace by more.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "export/export.h"
#include "heap/view.h"
#include "tests/lib/fakeheap.h"

static struct view *with_memory(struct view *old, const char *word)
{
	bool attached = !strcmp(word, "attached"), estimated = !strcmp(word, "estimated");
	struct view *view = view_create();
	CLEANUP_FREE struct view_trace *traces = xcalloc(old->ntraces + 1, sizeof(*traces));
	size_t n = 0;
	uint64_t res = 0;

	for (size_t i = 0; i < old->ntraces; i++) {
		const struct view_trace *t = view_trace(old, i);
		if (!t)
			continue;
		traces[n] = *t;
		struct trace_stats *s = &traces[n].s;
		s->res_bytes = s->live_bytes / (1 + n % 4);
		s->swap_bytes = n % 4 == 3 ? s->live_bytes / 2 : 0;
		s->fault_bytes = n % 3 ? 0 : s->live_bytes;
		double error = estimated ? (double)s->fault_bytes * (double)(1 + n) / 20 : 0;
		s->fault_var = error * error;
		res += s->res_bytes;
		n++;
	}
	view_info_copy(&view->info, &old->info);
	view->info.attached = attached;
	view->time = old->time;
	view->wall_ns = old->wall_ns;
	view->tree = tree_ref((struct tree *)old->tree);
	view->nnodes = old->nnodes;
	view_set_traces(view, traces, n);
	view->info.memory = (struct view_memory){
		.anon = res + (9 << 20), .file = 5 << 20, .shmem = 300 << 10, .stacks = 72 << 10, .data = 400 << 10,
		.agent_anon = 100 << 10, .agent_shmem = 200 << 10, .older = attached ? 8 << 20 : 0,
		.tracked_anon = res, .scan_share = 0.0012f,
	};
	view->info.rss = view->info.memory.anon + view->info.memory.file + view->info.memory.shmem;
	return view;
}

int main(int argc, char **argv)
{
	const struct fakeheap_config config = { .rate = 1, .snapshot = true };
	const struct export_options options = { .value = REPORT_LIVE_BYTES };
	char *path = NULL;

	if (argc < 2)
		return 2;
	struct fakeheap *f = fakeheap_create(&config);
	for (int i = 0; i < 20; i++) {
		fakeheap_step(f);
		view_unref(fakeheap_view(f));
	}
	struct view *view = fakeheap_view(f), *whole = with_memory(view, argc > 2 ? argv[2] : "");
	struct err *err = export_write(argv[1], whole, fakeheap_names(f), NULL, &options, &path);
	if (err)
		fprintf(stderr, "%s\n", err->text);
	int status = err ? 1 : 0;
	err_free(err);
	free(path);
	view_unref(whole);
	view_unref(view);
	fakeheap_destroy(f);
	return status;
}
