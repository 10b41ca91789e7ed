/* Facts about the target from /proc, needing no stop. */
#include <stdio.h>
#include <time.h>
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
	/* stat counts in hundredths of a second, too coarse for a tenth of one; the CPU clock doesn't */
	clockid_t clock;
	struct timespec ts;
	if (clock_getcpuclockid(t->pid, &clock) == 0 && clock_gettime(clock, &ts) == 0)
		ret->cpu = (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
	else
		ret->cpu = (double)stat.ticks / (double)sysconf(_SC_CLK_TCK);
	ret->threads = stat.threads;
	return true;
}

const char *target_command(const struct target *t)
{
	return t->command ? t->command : "?";
}
