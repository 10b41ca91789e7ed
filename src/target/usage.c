/* Facts about the target from /proc, needing no stop. */
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "target/impl.h"
#include "target/proc.h"

bool target_usage(struct target *t, struct target_usage *ret)
{
	struct proc_stat stat;
	unsigned long long size, resident;

	if (t->exited || !proc_stat(t->pid, 0, &stat) || (t->start && stat.start != t->start))
		return false;
	CLEANUP_FREE char *text = proc_read(t->pid, 0, "statm", 4096, NULL);
	if (!text || sscanf(text, "%llu %llu", &size, &resident) != 2)
		return false;
	ret->rss = resident * (uint64_t)sysconf(_SC_PAGESIZE);
	ret->cpu = (double)stat.ticks / (double)sysconf(_SC_CLK_TCK);
	ret->threads = stat.threads;
	return true;
}

const char *target_command(const struct target *t)
{
	return t->command ? t->command : "?";
}
