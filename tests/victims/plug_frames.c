/* A plug-in that allocates by the program's malloc, from a function whose name is PLUG. */
#include <stdlib.h>

static void *volatile last;

__attribute__((visibility("default"))) void PLUG(int n, size_t size)
{
	for (int i = 0; i < n; i++)
		last = malloc(size);
}
