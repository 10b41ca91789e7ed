/* Published views: lifetime and sums; see view.h. */
#include "heap/view.h"

#include <stdlib.h>

#include "base/mem.h"
#include "heap/classes.h"
#include "heap/store.h"
#include "heap/sums.h"
#include "heap/series.h"
#include "heap/touches.h"

const char *view_state_name(enum view_state state)
{
	static const char *const names[] = {
		[VIEW_RUNNING] = "running", [VIEW_PAUSED] = "paused", [VIEW_EXITED] = "exited",
		[VIEW_DETACHED] = "detached", [VIEW_SNAPSHOT] = "snapshot",
	};

	return (unsigned)state < ARRAY_SIZE(names) ? names[state] : "?";
}

struct view *view_create(void)
{
	struct view *view = xcalloc(1, sizeof(*view));

	view->refs = 1;
	return view;
}

struct view *view_ref(struct view *view)
{
	__atomic_add_fetch(&view->refs, 1, __ATOMIC_RELAXED);
	return view;
}

void view_unref(struct view *view)
{
	if (!view || __atomic_sub_fetch(&view->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	for (size_t i = 0; i < view->info.nunhooked; i++) {
		free(view->info.unhooked[i].name);
		free(view->info.unhooked[i].module);
		free(view->info.unhooked[i].reason);
	}
	free(view->info.unhooked);
	free(view->info.command);
	free(view->info.thread);
	free(view->info.probe);
	free(view->info.faults_why);
	if (view->store)
		store_drop(view);
	free(view->points);
	free(view->threads);
	classes_unref(view->classes);
	touches_unref(view->touches);
	view_series_unref(view->series);
	view_series_unref(view->thread_series);
	tree_unref(view->tree);
	free(view);
}

static char *copy_text(const char *s)
{
	return xstrdup(s ? s : "");
}

void view_info_copy(struct view_info *dst, const struct view_info *src)
{
	*dst = *src;
	dst->command = copy_text(src->command);
	dst->thread = src->thread ? xstrdup(src->thread) : NULL;
	dst->probe = src->probe ? xstrdup(src->probe) : NULL;
	dst->faults_why = src->faults_why ? xstrdup(src->faults_why) : NULL;
	dst->unhooked = NULL;
	if (src->nunhooked)
		dst->unhooked = xcalloc(src->nunhooked, sizeof(*dst->unhooked));
	for (size_t i = 0; i < src->nunhooked; i++) {
		dst->unhooked[i].name = copy_text(src->unhooked[i].name);
		dst->unhooked[i].module = copy_text(src->unhooked[i].module);
		dst->unhooked[i].reason = copy_text(src->unhooked[i].reason);
	}
}

void view_set_traces(struct view *view, const struct view_trace *traces, size_t n)
{
	struct store *store = store_create();
	struct sums total = { 0 };

	for (size_t at = 0; at < n; at += VIEW_CHUNK) {
		struct view_trace *to = store_replace(store, at / VIEW_CHUNK);
		for (size_t i = 0; i < VIEW_CHUNK; i++) {
			to[i] = at + i < n ? traces[at + i] : (struct view_trace){ .node = TREE_NONE };
			if (to[i].node != TREE_NONE)
				sums_add(&total, &to[i].s);
		}
	}
	store_publish(store, view, n);
	store_destroy(store);
	view->totals.s = sums_get(&total);
}

void trace_stats_add(struct trace_stats *dst, const struct trace_stats *src)
{
	dst->alloc_bytes += src->alloc_bytes;
	dst->alloc_q10 += src->alloc_q10;
	dst->free_bytes += src->free_bytes;
	dst->free_q10 += src->free_q10;
	dst->live_bytes += src->live_bytes;
	dst->live_q10 += src->live_q10;
	dst->temp_bytes += src->temp_bytes;
	dst->temp_q10 += src->temp_q10;
	dst->peak_bytes += src->peak_bytes;
	dst->peak_q10 += src->peak_q10;
	dst->samples += src->samples;
	dst->live_samples += src->live_samples;
	dst->res_bytes += src->res_bytes;
	dst->swap_bytes += src->swap_bytes;
	dst->fault_bytes += src->fault_bytes;
	dst->old_bytes += src->old_bytes;
	dst->over_bytes += src->over_bytes;
	dst->live_var += src->live_var;
	dst->alloc_var += src->alloc_var;
	dst->fault_var += src->fault_var;
	dst->alloc_bps += src->alloc_bps;
	dst->alloc_cps += src->alloc_cps;
	dst->free_bps += src->free_bps;
	dst->free_cps += src->free_cps;
}
