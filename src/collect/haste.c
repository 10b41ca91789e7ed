/* The collector's own nice value, for moments; see haste.h. */
#include "collect/haste.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HASTE_NICE 10	/* so much less: nine times the share of a thread of the program's */

void haste_init(struct haste *h)
{
	*h = (struct haste){ .tid = (pid_t)syscall(SYS_gettid) };
}

void haste_begin(struct haste *h)
{
	if (h->on)
		return;
	errno = 0;
	h->old = getpriority(PRIO_PROCESS, (id_t)h->tid);
	h->on = !errno && setpriority(PRIO_PROCESS, (id_t)h->tid, h->old - HASTE_NICE) == 0;
}

void haste_end(struct haste *h)
{
	if (h->on)
		setpriority(PRIO_PROCESS, (id_t)h->tid, h->old);
	h->on = false;
}
