/* Allocation that dies on failure; see mem.h. */
#include "base/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *checked(void *p)
{
	/* abort(), not exit(): the crash handler of the screen restores the terminal */
	if (!p) {
		static const char text[] = "heaptop: out of memory\n";
		ssize_t n = write(STDERR_FILENO, text, sizeof(text) - 1);
		(void)n;
		abort();
	}
	return p;
}

void *xmalloc(size_t size)
{
	return checked(malloc(size ? size : 1));
}

void *xcalloc(size_t n, size_t size)
{
	return checked(calloc(n ? n : 1, size ? size : 1));
}

void *xreallocarray(void *old, size_t n, size_t size)
{
	return checked(reallocarray(old, n ? n : 1, size ? size : 1));
}

char *xstrdup(const char *s)
{
	return checked(strdup(s));
}

char *xstrndup(const char *s, size_t n)
{
	return checked(strndup(s, n));
}

char *xvasprintf(const char *fmt, va_list ap)
{
	char *s = NULL;

	if (vasprintf(&s, fmt, ap) < 0)
		s = NULL;
	return checked(s);
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	char *s = xvasprintf(fmt, ap);
	va_end(ap);
	return s;
}

void vec_grow(void *ptr, size_t n, size_t *cap, size_t size)
{
	void **items = ptr;

	if (n < *cap)
		return;
	size_t want = *cap ? *cap * 2 : 16;
	*items = xreallocarray(*items, want, size);
	*cap = want;
}

void free_cleanup(void *ptr)
{
	free(*(void **)ptr);
}

void close_cleanup(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}
