/* Being told to end; see ending.h. */
#include "base/ending.h"

#include <stddef.h>

static bool broken_off;	/* atomic */

void ending_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

void ending_block(sigset_t *ret_before)
{
	sigset_t set;

	ending_signals(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, ret_before);
}

int ending_pending(void)
{
	static const int all[] = { SIGINT, SIGTERM, SIGHUP };
	sigset_t set;

	if (sigpending(&set))
		return 0;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (sigismember(&set, all[i]) == 1)
			return all[i];
	return 0;
}

void ending_break_off(void)
{
	__atomic_store_n(&broken_off, true, __ATOMIC_RELAXED);
}

bool ending_broken_off(void)
{
	return __atomic_load_n(&broken_off, __ATOMIC_RELAXED);
}
