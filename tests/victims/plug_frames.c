/* A plug-in that allocates by the program's xmalloc, from a function whose name is PLUG. */
#include <stddef.h>

void *xmalloc(size_t size);

static void *volatile last;

__attribute__((visibility("default"))) void PLUG(int n, size_t size)
{
	for (int i = 0; i < n; i++)
		last = xmalloc(size);
}
