/* The time stamp counter of x86-64. */
#include "base/ticks.h"

#include <x86intrin.h>

uint64_t ticks_now(void)
{
	return __rdtsc();
}
