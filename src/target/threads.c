/*
 * The threads of a running target, by /proc: their ids inside and outside of its PID namespace, and their
 * names.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "target/impl.h"
#include "target/proc.h"

static int compare_ids(const void *pa, const void *pb)
{
	const struct target_id *a = pa, *b = pb;

	return a->ns < b->ns ? -1 : a->ns > b->ns;
}

size_t target_ids(struct target *t, struct target_id **ret)
{
	CLEANUP_FREE pid_t *tids = NULL;
	size_t n = proc_tasks(t->pid, &tids), kept = 0;

	*ret = n ? xcalloc(n, sizeof(**ret)) : NULL;
	for (size_t i = 0; i < n; i++) {
		struct proc_status status;
		uint32_t ns = (uint32_t)tids[i];

		if (t->ns_pid != t->pid) {
			if (!proc_status(t->pid, tids[i], &status))
				continue;
			ns = (uint32_t)status.ns_pid;
		}
		(*ret)[kept++] = (struct target_id){ ns, tids[i] };
	}
	if (kept)
		qsort(*ret, kept, sizeof(**ret), compare_ids);
	return kept;
}

bool target_thread_name(struct target *t, pid_t tid, char ret[16])
{
	size_t len = 0;
	CLEANUP_FREE char *text = proc_read(t->pid, tid, "comm", 4096, &len);

	memset(ret, 0, 16);
	if (!text || !len)
		return false;
	/* the kernel ends it with a newline; it may hold others */
	len--;
	memcpy(ret, text, len < 15 ? len : 15);
	return true;
}
