/* All views of one moment; see moment.h. */
#include "moment.h"

#include <stdlib.h>

#include "base/mem.h"
#include "collect/collect.h"
#include "heap/view.h"

struct moment *moment_take(struct collector *c, bool whole)
{
	struct moment *m = xcalloc(1, sizeof(*m));

	m->sum = whole ? collector_view_whole(c) : collector_view_now(c);
	m->list = collector_processes(c);
	m->views = xcalloc(m->list->n + 1, sizeof(*m->views));
	for (size_t i = 0; i < m->list->n; i++)
		m->views[i] = collector_process_view(c, m->list->p[i].id);
	return m;
}

void moment_free(struct moment *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->list->n; i++)
		view_unref(m->views[i]);
	free(m->views);
	process_list_unref(m->list);
	view_unref(m->sum);
	free(m);
}
