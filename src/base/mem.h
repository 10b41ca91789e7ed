/*
 * Memory for small things: these die with one line when there is none left. Sizes that come
 * from a target or a file are never passed here unchecked: check them first and fail softly.
 * Any thread.
 */
#ifndef HEAPTOP_BASE_MEM_H
#define HEAPTOP_BASE_MEM_H

#include <stdarg.h>
#include <stddef.h>

void *xmalloc(size_t size) __attribute__((malloc, alloc_size(1), returns_nonnull));
void *xcalloc(size_t n, size_t size) __attribute__((malloc, alloc_size(1, 2), returns_nonnull));
/* Array growth: `n` elements of `size` bytes; dies on overflow too. */
void *xreallocarray(void *old, size_t n, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
char *xstrndup(const char *s, size_t n) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2), returns_nonnull));
char *xvasprintf(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0), returns_nonnull));

/*
 * Make room for one more element in the array at *ptr (capacity *cap elements of `size` bytes,
 * `n` in use): doubles it when full. Use: VEC_GROW(list->items, list->n, list->cap).
 */
void vec_grow(void *ptr, size_t n, size_t *cap, size_t size);
#define VEC_GROW(items, n, cap) vec_grow(&(items), (n), &(cap), sizeof(*(items)))

/* Scope guards: `CLEANUP_FREE char *s = ...;` */
void free_cleanup(void *ptr);
void close_cleanup(int *fd);
#define CLEANUP_FREE __attribute__((cleanup(free_cleanup)))
#define CLEANUP_CLOSE __attribute__((cleanup(close_cleanup)))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#endif
