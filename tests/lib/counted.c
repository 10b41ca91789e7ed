/* Counting allocations; see counted.h. */
#include "tests/lib/counted.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

static __thread bool counting;
static __thread struct counted total;

static void count(size_t bytes)
{
	if (!counting)
		return;
	total.calls++;
	total.bytes += bytes;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void *, size_t),
					      void (*free_hook)(const volatile void *));

static void on_malloc(const volatile void *p, size_t bytes)
{
	(void)p;
	count(bytes);
}

static void on_free(const volatile void *p)
{
	(void)p;
}

static void install(void)
{
	static bool done;

	if (!done)
		done = __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) > 0;
	if (!done)
		abort();
}

#else

/* glibc's own names of its functions; a program may take the public ones. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t align, size_t size);

void *malloc(size_t size)
{
	count(size);
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	count(n * size);
	return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
	count(size);
	return __libc_realloc(old, size);
}

void *aligned_alloc(size_t align, size_t size)
{
	count(size);
	return __libc_memalign(align, size);
}

int posix_memalign(void **ret, size_t align, size_t size)
{
	count(size);
	*ret = __libc_memalign(align, size);
	return *ret ? 0 : ENOMEM;
}

static void install(void)
{
}

#endif

void counted_begin(void)
{
	install();
	total = (struct counted){ 0 };
	counting = true;
}

struct counted counted_end(void)
{
	counting = false;
	return total;
}
